"""The notebooks as they are kept: executed, with outputs that another execution brings again.

`python -m tests.support.notebooks` (`make notebooks`) executes them all and writes their outputs.
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

from tests.support.patience import LONG_TIMEOUT_S

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))

SVG = "image/svg+xml"
NEVER = "never-made.sqlite"
"""The default database, in the folder that a notebook works in: none may write it."""

FRESH = """\
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
del sys
"""
"""Run before each notebook: nothing is left of the one before, and nothing outside can be reached."""


def read(path: Path) -> Any:
    """Return a notebook, as nbformat has it."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # untyped there


def executed(paths: Sequence[Path], folder: Path) -> Iterator[Any]:
    """Yield each notebook with its outputs, all from one kernel that works in `folder`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "MOOT_"))}
    env |= {"JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(folder / "ipython")}
    env["MOOT_DB"] = str(folder / NEVER)
    client = NotebookClient(
        read(paths[0]), timeout=int(LONG_TIMEOUT_S), record_timing=False, coalesce_streams=True
    )
    with client.setup_kernel(cwd=str(folder), env=env):
        for path in paths:
            client.nb = notebook = read(path)
            fresh = nbformat.v4.new_code_cell(FRESH)  # type: ignore[no-untyped-call]  # untyped there
            notebook.cells.insert(0, fresh)
            client.execute(cleanup_kc=False)
            del notebook.cells[0]
            yield _repeatable(notebook)


def _repeatable(notebook: Any) -> Any:
    """Return a notebook without what would be another one the next time, or on another machine."""
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
    """Return a chart without its date, its scripts (no notebook viewer runs them) and its random id."""
    drawing = re.sub(r"<!--.*?-->|<script.*?</script>|<script[^>]*/>", "", drawing, flags=re.DOTALL)
    return re.sub(r"chart-[0-9a-f-]{36}", f"chart-{name}", drawing)


def images(notebook: Any) -> list[str]:
    """Return the charts that a notebook shows."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[SVG] for output in outputs if SVG in output.get("data", {})]


def texts(notebook: Any) -> list[str]:
    """Return what a notebook shows, an entry an output: its words and values, of a chart those in it."""
    return [_text(output) for cell in notebook.cells for output in cell.get("outputs", [])]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return f"{output.name}: {output.text}"
    if SVG in output.data:
        parts = ElementTree.fromstring(output.data[SVG]).iter()  # noqa: S314  # drawn here, by pygal
        return " ".join(each.text or "" for each in parts if _is_read(each))
    return str(output.data.get("text/plain", output.data))


def _is_read(part: ElementTree.Element) -> bool:
    """Return whether somebody reads this part of a chart: its labels and values, not style or places."""
    tag = part.tag.rpartition("}")[2]
    return tag in {"text", "title"} or (tag == "desc" and part.get("class") == "value")


def main() -> None:
    """Execute all notebooks and keep their outputs."""
    with TemporaryDirectory() as folder:
        for path, notebook in zip(NOTEBOOKS, executed(NOTEBOOKS, Path(folder)), strict=True):
            nbformat.write(notebook, path)  # type: ignore[no-untyped-call]  # untyped there
            print(f"{path.name}: {len(texts(notebook))} outputs")


if __name__ == "__main__":
    main()
