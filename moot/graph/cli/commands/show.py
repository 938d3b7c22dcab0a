"""`moot show`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.state.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

app = new_app()


def _flag(name: str, text: str) -> Any:
    return typer.Option(f"--{name}", help=text)


@app.command()
def show(
    debate_id: DebateArgument,
    transcript: Annotated[bool, _flag("transcript", "Everything that was said.")] = False,
    summary: Annotated[bool, _flag("summary", "The current rolling summary.")] = False,
    summaries: Annotated[bool, _flag("summaries", "Every version of every summary.")] = False,
    blackboard: Annotated[
        bool, _flag("blackboard", "Positions, claims, rounds, reflections, crux cards.")
    ] = False,
    receipts: Annotated[bool, _flag("receipts", "What each prompt was made of, in tokens.")] = False,
    verdict: Annotated[bool, _flag("verdict", "The verdict.")] = False,
    view: Annotated[
        str | None,
        typer.Option("--view", metavar="SEQ", help="The exact prompt that entry SEQ (or its id) came from."),
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a debate: an overview and its verdict, or the part that is asked for."""
    from moot.graph.cli.database import opened
    from moot.graph.cli.running import Delivery, resume_line
    from moot.graph.cli.screen.output import print_json, print_result, remark

    wanted = {
        "transcript": transcript,
        "summary": summary,
        "summaries": summaries,
        "blackboard": blackboard,
        "receipts": receipts,
        "verdict": verdict,
        "view": view is not None,
    }
    chosen = [name for name, asked in wanted.items() if asked]
    if len(chosen) > 1:
        raise InputError(f"choose one of {', '.join(f'--{name}' for name in chosen)}")
    with opened(db) as debates:
        debate = debates.get(debate_id)
        if view is not None:
            from moot.graph.lookback import look_back

            subject: Any = look_back(debate.session, _seq(view))
        else:
            subject = debate.document()
    part = chosen[0] if chosen else "overview"
    if as_json:
        print_json(_data(part, subject))
    else:
        print_result(*_screen(part)(subject))
        if part == "overview" and subject["status"] in ("failed", "paused"):
            remark(f"\nGo on with: {resume_line(debate, Delivery(db))}")


def _seq(given: str) -> int:
    """Return the position that a number or an entry's id stands for.

    Raises:
        InputError: it is neither.
    """
    from moot.state.entries import seq_of

    seq = int(given) if given.isdecimal() else seq_of(given)
    if seq is None:
        raise InputError(f"--view {given!r}: give an entry's number or id, such as 12 or m000012")
    return seq


def _data(part: str, subject: Any) -> Any:
    """Return the part as JSON types; without a choice the whole document."""
    if part == "view":
        return subject.to_json()
    if part == "summary":
        return current_summary(subject) or {}
    return subject if part == "overview" else subject[part]


def _screen(part: str) -> Callable[[Any], list[RenderableType]]:
    from moot.graph.cli.screen import showing
    from moot.graph.cli.screen.verdict_screen import verdict_parts

    screens: dict[str, Callable[[Any], list[RenderableType]]] = {
        "overview": showing.overview,
        "transcript": showing.transcript,
        "summary": lambda document: showing.summary(current_summary(document)),
        "summaries": showing.summaries,
        "blackboard": showing.blackboard,
        "receipts": showing.receipts,
        "verdict": verdict_parts,
        "view": showing.view,
    }
    return screens[part]


def current_summary(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return the newest rolling summary of a document."""
    rolling = [each for each in document["summaries"] if each["kind"] == "rolling"]
    return rolling[-1] if rolling else None
