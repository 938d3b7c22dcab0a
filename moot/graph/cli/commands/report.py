"""`moot report` and `moot export`: a debate as a file."""

from __future__ import annotations

import re
import webbrowser
from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from moot.graph.cli.database import open_stored_debate
from moot.graph.cli.options import DbOption, DebateArgument, QuietOption
from moot.graph.cli.screen.output import STDOUT, check_folder, format_of, remark, render, write_file
from moot.state.errors import InputError

ENDINGS = {("html", True): "-brief.html", ("md", True): "-brief.md", ("adr", False): ".adr.md"}
"""Of a report's file by its form and whether it is brief, where that is not the form's own."""


def report(
    debate_id: DebateArgument,
    output: Annotated[
        Path | None,
        Option("-o", "--output", metavar="FILE", help="FILE.html, FILE.md or - for stdout; else NAME.html."),
    ] = None,
    markdown: Annotated[bool, Option("--md", help="Markdown instead of HTML.")] = False,
    brief: Annotated[bool, Option("--brief", help="One page for whoever decides.")] = False,
    form: Annotated[
        Literal["html", "md", "adr"] | None,
        Option("--format", "-f", help="adr is a decision record in MADR's form."),
    ] = None,
    show: Annotated[bool, Option("--open", help="Open it in the browser.")] = False,
    db: DbOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write a debate as one self-contained HTML page, as Markdown, or as a decision record.

    What was asked for first, then the verdict, positions, contested claims, summaries, tokens and the
    transcript. The page needs no network.
    """
    chosen: str | None = "md" if markdown else form
    if output not in (None, STDOUT):
        ending = format_of(output)
        chosen = chosen or ending
        if ending != ("md" if chosen == "adr" else chosen) or ending == "json":
            raise InputError(
                f"output file {str(output)!r}: a report is .html or .md (--format adr: .md); "
                "`moot export` writes JSON"
            )
    chosen = chosen or "html"
    if brief and chosen == "adr":
        raise InputError("--brief and --format adr are two reports: give one of them")
    with open_stored_debate(db, debate_id) as debate:
        document, name = debate.document(), debate.name
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100]  # what paths and shells take for nothing else
    path = output or Path((stem or "debate") + ENDINGS.get((chosen, brief), f".{chosen}"))
    check_folder(path)
    from moot.graph.reports import render_brief, render_brief_html

    if chosen == "adr":
        text = render_brief(document, "adr")
    elif brief:
        text = render_brief_html(document) if chosen == "html" else render_brief(document)
    else:
        text = render(document, chosen)
    write_file(path, text)
    if path != STDOUT:
        if not quiet:
            remark(f"wrote {path}")
        if show and not webbrowser.open(path.resolve().as_uri()):
            remark(f"no browser is found here: open {path.resolve()} yourself")


def export(
    debate_id: DebateArgument,
    form: Annotated[
        Literal["json", "md", "html"] | None,
        Option("--format", "-f", help="Format; by default the output file's ending, else json."),
    ] = None,
    output: Annotated[
        Path, Option("-o", "--output", metavar="FILE", help="File to write; - for stdout.")
    ] = STDOUT,
    db: DbOption = None,
    as_json: Annotated[bool, Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write a debate as JSON (moot.debate/1), Markdown or one HTML page."""
    if as_json or output == STDOUT:
        form = "json" if as_json else form or "json"
    chosen = form or format_of(output)
    check_folder(output)
    with open_stored_debate(db, debate_id) as debate:
        text = render(debate.document(), chosen)
    write_file(output, text)
