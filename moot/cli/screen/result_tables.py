"""Tables of results for the screen, Markdown and files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from moot.cli.screen.output import (
    check_folder,
    json_text,
    one_line,
    print_json,
    print_result,
    print_text,
    write_file,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from moot.state.verdict import Rate


CELL_CHARS = 40
"""Maximum number of characters in a table cell on the screen."""
Form = TypeVar("Form", bound=str)


@dataclass(frozen=True)
class Grid:
    """Table of text cells with a heading row."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[bool] | None = None
    """True for each column that the screen aligns right. `None`: all columns but the first."""

    def markdown(self) -> str:
        """Return the table in Markdown, with special characters in its cells escaped."""
        lines = [self.heading, ["---"] * len(self.heading), *self.rows]
        return "".join(f"| {' | '.join(map(markdown_cell, line))} |\n" for line in lines)

    def screen(self) -> Table:
        """Return the table as a renderable for the screen."""
        from rich.text import Text

        table = borderless_table()
        right = self.numeric or [False, *(True for _ in self.heading[1:])]
        for title, is_right in zip(self.heading, right, strict=True):
            table.add_column(Text(one_line(title, CELL_CHARS)), justify="right" if is_right else "left")
        for row in self.rows:
            table.add_row(*(Text(one_line(cell, CELL_CHARS)) for cell in row))
        return table


def borderless_table(*words: str, figures: Iterable[str] = (), expand: bool = False) -> Table:
    """Return an empty table that is drawn without lines.

    Columns of `words` are aligned left, columns of `figures` right.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=expand)
    for heading in words:
        table.add_column(Text(heading))
    for heading in figures:
        table.add_column(Text(heading), justify="right")
    return table


def markdown_cell(text: str) -> str:
    """Return a text escaped for use in a cell of a Markdown table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def form_of(given: Form | None, output: Path | None, *, as_json: bool, forms: Sequence[Form]) -> Form:
    """Return the output format that the option or the file suffix specifies, or the default format.

    Raises:
        InputError: the output file cannot be written.
    """
    if output is not None:
        check_folder(output)
    ending = output.suffix.lower().removeprefix(".") if output else ""
    wanted = "json" if as_json else given or ending
    return next((form for form in forms if form == wanted), forms[0])


def deliver(
    form: str, output: Path | None, data: object, markdown: str, parts: Sequence[RenderableType]
) -> None:
    """Write a result to a file, or print it if no file is given."""
    if output is not None:
        write_file(output, json_text(data) + "\n" if form == "json" else markdown)
    elif form == "json":
        print_json(data)
    elif form == "md":
        print_text(markdown)
    else:
        print_result(*parts)


def rate(value: Rate) -> str:
    """Return a proportion with its confidence interval as text, or `–` if the proportion is undefined."""
    if value["rate"] is None:
        return "–"
    return f"{value['rate']:.2f} ({value['low']:.2f}–{value['high']:.2f}, n = {value['n']})"


def number(value: float | None) -> str:
    """Return a coefficient as text with two decimals, or `–` if the coefficient is undefined."""
    return "–" if value is None else f"{value:.2f}"
