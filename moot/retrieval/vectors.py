"""Embedding vectors of messages, which grow as messages are added, and their similarity to a question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moot.text.terms import split_sentences, without_question_words

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

BLOCK_TOKENS = 64
"""Minimum number of tokens in a block of messages. A passage is compared by its blocks, because a short
reply has too little content for a useful embedding."""

WINDOW_TOKENS = 224
"""Maximum length, in tokens, of two message blocks that are embedded as one text. Small embedding models read
little more. Share of QMSum's evidence within 2,000 / 4,000 / 8,000 tokens: single blocks .616 / .791 / .918,
blocks of 128 tokens .618 / .796 / .916, pairs of blocks .623 / .802 / .921. Larger limits differ by .003."""

BATCH = 256
"""Maximum number of texts sent to the embedding model in one call."""

CACHED_VECTORS = 64
"""Maximum number of cached embeddings. The cache holds vectors of questions and of unfinished message
blocks."""

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Similarity(NamedTuple):
    """Cosine similarity between each message and a question. Each array has shape `(n,)`."""

    messages: Floats
    """Similarity of the message by itself. It is the mean of two values: the similarity of the whole message,
    and that of its most similar sentence."""
    blocks: Floats
    """Similarity of the block of messages that contains the message."""


class TextVectors:
    """Embedding vectors of texts, computed on demand. Each vector has length 1.

    Exceptions of the embedding model propagate to the caller. The pending texts are tried again next time.
    """

    def __init__(self, embeddings: Embeddings, texts: Sequence[str] = ()) -> None:
        self.embeddings = embeddings
        self._pending = list(texts)
        self._batches: list[Vectors] = []
        self._asked: OrderedDict[str, Vectors] = OrderedDict()

    def similarity(self, question: str) -> Floats:
        """Return the cosine similarity between each text and a question. The result has shape `(n,)`."""
        return self.cosine(self.of_question(question))

    def of_question(self, question: str) -> Vectors:
        """Return the vector of a question, without the words that only phrase it."""
        vectors = self.once(question, lambda: [self.embeddings.embed_query(without_question_words(question))])
        vector: Vectors = vectors[0]
        return vector

    def add(self, *texts: str) -> None:
        """Add texts, which are embedded when the next question is asked."""
        self._pending += texts

    def cosine(self, question: Vectors) -> Floats:
        """Return the cosine similarity between each text and a question's vector."""
        while self._pending:
            self._batches.append(_unit(self.embeddings.embed_documents(self._pending[:BATCH])))
            del self._pending[:BATCH]
        self._batches = [np.concatenate(self._batches)] if len(self._batches) > 1 else self._batches
        # `@` would start threads, which take up to 8 ms of processor time on a busy machine.
        parts = [np.einsum("ij,j->i", batch, question) for batch in self._batches]
        return np.concatenate([np.zeros(0), *parts])

    def once(self, key: str, embed: Callable[[], list[list[float]]]) -> Vectors:
        """Return the normalized vectors for `key`, cached, because all speakers ask the same question."""
        if key not in self._asked:
            self._asked[key] = _unit(embed())
            while len(self._asked) > CACHED_VECTORS:
                self._asked.popitem(last=False)
        return self._asked[key]


class MessageVectors:
    """Embedding vectors of consecutive messages, computed on demand. Each vector has length 1.

    Each message and each of its sentences has a vector. Messages are also grouped into blocks. A short block
    is embedded together with the block before it. Exceptions of the embedding model propagate to the caller;
    the pending texts are tried again with the next question.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self._texts, self._blocks = TextVectors(embeddings), TextVectors(embeddings)
        self._starts: list[int] = []
        """Position of each message in `_texts`. Its sentences follow."""
        self._text_count = 0
        self._block_of: list[int] = []
        self._joined: list[bool] = []
        self._last, self._last_tokens = "", WINDOW_TOKENS
        self._open: list[str] = []
        self._open_tokens = 0

    def __len__(self) -> int:
        return len(self._block_of)

    def add(self, text: str, tokens: int) -> None:
        """Add a message, which is embedded when the next question is asked."""
        sentences = [sentence.text for sentence in split_sentences(text)]
        texts = [text, *sentences] if len(sentences) > 1 else [text]
        self._starts.append(self._text_count)
        self._text_count += len(texts)
        self._texts.add(*texts)
        self._block_of.append(len(self._joined))
        self._open.append(text)
        self._open_tokens += tokens
        if self._open_tokens >= BLOCK_TOKENS:
            window, joined = self._window()
            self._blocks.add(window)
            self._joined.append(joined)
            self._last, self._last_tokens = "\n".join(self._open), self._open_tokens
            self._open, self._open_tokens = [], 0

    def _window(self) -> tuple[str, bool]:
        """Return the text of the unfinished block, and whether it includes the previous block."""
        joined = self._last_tokens + self._open_tokens <= WINDOW_TOKENS
        return "\n".join([*([self._last] if joined else []), *self._open]), joined

    def similarity(self, question: str) -> Similarity:
        """Return the cosine similarity between each message and a question."""
        if not len(self):
            return Similarity(np.zeros(0), np.zeros(0))
        question_vector = self._texts.of_question(question)
        cosine = self._texts.cosine(question_vector)
        messages = (cosine[self._starts] + np.maximum.reduceat(cosine, self._starts)) / 2
        return Similarity(messages, self._block_similarity(question_vector))

    def _block_similarity(self, question_vector: Vectors) -> Floats:
        """Return the similarity of each message's block, or the higher one of two."""
        cosine, joined = self._blocks.cosine(question_vector), list(self._joined)
        if self._open:
            # The unfinished block is embedded again each time, so that its limits do not depend on the time
            # of questions.
            open_window, includes_last = self._window()
            joined.append(includes_last)
            vectors = self._blocks.once(open_window, lambda: self.embeddings.embed_documents([open_window]))
            cosine = np.append(cosine, np.dot(vectors[0], question_vector))
        # cosine similarity of the vector shared with the next block
        next_cosine = np.append(np.where(joined, cosine, -1.0)[1:], -1.0)
        similarities: Floats = np.maximum(cosine, next_cosine)[self._block_of]
        return similarities


def _unit(vectors: list[list[float]]) -> Vectors:
    """Scale each embedding vector to length 1. Zeros and invalid numbers become zero vectors."""
    matrix = np.nan_to_num(np.asarray(vectors, dtype=np.float64), posinf=0.0, neginf=0.0)
    for order in (np.inf, 2):  # first by the largest number, because its square might overflow
        norms = np.linalg.norm(matrix, order, axis=1, keepdims=True)
        matrix = matrix / np.where(norms > 0, norms, 1.0)
    return matrix.astype(np.float32)


def standardize(cosine: Floats, tokens: Floats | Ints | None = None) -> Floats:
    """Return z-scores of similarities, 0 if all are equal. `tokens` weights them; default: all the same."""
    deviation = cosine - np.average(cosine, weights=tokens)
    z_score: Floats = deviation / (np.sqrt(np.average(deviation**2, weights=tokens)) or 1.0)
    return z_score
