"""`moot show` and `moot audit`: print a stored debate, and what its memory costs."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from moot.cli import databases, inputs, options, terminal
from moot.cli.group import command
from moot.state.errors import InputError
from moot.state.verdict import import_note
from moot.storage.catalogue import MAX_NAME, DebateRow, ListedResult, handle
from moot.text.plain_text import count_noun, positions_ignoring_case
from moot.text.terms import question_in

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from moot.api import Debate


@command(panel="Read results", examples=("mono", 'mono --replay-without "rolling summary" --turns 3-5'))
def audit(
    debate_id: options.DebateArgument,
    without: Annotated[
        str | None,
        Option(
            "--replay-without",
            metavar="KIND",
            help="Repeat turns without this kind of memory, such as pinned or 'rolling summary'. Needs "
            "--turns.",
        ),
    ] = None,
    turns: Annotated[
        str | None,
        Option("--turns", metavar="A-B", help="Turns to repeat, such as 3 or 3-5. The first turn is 1."),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            "--model",
            help="Model for the turns that --replay-without repeats. Default: each speaker's own model.",
        ),
    ] = None,
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show what each kind of memory costs and how often prompts use it.

    Summaries and pinned messages are two kinds of memory. To see what difference a kind of memory makes, use
    --replay-without to repeat some turns. Moot then leaves this kind of memory out of the prompts, and prints
    the repeated turns beside the original turns.
    """
    from moot.cli import show_parts
    from moot.debates.prompt_reconstruction import audit as memory_costs, replay_without

    if (without is None) != (turns is None):
        raise InputError("--replay-without and --turns must be used together: give both")
    with databases.open_stored_debate(db, debate_id) as debate:
        if without is None or turns is None:
            rows = memory_costs(debate.document())
            data: object = {"id": debate.id, "memory": [asdict(row) for row in rows]}
            parts = show_parts.memory_costs(rows)
        else:
            match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", turns)
            if not match:
                raise InputError(
                    f"--turns {turns!r} is not a turn or a range of turns: give a value such as 3 or 3-5"
                )
            first, last = int(match[1]), int(match[2] or match[1])
            replayed_turns = replay_without(debate.session, without, first, last, model=model)
            data = {"id": debate.id, "without": without, "turns": [each.to_json() for each in replayed_turns]}
            parts = show_parts.replays(replayed_turns, without)
    terminal.print_answer(data, *parts, as_json=as_json)


POLL_INTERVAL_S = 0.5
"""Interval in seconds at which `--follow` reads a running debate from the database."""


