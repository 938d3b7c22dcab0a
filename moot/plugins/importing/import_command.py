"""`moot import`: store a transcript or an exported debate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option, prompt

from moot.cli import databases, inputs, options as shared, terminal
from moot.cli.group import command
from moot.config import RESERVED_IDS
from moot.state.entries import JsonMapping, message_count, traits_of
from moot.state.errors import InputError
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from moot.importers import ImportedTranscript

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
    """Import a transcript as a debate, to judge, report on or continue.

    `moot import` recognises subtitles, meeting transcripts, chats, conversations with assistants, states of
    agent frameworks, and any JSON, CSV, Markdown or plain text whose messages name their speakers. It refuses
    a file in which it is not clear who speaks. From an exported debate in the moot.debate/1 format,
    `moot import` also restores the summaries, blackboard and verdicts.
    """
    from moot.cli.running import handle_sigterm_as_interrupt
    from moot.debates.lifecycle import unused_name

    imported = _read(path, form, conversation)
    if dry_run:
        preview = imported.preview()
        return terminal.print_json(preview) if as_json else terminal.print_text(_preview_text(preview))
    with databases.open_database(db, make=True) as debates, handle_sigterm_as_interrupt():
        if imported.document is not None:
            options = {"--topic": topic, "--debater": debater, "--moderator": moderator, "--config": config}
            if refused_options := [option for option, value in options.items() if value]:
                raise InputError(
                    "an exported debate already has a topic, debaters and a configuration: remove "
                    f"{' and '.join(refused_options)}"
                )
            debate = debates.import_document(imported.document, name=name)
        else:
            settings = inputs.run_config(config, {})
            question = (settings.topic if topic is None else inputs.read_topic(topic)) or imported.topic
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
    from moot.importers import SeveralConversations

    try:
        return inputs.read_transcript(path, form, conversation)
    except SeveralConversations as error:
        if conversation or not sys.stdin.isatty():
            raise
        for number, title in enumerate(error.titles, start=1):
            terminal.print_note(f"{number:>4}  {title}")
        answer = prompt("Which conversation? Type its number", err=True)
        return inputs.read_transcript(path, form, answer)


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
    from moot.importers import speakers_by_word

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
