"""Retrieval indexes of the debates that this process works on, and the embedding model that they use.

An index is a cache: what it holds follows from the entries alone, so a node that uses one stays a pure
function of the state, and after a resume it is made anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moot.state.config.boundary import Claim
from moot.state.entries import Entry, kind_of
from moot.state.errors import ConfigError

if TYPE_CHECKING:
    from moot.nodes.memory.retrieval import EvidenceIndex, MemoryItem, MemoryItems

KEPT = 16
"""Indexes kept, the most recently used."""


class Indexes:
    """Indexes by debate and use; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], tuple[EvidenceIndex, Sequence[Entry]]] = OrderedDict()
        self._items: OrderedDict[str, tuple[MemoryItems, Sequence[MemoryItem]]] = OrderedDict()

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
        Entries that are the same objects as before are compared at the price of a pointer each. `debate` is a
        thread id, `use` keeps indexes of different parts of one transcript apart; `split` returns what is
        indexed in an entry's place, always the same for one `use`.
        """
        from moot.nodes.memory.retrieval import EvidenceIndex, MessageVectors

        wanted = list(entries)
        with self._lock:
            index, known = self._known.pop((debate, use), (None, ()))
            old = None if index is None or index.vectors is None else index.vectors.embeddings
            continues = known == wanted[: len(known)] and old is embeddings
            if index is None or index.names != names or not continues:
                vectors = None if embeddings is None else MessageVectors(embeddings)
                index, known = EvidenceIndex(names=names, vectors=vectors), ()
            for entry in wanted[len(known) :]:
                if kind_of(entry).shown:
                    for piece in split(entry) if split else (entry,):
                        index.add(piece)
            _keep(self._known, (debate, use), (index, wanted))
            return index

    def items(self, debate: str, items: Sequence[MemoryItem]) -> MemoryItems:
        """Return an index of exactly these memories beside the transcript."""
        from moot.nodes.memory.retrieval import MemoryItems

        with self._lock:
            index, known = self._items.pop(debate, (None, ()))
            if index is None or known != items:
                index = MemoryItems(items)
            _keep(self._items, debate, (index, items))
            return index


def _keep(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    while len(cache) > KEPT:
        cache.popitem(last=False)


def embeddings_of(claim: Claim, given: Any = None) -> Any:
    """Return a LangChain `Embeddings`, `None` for lexical retrieval alone.

    Raises:
        ConfigError: the name leads nowhere, or it is not admitted.
    """
    if given is not None:
        return given
    name = claim.admit("embeddings").memory.retrieval.embeddings
    return load_embeddings(name) if name else None


@lru_cache(maxsize=8)
def load_embeddings(name: str) -> Any:
    """Import `module:attribute`; what is no embedding model itself is called to make one.

    Raises:
        ConfigError: the name leads nowhere.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
        made = found if hasattr(found, "embed_query") and not isinstance(found, type) else found()
    except Exception as error:  # whatever another package raises as it is imported or made
        raise ConfigError(
            f"memory.retrieval.embeddings: cannot make {name!r}: {type(error).__name__}: {error}"
        ) from error
    if not hasattr(made, "embed_documents"):
        raise ConfigError(f"memory.retrieval.embeddings: {name!r} is no LangChain Embeddings")
    return made
