"""Memories beside the transcript: reflections, crux cards, changes of position."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from moot.nodes.memory.retrieval.index import IMPORTANT, Postings


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
        self.important: array[int] = array("q")
        self._latest: dict[str, int] = {}
        for item in items:
            self.add(item)

    def add(self, item: MemoryItem) -> None:
        """Index `item`, in the place of an earlier one with its id; the same item again changes nothing."""
        known = self._latest.get(item.id)
        if known is not None and self.items[known] == item:
            return
        position = self._latest[item.id] = self.postings.add(item.text)
        self.items.append(item)
        if item.importance >= IMPORTANT:
            self.important.append(position)

    def is_current(self, position: int) -> bool:
        """Whether the item at `position` has not been superseded."""
        return self._latest[self.items[position].id] == position
