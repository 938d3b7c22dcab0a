"""`moot show`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from typer import Option

from moot.graph.cli.database import open_stored_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption, entry_number
from moot.graph.cli.screen.output import print_answer, print_result, remark
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.graph.api import Debate

LOOK_AGAIN_S = 0.5
"""Between two looks at a debate that runs, seconds."""


def show(
    debate_id: DebateArgument,
    transcript: Annotated[bool, Option("--transcript", help="Everything that was said.")] = False,
    summary: Annotated[bool, Option("--summary", help="The current rolling summary.")] = False,
    summaries: Annotated[bool, Option("--summaries", help="Every version of every summary.")] = False,
    blackboard: Annotated[
        bool, Option("--blackboard", help="Positions, claims, rounds, reflections, crux cards.")
    ] = False,
    receipts: Annotated[bool, Option("--receipts", help="What each prompt was made of, in tokens.")] = False,
    calls: Annotated[
        bool, Option("--calls", help="What every other call was made of: summaries, minutes, verdicts.")
    ] = False,
    verdict: Annotated[bool, Option("--verdict", help="The verdict.")] = False,
    view: Annotated[
        str | None,
        Option("--view", metavar="SEQ", help="The exact prompt of entry SEQ, its id, or of call c000012."),
    ] = None,
    follow: Annotated[
        bool, Option("--follow", help="What is said, as it is said, until nobody runs the debate.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a debate: an overview and its verdict, or the part that is asked for."""
    wanted = {
        "transcript": transcript,
        "summary": summary,
        "summaries": summaries,
        "blackboard": blackboard,
        "receipts": receipts,
        "calls": calls,
        "verdict": verdict,
        "view": view is not None,
    }
    chosen = [name for name, asked in wanted.items() if asked]
    if len(chosen) > 1:
        raise InputError(f"choose one of {', '.join(f'--{name}' for name in chosen)}")
    from moot.graph.cli.running import resume_line
    from moot.graph.cli.screen import showing

    with open_stored_debate(db, debate_id) as debate:
        if follow:
            return _follow(debate)
        if view is not None:
            from moot.graph.lookback import look_back

            seen = look_back(debate.session, view if view.startswith("c") else entry_number(view, "--view"))
            return print_answer(seen.to_json(), *showing.view(seen), as_json=as_json)
        document = debate.document()
    data, parts = showing.part(chosen[0] if chosen else "", document)
    print_answer(data, *parts, as_json=as_json)
    if not as_json and not chosen and document["status"] in ("failed", "paused"):
        remark(f"\nGo on with: {resume_line(debate, db)}")


def _follow(debate: Debate) -> None:
    """Print each entry once it is there; a debate that nobody runs is shown as far as it goes."""
    from moot.graph.cli.screen import showing

    shown = 0
    while True:
        runs = debate.is_running()
        document = debate.document()
        if new := document["transcript"][shown:]:
            print_result(*showing.transcript({**document, "transcript": new}))
            shown += len(new)
        if not runs:
            return print_result(*showing.part("verdict", document)[1])
        time.sleep(LOOK_AGAIN_S)
