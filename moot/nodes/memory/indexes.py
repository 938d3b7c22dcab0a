"""Retrieval indexes of the debates that this process works on, each growing as its transcript grows.

An index is a cache: what it holds follows from the entries alone, so a node that uses one stays a pure
function of the state, and after a resume it is made anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moot.state.entries import Entry, kind_of

if TYPE_CHECKING:
    from moot.nodes.memory.retrieval import EvidenceIndex, MemoryItem, MemoryItems

KEPT = 16
"""Indexes kept, the most recently used."""


@dataclass
class _Indexed:
    index: EvidenceIndex
    names: Mapping[str, str]
    entries: list[Entry] = field(default_factory=list)


class Indexes:
    """Indexes by debate and use; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], _Indexed] = OrderedDict()
        self._items: OrderedDict[str, tuple[Sequence[MemoryItem], MemoryItems]] = OrderedDict()

    def of(
        self,
        debate: str,
        use: str,
        entries: Sequence[Entry],
        names: Mapping[str, str],
        embeddings: Any = None,
        split: Callable[[Entry], Iterable[Entry]] | None = None,
    ) -> EvidenceIndex:
        """Return an index of exactly these entries.

        What was indexed before is extended where it is how these entries begin: a turn pays for what is new.
        Entries that are the same objects as before are compared at the price of a pointer each.

        Args:
            debate: thread id; `""` for none.
            use: keeps indexes of different parts of one transcript apart.
            entries: in order.
            names: display names by speaker.
            embeddings: an embedding model, `None` for lexical retrieval alone.
            split: returns what is indexed in an entry's place, always the same for one `use`; `None` for
            the entry itself.
        """
        from moot.nodes.memory.retrieval import EvidenceIndex, MessageVectors

        wanted = list(entries)
        with self._lock:
            known = self._known.pop((debate, use), None)
            if known is None or not _continues(known, wanted, names, embeddings):
                vectors = None if embeddings is None else MessageVectors(embeddings)
                known = _Indexed(EvidenceIndex(names=names, vectors=vectors), dict(names))
            for entry in wanted[len(known.entries) :]:
                if kind_of(entry).shown:
                    for piece in split(entry) if split else (entry,):
                        known.index.add(piece)
            known.entries = wanted
            _keep(self._known, (debate, use), known)
            return known.index

    def items(self, debate: str, items: Sequence[MemoryItem]) -> MemoryItems:
        """Return an index of exactly these memories beside the transcript."""
        from moot.nodes.memory.retrieval import MemoryItems

        with self._lock:
            known = self._items.pop(debate, None)
            if known is None or known[0] != items:
                known = (items, MemoryItems(items))
            _keep(self._items, debate, known)
            return known[1]


def _continues(known: _Indexed, wanted: Sequence[Entry], names: Mapping[str, str], embeddings: Any) -> bool:
    vectors = known.index.vectors
    return (
        known.entries == wanted[: len(known.entries)]
        and known.names == names
        and (None if vectors is None else vectors.embeddings) is embeddings
    )


def _keep(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    while len(cache) > KEPT:
        cache.popitem(last=False)
