"""`moot export`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from moot.graph.cli.database import opened_debate
from moot.graph.cli.options import DbOption, DebateArgument
from moot.graph.cli.screen.output import STDOUT, check_folder, format_of, render, write_file


def export(
    debate_id: DebateArgument,
    form: Annotated[
        Literal["json", "md", "html"] | None,
        typer.Option("--format", "-f", help="Format; by default the output file's ending, else json."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File to write; - for stdout.")
    ] = STDOUT,
    db: DbOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write a debate as JSON (moot.debate/1), Markdown or one HTML page."""
    if as_json or output == STDOUT:
        form = "json" if as_json else form or "json"
    chosen = form or format_of(output)
    check_folder(output)
    with opened_debate(db, debate_id) as debate:
        text = render(debate.document(), chosen)
    write_file(output, text)
