"""Long messages as passages, so that a question finds what one of them says in its midst.

A message of thousands of tokens says many things: taken as one text it resembles no question, and whole it
has no room. An index for questions therefore holds each passage of a long message as an entry of its own,
whose `seq` is a *key*: it says which message it is of and which part, and keys sort as passages were said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from moot.nodes.text.sentences import split_sentences
from moot.state.entries import Entry

LONG_SHARE, LONG_TOKENS = 8, 1_000
"""A message is long beyond one eighth of the view, and beyond so many tokens in any view."""
PASSAGES, LEAST_TOKENS = 4, 32
"""A message that is just long has so many passages; tokens that a passage has at least."""
PARTS = 1 << 20
"""Passages that a message may have."""


class Place(NamedTuple):
    """What a key stands for."""

    seq: int
    """Of the message."""
    part: int
    """Number of the passage in it, from 0."""


class Span(NamedTuple):
    """Where a passage stands in its message's content."""

    start: int
    end: int


def key_of(place: Place) -> int:
    """Return the key of a passage."""
    return place.seq * PARTS + place.part


def place_of(key: int) -> Place:
    """Return what a key stands for."""
    return Place(*divmod(key, PARTS))


@dataclass(frozen=True)
class Splitting:
    """Which messages are split, and how finely."""

    long: int
    """Tokens up to which a message stays whole."""
    passage: int
    """Tokens of a passage, about."""

    @classmethod
    def within(cls, total: int) -> Splitting:
        """Return the splitting that suits views of `total` tokens."""
        long = min(LONG_TOKENS, total // LONG_SHARE)
        return cls(long, max(LEAST_TOKENS, long // PASSAGES))

    def spans(self, entry: Entry) -> list[Span]:
        """Return where the passages of an entry are: together they are its content."""
        content, tokens = entry["content"], entry["tokens"]
        if tokens <= self.long:
            return [Span(0, len(content))]
        return list(_spans(content, max(1, self.passage * len(content) // tokens)))

    def pieces(self, entry: Entry) -> Iterable[Entry]:
        """Return an entry's passages as entries: each with its key for `seq` and its part of the tokens."""
        content = entry["content"]
        for part, (start, end) in enumerate(self.spans(entry)):
            tokens = entry["tokens"] * (end - start) // max(1, len(content))
            key = key_of(Place(entry["seq"], part))
            yield {**entry, "seq": key, "content": content[start:end], "tokens": tokens}


def _spans(content: str, most: int) -> Iterator[Span]:
    """Yield spans of at most `most` characters that end where a sentence does, else at white space if any."""
    starts = [sentence.start for sentence in split_sentences(content)]
    start = 0
    while len(content) - start > most:
        limit = start + most
        end = starts[bisect_right(starts, limit) - 1] if starts else 0
        if end <= start:
            end = max(content.rfind(" ", start, limit), content.rfind("\n", start, limit)) + 1
        end = end if end > start else limit
        yield Span(start, end)
        start = end
    yield Span(start, len(content))
