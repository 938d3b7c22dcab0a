"""How much a message matters for the rest of a debate, by what its sentences do."""

from moot.nodes.reading.exhibits import shows_evidence
from moot.nodes.reading.moves import asks_somebody, concedes, shifts
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import terms
from moot.state.entries import Entry, kind_of

_SAYS_SOMETHING = 8
"""Different terms of a message that is more than a courtesy."""
_READ = 2_000
"""Sentences of a message that are looked at."""


def importance(entry: Entry) -> int:
    """Return how much an entry matters, 1–10; what its kind is rated at least apart.

    A courtesy is 1, a concession at least 7 and a change of mind at least 8; figures and sources count up to
    two, a question to somebody one.
    """
    kind = kind_of(entry)
    if kind.mechanical:
        return kind.importance
    said = [each.text for each in split_sentences(entry["content"])[:_READ] if each.kind != "quote"]
    # Most say something in their first words: the others are not stemmed before they must be.
    score = 1 + any(len(set(terms(entry["content"][:chars]))) >= _SAYS_SOMETHING for chars in (200, 2_000))
    score += min(2, sum(shows_evidence(text) is not None for text in said)) + any(map(asks_somebody, said))
    floor = kind.importance
    if conceded := sum(map(concedes, said)):
        floor = max(floor, 7 + (conceded > 1))
    if any(map(shifts, said)):
        floor = max(floor, 8 + bool(conceded))
    return max(1, min(10, max(score, floor)))
