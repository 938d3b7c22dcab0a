"""`moot import`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option, prompt

from moot.graph.cli.database import command_line, open_database
from moot.graph.cli.options import ConfigOption, DbOption, JsonOption, NameOption, QuietOption
from moot.graph.cli.screen.output import print_json, print_text, remark
from moot.graph.cli.screen.terminal_text import one_line
from moot.nodes.text.plain import amount
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.graph.importing import ImportedTranscript

Format = Literal["json", "jsonl", "csv", "txt", "md"]


def import_debate(
    path: Annotated[Path, Argument(metavar="FILE", help="The transcript, - for stdin.")],
    topic: Annotated[
        str | None, Option("--topic", "-t", metavar="TEXT|@FILE", help="What was argued.")
    ] = None,
    name: NameOption = None,
    form: Annotated[
        Format | None, Option("--format", "-f", help="Its format; else ending and content tell.")
    ] = None,
    debater: Annotated[
        list[str] | None,
        Option("--debater", "-d", metavar="NAME", help="Who of the speakers argues; repeat for each."),
    ] = None,
    moderator: Annotated[
        list[str] | None,
        Option("--moderator", metavar="NAME", help="Who moderates, and is not judged; repeat for each."),
    ] = None,
    config: ConfigOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a debate of a transcript: to judge, summarise, report, or go on with.

    Reads JSON, JSON lines, CSV (speaker,minute,text), text (NAME: text) and Markdown. An exported debate
    (moot.debate/1) becomes the debate that it was, with summaries, blackboard and verdicts.
    """
    from moot.graph.cli.named_files import read_topic, read_transcript
    from moot.graph.cli.usual_config import run_config

    imported = read_transcript(path, form)
    with open_database(db, make=True) as debates:
        if imported.document is not None:
            given = {"--topic": topic, "--debater": debater, "--moderator": moderator, "--config": config}
            if refused := [option for option, value in given.items() if value]:
                raise InputError(
                    f"{' and '.join(refused)}: an exported debate keeps its own topic, debaters and "
                    "configuration"
                )
            debate = debates.import_document(imported.document, name=name)
        else:
            settings = run_config(config, {})
            debate = debates.import_transcript(
                imported,
                topic=settings.topic if topic is None else read_topic(topic),
                name=name,
                config=settings,
                debaters=debater or _arguing(imported, moderator or (), quiet=quiet),
            )
        document = debate.document()
        if as_json:
            return print_json(document)
        print_text(debate.name)
        if quiet:
            return
        entries, names = document["transcript"], [each["name"] for each in document["config"]["debaters"][:8]]
        tokens = sum(entry["tokens"] for entry in entries)
        said = f"{amount(len(entries), 'entry')} · {amount(tokens, 'token')}"
        remark(f"{said} · debaters: {', '.join(names)}")
        remark(f"  judge it   {command_line('judge', debate.name, db=db)}")
        remark(f"  report it  {command_line('report', debate.name, db=db)}")
        if debate.can_go_on():
            remark(f"  extend it  {command_line('resume', debate.name, '--turns', '6', db=db)}")


def _arguing(imported: ImportedTranscript, moderators: Sequence[str], *, quiet: bool) -> list[str]:
    """Return who argues, `[]` for everybody but whoever is called moderator; asks where that is open."""
    from moot.state.config import RESERVED_IDS

    names = {speaker.id: speaker.name for speaker in imported.speakers}
    if not moderators and len(names) > 2 and not names.keys() & RESERVED_IDS:
        who = ", ".join(one_line(name, 40) for name in names.values())
        if not sys.stdin.isatty():
            if not quiet:
                remark(f"{who} are all taken for debaters: --moderator NAME leaves out who moderates")
            return []
        question = f"{who}: who of them moderates? Enter for nobody"
        said = prompt(question, default="", show_default=False, err=True)
        moderators = [said] if said.strip() else []
    wanted = {name.strip().casefold() for name in moderators}
    found = {key for key, name in names.items() if wanted & {key, name.casefold()}}
    if len(found) < len(wanted):
        raise InputError(f"--moderator: nobody speaks by that name; there are {', '.join(names.values())}")
    return [key for key in names if key not in found and key not in RESERVED_IDS] if found else []
