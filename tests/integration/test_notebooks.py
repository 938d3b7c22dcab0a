"""Each notebook runs from top to bottom without a network and gives its stored outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.notebooks import (
    NOTEBOOKS,
    UNUSED_DATABASE,
    chart_svgs,
    execute_notebooks,
    output_texts,
    read_notebook,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("notebooks")]

IMAGE_COUNTS = {
    "01-first-debate": 0,
    "02-resume-and-fork": 0,
    "03-what-memory-keeps": 2,
    "04-judging-and-bias": 1,
    "05-embedding-and-own-models": 0,
    "06-the-graph": 0,
}


@pytest.fixture(scope="module")
def executed_notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Executed notebooks by name. One kernel runs all of them, because its start takes seconds."""
    folder = tmp_path_factory.mktemp("notebooks")
    notebooks = {
        path.stem: each for path, each in zip(NOTEBOOKS, execute_notebooks(NOTEBOOKS, folder), strict=True)
    }
    assert not (folder / UNUSED_DATABASE).exists()
    return notebooks


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_run_gives_the_stored_outputs(path: Path, executed_notebooks: dict[str, Any]) -> None:
    now, stored = executed_notebooks[path.stem], read_notebook(path)
    assert "stderr" not in {each.get("name") for cell in now.cells for each in cell.get("outputs", [])}
    assert output_texts(stored) == output_texts(now), (
        "the outputs differ: run `make notebooks` and read the diff"
    )
    assert len(chart_svgs(stored)) == len(chart_svgs(now)) == IMAGE_COUNTS[path.stem]
    assert [cell.execution_count for cell in stored.cells if cell.cell_type == "code"] == [
        *range(1, sum(cell.cell_type == "code" for cell in stored.cells) + 1)
    ]


def test_image_counts_list_every_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == [*IMAGE_COUNTS]
