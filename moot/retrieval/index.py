"""Inverted index of texts, and index of a transcript, both of which grow as entries are added."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from moot.retrieval.vectors import Ints, MessageVectors
from moot.state.entries import Entry
from moot.text.terms import questions_in, terms

IMPORTANT = 7
"""Minimum importance at which an entry may be retrieved even if it has no word in common with the query."""


def as_ints(column: array[int]) -> Ints:
    """Convert an array of integers to a NumPy array."""
    return np.array(column, dtype=np.int64)


class Occurrences(NamedTuple):
    """Arrays that tell where and how often several terms occur in the indexed texts."""

    positions: Ints
    """Index positions of the texts that contain each term, grouped by term."""
    counts: Ints
    """How often each text of `positions` contains the term. The counts have the order of `positions`."""
    texts: Ints
    """How many texts contain each term. The numbers have the order of the terms."""


class Postings:
    """Posting lists that map each term to the texts that contain it."""

    def __init__(self) -> None:
        self._positions: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self.lengths: array[int] = array("q")
        """Number of content words of each text."""
        self.words = 0
        """Number of content words of all texts."""
        self.important: array[int] = array("q")
        """Positions of texts with an importance of at least `IMPORTANT`."""

    def __len__(self) -> int:
        return len(self.lengths)

    def __contains__(self, term: str) -> bool:
        return term in self._positions

    def add(self, text: str, importance: int = 0) -> int:
        """Add a text to the index, and return its position."""
        position = len(self.lengths)
        counts = Counter(terms(text))
        for term, count in counts.items():
            self._positions.setdefault(term, array("q")).append(position)
            self._counts.setdefault(term, array("q")).append(count)
        if importance >= IMPORTANT:
            self.important.append(position)
        self.lengths.append(counts.total())
        self.words += self.lengths[-1]
        return position

    def occurrences(self, term: str) -> tuple[Ints, Ints]:
        """Return the positions of the texts that contain a term, and how often each contains it."""
        occurrences = self.all_occurrences([term])
        return occurrences.positions, occurrences.counts

    def all_occurrences(self, terms: Iterable[str]) -> Occurrences:
        """Return where and how often the terms occur in the indexed texts, grouped by term."""
        positions, counts, texts = array("q"), array("q"), array("q")
        for term in terms:
            texts.append(self.frequency(term))
            if texts[-1]:
                positions += self._positions[term]
                counts += self._counts[term]
        return Occurrences(as_ints(positions), as_ints(counts), as_ints(texts))

    def positions(self, term: str) -> Sequence[int]:
        """Return the positions of all texts that contain a term, in ascending order."""
        return self._positions.get(term, ())

    def latest(self, term: str, *, before: int, last: int) -> Sequence[int]:
        """Return the positions of the `last` newest texts below `before` that contain a term."""
        positions = self._positions.get(term, array("q"))
        end = bisect_left(positions, before)
        return positions[max(0, end - last) : end]

    def frequency(self, term: str) -> int:
        """Return the number of texts that contain a term."""
        return len(self._positions.get(term, ()))


class EvidenceIndex:
    """Search index of a transcript.

    The index is inverted and does not contain the texts themselves. It contains terms, token counts, speakers
    and importance. Adding an entry takes time proportional to its own length.

    Args:
        entries: Initial transcript, in the order of `seq`.
        names: Display names by speaker id, used to recognize speakers in questions. Missing: the id.
        vectors: Message vectors, if embeddings are configured.
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
        self.ends: array[int] = array("q")
        """Tokens of the transcript up to the end of each message."""
        self.importance: array[int] = array("q")
        self.asking: array[float] = array("d")
        """Share of each message, from 0 to 1, that consists of questions."""
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
        """Add an entry, and return True if it is newer than the last one. Replays are safe."""
        if self.seqs and entry["seq"] <= self.seqs[-1]:
            return False
        self.postings.add(entry["content"], entry["importance"])
        self.seqs.append(entry["seq"])
        self.tokens.append(max(1, entry["tokens"]))
        self.ends.append(self.tokens[-1] + (self.ends[-1] if self.ends else 0))
        self.importance.append(entry["importance"])
        content = entry["content"]
        self.asking.append(sum(map(len, questions_in(content))) / max(1, len(content)))
        number = self._speaker_numbers.setdefault(entry["speaker"], len(self.speakers))
        if number == len(self.speakers):
            self.speakers.append(entry["speaker"])
        self.speaker_of.append(number)
        if self.vectors is not None:
            self.vectors.add(entry["content"], entry["tokens"])
        return True

    def position(self, seq: int) -> int | None:
        """Return the index position of the entry with this sequence number, or `None` if there is none."""
        position = bisect_left(self.seqs, seq)
        return position if position < len(self.seqs) and self.seqs[position] == seq else None

    def tokens_of(self, seq: int) -> int:
        """Return the tokens of the entry with this number. An unknown one is a `KeyError`."""
        if (position := self.position(seq)) is None:
            raise KeyError(seq)
        return self.tokens[position]
