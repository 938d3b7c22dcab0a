"""Results that are tables of figures: on the screen, in Markdown, and where they go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from moot.graph.cli.screen.output import check_folder, print_json, print_result, print_text, write_file
from moot.graph.cli.screen.terminal_text import json_text, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from moot.state.verdict import Rate

CELL_CHARS = 40
Form = TypeVar("Form", bound=str)


@dataclass(frozen=True)
class Grid:
    """Texts in rows under a heading."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Return it as Markdown; whatever is in a cell stays there."""
        lines = [self.heading, ["---"] * len(self.heading), *self.rows]
        return "".join(f"| {' | '.join(map(markdown_cell, line))} |\n" for line in lines)

    def screen(self) -> Table:
        """Return it for the screen, all but the first column to the right."""
        from rich.text import Text

        first, *others = (one_line(title, CELL_CHARS) for title in self.heading)
        table = borderless_table(first, figures=others)
        for row in self.rows:
            table.add_row(*(Text(one_line(cell, CELL_CHARS)) for cell in row))
        return table


def borderless_table(*words: str, figures: Iterable[str] = (), expand: bool = False) -> Table:
    """Return a table without lines: columns of words, then columns of figures, by their headings."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=expand)
    for heading in words:
        table.add_column(Text(heading))
    for heading in figures:
        table.add_column(Text(heading), justify="right")
    return table


def markdown_cell(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def form_of(given: Form | None, output: Path | None, *, as_json: bool, forms: Sequence[Form]) -> Form:
    """Return a result's form: what was asked for, else by the output's ending, else the first of `forms`.

    Raises:
        InputError: the output could not be written.
    """
    if output is not None:
        check_folder(output)
    ending = output.suffix.lower().removeprefix(".") if output else ""
    wanted = "json" if as_json else given or ending
    return next((form for form in forms if form == wanted), forms[0])


def deliver(
    form: str, output: Path | None, data: object, markdown: str, parts: Sequence[RenderableType]
) -> None:
    """Write a result to its file, as JSON or as Markdown, or print it in its form."""
    if output is not None:
        write_file(output, json_text(data) + "\n" if form == "json" else markdown)
    elif form == "json":
        print_json(data)
    elif form == "md":
        print_text(markdown)
    else:
        print_result(*parts)


def rate(value: Rate) -> str:
    """Return a proportion with its interval, in words."""
    if value["rate"] is None:
        return "–"
    return f"{value['rate']:.2f} ({value['low']:.2f}–{value['high']:.2f}, n = {value['n']})"


def number(value: float | None) -> str:
    """Return a coefficient with two decimals, `–` where it is undefined."""
    return "–" if value is None else f"{value:.2f}"
