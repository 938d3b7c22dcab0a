"""Cached retrieval indexes of the debates that this process runs, and their embedding model.

An index is a cache: it depends on the entries alone. Nodes that use it stay pure functions of the state, and
a resumed debate builds it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moot.config.boundary import Permissions
from moot.config.memory_config import WORDS
from moot.retrieval import EvidenceIndex, MemoryItem, MemoryItems, MessageVectors
from moot.state.entries import Entry, traits_of
from moot.state.errors import ConfigError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

CACHED_INDEXES = 16
"""Maximum number of search indexes in the cache. The least recently used index is dropped first."""


class Indexes:
    """Thread-safe cache of the debates' search indexes. Indexes are keyed by debate and index name."""

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
        """Return the search index for transcript entries, from the cache if possible.

        The index contains exactly these entries. A cached index is extended if the new entries begin with the
        indexed ones. Entries that are the same objects are compared by identity.

        Args:
            debate: Thread id.
            use: Name of the index, which separates indexes of different parts of one transcript.
            entries: Entries to index.
            names: Display names by speaker id.
            embeddings: LangChain embedding model, `None` for lexical retrieval.
            split: Function that splits an entry into passages. Use the same function for one `use`.
        """
        snapshot = list(entries)
        with self._lock:
            index, indexed_entries = self._known.pop((debate, use), (None, ()))
            old_embeddings = None if index is None or index.vectors is None else index.vectors.embeddings
            is_extension = (
                indexed_entries == snapshot[: len(indexed_entries)] and old_embeddings is embeddings
            )
            if index is None or index.names != names or not is_extension:
                vectors = None if embeddings is None else MessageVectors(embeddings)
                index, indexed_entries = EvidenceIndex(names=names, vectors=vectors), ()
            for entry in snapshot[len(indexed_entries) :]:
                if traits_of(entry).in_prompts:
                    for chunk in split(entry) if split else (entry,):
                        index.add(chunk)
            _keep(self._known, (debate, use), (index, snapshot))
            return index

    def items(
        self, debate: str, items: Sequence[MemoryItem], embeddings: Embeddings | None = None
    ) -> MemoryItems:
        """Return the search index for memory items, from the cache if possible.

        The index contains exactly these items. `embeddings` is a LangChain embedding model, or `None` for
        lexical retrieval.
        """
        with self._lock:
            index, indexed_items = self._items.pop(debate, (None, ()))
            if index is None or indexed_items != items or index.embeddings is not embeddings:
                index = MemoryItems(items, embeddings)
            _keep(self._items, debate, (index, items))
            return index


def _keep(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    while len(cache) > CACHED_INDEXES:
        cache.popitem(last=False)


def embeddings_of(permissions: Permissions, embeddings: Any = None) -> Any:
    """Return the given embedding model, or else the configured one.

    Raises:
        ConfigError: the name cannot be imported, or is not permitted.
    """
    if embeddings is not None:
        return embeddings
    return embeddings_named(permissions.authorize("embeddings").memory.retrieval.embeddings)


def embeddings_named(name: str | None) -> Any:
    """Return the LangChain embedding model of this name, or `None` to compare only words.

    Without a name: the static word vectors of the extra `moot[semantic]`, if it is installed.

    Raises:
        ConfigError: the name cannot be imported.
    """
    if name == WORDS:
        return None
    if name:
        return load_embeddings(name)
    from moot.retrieval.static_vectors import static_vectors  # LangChain's import is slow

    return static_vectors()


def may_block(embeddings: Embeddings | None) -> bool:
    """Return True if an embedding model may wait for a service, so that a worker thread has to ask it."""
    return embeddings is not None and not getattr(embeddings, "is_local", False)


@lru_cache(maxsize=8)
def load_embeddings(name: str) -> Any:
    """Import an embedding model, or call its factory, at `module:attribute`. Otherwise: `ConfigError`."""
    module, _, attribute = name.partition(":")
    try:
        value = getattr(import_module(module), attribute)
        model = value if hasattr(value, "embed_query") and not isinstance(value, type) else value()
    except Exception as error:  # code of another package may raise any exception
        raise ConfigError(
            f"memory.retrieval.embeddings: cannot create the embedding model {name!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not hasattr(model, "embed_documents"):
        raise ConfigError(f"memory.retrieval.embeddings: {name!r} is not a LangChain embedding model")
    return model
