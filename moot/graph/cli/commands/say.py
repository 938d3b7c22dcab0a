"""`moot say`."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from moot.graph.cli.database import command_line, opened_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import print_json, remark
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.state.config import DebateConfig


def say(
    debate_id: DebateArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT|@FILE|-", help="What is said.")],
    speaker: Annotated[
        str,
        typer.Option("--as", metavar="NAME", help="Who speaks: the moderator, a debater, or a guest."),
    ] = "moderator",
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say something from the floor of a debate, also while another process runs it.

    It is taken up at the next step's boundary, exactly once, and everybody who speaks later has heard it.
    """
    from moot.graph.cli.run_request import read_words

    words = read_words(text, "remark", "give the words")
    with opened_debate(db, debate_id) as debate:
        chosen = _speaker(debate.config(), speaker)
        number = debate.say(words, chosen)
        over, goes_on = debate.is_over(), debate.can_go_on()
    if as_json:
        print_json({"id": debate.id, "interjection": number, "speaker": chosen, "over": over})
    elif over and not goes_on:
        remark("This debate is over, and its protocol takes no more turns: nobody will hear it.")
    elif over:
        line = command_line("resume", debate_id, "--turns", "2", db=db)
        remark(f"This debate is over: it is heard once it goes on. Extend it with:\n  {line}")
    else:
        remark("Left on the floor; it is taken up at the next step's boundary.")


def _speaker(config: DebateConfig, name: str) -> str:
    """Return the id of a speaker: a debater by id or display name, else the slug of the name.

    Raises:
        InputError: nothing of the name makes an id, or it is nearly a debater's and nobody can be asked.
    """
    from moot.state.config import FLOOR_SPEAKERS, slug

    for known, shown in config.names().items():
        if name.casefold() in (known.casefold(), shown.casefold()):
            return known
    if name in FLOOR_SPEAKERS:
        return name
    called = {known.casefold(): known for known in (*config.names().values(), *config.names(), "moderator")}
    near = get_close_matches(name.casefold(), called, n=1, cutoff=0.75)
    if near and sys.stdin.isatty():
        if typer.confirm(f"Nobody is called {name!r}. Is {called[near[0]]!r} meant?", default=True, err=True):
            return _speaker(config, called[near[0]])
    elif near:
        raise InputError(f"--as {name!r}: nobody is called so; is {called[near[0]]!r} meant?")
    if not slug(name):
        raise InputError(f"--as {name!r}: give a name with letters a-z or digits")
    return slug(name)
