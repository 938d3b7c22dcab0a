"""Execution of the notebooks, with outputs that are the same in every execution.

`python -m tests.support.notebooks` (`make notebooks`) executes all notebooks and writes their outputs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import nbformat
from nbclient import NotebookClient

from tests.support.waiting import LONG_TIMEOUT_S

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))

SVG = "image/svg+xml"
UNUSED_DATABASE = "never-made.sqlite"
"""Default database in the working folder of a notebook. No notebook may write it."""

SETUP_CODE = """\
%reset -f
import sys
if "REFUSES" not in sys.__dict__:
    def _refuse(event, arguments, here=("127.0.0.1", "::1", "localhost", None)):
        if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in here:
            raise OSError(f"a notebook reached for {arguments[1]}")
        if event == "socket.getaddrinfo" and arguments[0] not in here:
            raise OSError(f"a notebook looked up {arguments[0]}")
    sys.addaudithook(_refuse)
    sys.REFUSES = True
from moot.retrieval import static_vectors
from moot.runtime import environment
environment.token_hex = lambda length: ""
static_vectors.PACKAGE = "moot_without_word_vectors"
del environment, static_vectors, sys
"""
"""Cell that runs before each notebook. It clears all variables and blocks the network. Equal debates send
equal prompts, as conftest.py provides."""


def read_notebook(path: Path) -> Any:
    """Return a notebook in the form of nbformat."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # untyped there


def execute_notebooks(paths: Sequence[Path], folder: Path) -> Iterator[Any]:
    """Yield each notebook with its outputs. One kernel in `folder` executes all of them.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "MOOT_"))}
    env |= {"JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(folder / "ipython")}
    env["MOOT_DB"] = str(folder / UNUSED_DATABASE)
    client = NotebookClient(
        read_notebook(paths[0]), timeout=int(LONG_TIMEOUT_S), record_timing=False, coalesce_streams=True
    )
    with client.setup_kernel(cwd=str(folder), env=env):
        for path in paths:
            client.nb = notebook = read_notebook(path)
            setup_cell = nbformat.v4.new_code_cell(SETUP_CODE)  # type: ignore[no-untyped-call]  # untyped there
            notebook.cells.insert(0, setup_cell)
            client.execute(cleanup_kc=False)
            del notebook.cells[0]
            yield _repeatable(notebook)


def _repeatable(notebook: Any) -> Any:
    """Remove the data that differs between executions or machines."""
    notebook.metadata.language_info = {"name": "python"}
    for number, cell in enumerate((each for each in notebook.cells if each.cell_type == "code"), 1):
        cell.execution_count = number
        cell.metadata.clear()
        for place, output in enumerate(cell.outputs):
            if "execution_count" in output:
                output.execution_count = number
            if SVG in output.get("data", {}):
                output.data[SVG] = _plain_svg(output.data[SVG], f"{cell.id}-{place}")
    return notebook


def _plain_svg(drawing: str, name: str) -> str:
    """Return a chart without its date, random id and scripts, which no notebook viewer runs."""
    drawing = re.sub(r"<!--.*?-->|<script.*?</script>|<script[^>]*/>", "", drawing, flags=re.DOTALL)
    return re.sub(r"chart-[0-9a-f-]{36}", f"chart-{name}", drawing)


def chart_svgs(notebook: Any) -> list[str]:
    """Return the charts in a notebook's outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[SVG] for output in outputs if SVG in output.get("data", {})]


def output_texts(notebook: Any) -> list[str]:
    """Return the text of each output of a notebook. The text of a chart is its labels and values."""
    return [_text(output) for cell in notebook.cells for output in cell.get("outputs", [])]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return f"{output.name}: {output.text}"
    if SVG in output.data:
        parts = ElementTree.fromstring(output.data[SVG]).iter()  # noqa: S314  # drawn here, by pygal
        return " ".join(each.text or "" for each in parts if _is_visible(each))
    return str(output.data.get("text/plain", output.data))


def _is_visible(part: ElementTree.Element) -> bool:
    """Return True if a part of a chart is a label or a value, not style or layout."""
    tag = part.tag.rpartition("}")[2]
    return tag in {"text", "title"} or (tag == "desc" and part.get("class") == "value")


def main() -> None:
    """Execute all notebooks and write their outputs."""
    with TemporaryDirectory() as folder:
        for path, notebook in zip(NOTEBOOKS, execute_notebooks(NOTEBOOKS, Path(folder)), strict=True):
            nbformat.write(notebook, path)  # type: ignore[no-untyped-call]  # untyped there
            print(f"{path.name}: {len(output_texts(notebook))} outputs")


if __name__ == "__main__":
    main()
