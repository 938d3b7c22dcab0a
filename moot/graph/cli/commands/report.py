"""`moot report`."""

import re
import webbrowser
from pathlib import Path
from typing import Annotated, Any, Literal

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
    brief: Annotated[bool, typer.Option("--brief", help="One page for whoever decides.")] = False,
    form: Annotated[
        Literal["html", "md", "adr"] | None,
        typer.Option("--format", "-f", help="adr is a decision record in MADR's form."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
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
    with opened_debate(db, debate_id) as debate:
        document, name = debate.document(), debate.name
    path = output or Path(file_name(name) + _ENDINGS.get((chosen, brief), f".{chosen}"))
    check_folder(path)
    write_file(path, _rendered(document, chosen, brief=brief))
    if path != STDOUT:
        if not quiet:
            remark(f"wrote {path}")
        if show and not webbrowser.open(path.resolve().as_uri()):
            remark(f"no browser is found here: open {path.resolve()} yourself")


_ENDINGS = {("html", True): "-brief.html", ("md", True): "-brief.md", ("adr", False): ".adr.md"}


def _rendered(document: dict[str, Any], form: str, *, brief: bool) -> str:
    from moot.graph.reports import render_brief, render_brief_html

    if form == "adr":
        return render_brief(document, "adr")
    if brief:
        return render_brief_html(document) if form == "html" else render_brief(document)
    return render(document, form)


def file_name(name: str) -> str:
    """Return a debate's name as a file's, without what paths and shells take for something else."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100]
    return safe or "debate"
