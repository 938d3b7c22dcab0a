"""How probable it is, for every message, that it belongs to the answer of a question.

A span posterior: spans of many lengths from every message are candidates for *the* passage that the question
is about, each is scored as a query-likelihood model with Dirichlet smoothing would (Zhai & Lafferty 2004),
and the softmax over all of them spreads over the messages they contain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from moot.nodes.memory.retrieval.index import EvidenceIndex, Floats, Ints, as_ints
from moot.nodes.memory.retrieval.question import RetrievalQuestion

SPAN_TOKENS = (128, 192, 288, 432, 640, 960, 1440, 2160, 3240, 4860, 7290)
"""Tokens that candidate spans reach: from an exchange to a whole topic."""
LEAD_TOKENS = 200
"""Tokens before a span that lead to it."""
SIDE_TOKENS = 150
"""Tokens on each side by which is seen whether other people speak from there on."""
MOST_SPEAKERS = 32
"""Those who said most are told apart; all others count as one."""


@dataclass(frozen=True)
class SpanWeights:
    """Weights of a span's score, in nats."""

    evidence: float = 1.1
    """Log-likelihood ratio of the question's terms in the span."""
    front: float = 0.7
    """The same in the span's first quarter: a passage tends to name its topic as it begins."""
    lead: float = 0.2
    """The same in its first quarter and what leads to it: who asks names what the answer does not."""
    turning: float = 0.15
    """How much who speaks changes where the span begins and where it ends, in standard deviations."""
    speaker: float = 2.5
    """Log ratio of a named speaker's share of the span to that of the transcript, the mean of those named."""
    length: float = 0.3
    """Linear term of the prior on ln(tokens / 1,097) where nobody is named."""
    length_named: float = -0.1
    """The same where somebody is: what one said about a thing is shorter than all that was."""
    length_square: float = -0.42
    """Square term of that prior."""
    meaning: float = 0.85
    """Mean z-scored cosine of the span's tokens, where embeddings are configured."""
    meaning_front: float = 0.5
    """The same in the span's first quarter."""
    smoothing: float = 300.0
    """Dirichlet smoothing: content words of transcript mixed into each span."""
    share_smoothing: float = 0.03
    """Smoothing of the speakers' shares."""


LEXICAL_WEIGHTS = SpanWeights()
"""Chosen on QMSum's validation meetings; each of five parts of them is better by these than it was before."""
SEMANTIC_WEIGHTS = SpanWeights(evidence=0.77, front=0.49, lead=0.14)
"""The same with embeddings, which say three tenths of what the terms did: two or four bring .002 less."""


@dataclass(frozen=True)
class _Spans:
    lead: Ints
    start: Ints
    front: Ints
    end: Ints
    tokens: Floats
    turning: Floats
    """How much who speaks changes where a span begins and where it ends, together."""


_SPANS: WeakKeyDictionary[EvidenceIndex, tuple[int, _Spans]] = WeakKeyDictionary()
"""Index → its length and its spans then: they are the same for every question."""


def densities(
    index: EvidenceIndex,
    question: RetrievalQuestion,
    weights: SpanWeights | None = None,
    *,
    semantic: bool = True,
) -> Floats:
    """Return each message's posterior probability, per token, of being in the answer; shape `(n,)`.

    Without `weights`, those that fit the index: with or without embeddings. Without `semantic`, its
    embeddings are left unused.
    """
    if not len(index):
        return np.zeros(0)
    vectors = index.vectors if semantic else None
    weights = weights or (LEXICAL_WEIGHTS if vectors is None else SEMANTIC_WEIGHTS)
    spans = _spans_of(index)
    length = np.log(spans.tokens) - 7
    score = weights.length_square * length**2
    score += (weights.length_named if question.speakers else weights.length) * length
    score += weights.turning * spans.turning + _evidence(index, question, spans, weights)
    if question.speakers:
        score += weights.speaker * _speaker_ratio(index, question, spans, weights)
    if vectors is not None:
        score += _meaning(vectors.similarity(question.about), as_ints(index.tokens), spans, weights)

    # Each span spreads its probability over the messages that it contains, by token.
    mass = np.exp(score - score.max())
    mass /= mass.sum() * spans.tokens
    count = len(index) + 1
    steps = np.bincount(spans.start, mass, count) - np.bincount(spans.end, mass, count)
    return np.maximum(np.cumsum(steps)[:-1], 0.0)


