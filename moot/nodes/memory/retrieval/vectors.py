"""Sentence vectors of the transcript, where embeddings are configured."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moot.nodes.text.asking import without_asking

BLOCK_TOKENS = 64
"""Tokens that are embedded together at least: a lone "yes, that one" has no meaning to embed."""

BATCH = 256
"""Blocks that one call of the embedding model takes."""

REMEMBERED = 64
"""Questions and unfinished blocks whose vectors are kept."""

Vectors = NDArray[np.float32]


class Embeddings(Protocol):
    """What is asked of an embedding model; LangChain's `Embeddings` is one."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""


class MessageVectors:
    """Unit vectors of blocks of successive messages, made when the next question is asked.

    The words of a message are held until its block is embedded. What the embedding model raises is left to
    the caller; the blocks stay pending and are tried again with the next question.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self._block_of: list[int] = []
        self._open: list[str] = []
        self._open_tokens = 0
        self._full: list[str] = []
        self._matrix: Vectors | None = None
        self._asked: OrderedDict[str, Vectors] = OrderedDict()

    def __len__(self) -> int:
        return len(self._block_of)

    def add(self, text: str, tokens: int) -> None:
        """Note the next message."""
        embedded = 0 if self._matrix is None else len(self._matrix)
        self._block_of.append(embedded + len(self._full))
        self._open.append(text)
        self._open_tokens += tokens
        if self._open_tokens >= BLOCK_TOKENS:
            self._full.append("\n".join(self._open))
            self._open, self._open_tokens = [], 0

    def similarity(self, question: str) -> NDArray[np.float64]:
        """Return the cosine of `question` with the block of every message, shape `(n,)`."""
        while self._full:
            self._append(_unit(self.embeddings.embed_documents(self._full[:BATCH])))
            del self._full[:BATCH]
        asked = self._once(question, lambda: [self.embeddings.embed_query(without_asking(question))])[0]
        parts = [] if self._matrix is None else [self._matrix @ asked]
        if self._open:
            # Embedded anew until it is full: where blocks end must not depend on when questions came.
            rest = "\n".join(self._open)
            parts.append(self._once(f"\n{rest}", lambda: self.embeddings.embed_documents([rest])) @ asked)
        return np.concatenate([np.zeros(0), *parts])[self._block_of]

    def _once(self, key: str, embed: Callable[[], list[list[float]]]) -> Vectors:
        """Return unit vectors that are asked for again soon: every speaker of a step asks alike."""
        if key not in self._asked:
            self._asked[key] = _unit(embed())
            while len(self._asked) > REMEMBERED:
                self._asked.popitem(last=False)
        return self._asked[key]

    def _append(self, block: Vectors) -> None:
        self._matrix = block if self._matrix is None else np.concatenate([self._matrix, block])


def _unit(vectors: list[list[float]]) -> Vectors:
    """Scale vectors to length 1; one of zeros or not numbers becomes zeros."""
    matrix = np.nan_to_num(np.asarray(vectors, dtype=np.float32), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Vectors = (matrix / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit
