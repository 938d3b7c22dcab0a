"""`moot export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import DbOption, DebateArgument

app = new_app()


@app.command()
def export(
    debate_id: DebateArgument,
    form: Annotated[
        Literal["json", "md", "html"] | None,
        typer.Option("--format", "-f", help="Format; by default the output file's ending, else json."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write; stdout without one.")
    ] = None,
    db: DbOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write a debate as JSON (moot.debate/1), Markdown or one HTML page."""
    from moot.graph.cli.database import opened
    from moot.graph.cli.screen.output import check_folder, format_of, print_text, render, write_file

    chosen = "json" if as_json else form or (format_of(output) if output else "json")
    if output is not None:
        check_folder(output)
    with opened(db) as debates:
        text = render(debates.get(debate_id).document(), chosen)
    if output is None:
        print_text(text)
    else:
        write_file(output, text)
