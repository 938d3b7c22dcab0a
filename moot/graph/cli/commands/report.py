"""`moot report`."""

import re
from pathlib import Path
from typing import Annotated

import typer

from moot.graph.cli.database import opened_debate
from moot.graph.cli.options import DbOption, DebateArgument, QuietOption
from moot.graph.cli.screen.output import STDOUT, check_folder, format_of, remark, render, write_file
from moot.state.errors import InputError


def report(
    debate_id: DebateArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="FILE.html, FILE.md or - for stdout; else NAME.html."
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--md", help="Markdown instead of HTML.")] = False,
    db: DbOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write a debate as one self-contained HTML page, or as Markdown.

    Verdict and solution first, then positions, contested claims, summaries, tokens and the transcript. The
    page needs no network.
    """
    form = "md" if markdown else "html"
    if output not in (None, STDOUT):
        form = format_of(output)
        if form == "json" or (markdown and form != "md"):
            raise InputError(
                f"output file {str(output)!r}: a report is .html or .md; `moot export` writes JSON"
            )
    with opened_debate(db, debate_id) as debate:
        text, name = render(debate.document(), form), debate.name
    path = output or Path(f"{file_name(name)}.{form}")
    check_folder(path)
    write_file(path, text)
    if path != STDOUT and not quiet:
        remark(f"wrote {path}")


def file_name(name: str) -> str:
    """Return a debate's name as a file's, without what paths and shells take for something else."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100]
    return safe or "debate"