@command(panel="Read results", examples=("mono --transcript", "mono --follow"))
def show(
    debate_id: options.LatestArgument = None,
    transcript: Annotated[bool, Option("--transcript", help="Show all messages.")] = False,
    summary: Annotated[bool, Option("--summary", help="Show the latest summary of older messages.")] = False,
    summaries: Annotated[
        bool, Option("--summaries", help="Show every version of every summary in the debate.")
    ] = False,
    blackboard: Annotated[
        bool,
        Option(
            "--blackboard",
            help="Show the blackboard: claims, positions, rounds, reflections and crux cards. A crux card "
            "contains the result of a side discussion.",
        ),
    ] = False,
    receipts: Annotated[
        bool, Option("--receipts", help="Show the number of tokens in each section of each debater's prompt.")
    ] = False,
    calls: Annotated[
        bool, Option("--calls", help="Like --receipts, but for all model calls except debaters' turns.")
    ] = False,
    verdict: Annotated[bool, Option("--verdict", help="Show the verdict.")] = False,
    prompt: Annotated[
        str | None,
        Option(
            "--prompt",
            metavar="SEQ",
            help=(
                "Show the exact prompt of a model call. Give the number or id of the message that the call "
                "produced, such as 12 or m000012. For a call that produced no message, give the id of the "
                "call, such as c000012."
            ),
        ),
    ] = None,
    follow: Annotated[
        bool,
        Option(
            "--follow", help="Print the new messages of a running debate as they arrive, until the run ends."
        ),
    ] = False,
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show a debate's verdict and an overview, or one part of the debate."""
    part_options = {
        "transcript": transcript,
        "summary": summary,
        "summaries": summaries,
        "blackboard": blackboard,
        "receipts": receipts,
        "calls": calls,
        "verdict": verdict,
        "view": prompt is not None,
    }
    part_names = [name for name, is_chosen in part_options.items() if is_chosen]
    if len(part_names) > 1:
        raise InputError(
            "these options cannot be used together: choose one of "
            f"{', '.join(f'--{name}' for name in part_names)}"
        )
    from moot.cli import running, show_parts

    with databases.open_stored_debate(db, debate_id) as debate:
        if follow:
            return _follow(debate)
        if prompt is not None:
            from moot.debates.prompt_reconstruction import reconstruct_prompt

            reconstruction = reconstruct_prompt(
                debate.session, prompt if prompt.startswith("c") else inputs.entry_number(prompt, "--prompt")
            )
            return terminal.print_answer(
                reconstruction.to_json(), *show_parts.prompt(reconstruction), as_json=as_json
            )
        document = debate.document()
        parent = debate.session.records.catalogue.name_of(document["parent"]) if document["parent"] else ""
    notes = []
    if not as_json and not part_names and document["status"] in ("failed", "paused"):
        notes = [f"\nContinue with: {running.resume_line(debate, db)}"]
    if document["verdict"] and not (part_names or as_json) and terminal.is_terminal():
        verdict_command = options.command_line(
            "show", handle(document["id"], document["name"]), "--verdict", db=db
        )
        has_question = document["verdict"]["status"] == "ok" and not document["verdict"].get("placeholder")
        facts = show_parts.overview(document, parent)[has_question:]
        return running.print_short_answer(document, ["", f"  verdict  {verdict_command}", *notes], facts)
    data, parts = show_parts.part(part_names[0] if part_names else "", document, parent)
    terminal.print_answer(data, *parts, as_json=as_json)
    for note in notes:
        terminal.print_note(note)


def _follow(debate: Debate) -> None:
    """Print each new entry as soon as it is stored, until the debate stops running."""
    from moot.cli import show_parts

    shown_count = 0
    while True:
        is_running = debate.is_running()
        document = debate.document()
        if new_entries := document["transcript"][shown_count:]:
            terminal.print_result(*show_parts.transcript({**document, "transcript": new_entries}))
            shown_count += len(new_entries)
        if not is_running:
            return terminal.print_result(*show_parts.part("verdict", document)[1])
        time.sleep(POLL_INTERVAL_S)


STATUSES = ("done", "limit", "paused", "waiting", "running", "failed", "new")
"""Statuses that a stored debate can have."""
WIDE = 100
"""Minimum terminal width, in columns, for listing debates in a table."""
EVALUATED = re.compile(r"eval-.{1,200}-[0-9a-f]{10}")
"""Pattern for the names of debates that belong to an evaluation."""
AROUND = 60
"""Number of characters shown before and after the first search hit in a message."""


def _check_status(status: str | None) -> None:
    """Raise an error if `status` is not the name of a debate status."""
    if status not in (None, *STATUSES):
        raise InputError(f"{status!r} is not a status: choose from {', '.join(STATUSES)}")


@command(name="list", panel="Read results", examples=("--status paused --grep monorepo",))
def list_debates(
    limit: Annotated[
        int | None, Option("--limit", "-n", min=1, metavar="N", help="Show only the latest N debates.")
    ] = None,
    status: Annotated[
        str | None,
        Option(
            "--status",
            metavar="STATUS",
            help="Show only debates with this status: done, limit, paused, waiting, running or failed.",
        ),
    ] = None,
    grep: Annotated[
        str | None,
        Option(
            "--grep",
            metavar="WORDS",
            help="Show only debates whose name, topic, model or result contains WORDS.",
        ),
    ] = None,
    evaluations: Annotated[
        bool, Option("--evaluations", help="Also list the debates that evaluations ran.")
    ] = False,
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """List debates, the most recently active last on a terminal.

    Other outputs get one line for each debate, the most recently active one first: the name, status, time of
    the last change, question and decision, separated by tabs.
    """
    _check_status(status)
    with databases.open_catalogue(db) as records:
        rows, outcomes = (records.rows(), records.results.all()) if records else ([], {})
        revisit_dates = records.follow_ups.revisit_dates() if records else {}
        import_times = records.imports.times() if records else {}
    matching_debates = [
        (row, outcomes.get(row.id))
        for row in rows
        if status in (None, row.status) and _contains(row, outcomes.get(row.id), grep or "")
    ]
    kept_debates = (
        matching_debates
        if evaluations
        else [each for each in matching_debates if not EVALUATED.fullmatch(each[0].name)]
    )
    shown_debates = kept_debates[:limit]
    if as_json:
        terminal.print_json(
            [
                {
                    **asdict(row),
                    **(asdict(outcome) if outcome else {}),
                    "revisit": revisit_dates.get(row.id),
                    "imported_at": import_times.get(row.id),
                    "note": import_note(import_times.get(row.id, "")),
                }
                for row, outcome in shown_debates
            ]
        )
    elif not terminal.is_terminal():
        for each in shown_debates:
            terminal.print_text(_line(each))
    elif shown_debates:
        latest_last = shown_debates[::-1]
        terminal.print_result(
            *([_table(latest_last)] if terminal.columns() >= WIDE else _debate_blocks(latest_last))
        )
    if not (rows or as_json):
        terminal.print_note('no debates yet: play one with `moot demo`, or ask `moot "Should we …?"`')
    if len(kept_debates) > len(shown_debates):
        terminal.print_note(f"{len(kept_debates) - len(shown_debates)} more")
    if hidden_count := len(matching_debates) - len(kept_debates):
        terminal.print_note(
            f"not shown: {count_noun(hidden_count, 'debate')} of evaluations; add --evaluations to see them"
        )
    today = date.today().isoformat()
    for row, _ in shown_debates:
        if (due := revisit_dates.get(row.id)) and due <= today:
            debate_handle = handle(row.id, row.name)
            feedback_command = options.command_line("feedback", debate_handle, "right", db=db)
            terminal.print_note(
                f"revisit {terminal.one_line(debate_handle, 60)} since {due}: {feedback_command} (or wrong, "
                "mixed)"
            )


def _contains(row: DebateRow, outcome: ListedResult | None, text: str) -> bool:
    """Return True if a debate's name, topic or result contains the text, ignoring case."""
    searched_texts = [row.name, row.topic]
    if outcome:
        searched_texts += [outcome.question, outcome.model, outcome.winner, outcome.decision]
    return text.casefold() in "\n".join(searched_texts).casefold()


def _line(debate: tuple[DebateRow, ListedResult | None]) -> str:
    """Format a debate as one line for a program, with its whole name."""
    row, outcome = debate[0], debate[1] or ListedResult()
    question = outcome.question or question_in(row.topic)
    cells = (handle(row.id, row.name), row.status, row.updated_at, question, outcome.text)
    return "\t".join(terminal.one_line(cell, 400) for cell in cells)


def _debate_blocks(debates: list[tuple[DebateRow, ListedResult | None]]) -> list[RenderableType]:
    """Format a list of debates for a narrow terminal. Each debate is a block of text."""
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    for row, outcome in debates:
        result = outcome or ListedResult()
        facts = [
            row.status,
            _confidence(result, "confidence "),
            result.model,
            count_noun(row.turns, "turn"),
            _cost(row),
            f"{age(row.updated_at)} ago",
        ]
        lines = [
            terminal.one_line(result.question or question_in(row.topic), 200),
            terminal.one_line(result.text, 400),
        ]
        lines.append(terminal.one_line(" · ".join(filter(None, facts)), 200))
        details = Text("\n".join(filter(None, lines)))
        parts += [Text(terminal.one_line(row.name, MAX_NAME), "bold"), Padding(details, (0, 0, 0, 2))]
    return parts


def _confidence(result: ListedResult, label: str = "") -> str:
    """Return the confidence in a debate's decision as text, or `""` if it is unknown."""
    return "" if result.confidence is None else f"{label}{result.confidence:.0f}"[:40]


LONGEST_COST_USD = 1e6
"""Lowest cost in US$ that lists show in scientific notation, such as `$1.2e+06`."""


def _cost(row: DebateRow) -> str:
    """Return the known cost of a debate in US$ as text, or `""` if no call has a known price."""
    if not row.cost_usd:
        return ""
    return f"${row.cost_usd:.4f}" if abs(row.cost_usd) < LONGEST_COST_USD else f"${row.cost_usd:.1e}"


def age(timestamp: str, now: datetime | None = None) -> str:
    """Return the time since an ISO 8601 timestamp in one unit, such as `3 h` or `12 d`."""
    try:
        seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(timestamp)).total_seconds()
    except ValueError:
        return ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


NAME_WIDTH_DIVISOR = 3
"""Divisor for the part of the terminal's width that debate names may always use: 3 means one third. A name
that is derived from a question has at most 40 characters, so a terminal of 120 columns shows it whole."""


def _table(debates: list[tuple[DebateRow, ListedResult | None]]) -> Table:
    from rich.cells import cell_len
    from rich.text import Text

    has_costs = any(_cost(row) for row, _ in debates)
    headings = ["debate", "question", "decision", "sure", "status", *(["cost"] if has_costs else []), "age"]
    rows = [headings]
    for row, outcome in debates:
        result = outcome or ListedResult()
        rows.append(
            [
                handle(row.id, row.name),
                result.question or question_in(row.topic),
                result.text,
                _confidence(result),
                row.status,
                *([_cost(row)] if has_costs else []),
                age(row.updated_at),
            ]
        )
    rows = [[terminal.one_line(cell, 200) for cell in cells] for cells in rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    remaining = terminal.columns() - sum(widths[1:]) - terminal.COLUMN_GAP * len(widths)
    table = terminal.borderless_table()
    name_width = max(remaining, terminal.columns() // NAME_WIDTH_DIVISOR)
    table.add_column(headings[0], no_wrap=True, max_width=name_width, overflow="ellipsis")
    for heading in headings[1:3]:  # `rich` shortens the widest of these columns if the table is too wide
        table.add_column(heading)
    for heading in headings[3:]:
        justify: Literal["left", "right"] = "left" if heading == "status" else "right"
        table.add_column(heading, justify=justify, no_wrap=True, max_width=12, overflow="ellipsis")
    for cells in rows[1:]:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells))
    return table


@command(panel="Read results", examples=("hiring freeze",))
def search(
    words: Annotated[
        list[str],
        Argument(
            metavar="WORDS", help="Words to search for. A message matches if it contains all of these words."
        ),
    ],
    limit: Annotated[
        int, Option("--limit", "-n", min=1, metavar="N", help="Maximum number of messages to show.")
    ] = 20,
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Find the messages in all debates that contain the given words."""
    from rich.padding import Padding
    from rich.text import Text

    search_words = [word.casefold() for argument in words for word in argument.split()]
    if not search_words:
        raise InputError("there is nothing to search for: give one or more words")
    hits = []
    with databases.open_database(db) as debates:
        for row in debates.rows():
            debate = debates.get(row.id)
            try:
                values = debate.state().values
            except InputError as error:
                terminal.print_note(f"skipped {debate.name}: {error}")
                continue
            names = debate.config().names() if values.get("config") else {}
            for entry in values.get("full_transcript", []):
                text = " ".join(entry["content"].split())
                positions = positions_ignoring_case(text, search_words)
                if min(positions) >= 0:
                    position = positions[0]
                    start, end = max(0, position - AROUND), position + len(search_words[0]) + AROUND
                    excerpt = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
                    speaker = names.get(entry["speaker"], entry["speaker"])
                    hits.append(
                        {"debate": debate.name, "id": entry["id"], "speaker": speaker, "text": excerpt}
                    )
    if as_json:
        return terminal.print_json(hits[:limit])
    for each in hits[:limit]:
        heading = " · ".join(terminal.one_line(each[key], 60) for key in ("debate", "id", "speaker"))
        terminal.print_result(
            Text(heading, "bold"), Padding(Text(terminal.one_line(each["text"], 400)), (0, 0, 0, 2))
        )
    if len(hits) > limit:
        terminal.print_note(f"{len(hits) - limit} more messages: add --limit {len(hits)} to see them")
    elif not hits:
        terminal.print_note("no message contains these words")
