"""Notebooks run from top to bottom without a network and give their stored outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.notebooks import NEVER, NOTEBOOKS, executed, images, read, texts

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("notebooks")]

IMAGES = {
    "01-first-debate": 0,
    "02-resume-and-fork": 0,
    "03-what-memory-keeps": 2,
    "04-judging-and-bias": 1,
    "05-embedding-and-own-models": 0,
    "06-the-graph": 0,
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Executed notebooks by name. One kernel runs all of them, because its start takes seconds."""
    folder = tmp_path_factory.mktemp("notebooks")
    found = {path.stem: each for path, each in zip(NOTEBOOKS, executed(NOTEBOOKS, folder), strict=True)}
    assert not (folder / NEVER).exists()
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path: Path, shown: dict[str, Any]) -> None:
    now, stored = shown[path.stem], read(path)
    assert "stderr" not in {each.get("name") for cell in now.cells for each in cell.get("outputs", [])}
    assert texts(stored) == texts(now), "the outputs differ: run `make notebooks` and read the diff"
    assert len(images(stored)) == len(images(now)) == IMAGES[path.stem]
    assert [cell.execution_count for cell in stored.cells if cell.cell_type == "code"] == [
        *range(1, sum(cell.cell_type == "code" for cell in stored.cells) + 1)
    ]


def test_every_notebook_is_known() -> None:
    assert [path.stem for path in NOTEBOOKS] == [*IMAGES]
