"""`moot report`: write a report on a debate to a file."""

import re
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from moot.cli import databases, options as shared, terminal
from moot.cli.group import command
from moot.state.errors import InputError


@dataclass(frozen=True)
class ReportFormat:
    """Default and allowed file suffixes of a report format."""

    file_end: str
    """End of the default file name, such as `.adr.md`. The debate's name comes before it."""
    suffixes: tuple[str, ...]
    """File suffixes allowed for the format."""


FORMATS: Mapping[str, ReportFormat] = {
    "html": ReportFormat(".html", (".html", ".htm")),
    "md": ReportFormat(".md", (".md",)),
    "json": ReportFormat(".json", (".json",)),
    "brief": ReportFormat(".brief.html", (".html", ".htm", ".md")),
    "adr": ReportFormat(".adr.md", (".md",)),
    "argdown": ReportFormat(".argdown", (".argdown", ".ad")),
}
"""Report formats, keyed by name. The default format of a file is the first format that allows the file's
suffix."""


def _formats(incomplete: str) -> list[str]:
    return [form for form in FORMATS if form.startswith(incomplete)]


@command(
    panel="Read results",
    examples=(
        "mono --format brief --open",
        "mono --format adr -o docs/decisions/0007-monorepo.md",
        "mono --format html,md,json",
    ),
)
def report(
    debate_id: shared.LatestArgument = None,
    formats: Annotated[
        list[str] | None,
        Option(
            "--format",
            "-f",
            metavar="FORMAT[,FORMAT…]",
            help="html (the default): the whole debate as one page. md: the whole debate in Markdown. json: "
            "a document in the moot.debate/1 format. brief: a one-page summary. adr: a decision record in "
            "MADR format. argdown: claims that support or attack each other, for argument maps. Separate "
            "several formats with commas, or repeat the option.",
            autocompletion=_formats,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE|FOLDER",
            help="File or folder to write, or - for stdout. Default: a file named after the debate, such as "
            "NAME.html, NAME.brief.html or NAME.adr.md.",
        ),
    ] = None,
    show: Annotated[bool, Option("--open", help="Open the first output file in the browser.")] = False,
    db: shared.DbOption = None,
    as_json: Annotated[
        bool, Option("--json", help="Print the debate as JSON on stdout, like --format json -o -.")
    ] = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Write a report on a debate as HTML, Markdown, JSON, brief or ADR.

    The HTML report is a single file and needs no network access. The report shows the debate's verdict,
    positions, contested claims, summaries, token counts and transcript. A brief is written as Markdown to a
    .md file or to stdout, and as HTML to any other file.
    """
    if as_json:
        if formats or output not in (None, terminal.STDOUT):
            raise InputError("--json prints to stdout: remove --format and -o, or use --format json -o FILE")
        formats, output = ["json"], terminal.STDOUT
    forms = _chosen(formats or (), output)
    with databases.open_stored_debate(db, debate_id) as debate:
        document, name = debate.document(), debate.name
    paths = [_path(form, name, output) for form in forms]
    for path in paths:
        terminal.check_folder(path)
    for form, path in zip(forms, paths, strict=True):
        terminal.write_file(path, _text(document, form, path))
        if path != terminal.STDOUT and not quiet:
            terminal.print_note(f"wrote {path}")
    first_path = paths[0]
    if show and first_path != terminal.STDOUT and not webbrowser.open(first_path.resolve().as_uri()):
        terminal.print_note(f"found no browser: open {first_path.resolve()} yourself")


def _chosen(formats: Sequence[str], output: Path | None) -> list[str]:
    """Return each format to write once. Without `--format`, the output's suffix selects it."""
    named_forms = [form.strip() for value in formats for form in value.split(",")]
    named_forms = ["md" if form == "markdown" else form for form in named_forms]
    for form in named_forms:
        if form not in FORMATS:
            raise InputError(f"--format {form!r}: choose from {', '.join(FORMATS)}")
    forms = list(dict.fromkeys(named_forms))
    if output is None or output.is_dir():
        return forms or ["html"]
    if len(forms) > 1:
        raise InputError(
            f"-o {str(output)!r} is a single file, but there are several formats: give only one "
            "--format, or set -o to an existing folder"
        )
    if output == terminal.STDOUT:
        return forms or ["html"]
    suffix = output.suffix.lower()
    fitting_forms = [form for form in FORMATS if suffix in FORMATS[form].suffixes]
    forms = forms or fitting_forms[:1]
    if not set(forms) & set(fitting_forms):
        suffixes = dict.fromkeys(each for form in named_forms or FORMATS for each in FORMATS[form].suffixes)
        raise terminal.suffix_error(output, suffixes)
    return forms


def _path(form: str, name: str, output: Path | None) -> Path:
    if output is not None and (output == terminal.STDOUT or not output.is_dir()):
        return output
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100]  # safe in paths and shells
    return (output or Path()) / ((stem or "debate") + FORMATS[form].file_end)


def _text(document: Mapping[str, object], form: str, path: Path) -> str:
    from moot.reports import render_argdown, render_brief, render_brief_html

    if form == "argdown":
        return render_argdown(document)
    if form == "adr":
        return render_brief(document, "adr")
    if form == "brief":
        as_markdown = path == terminal.STDOUT or path.suffix.lower() == ".md"
        return render_brief(document) if as_markdown else render_brief_html(document)
    return terminal.render(document, form)
