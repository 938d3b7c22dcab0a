"""`moot say`, `pause`, `pin` and `correct`: take part in a debate, even while the debate runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option, confirm

from moot.cli import databases, inputs, options as shared
from moot.cli.group import command
from moot.cli.terminal import acknowledge
from moot.config import INTERJECTION_SPEAKERS, DebateConfig, slug
from moot.state.entries import JsonObject
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.api import Debate

Done = tuple["JsonObject", str]
"""What a command has changed, as JSON fields and as a sentence for the user."""


def _change_and_report(
    debate_id: str, db: str | None, change: Callable[[Debate], Done], *, as_json: bool
) -> None:
    """Change a stored debate, and tell the user what was changed."""
    with databases.open_stored_debate(db, debate_id) as debate:
        data, words = change(debate)
    acknowledge({"id": debate.id, **data}, words, as_json=as_json)


@command(panel="Take part", examples=('mono "Hiring was frozen yesterday." --as moderator',))
def say(
    debate_id: shared.DebateArgument,
    text: Annotated[
        str,
        Argument(
            metavar="TEXT|@FILE|-",
            help="Text of the message, @FILE to read the text from a file, or - to read it from stdin.",
        ),
    ],
    speaker: Annotated[
        str,
        Option(
            "--as",
            metavar="NAME",
            help="Author of the message: moderator, the name of a debater, or the name of a guest.",
        ),
    ] = "moderator",
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
) -> None:
    """Send a message to a debate, even while the debate is running.

    The debate reads the message at the start of its next step. All later prompts include the message.
    """
    words = inputs.read_words(text, "message", "write some text")

    def add(debate: Debate) -> Done:
        speaker_id = _speaker(debate.config(), speaker)
        number = debate.say(words, speaker_id)
        is_over = debate.is_over()
        what_next = "Sent. The debate reads it at the start of its next step."
        if is_over and not debate.can_go_on():
            what_next = "Stored, but no debater reads it: this debate is finished and takes no more turns."
        elif is_over:
            line = shared.command_line("resume", debate_id, "--turns", "2", db=db)
            what_next = (
                f"Stored. This debate is finished and reads it when it continues. Extend it with:\n  {line}"
            )
        return {"interjection": number, "speaker": speaker_id, "over": is_over}, what_next

    _change_and_report(debate_id, db, add, as_json=as_json)


def _speaker(config: DebateConfig, name: str) -> str:
    """Return the id of the speaker with this name. Speakers are debaters, the moderator and guests."""
    for debater_id, debater_name in config.names().items():
        if name.casefold() in (debater_id.casefold(), debater_name.casefold()):
            return debater_id
    if name in INTERJECTION_SPEAKERS:
        return name
    names = {
        known_name.casefold(): known_name
        for known_name in (*config.names().values(), *config.names(), "moderator")
    }
    matches = get_close_matches(name.casefold(), names, n=1, cutoff=0.75)
    if matches and sys.stdin.isatty():
        if confirm(
            f"No speaker is called {name!r}. Did you mean {names[matches[0]]!r}?", default=True, err=True
        ):
            return _speaker(config, names[matches[0]])
    elif matches:
        raise InputError(f"--as {name!r} is not the name of a speaker. Did you mean {names[matches[0]]!r}?")
    if not slug(name):
        raise InputError(f"--as {name!r} is not a valid name: use letters a-z or digits")
    return slug(name)


@command(panel="Take part", examples=("mono",))
def pause(
    debate_id: shared.DebateArgument, db: shared.DbOption = None, as_json: shared.JsonOption = False
) -> None:
    """Pause a running debate at the end of its current step.

    Before the debate pauses, it saves the step. To continue the debate, use `moot resume`. If no process is
    running the debate, `moot pause` has no effect.
    """

    def stop(debate: Debate) -> Done:
        if not debate.is_running():
            return {"running": False}, "No process runs this debate now."
        debate.pause()
        return {"running": True}, "It pauses at the end of its current step."

    _change_and_report(debate_id, db, stop, as_json=as_json)


@command(panel="Take part", examples=("mono m000012", "mono m000012 --remove"))
def pin(
    debate_id: shared.DebateArgument,
    message: Annotated[str, Argument(help="Id of the message, such as m000012.")],
    remove: Annotated[bool, Option("--remove", help="Unpin the message.")] = False,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
) -> None:
    """Pin a message so that every prompt includes it, or unpin it."""

    def change(debate: Debate) -> Done:
        ids = debate.pin(message, pinned=not remove)
        words = (
            f"pinned in {debate.name}: {', '.join(ids)}" if ids else f"no message is pinned in {debate.name}"
        )
        return {"pinned": ids}, words

    _change_and_report(debate_id, db, change, as_json=as_json)


@command(panel="Take part", examples=("mono e003 denies", "mono p004 --same-as p001"))
def correct(
    debate_id: shared.DebateArgument,
    note: Annotated[
        str,
        Argument(
            help="Id of the claim event to correct, such as e003. With --same-as, give the id of the claim "
            "to merge instead, such as p002. `moot show ID --blackboard` lists the ids."
        ),
    ],
    kind: Annotated[
        str,
        Argument(
            help="Kind that the event should have: asserts, denies, conditional, concedes, withdraws or "
            "unsure. Without a kind, the command removes the event."
        ),
    ] = "",
    why: Annotated[
        str,
        Option(
            "--why",
            help="Reason for removing the event. Moot stores the reason only if the event is removed.",
        ),
    ] = "",
    condition: Annotated[
        str,
        Option(
            "--condition",
            metavar="TEXT",
            help="Condition of the kind conditional, such as 'if the tests pass'. Default: the event's own.",
        ),
    ] = "",
    same_as: Annotated[
        str,
        Option(
            "--same-as", help="Id of a claim with the same meaning, such as p001. Moot merges the two claims."
        ),
    ] = "",
    opposite: Annotated[
        bool,
        Option(
            "--opposite",
            help="Merge the claims as opposites: each claim is the negation of the other. Needs --same-as.",
        ),
    ] = False,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
) -> None:
    """Correct or remove a claim event, or merge two claims.

    A claim event records how a message treats a claim, for example that the author of the message denies the
    claim. `moot show ID --blackboard` lists the claims and their events. Moot keeps your corrections when it
    later extracts more claims.
    """

    def change(debate: Debate) -> Done:
        notes = debate.correct(note, kind, why=why, condition=condition, same_as=same_as, opposite=opposite)
        return {"notes": notes}, f"corrected {note} in {debate.name}"

    _change_and_report(debate_id, db, change, as_json=as_json)


@command(panel="Take part", examples=('mono right --note "Two teams left the monolith, as predicted."',))
def feedback(
    debate_id: shared.DebateArgument,
    rating: Annotated[
        str,
        Argument(metavar="right|wrong|mixed", help="Whether the decision turned out right, wrong or mixed."),
    ],
    note: Annotated[
        str, Option("--note", metavar="TEXT", help="What happened after the decision, in your own words.")
    ] = "",
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
) -> None:
    """Record how a decision turned out.

    `moot eval report --feedback` compares your feedback with the confidence that judges stated in their
    decisions. The report contains a Brier score for each judge and model. The Brier score shows how far you
    can trust this confidence. New feedback on a debate replaces earlier feedback.
    """
    from moot.debates.stored_debate import give_feedback
    from moot.storage.records import OUTCOMES, Rating

    if rating not in OUTCOMES:
        raise InputError(f"{rating!r} is not a valid rating: choose from {', '.join(OUTCOMES)}")
    with databases.open_stored_debate(db, debate_id) as debate:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        stored_feedback = give_feedback(debate, cast(Rating, rating), note.strip(), now)
    acknowledge(
        asdict(stored_feedback),
        f"Recorded: {rating}. The decision was: {stored_feedback.decision}",
        as_json=as_json,
    )
