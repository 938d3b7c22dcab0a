"""Sentence vectors of the transcript, where embeddings are configured."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moot.nodes.text.terms import without_asking

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

BLOCK_TOKENS = 64
"""Tokens of a block at least: a lone "yes, that one" has no meaning to embed."""

WINDOW_TOKENS = 224
"""A block is embedded with the one before it where both have no more tokens: small models read little more.

Of QMSum's evidence blocks by themselves bring .616 / .791 / .918 into 2,000 / 4,000 / 8,000 tokens, blocks of
128 tokens .618 / .796 / .916, windows .623 / .802 / .921; greater limits, to none, differ by .003.
"""

BATCH = 256
"""Blocks that one call of the embedding model takes."""

REMEMBERED = 64
"""Questions and unfinished blocks whose vectors are kept."""

Vectors = NDArray[np.float32]


class MessageVectors:
    """Unit vectors of windows of successive messages, made when the next question is asked.

    A window is a block of messages, with the block before it where both are short. The words of a message are
    held until the next block is embedded. What the embedding model raises is left to the caller; the windows
    stay pending and are tried again with the next question.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self._block_of: list[int] = []
        self._joined: list[bool] = []
        self._last, self._last_tokens = "", WINDOW_TOKENS
        self._open: list[str] = []
        self._open_tokens = 0
        self._full: list[str] = []
        self._matrix: Vectors | None = None
        self._asked: OrderedDict[str, Vectors] = OrderedDict()

    def __len__(self) -> int:
        return len(self._block_of)

    def add(self, text: str, tokens: int) -> None:
        """Note the next message."""
        self._block_of.append(len(self._joined))
        self._open.append(text)
        self._open_tokens += tokens
        if self._open_tokens >= BLOCK_TOKENS:
            window, joined = self._window()
            self._full.append(window)
            self._joined.append(joined)
            self._last, self._last_tokens = "\n".join(self._open), self._open_tokens
            self._open, self._open_tokens = [], 0

    def _window(self) -> tuple[str, bool]:
        """Return what is embedded of the open block, and whether the block before is in it."""
        joined = self._last_tokens + self._open_tokens <= WINDOW_TOKENS
        return "\n".join([*([self._last] if joined else []), *self._open]), joined

    def similarity(self, question: str) -> NDArray[np.float64]:
        """Return the cosine of `question` with the nearer window of every message, shape `(n,)`."""
        while self._full:
            block = _unit(self.embeddings.embed_documents(self._full[:BATCH]))
            self._matrix = block if self._matrix is None else np.concatenate([self._matrix, block])
            del self._full[:BATCH]
        asked = self._once(question, lambda: [self.embeddings.embed_query(without_asking(question))])[0]
        parts, joined = [] if self._matrix is None else [self._matrix @ asked], list(self._joined)
        if self._open:
            # Embedded anew until it is full: where blocks end must not depend on when questions came.
            rest, with_last = self._window()
            joined.append(with_last)
            parts.append(self._once(f"\n{rest}", lambda: self.embeddings.embed_documents([rest])) @ asked)
        cosine = np.concatenate([np.zeros(0), *parts])
        after = np.append(np.where(joined, cosine, -1.0)[1:], -1.0)  # of the window that begins with a block
        nearer: NDArray[np.float64] = np.maximum(cosine, after)[self._block_of]
        return nearer

    def _once(self, key: str, embed: Callable[[], list[list[float]]]) -> Vectors:
        """Return unit vectors that are asked for again soon: every speaker of a step asks alike."""
        if key not in self._asked:
            self._asked[key] = _unit(embed())
            while len(self._asked) > REMEMBERED:
                self._asked.popitem(last=False)
        return self._asked[key]


def _unit(vectors: list[list[float]]) -> Vectors:
    """Scale vectors to length 1; one of zeros or not numbers becomes zeros."""
    matrix = np.nan_to_num(np.asarray(vectors, dtype=np.float32), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Vectors = (matrix / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit
