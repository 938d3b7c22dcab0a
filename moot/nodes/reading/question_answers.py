"""Which questions were answered, and by which message."""

from collections.abc import Iterable
from typing import NamedTuple

from moot.nodes.reading.facts import Facts
from moot.nodes.text.terms import term_set
from moot.state.entries import Entry, kind_of, seq_of

_AT_ONCE = 3  # a reply within so many messages needs to share only one term with the question


class PossibleAnswer(NamedTuple):
    """A message seen as a possible answer."""

    entry: Entry
    states: bool
    """Whether it says anything besides asking."""
    terms: frozenset[str]


def as_reply(entry: Entry, facts: Facts) -> PossibleAnswer:
    """Prepare a message to be held against many questions."""
    states = kind_of(entry).spoken and bool(facts["claims"])
    return PossibleAnswer(entry, states, term_set(entry["content"]) if states else frozenset())


def answers(reply: PossibleAnswer, *, text: str, asker: str, asked_in: str, to: Iterable[str]) -> bool:
    """Whether `reply` answers the question `text`, put by `asker` in message `asked_in` to the debaters `to`.

    It does when it points at the question's message, or when somebody who was asked takes up its terms: one
    of them in an immediate or explicit reply, half of them later on. Others must take up nearly all of it.
    """
    entry, asked = reply.entry, seq_of(asked_in)
    if not reply.states or entry["speaker"] == asker or asked is None or entry["seq"] <= asked:
        return False
    if asked_in in entry["targets"]:
        return True
    wanted, addressed = term_set(text), list(to)
    shared = len(wanted & reply.terms)
    if addressed and entry["speaker"] not in addressed:
        return shared >= 3 and shared >= 0.75 * len(wanted)
    if entry["seq"] - asked <= _AT_ONCE or asker in entry["targets"] or entry["kind"] == "answer":
        return shared >= 1 or not wanted
    return shared >= 2 and shared >= 0.5 * len(wanted)
