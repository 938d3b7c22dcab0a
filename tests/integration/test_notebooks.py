"""The notebooks run from top to bottom, without a network, and are kept without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
BY_NAME = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

NO_NETWORK = """\
import sys
HERE = ("127.0.0.1", "::1", "localhost", None)
def refuse(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in HERE:
        raise OSError(f"a notebook reached for {arguments[1]}")
    if event == "socket.getaddrinfo" and arguments[0] not in HERE:
        raise OSError(f"a notebook looked up {arguments[0]}")
sys.addaudithook(refuse)
"""


def _read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # untyped there


def test_there_are_notebooks() -> None:
    assert [path.name for path in NOTEBOOKS] == [
        "01-first-debate.ipynb",
        "02-resume-and-fork.ipynb",
        "03-what-memory-keeps.ipynb",
    ]


@pytest.mark.slow
@BY_NAME
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MOOT_DB", str(tmp_path / "never-made.sqlite"))
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MOOT_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    notebook = _read(path)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(NO_NETWORK))  # type: ignore[no-untyped-call]  # untyped there
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    printed = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert printed
    assert [output for output in printed if output.get("name") == "stderr"] == []
    assert not (tmp_path / "never-made.sqlite").exists()


@BY_NAME
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = [cell for cell in _read(path).cells if cell.cell_type == "code"]
    assert [cell for cell in cells if cell.outputs or cell.execution_count is not None] == []
