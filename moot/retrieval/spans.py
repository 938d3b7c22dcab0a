"""Scores of the spans of messages that may contain an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from moot.retrieval.index import EvidenceIndex, as_ints
from moot.retrieval.retrieval_question import RetrievalQuestion
from moot.retrieval.vectors import Floats, Ints, standardize
from moot.retrieval.weights import SpanWeights

SPAN_TOKENS = (128, 192, 288, 432, 640, 960, 1440, 2160, 3240, 4860, 7290)
"""Lengths, in tokens, of the spans of messages that are scored. They range from a short exchange to a whole
topic."""
LEAD_TOKENS = 200
"""Number of tokens that count as the introduction to a span of messages. They come just before the span."""
SIDE_TOKENS = 150
"""Number of tokens compared on each side of a possible speaker change."""
MAX_SPEAKERS_SCORED = 32
"""Maximum number of speakers that are distinguished when speaker changes are scored. They are those who wrote
the most tokens. All other speakers count as one."""


@dataclass(frozen=True)
class _Spans:
    lead: Ints
    start: Ints
    front: Ints
    end: Ints
    tokens: Floats
    turning: Floats
    """Score for speaker changes at the start and the end of each span of messages. The two scores are
    added."""


_SPANS: WeakKeyDictionary[EvidenceIndex, tuple[int, _Spans]] = WeakKeyDictionary()
"""Cache of the spans of messages in which answers are searched. The keys are the search indexes of
transcripts. The spans do not depend on the question."""


def densities(
    index: EvidenceIndex,
    question: RetrievalQuestion,
    weights: SpanWeights | None = None,
    cosine: Floats | None = None,
) -> Floats:
    """Return how likely each message is to belong to a passage with the answer.

    The probabilities are given per token. Candidates are spans of messages of many lengths. Each spreads its
    probability over its messages. `cosine` is the similarity of each message's block to the question, if
    there are embeddings.
    """
    if not len(index):
        return np.zeros(0)
    weights, spans = weights or SpanWeights(), _spans_of(index)
    length = np.log(spans.tokens) - 7
    score = weights.length_square * length**2
    score += (weights.length_named if question.speakers else weights.length) * length
    score += weights.turning * spans.turning + _evidence(index, question, spans, weights)
    if question.speakers:
        score += weights.speaker * _speaker_ratio(index, question, spans, weights)
    if cosine is not None:
        score += _meaning(cosine, as_ints(index.tokens), spans, weights)

    # Each span divides its probability among its messages in proportion to their tokens.
    mass = np.exp(score - score.max())
    mass /= mass.sum() * spans.tokens
    count = len(index) + 1
    steps = np.bincount(spans.start, mass, count) - np.bincount(spans.end, mass, count)
    return np.maximum(np.cumsum(steps)[:-1], 0.0)


def _cumulate(column: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose item `n` is the sum of the first `n` values. Item 0 is 0."""
    return np.concatenate([np.zeros(1, dtype=column.dtype), np.cumsum(column)])


def _spans_of(index: EvidenceIndex) -> _Spans:
    """Return the spans of messages, within the transcript, that may contain an answer."""
    n, cached_spans = len(index), _SPANS.get(index)
    if cached_spans is not None and cached_spans[0] == n:
        return cached_spans[1]
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
    """Return how much the speakers change between each two messages.

    The score is the standardized Jensen–Shannon divergence between the speakers' shares before and after the
    boundary.
    """
    left_start = np.maximum(np.searchsorted(cumulated, cumulated - SIDE_TOKENS, "right") - 1, 0)
    right_end = np.minimum(np.searchsorted(cumulated, cumulated + SIDE_TOKENS), len(tokens))
    left_tokens, right_tokens = (
        np.maximum(1, cumulated - cumulated[left_start]),
        np.maximum(1, cumulated[right_end] - cumulated),
    )
    speaker_of = as_ints(index.speaker_of)
    loudest = np.argsort(-np.bincount(speaker_of, tokens), kind="stable")[:MAX_SPEAKERS_SCORED]
    change: Floats = np.zeros(len(cumulated))
    for is_speaker in (*(speaker_of == speaker for speaker in loudest), ~np.isin(speaker_of, loudest)):
        spoken_tokens = _cumulate(np.where(is_speaker, tokens, 0))
        left_share, right_share = (
            (spoken_tokens - spoken_tokens[left_start]) / left_tokens,
            (spoken_tokens[right_end] - spoken_tokens) / right_tokens,
        )
        change += (
            _entropy((left_share + right_share) / 2) - (_entropy(left_share) + _entropy(right_share)) / 2
        )
    inner, turning = change[1:-1], np.zeros(len(change))  # the transcript's start and end mean nothing
    if len(inner):  # small differences carry no information if all turns are alike
        turning[1:-1] = (inner - inner.mean()) / max(float(inner.std()), 0.1)
    return turning


def _entropy(share: Floats) -> Floats:
    entropy: Floats = -share * np.log2(np.maximum(share, 1e-12))
    return entropy


def _evidence(
    index: EvidenceIndex, question: RetrievalQuestion, spans: _Spans, weights: SpanWeights
) -> Floats:
    """Return each span's score, the weighted sum of ln((tf + μp) / ((n + μ)p)) over the question's terms."""
    mu, postings = weights.smoothing, index.postings
    words = _cumulate(as_ints(postings.lengths))
    total = sum(question.terms.values()) * _in_parts(lambda n: np.log(mu / (n + mu)), words, spans, weights)
    for term, repeats in question.terms.items():
        positions, counts = postings.occurrences(term)
        column = np.zeros(len(index), dtype=np.int64)
        column[positions] = counts
        cumulated = _cumulate(column)
        # Look up ln(1 + tf/(μp)) in a table, because a span's tf is a small integer and logarithms are slow.
        odds = postings.words / (mu * (cumulated[-1] + 1))
        table = repeats * np.log1p(odds * np.arange(cumulated[-1] + 1))
        total += _in_parts(table.__getitem__, cumulated, spans, weights)
    return total


def _in_parts(log: Callable[[Ints], Floats], cumulated: Ints, spans: _Spans, weights: SpanWeights) -> Floats:
    """Score each span of messages by its word counts.

    Words in the first quarter of a span get extra weight. `cumulated` holds cumulative counts.

    `log` converts counts to scores, which are added up for the whole span, for its first quarter, and for its
    introduction together with the first quarter.
    """
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
    for speaker in question.speakers:  # if the question names two speakers, both should speak
        spoken_tokens = _cumulate(np.where(speaker_of == speaker, tokens, 0))
        share = (spoken_tokens[spans.end] - spoken_tokens[spans.start]) / spans.tokens
        overall_share = spoken_tokens[-1] / tokens.sum()
        ratio += np.log((share + weights.share_smoothing) / (overall_share + weights.share_smoothing))
    return ratio / len(question.speakers)


def _meaning(cosine: Floats, tokens: Ints, spans: _Spans, weights: SpanWeights) -> Floats:
    """Return how similar in meaning, by embeddings, each span is to the question."""
    size, mass = _cumulate(tokens), _cumulate(standardize(cosine, tokens) * tokens)
    span_mean: Floats = (mass[spans.end] - mass[spans.start]) / spans.tokens
    front_mean: Floats = (mass[spans.front] - mass[spans.start]) / (size[spans.front] - size[spans.start])
    return weights.meaning * span_mean + weights.meaning_front * front_mean
