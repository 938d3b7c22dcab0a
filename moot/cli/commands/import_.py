"""`moot import`: store a transcript or an exported debate."""

from __future__ import annotations

import re
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option, prompt

from moot.cli import options as shared
from moot.cli import terminal
from moot.cli.group import command
from moot.state.entries import JsonMapping, message_count, traits_of
from moot.state.errors import InputError
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from moot.plugins.importing import ImportedTranscript

Format = Literal["json", "jsonl", "csv", "txt", "md"]


@command(
    name="import",
    panel="Manage debates",
    examples=('talk.csv --topic "A carbon tax?" --moderator Jo --id talk',),
)
def import_debate(
    path: Annotated[Path, Argument(metavar="FILE", help="Transcript file, or - for stdin.")],
    topic: Annotated[
        str | None, Option("--topic", "-t", metavar="TEXT|@FILE", help="Question that was debated.")
    ] = None,
    name: shared.NameOption = None,
    form: Annotated[
        Format | None,
        Option(
            "--format", "-f", help="Format of the file. Default: detected from the file's suffix and content."
        ),
    ] = None,
    debater: Annotated[
        list[str] | None,
        Option(
            "--debater",
            "-d",
            metavar="NAME",
            help="Name of a speaker to treat as a debater. Repeat the option for each debater.",
        ),
    ] = None,
    moderator: Annotated[
        list[str] | None,
        Option(
            "--moderator",
            metavar="NAME",
            help=(
                "Name of a speaker to treat as a moderator. Moderators are not judged. Repeat the option "
                "for each moderator."
            ),
        ),
    ] = None,
    conversation: Annotated[
        str,
        Option(
            "--conversation",
            metavar="NUMBER|TITLE",
            help="Conversation to import from a file with several, such as an export of ChatGPT.",
        ),
    ] = "",
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Show the speakers and the first messages as read, and import nothing."),
    ] = False,
    config: shared.ConfigOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Import a transcript as a debate to judge, report on or continue.

    `moot import` recognises subtitles, meeting transcripts, chats, conversations with assistants, states of
    agent frameworks, and any JSON, CSV, Markdown or plain text whose messages name their speakers. It refuses
    a file in which it is not clear who speaks. From an exported debate in the moot.debate/1 format,
    `moot import` also restores the summaries, blackboard and verdicts.
    """
    from moot.debates.lifecycle import unused_name

    imported = _read(path, form, conversation)
    if dry_run:
        preview = imported.preview()
        return terminal.print_json(preview) if as_json else terminal.print_text(_preview_text(preview))
    with shared.open_database(db, make=True) as debates:
        if imported.document is not None:
            options = {"--topic": topic, "--debater": debater, "--moderator": moderator, "--config": config}
            if refused_options := [option for option, value in options.items() if value]:
                raise InputError(
                    "an exported debate already has a topic, debaters and a configuration: remove "
                    f"{' and '.join(refused_options)}"
                )
            debate = debates.import_document(imported.document, name=name)
        else:
            settings = shared.run_config(config, {})
            question = (settings.topic if topic is None else shared.read_topic(topic)) or imported.topic
            debate = debates.import_transcript(
                imported,
                topic=question,
                name=name or unused_name(debates.records, question),
                config=settings,
                debaters=_participants_of(imported, debater or [], moderator or [], quiet=quiet),
            )
        document = debate.document()
        if as_json:
            return terminal.print_json(document)
        terminal.print_text(debate.name)
        if quiet:
            return
        messages = [entry for entry in document["transcript"] if traits_of(entry).is_message]
        names = [each["name"] for each in document["config"]["debaters"][:8]]
        tokens = sum(entry["tokens"] for entry in messages)
        counts = (
            f"{count_noun(message_count(document['transcript']), 'message')} · {count_noun(tokens, 'token')}"
        )
        terminal.print_note(f"{counts} · debaters: {', '.join(names)}")
        for note in imported.notes():
            terminal.print_note(note)
        terminal.print_note(f"  judge it   {shared.command_line('judge', debate.name, db=db)}")
        terminal.print_note(f"  report it  {shared.command_line('report', debate.name, db=db)}")
        if debate.can_go_on():
            terminal.print_note(
                f"  extend it  {shared.command_line('resume', debate.name, '--turns', '6', db=db)}"
            )


def _read(path: Path, form: str | None, conversation: str) -> ImportedTranscript:
    """Read a transcript. Ask the user of a terminal which conversation to read if there are several."""
    from moot.plugins.importing import SeveralConversations

    try:
        return shared.read_transcript(path, form, conversation)
    except SeveralConversations as error:
        if conversation or not sys.stdin.isatty():
            raise
        for number, title in enumerate(error.titles, start=1):
            terminal.print_note(f"{number:>4}  {title}")
        answer = prompt("Which conversation? Type its number", err=True)
        return shared.read_transcript(path, form, answer)


def _preview_text(preview: JsonMapping) -> str:
    """Return the result of `--dry-run` as lines of text."""
    speakers = [
        f"  {terminal.one_line(each['name'], 40)}: {count_noun(each['messages'], 'message')}"
        for each in preview["speakers"]
    ]
    first = [
        f"  {terminal.one_line(each['speaker'], 40)}: {terminal.one_line(each['content'], 100)}"
        for each in preview["first_messages"]
    ]
    lines = ["Speakers:", *speakers, "First messages:", *first, *preview["notes"]]
    return "\n".join([*lines, "Nothing was imported."])


def _participants_of(
    imported: ImportedTranscript, debaters: list[str], moderators: list[str], *, quiet: bool
) -> list[str]:
    """Return the names or ids of the speakers who are debaters, or `[]` if all speakers are debaters.

    If neither `debaters` nor `moderators` are given, ask the user of a terminal which speakers moderate.
    """
    from moot.config import RESERVED_IDS
    from moot.plugins.importing.transcript import speakers_by_word

    names = {speaker.id: speaker.name for speaker in imported.speakers}
    if not debaters and not moderators and len(names) > 2 and not names.keys() & RESERVED_IDS:
        speakers_text = ", ".join(terminal.one_line(name, 40) for name in names.values())
        if not sys.stdin.isatty():
            if not quiet:
                terminal.print_note(
                    f"all speakers are debaters: {speakers_text}. Use --moderator NAME for a speaker who "
                    "moderates"
                )
            return []
        question = f"Speakers: {speakers_text}. Who moderates? Press Enter for nobody"
        answer = prompt(question, default="", show_default=False, err=True)
        moderators = [answer] if answer.strip() else []
    known_speakers, moderator_ids = speakers_by_word(imported.speakers), set[str]()
    for moderator in moderators:
        if (speaker := known_speakers.get(moderator.strip().casefold())) is None:
            raise InputError(
                f"--moderator {moderator!r}: no speaker has this name. The speakers are "
                f"{', '.join(names.values())}"
            )
        moderator_ids.add(speaker.id)
    for debater in debaters:
        speaker = known_speakers.get(debater.strip().casefold())
        if speaker is not None and speaker.id in moderator_ids:
            raise InputError(
                f"{names[speaker.id]!r} is given with both --debater and --moderator: remove one of the two"
            )
    if debaters or not moderators:
        return debaters
    remaining = [name for key, name in names.items() if key not in moderator_ids | RESERVED_IDS]
    if not remaining:
        raise InputError("--moderator leaves no speaker who debates: name fewer moderators")
    return remaining


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
    debate_id: shared.DebateArgument,
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
    with shared.open_stored_debate(db, debate_id) as debate:
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
    """Return the formats in which to write the report. No format occurs twice.

    Without `--format`, the output file's suffix selects the format.
    """
    named_forms = [form.strip() for value in formats for form in value.split(",")]
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


@command(panel="Read results", examples=("mono mono-vote -o compared.html",))
def compare(
    debate_ids: Annotated[
        list[str],
        Argument(metavar="ID …", help="Names or ids of the debates to compare."),
    ],
    only: Annotated[
        bool,
        Option(
            "--only",
            help="Ask the first debate's model to list the points that appear in only one of the debates.",
        ),
    ] = False,
    output: Annotated[
        Path,
        Option("-o", "--output", metavar="FILE", help="The .html or .md file to write, or - for stdout."),
    ] = terminal.STDOUT,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Compare the results, costs and answers of debates.

    To measure on many questions whether debates are worth their cost, use `moot eval run`.
    """
    from moot.plugins.evals import statistics
    from moot.reports.markdown import as_page

    terminal.check_folder(output)
    form = "md" if output == terminal.STDOUT else terminal.format_of(output)
    if len(debate_ids) < 2:
        raise InputError("there is nothing to compare: give at least two debates")
    if form == "json":
        raise InputError(
            "-o needs a .html or .md file: change the file's suffix, or use --json to print JSON"
        )
    with shared.open_database(db) as debates:
        compared_debates = [debates.get(each) for each in debate_ids]
        comparison = statistics.compare_debates([each.document() for each in compared_debates])
        if only:
            comparison["only"] = statistics.points_of_one(compared_debates[0].session, comparison["debates"])
    if as_json:
        return terminal.print_json(comparison)
    text = statistics.render_comparison(comparison)
    if output == terminal.STDOUT and sys.stdout.isatty():
        return terminal.print_result(terminal.MarkdownText(text))
    page = as_page(text, statistics.comparison_title(comparison), "Comparison") if form == "html" else text
    terminal.write_file(output, page)
    if output != terminal.STDOUT and not quiet:
        terminal.print_note(f"wrote {output}")