def _cumulate(column: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of the first 0, 1, … n values, shape `(n + 1,)`."""
    return np.concatenate([np.zeros(1, dtype=column.dtype), np.cumsum(column)])


def _spans_of(index: EvidenceIndex) -> _Spans:
    """Return the distinct spans that reach one of the lengths, cut at the transcript's end."""
    n, known = len(index), _SPANS.get(index)
    if known is not None and known[0] == n:
        return known[1]
    tokens = as_ints(index.tokens)
    cumulated = _cumulate(tokens)
    starts = np.arange(n)
    ends = np.searchsorted(cumulated, cumulated[:-1] + np.array(SPAN_TOKENS)[:, None])
    ends = np.minimum(ends, n)
    fresh = np.ones(ends.shape, dtype=bool)
    fresh[1:] = ends[1:] != ends[:-1]
    start, end = np.broadcast_to(starts, ends.shape)[fresh], ends[fresh]
    size = (cumulated[end] - cumulated[start]).astype(np.float64)
    front = np.searchsorted(cumulated, cumulated[start] + size / 4)
    lead = np.searchsorted(cumulated, cumulated[start] - LEAD_TOKENS)
    turning = _turning(index, tokens, cumulated)
    spans = _Spans(lead, start, front, end, size, turning[start] + turning[end])
    _SPANS[index] = n, spans
    return spans


def _turning(index: EvidenceIndex, tokens: Ints, cumulated: Ints) -> Floats:
    """Return how much who speaks changes before each message and after the last, shape `(n + 1,)`.

    The Jensen–Shannon divergence between the speakers' shares of what is said before and after, standardised.
    """
    before = np.maximum(np.searchsorted(cumulated, cumulated - SIDE_TOKENS, "right") - 1, 0)
    after = np.minimum(np.searchsorted(cumulated, cumulated + SIDE_TOKENS), len(tokens))
    left, right = (np.maximum(1, cumulated - cumulated[before]), np.maximum(1, cumulated[after] - cumulated))
    speaker_of = as_ints(index.speaker_of)
    loudest = np.argsort(-np.bincount(speaker_of, tokens), kind="stable")[:MOST_SPEAKERS]
    change: Floats = np.zeros(len(cumulated))
    for spoke in (*(speaker_of == speaker for speaker in loudest), ~np.isin(speaker_of, loudest)):
        said = _cumulate(np.where(spoke, tokens, 0))
        ago, next_ = (said - said[before]) / left, (said[after] - said) / right
        change += _entropy((ago + next_) / 2) - (_entropy(ago) + _entropy(next_)) / 2
    inner, turning = change[1:-1], np.zeros(len(change))  # that a transcript begins or ends says nothing
    if len(inner):  # nor what little gaps differ where all are alike, as in speeches by turns
        turning[1:-1] = (inner - inner.mean()) / max(float(inner.std()), 0.1)
    return turning


def _entropy(share: Floats) -> Floats:
    entropy: Floats = -share * np.log2(np.maximum(share, 1e-12))
    return entropy


def _evidence(
    index: EvidenceIndex, question: RetrievalQuestion, spans: _Spans, weights: SpanWeights
) -> Floats:
    """Return the weighted Σ ln((tf + μp) / ((n + μ)p)) over the question's terms for each span."""
    mu, postings = weights.smoothing, index.postings
    words = _cumulate(as_ints(postings.lengths))
    total = sum(question.terms.values()) * _in_parts(lambda n: np.log(mu / (n + mu)), words, spans, weights)
    for term, repeats in question.terms.items():
        positions, counts = postings.occurrences(term)
        column = np.zeros(len(index), dtype=np.int64)
        column[positions] = counts
        cumulated = _cumulate(column)
        # ln(1 + tf/(μp)) by table: a span's tf is a small integer, and logarithms are what costs.
        # The one occurrence added keeps a hapax from deciding everything.
        odds = postings.words / (mu * (cumulated[-1] + 1))
        table = repeats * np.log1p(odds * np.arange(cumulated[-1] + 1))
        total += _in_parts(table.__getitem__, cumulated, spans, weights)
    return total


def _in_parts(log: Callable[[Ints], Floats], cumulated: Ints, spans: _Spans, weights: SpanWeights) -> Floats:
    """Return the weighted sum of `log` of what each span, its front, and front and lead together have."""
    start, front = cumulated[spans.start], cumulated[spans.front]
    return (
        weights.evidence * log(cumulated[spans.end] - start)
        + weights.front * log(front - start)
        + weights.lead * log(front - cumulated[spans.lead])
    )


def _speaker_ratio(
    index: EvidenceIndex, question: RetrievalQuestion, spans: _Spans, weights: SpanWeights
) -> Floats:
    tokens, speaker_of = as_ints(index.tokens), as_ints(index.speaker_of)
    ratio: Floats = np.zeros(len(spans.tokens))
    for speaker in question.speakers:  # of two whom it names both are to speak
        said = _cumulate(np.where(speaker_of == speaker, tokens, 0))
        share = (said[spans.end] - said[spans.start]) / spans.tokens
        base = said[-1] / tokens.sum()
        ratio += np.log((share + weights.share_smoothing) / (base + weights.share_smoothing))
    return ratio / len(question.speakers)


def _meaning(cosine: Floats, tokens: Ints, spans: _Spans, weights: SpanWeights) -> Floats:
    """Return the weighted mean z-score of the cosine over each span's tokens and over those of its front."""
    other = cosine - np.average(cosine, weights=tokens)
    standard = other / (np.sqrt(np.average(other**2, weights=tokens)) or 1.0)
    size, mass = _cumulate(tokens), _cumulate(standard * tokens)
    whole: Floats = (mass[spans.end] - mass[spans.start]) / spans.tokens
    front: Floats = (mass[spans.front] - mass[spans.start]) / (size[spans.front] - size[spans.start])
    return weights.meaning * whole + weights.meaning_front * front
