"""Inverted indexes that grow: of the transcript, and of the memories beside it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moot.nodes.text.terms import terms

if TYPE_CHECKING:
    from moot.nodes.memory.retrieval.vectors import MessageVectors
    from moot.state.entries import Entry

IMPORTANT = 7
"""Importance from which an entry is always worth retrieving."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def as_ints(column: array[int]) -> Ints:
    """Return a copy of a column: a view would stop the column from growing."""
    return np.array(column, dtype=np.int64)


class Postings:
    """Term → the positions of the texts it occurs in, and how often, in the order they were added."""

    def __init__(self) -> None:
        self._positions: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self.lengths: array[int] = array("q")
        """Content words of each text."""
        self.words = 0
        """Content words of all texts."""
        self.important: array[int] = array("q")
        """Positions of the texts that are always worth retrieving."""

    def __len__(self) -> int:
        return len(self.lengths)

    def __contains__(self, term: str) -> bool:
        return term in self._positions

    def add(self, text: str, importance: int = 0) -> int:
        """Index `text` and return its position."""
        position = len(self.lengths)
        found = Counter(terms(text))
        for term, count in found.items():
            self._positions.setdefault(term, array("q")).append(position)
            self._counts.setdefault(term, array("q")).append(count)
        if importance >= IMPORTANT:
            self.important.append(position)
        self.lengths.append(found.total())
        self.words += self.lengths[-1]
        return position

    def occurrences(self, term: str, oldest: int = 0) -> tuple[Ints, Ints]:
        """Return positions, from `oldest` on, and counts of `term`."""
        positions = self._positions.get(term, array("q"))
        start = bisect_left(positions, oldest)
        return as_ints(positions[start:]), as_ints(self._counts.get(term, positions)[start:])

    def latest(self, term: str, *, before: int, last: int) -> Sequence[int]:
        """Return positions of `term`: of those under `before` the `last`."""
        positions = self._positions.get(term, array("q"))
        end = bisect_left(positions, before)
        return positions[max(0, end - last) : end]

    def frequency(self, term: str) -> int:
        """Return in how many texts `term` occurs."""
        return len(self._positions.get(term, ()))


class EvidenceIndex:
    """What retrieval knows of a transcript: terms, tokens, speakers, importance; not the words themselves.

    Adding an entry costs what its own words cost, however long the transcript is.

    Args:
        entries: A transcript to start with, in the order of `seq`.
        names: Display name of each speaker id, so that questions may use it; an id without one is matched
        itself.
        vectors: Embeds the messages where embeddings are configured.
    """

    def __init__(
        self,
        entries: Iterable[Entry] = (),
        *,
        names: Mapping[str, str] | None = None,
        vectors: MessageVectors | None = None,
    ) -> None:
        self.postings = Postings()
        self.seqs: array[int] = array("q")
        self.tokens: array[int] = array("q")
        self.importance: array[int] = array("q")
        self.speaker_of: array[int] = array("q")
        self.speakers: list[str] = []
        self.names = dict(names or {})
        self.vectors = vectors
        self._speaker_numbers: dict[str, int] = {}
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return len(self.seqs)

    def add(self, entry: Entry) -> bool:
        """Index `entry`; one whose `seq` is not newer than the last is ignored, so replays are harmless."""
        if self.seqs and entry["seq"] <= self.seqs[-1]:
            return False
        self.postings.add(entry["content"], entry["importance"])
        self.seqs.append(entry["seq"])
        self.tokens.append(max(1, entry["tokens"]))
        self.importance.append(entry["importance"])
        number = self._speaker_numbers.setdefault(entry["speaker"], len(self.speakers))
        if number == len(self.speakers):
            self.speakers.append(entry["speaker"])
        self.speaker_of.append(number)
        if self.vectors is not None:
            self.vectors.add(entry["content"], entry["tokens"])
        return True

    def position(self, seq: int) -> int | None:
        """Return where the entry with `seq` stands in the index, `None` if it is not there."""
        place = bisect_left(self.seqs, seq)
        return place if place < len(self.seqs) and self.seqs[place] == seq else None


@dataclass(frozen=True)
class MemoryItem:
    """A memory beside the transcript: a reflection, a crux card, a change of position.

    Attributes:
        id: Its name on the blackboard; a newer item with the same id supersedes it.
        text: What it says, as rendered.
        tokens: Exact tokens of `text` as rendered.
        importance: 1–10.
        seq: `seq` of the last entry that it was made from.
    """

    id: str
    text: str
    tokens: int
    importance: int
    seq: int


class MemoryItems:
    """An inverted index of memory items that grows with them."""

    def __init__(self, items: Sequence[MemoryItem] = ()) -> None:
        self.postings = Postings()
        self.items: list[MemoryItem] = []
        self._latest: dict[str, int] = {}
        for item in items:
            self.add(item)

    def add(self, item: MemoryItem) -> None:
        """Index `item`, in the place of an earlier one with its id; the same item again changes nothing."""
        known = self._latest.get(item.id)
        if known is not None and self.items[known] == item:
            return
        self._latest[item.id] = self.postings.add(item.text, item.importance)
        self.items.append(item)

    def is_current(self, position: int) -> bool:
        """Whether the item at `position` has not been superseded."""
        return self._latest[self.items[position].id] == position
