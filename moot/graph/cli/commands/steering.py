"""`moot say`, `pause`, `pin`, `unpin` and `correct`: a person's hand in a debate, also while it runs."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, confirm

from moot.graph.cli.database import command_line, open_stored_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import acknowledge
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.state.config import DebateConfig


def say(
    debate_id: DebateArgument,
    text: Annotated[str, Argument(metavar="TEXT|@FILE|-", help="What is said.")],
    speaker: Annotated[
        str, Option("--as", metavar="NAME", help="Who speaks: the moderator, a debater, or a guest.")
    ] = "moderator",
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say something from the floor of a debate, also while another process runs it.

    It is taken up at the next step's boundary, exactly once, and everybody who speaks later has heard it.
    """
    from moot.graph.cli.named_files import read_words

    words = read_words(text, "remark", "give the words")
    with open_stored_debate(db, debate_id) as debate:
        chosen = _speaker(debate.config(), speaker)
        number = debate.say(words, chosen)
        over, goes_on = debate.is_over(), debate.can_go_on()
    what_next = "Left on the floor; it is taken up at the next step's boundary."
    if over and not goes_on:
        what_next = "This debate is over, and its protocol takes no more turns: nobody will hear it."
    elif over:
        line = command_line("resume", debate_id, "--turns", "2", db=db)
        what_next = f"This debate is over: it is heard once it goes on. Extend it with:\n  {line}"
    data = {"id": debate.id, "interjection": number, "speaker": chosen, "over": over}
    acknowledge(data, what_next, as_json=as_json)


def _speaker(config: DebateConfig, name: str) -> str:
    """Return the id of a speaker: a debater by id or display name, else the slug of the name."""
    from moot.state.config import FLOOR_SPEAKERS, slug

    for known, shown in config.names().items():
        if name.casefold() in (known.casefold(), shown.casefold()):
            return known
    if name in FLOOR_SPEAKERS:
        return name
    called = {known.casefold(): known for known in (*config.names().values(), *config.names(), "moderator")}
    near = get_close_matches(name.casefold(), called, n=1, cutoff=0.75)
    if near and sys.stdin.isatty():
        if confirm(f"Nobody is called {name!r}. Is {called[near[0]]!r} meant?", default=True, err=True):
            return _speaker(config, called[near[0]])
    elif near:
        raise InputError(f"--as {name!r}: nobody is called so; is {called[near[0]]!r} meant?")
    if not slug(name):
        raise InputError(f"--as {name!r}: give a name with letters a-z or digits")
    return slug(name)


def pause(debate_id: DebateArgument, db: DbOption = None, as_json: JsonOption = False) -> None:
    """Let the process that runs a debate stop at the next step's boundary, in good order.

    What is under way is finished and saved; `moot resume` goes on. A debate that nobody runs stays as it is.
    """
    with open_stored_debate(db, debate_id) as debate:
        running = debate.is_running()
        if running:
            debate.pause()
    words = "It stops at the next step's boundary." if running else "Nobody runs this debate now."
    acknowledge({"id": debate.id, "running": running}, words, as_json=as_json)


MessageArgument = Annotated[str, Argument(help="Id of a message, m000012.")]


def pin(
    debate_id: DebateArgument, message: MessageArgument, db: DbOption = None, as_json: JsonOption = False
) -> None:
    """Have a message stand in every prompt that has room, in a section of its own."""
    _pin(debate_id, message, db, as_json=as_json, pinned=True)


def unpin(
    debate_id: DebateArgument, message: MessageArgument, db: DbOption = None, as_json: JsonOption = False
) -> None:
    """Take a pinned message off the prompts again."""
    _pin(debate_id, message, db, as_json=as_json, pinned=False)


def _pin(debate_id: str, message: str, db: str | None, *, as_json: bool, pinned: bool) -> None:
    with open_stored_debate(db, debate_id) as debate:
        ids = debate.pin(message, pinned=pinned)
    words = f"pinned in {debate.name}: {', '.join(ids)}" if ids else f"nothing is pinned in {debate.name}"
    acknowledge({"id": debate.id, "pinned": ids}, words, as_json=as_json)


def correct(
    debate_id: DebateArgument,
    note: Annotated[str, Argument(help="Id of a note, e003; or of a proposition, with --same-as.")],
    kind: Annotated[
        str,
        Argument(
            help="What the debater really did: asserts, denies, conditional, concedes, withdraws, unsure; "
            "without it the note is taken back."
        ),
    ] = "",
    why: Annotated[str, Option("--why", help="The reason, kept with the note.")] = "",
    same_as: Annotated[str, Option("--same-as", help="This proposition is that one, p001.")] = "",
    opposite: Annotated[
        bool, Option("--opposite", help="With --same-as: it is that one's negation.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a note of the minutes; no later reading undoes it. `moot show ID --blackboard` lists them."""
    with open_stored_debate(db, debate_id) as debate:
        notes = debate.correct(note, kind, why=why, same_as=same_as, opposite=opposite)
    acknowledge({"id": debate.id, "notes": notes}, f"{note} is corrected in {debate.name}", as_json=as_json)
