"""Passages: parts of a long message that a search finds and a prompt shows on their own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from moot.state import entries as entry_types
from moot.text import terms as text_terms

LONG_MESSAGE_DIVISOR = 8
"""Divisor for the length of a long message. A message is long if it has more than 1/`LONG_MESSAGE_DIVISOR` of
the prompt's tokens."""
LONG_TOKENS = 1_000
"""Number of tokens above which a message is always long."""
PASSAGES = 4
"""Approximate number of passages in the shortest long message."""
MIN_PASSAGE_TOKENS = 32
"""Minimum number of tokens in a passage of a long message."""
PARTS = 1 << 20
"""Maximum number of passages into which a message is split."""


class Place(NamedTuple):
    """Position of a passage in the transcript, as a message number and a passage number."""

    seq: int
    """Number of the message that contains the passage (`seq`)."""
    part: int
    """Index of the passage within its message, starting at 0."""


class Span(NamedTuple):
    """Start and end of a passage, as character offsets in the message's content."""

    start: int
    end: int


def key_of(place: Place) -> int:
    """Encode a passage's place, the numbers of message and passage, as one integer."""
    return place.seq * PARTS + place.part


def place_of(key: int) -> Place:
    """Decode a passage's place, the numbers of message and passage, from one integer."""
    return Place(*divmod(key, PARTS))


@dataclass(frozen=True)
class Splitting:
    """Token limits for splitting long messages into passages."""

    long: int
    """Maximum number of tokens in a message that is not split into passages."""
    passage: int
    """Approximate number of tokens in each passage of a split message."""

    @classmethod
    def within(cls, total: int) -> Splitting:
        """Return the splitting limits for a prompt of `total` tokens."""
        long = min(LONG_TOKENS, total // LONG_MESSAGE_DIVISOR)
        return cls(long, max(MIN_PASSAGE_TOKENS, long // PASSAGES))

    def spans(self, entry: entry_types.Entry) -> list[Span]:
        """Return the character range of each passage in an entry. Together they cover the whole content.

        A passage ends at a sentence boundary, or else at white space if there is any.
        """
        content, tokens = entry["content"], entry["tokens"]
        if tokens <= self.long:
            return [Span(0, len(content))]
        max_chars = max(1, self.passage * len(content) // tokens)
        starts = [sentence.start for sentence in text_terms.split_sentences(content)]
        spans, start = list[Span](), 0
        while len(content) - start > max_chars:
            limit = start + max_chars
            end = starts[bisect_right(starts, limit) - 1] if starts else 0
            if end <= start:
                end = max(content.rfind(" ", start, limit), content.rfind("\n", start, limit)) + 1
            end = end if end > start else limit
            spans.append(Span(start, end))
            start = end
        return [*spans, Span(start, len(content))]

    def chunks(self, entry: entry_types.Entry) -> Iterable[entry_types.Entry]:
        """Yield each passage as an entry, whose `seq` is the passage's key."""
        content = entry["content"]
        for part, (start, end) in enumerate(self.spans(entry)):
            tokens = entry["tokens"] * (end - start) // max(1, len(content))
            key = key_of(Place(entry["seq"], part))
            yield {**entry, "seq": key, "content": content[start:end], "tokens": tokens}


def by_message(keys: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the number of each message with the numbers of its passages."""
    for seq, group in groupby(keys, key=lambda key: key // PARTS):
        yield seq, [key % PARTS for key in group]
