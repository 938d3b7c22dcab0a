"""Scoring and selection of the messages that most probably answer a question.

`read_question` prepares a question. `select_evidence` selects messages within a token budget. One scorer
serves questions about a debate, memories of a turn, passages of documents, and earlier debates.
`ScoreWeights` names all its weights. A score adds up evidence in nats:

- the words that the message shares with the question (Okapi BM25, Robertson and Zaragoza 2009, §3.4),
- the same evidence of the messages around it, which fades with their distance in tokens,
- whether the question names the message's speaker,
- in a whole transcript, the probability of the passages that contain the message. A message whose own words
  answer the question needs no such passage, so the two are mixed as probabilities.

Memories of a turn add recency and importance, as in Generative Agents (Park et al. 2023, §4.1).

The weights were fitted by conditional logistic regression on the questions of QMSum's validation meetings and
on five conversations of LoCoMo. `python -m benchmarks.retrieval` prints the result.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from moot.retrieval.index import EvidenceIndex, Floats, Ints, Postings, as_ints
from moot.text.terms import STOP_WORDS, WORD, question_terms, terms, words
from moot.text.tokens import rarity

_ALIAS = re.compile(r"[(（]([^()（）]*)[)）]")
_GRAMMAR_WEIGHT = 0.1
_INITIAL_WEIGHT = 0.5
_CAPITAL_FACTOR = 1.5


@dataclass(frozen=True)
class RetrievalQuestion:
    """Question prepared for searching the transcript.

    Attributes:
        text: Question as it was asked.
        text_to_embed: Question without the speakers' names.
        terms: Term counts without speakers' names. Common terms count less.
        speakers: Index numbers of the speakers that the question names.
        unknown: Counts of the terms that the transcript does not contain.
    """

    text: str
    text_to_embed: str
    terms: dict[str, float]
    speakers: tuple[int, ...] = ()
    unknown: Mapping[str, float] = field(default_factory=dict)


def read_question(index: EvidenceIndex, text: str) -> RetrievalQuestion:
    """Prepare a question for a search of the transcript.

    The result includes the speakers that the question names.
    """
    names = [_aliases(index.names.get(speaker, speaker)) for speaker in index.speakers]
    mentions = _speakers_in(names, _word_weights(text))
    name_words = frozenset[str]().union(*(alias for aliases in mentions.values() for alias in aliases))
    text_without_names = " ".join(word for word in WORD.findall(text) if _fold(word) not in name_words)
    counts = Counter(question_terms(text_without_names))
    rarities = {term: rarity(word) for word in words(text_without_names) for term in terms(word)}
    weights = {term: count * rarities.get(term, 1.0) for term, count in counts.items()}
    known = {term: weight for term, weight in weights.items() if term in index.postings}
    unknown = {term: weight for term, weight in weights.items() if term not in known}
    return RetrievalQuestion(text, text_without_names or text, known, tuple(mentions), unknown)


def _speakers_in(
    names: Sequence[Sequence[frozenset[str]]], word_weights: Mapping[str, float]
) -> dict[int, list[frozenset[str]]]:
    """Return the speakers that a question names.

    The values are the names that the question uses. The keys are indexes in `names`.

    A word has less weight if several speakers share it. A word that belongs to one speaker's full name does
    not name another speaker. For example, "Grad E" is not "Grad A".
    """
    full_names = {n: [a for a in aliases if a <= word_weights.keys()] for n, aliases in enumerate(names)}
    name_words = frozenset[str]().union(*(alias for aliases in full_names.values() for alias in aliases))
    other_words = {word: weight for word, weight in word_weights.items() if word not in name_words}
    name_counts = Counter(word for aliases in names for word in frozenset[str]().union(*aliases))
    weights = {}
    for word, count in name_counts.items():
        base_weight = _INITIAL_WEIGHT if len(word) == 1 else 1.0
        weights[word] = (_GRAMMAR_WEIGHT if word in STOP_WORDS else base_weight) / count

    def is_called(alias: frozenset[str]) -> bool:
        """Return True if the question contains most of the words in `alias`, a speaker's name.

        Words are weighted.
        """
        total = sum(weights[word] for word in alias)
        return sum(weights[word] * other_words.get(word, 0.0) for word in alias) > total / 2

    mentions = {n: full_names[n] or list(filter(is_called, names[n])) for n in full_names}
    return {n: aliases for n, aliases in mentions.items() if aliases}


def _fold(word: str) -> str:
    """Convert a word to lower case unless it is a single capital letter."""
    return word if len(word) == 1 and word.isupper() else word.casefold()


def _word_weights(text: str) -> dict[str, float]:
    """Return a weight for each word of a question.

    The weights serve to find the speakers that the question names. A capitalized word has more weight,
    because it is likely a name, unless it is the question's first word.
    """
    weights = dict.fromkeys(words(text), 1.0)
    for n, word in enumerate(WORD.findall(text)):
        if word[0].isupper():
            weights[_fold(word)] = _CAPITAL_FACTOR if n else 1.0
    return weights


@lru_cache(maxsize=256)
def _aliases(name: str) -> list[frozenset[str]]:
    """Return the names by which a question can mention a speaker, each as a set of words.

    The words in parentheses form a set of their own.
    """
    spellings = [_ALIAS.sub(" ", name), *_ALIAS.findall(name)]
    aliases = [
        frozenset(
            part for word in WORD.findall(s) for part in ([_fold(word)] if len(word) == 1 else words(word))
        )
        for s in spellings
    ]
    return [alias for alias in aliases if alias]


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
class SpanWeights:
    """Weights for scoring how well a span of messages answers a question."""

    evidence: float = 1.1
    """Weight of question terms that occur anywhere in a span of messages. Terms are scored by their
    log-likelihood ratio."""
    front: float = 0.7
    """Weight of question terms at the beginning of a span of messages. The beginning is the first quarter,
    which often names the topic."""
    lead: float = 0.2
    """Weight of question terms that introduce a span of messages. Such terms occur just before the span or in
    its first quarter."""
    turning: float = 0.15
    """Weight of speaker changes at the start and end of a span of messages. The changes are measured in
    standard deviations."""
    speaker: float = 2.5
    """Weight of text by speakers whom the question names. The share of this text in a span of messages is
    compared with its share in the whole transcript, and counts as a logarithm."""
    length: float = 0.3
    """Weight of a span's length if the question names no speaker. A span consists of consecutive messages.
    Its length counts as ln(tokens / 1,097)."""
    length_named: float = -0.1
    """Weight of a span's length if the question names a speaker. A span consists of consecutive messages. Its
    length counts as ln(tokens / 1,097)."""
    length_square: float = -0.42
    """Weight of a span's squared length. The length counts as ln(tokens / 1,097)."""
    meaning: float = 0.85
    """Weight of the embedding similarity between the question and a span of messages. The similarity is the
    mean z-score of the messages."""
    meaning_front: float = 0.5
    """Weight of the embedding similarity between the question and the beginning of a span. The beginning is
    the first quarter of the span. The similarity is the mean z-score of the messages."""
    smoothing: float = 300.0
    """Number of virtual words that smooth the word frequencies of a span of messages. The words represent the
    whole transcript (Dirichlet smoothing)."""
    share_smoothing: float = 0.03
    """Amount added to a speaker's share of the text. With this amount, even a share of zero has a
    logarithm."""


SEMANTIC_WEIGHTS = SpanWeights(evidence=0.77, front=0.49, lead=0.14)
"""Default weights for scoring spans of messages in a transcript that has embeddings. Embeddings replace three
tenths of the lexical weights. Two or four tenths give .002 less."""


@dataclass(frozen=True)
class ScoreWeights:
    """Weights for scoring how well messages and memories match a question.

    Evidence is in nats. Memory scores are scaled to 0–1.
    """

    message: float = 0.35
    """Weight of a message's own BM25 score in the total score of the message. Nearby messages have a separate
    weight (`context`)."""
    context: float = 0.25
    """Weight of nearby messages in the score of a message. Their BM25 scores count."""
    speaker: float = 0.8
    """Score added to a message if the question names its speaker."""
    speakers_near: float = 1.0
    """Weight of nearby text by speakers whom the question names. The share of this text counts as a logarithm
    in a message's score."""
    passage: float = 0.9
    """Weight of the surrounding passage in the score of a message. What counts is the
    logarithm of the probability that the message belongs to a passage with the answer. The weight is less
    than 1, because a passage repeats the evidence of its messages."""
    alone: float = 0.2
    """Prior probability that the answer is in separate messages. Otherwise, the answer is in one continuous
    passage. Values from .15 to .35 differ by .01."""
    recency: float = 0.5
    """Weight of recency in the score of a memory. Recency halves every 69 memories."""
    relevance: float = 3.0
    """Weight of relevance to the question in the score of a memory."""
    importance: float = 2.0
    """Weight of the importance rating in the score of a memory."""
    spans: SpanWeights = field(default_factory=SpanWeights)
    """Weights for scoring spans of messages in a transcript without embeddings. They are tuned on the
    validation meetings of QMSum. They improve the results on each of five parts of the set."""
    spans_with_embeddings: SpanWeights = SEMANTIC_WEIGHTS
    """Weights for scoring spans of messages in a transcript that has embeddings."""


WEIGHTS = ScoreWeights()
"""Default weights for scoring transcript messages and memories. Recency, relevance and importance are those
of the released code of Generative Agents."""
CONTEXT_TOKENS = 80
"""Distance, in tokens, over which nearby words influence a message's score. At this distance, the influence
has fallen to 1/e. From 60 to 100 tokens, results differ by less than .01."""
SPEAKERS_TOKENS = 400
"""Distance, in tokens, over which nearby speakers influence a message's score. At this distance, the
influence has fallen to 1/e."""
FOCUS_TOKENS = 2_000
"""Maximum total length, in tokens, of a few messages that answer a question. `concentration` adds up the
probabilities of the best-matching messages up to this length."""
_SATURATION, _LENGTH_PENALTY = (
    1.2,
    0.5,
)  # parameters k1 and b of BM25; 0.6 to 2 and 0.25 to 0.75 differ by .003


def term_weights(question: RetrievalQuestion, *postings: Postings) -> dict[str, float]:
    """Return a weight for each question term, based on its inverse document frequency."""
    term_counts = {**question.terms, **question.unknown}
    texts = sum(map(len, postings))
    frequencies = {term: sum(each.frequency(term) for each in postings) for term in term_counts}
    return {
        term: weight * math.log1p((texts - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        for term, weight in term_counts.items()
    }


def most_evidence(weights: Mapping[str, float]) -> float:
    """Return the highest possible BM25 score of a short text.

    The query terms have the given weights.
    """
    return (_SATURATION + 1) * sum(weights.values())


def own_evidence(postings: Postings, weights: Mapping[str, float], positions: Ints | None = None) -> Floats:
    """Return the BM25 score of each text for the query terms.

    The query terms have the given weights. Only the texts at the given positions are scored.

    The positions are sorted. Default: all texts.
    """
    if not len(postings if positions is None else positions):
        return np.zeros(0)
    rows, counts, texts = postings.all_occurrences(weights)
    weight, lengths = np.repeat([*weights.values()], texts), as_ints(postings.lengths)
    if positions is not None:
        row_of = np.full(len(postings), -1)
        row_of[positions] = np.arange(len(positions))
        hit = row_of[rows] >= 0
        rows, counts, weight, lengths = row_of[rows[hit]], counts[hit], weight[hit], lengths[positions]
    mean = max(1.0, postings.words / len(postings))
    norm = _SATURATION * (1 - _LENGTH_PENALTY + _LENGTH_PENALTY * lengths / mean)
    evidence = weight * counts * (_SATURATION + 1) / (counts + norm[rows])
    score: Floats = np.bincount(rows, evidence, len(lengths)).astype(np.float64, copy=False)
    return score


def context_sum(values: Floats, middle: Floats, distance: int = CONTEXT_TOKENS) -> Floats:
    """Add up the values of nearby messages for each message.

    Closer messages count more. `middle` holds the position of each message's middle in the transcript, in
    tokens, ascending. A value at `distance` tokens counts 1/e.
    """
    context: Floats = np.zeros(len(values))
    reach = 20 * distance  # what is farther away counts less than 1e-8
    start = 0
    while start < len(values):  # parts of the transcript, because exponentials of its length would overflow
        end = int(np.searchsorted(middle, middle[start] + 20 * reach, "right"))
        first, last = np.searchsorted(middle, (middle[start] - reach, middle[end - 1] + reach))
        place = (middle[first:last] - middle[first]) / distance
        rise, part = np.exp(place), values[first:last]
        before = (np.cumsum(part * rise) - part * rise) / rise
        after = (np.cumsum((part / rise)[::-1])[::-1] - part / rise) * rise
        context[start:end] = np.maximum(before + after, 0.0)[start - first : end - first]
        start = end
    return context


def message_evidence(
    index: EvidenceIndex,
    question: RetrievalQuestion,
    word_evidence: Floats,
    weights: ScoreWeights,
    positions: Ints | None = None,
) -> Floats:
    """Return a score for how well each message appears to answer the question.

    The evidence is measured in nats.

    Args:
        index: the transcript.
        question: the question.
        word_evidence: the result of `own_evidence` for the same messages.
        weights: weights of the parts of the score.
        positions: positions of the messages. Messages elsewhere do not count as context. `None`: all.
    """
    selection: slice | Ints = slice(None) if positions is None else positions
    middle = (as_ints(index.ends) - as_ints(index.tokens) / 2)[selection]
    evidence: Floats = weights.message * word_evidence + weights.context * context_sum(word_evidence, middle)
    if question.speakers:
        is_named = np.isin(as_ints(index.speaker_of)[selection], question.speakers)
        tokens = as_ints(index.tokens)[selection].astype(float)
        named_tokens, all_tokens = (
            each + context_sum(each, middle, SPEAKERS_TOKENS) for each in (tokens * is_named, tokens)
        )
        share = np.log(named_tokens / all_tokens + weights.spans.share_smoothing)
        evidence += weights.speaker * is_named + weights.speakers_near * share
    return evidence


def probabilities(
    index: EvidenceIndex,
    question: RetrievalQuestion,
    weights: ScoreWeights = WEIGHTS,
    *,
    semantic: bool = True,
) -> Floats:
    """Return the probability that each message answers the question. The sum is 1.

    `semantic=False` ignores the embeddings of the index.
    """
    if not len(index):
        return np.zeros(0)
    terms = term_weights(question, index.postings)
    evidence = message_evidence(index, question, own_evidence(index.postings, terms), weights)
    alone = np.exp(evidence - evidence.max()) * as_ints(index.tokens)
    within = alone * densities(index, question, weights, semantic=semantic) ** weights.passage
    mixed: Floats = weights.alone * alone / alone.sum() + (1 - weights.alone) * within / within.sum()
    return mixed


def concentration(index: EvidenceIndex, probability: Floats) -> float:
    """Return the probability that a few messages contain the answer.

    The best-matching messages count, with at most `FOCUS_TOKENS` tokens together. The probability is high for
    a question about certain messages, and low for a question about the whole transcript.
    """
    tokens = as_ints(index.tokens)
    best = np.argsort(-probability / tokens, kind="stable")
    return float(probability[best][np.cumsum(tokens[best]) <= FOCUS_TOKENS].sum())


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
    weights: ScoreWeights = WEIGHTS,
    *,
    semantic: bool = True,
) -> Floats:
    """Return how likely each message is to belong to a passage with the answer.

    The probabilities are given per token. Candidates are spans of messages of many lengths. Each spreads its
    probability over its messages.
    """
    if not len(index):
        return np.zeros(0)
    vectors = index.vectors if semantic else None
    span_weights = weights.spans if vectors is None else weights.spans_with_embeddings
    spans = _spans_of(index)
    length = np.log(spans.tokens) - 7
    score = span_weights.length_square * length**2
    score += (span_weights.length_named if question.speakers else span_weights.length) * length
    score += span_weights.turning * spans.turning + _evidence(index, question, spans, span_weights)
    if question.speakers:
        score += span_weights.speaker * _speaker_ratio(index, question, spans, span_weights)
    if vectors is not None:
        score += _meaning(
            vectors.similarity(question.text_to_embed), as_ints(index.tokens), spans, span_weights
        )

    # Each span divides its probability among its messages in proportion to their tokens.
    mass = np.exp(score - score.max())
    mass /= mass.sum() * spans.tokens
    count = len(index) + 1
    steps = np.bincount(spans.start, mass, count) - np.bincount(spans.end, mass, count)
    return np.maximum(np.cumsum(steps)[:-1], 0.0)


def _cumulate(column: NDArray[Any]) -> NDArray[Any]:
    """Return the cumulative sums of the values, starting with 0."""
    return np.concatenate([np.zeros(1, dtype=column.dtype), np.cumsum(column)])


def _spans_of(index: EvidenceIndex) -> _Spans:
    """Return the spans of messages that may contain an answer.

    Spans do not extend beyond the end of the transcript.
    """
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
    """Return a score for how well each span of messages matches the terms of the question.

    The score is the weighted sum of ln((tf + μp) / ((n + μ)p)) over the terms of the question.
    """
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
    """Return how similar in meaning each span of messages is to the question.

    Meaning is compared by embeddings.
    """
    deviation = cosine - np.average(cosine, weights=tokens)
    z_score = deviation / (np.sqrt(np.average(deviation**2, weights=tokens)) or 1.0)
    size, mass = _cumulate(tokens), _cumulate(z_score * tokens)
    span_mean: Floats = (mass[spans.end] - mass[spans.start]) / spans.tokens
    front_mean: Floats = (mass[spans.front] - mass[spans.start]) / (size[spans.front] - size[spans.start])
    return weights.meaning * span_mean + weights.meaning_front * front_mean


Costs = Mapping[int, int] | Callable[[int], int]
"""Number of tokens that each entry needs in a prompt. The numbers are given as a mapping or a function of the
entry's sequence number."""

SHARE_TOLERANCE = 0.1
"""Share of a debater's token budget that may stay unused when messages are selected. If more tokens stay
unused, more of the debater's messages might fit."""

LABEL_TOKENS = 7
"""Approximate number of tokens in the label of a message. The label names the message id and the speaker."""
MIN_LABELLED = 6
"""Minimum number of tokens for a message with its label."""

_SWAP_POOL = 64
_MERGED = 8  # rendering may merge this many tokens


@dataclass(frozen=True)
class SelectedEvidence:
    """Messages selected to answer a question.

    Attributes:
        seqs: Chosen entries in transcript order.
        tokens: Total tokens, at most the budget.
        omitted: Number of entries that were not chosen.
        oversize: `seq` of the entry to truncate if no entry fits.
    """

    seqs: tuple[int, ...]
    tokens: int
    omitted: int
    oversize: int | None = None


def select_evidence(
    index: EvidenceIndex,
    query: str | RetrievalQuestion,
    *,
    budget: int,
    costs: Costs | None = None,
    must_keep: Iterable[int] = (),
    mentioned_seqs: Iterable[int] = (),
    speakers: Sequence[str] = (),
    chances: Floats | None = None,
) -> SelectedEvidence:
    """Return the messages that most likely answer a question, within a token budget.

    Messages are ranked by the probability that they answer the question, divided by their tokens with the
    label. A message that does not fit is skipped, not truncated.

    Args:
        index: Index of the transcript.
        query: Question, or the result of `read_question`.
        budget: Tokens for all chosen messages, `must_keep` included.
        costs: Tokens by `seq`, label included; a function must return at least the entry's own `tokens`.
            Default: the entries' `tokens`.
        must_keep: `seq` of entries to choose first, the newest first if not all fit.
        mentioned_seqs: `seq` of entries that the question names. They follow `must_keep`, the most probable
            first.
        speakers: Sides with equal shares of the budget, to within 10 %. Other speakers get only `must_keep`.
            A side that is shorter than its share is chosen whole.
        chances: Result of `probabilities` for the same index and question, if it is known already.
    """
    question = query if isinstance(query, RetrievalQuestion) else read_question(index, query)
    chances = probabilities(index, question) if chances is None else chances
    worth = chances / (np.array(index.tokens) + (0 if costs is None else LABEL_TOKENS))
    is_unnamed = np.ones(len(index), dtype=np.bool_)  # everyone whom the question does not name
    is_unnamed[[p for seq in mentioned_seqs if (p := index.position(seq)) is not None]] = False
    order = np.lexsort((-np.arange(len(index)), -worth, is_unnamed)).tolist()
    draft = _SelectionDraft(index, costs, budget)
    required = [p for seq in sorted(set(must_keep), reverse=True) if (p := index.position(seq)) is not None]
    draft.fill(required, budget)
    if not speakers:
        draft.fill(order, draft.left)
        return draft.evidence(required or order)

    # Each side has its share of the budget, which includes its required entries.
    sides, fixed = dict.fromkeys(speakers), frozenset(required)
    speaker_ids = [index.speakers[number] for number in index.speaker_of]
    spent_tokens = {
        side: draft.spent(p for p in draft.selected_positions if speaker_ids[p] == side) for side in sides
    }
    share = (draft.left + sum(spent_tokens.values())) // len(sides)
    for side in sides:
        side_positions = [p for p in order if speaker_ids[p] == side]
        remaining = draft.fill(side_positions, min(share - spent_tokens[side], draft.left))
        draft.top_up([p for p in side_positions if p not in fixed], remaining, int(share * SHARE_TOLERANCE))
    return draft.evidence(required or order)


def token_costs(index: EvidenceIndex, costs: Costs | None) -> Callable[[int], int]:
    """Return a function that maps an entry's sequence number to the entry's token count.

    Default: the tokens of the entry's content. An unknown sequence number raises `KeyError`.
    """
    if costs is None:
        return index.tokens_of
    return costs if callable(costs) else costs.__getitem__


class _SelectionDraft:
    """Unfinished selection of transcript messages for a prompt, within a token budget."""

    def __init__(self, index: EvidenceIndex, costs: Costs | None, budget: int) -> None:
        self.index = index
        self.left = budget
        self.selected_positions: set[int] = set()
        self._price, self._is_dear = token_costs(index, costs), costs is None or callable(costs)
        self._least = MIN_LABELLED if callable(costs) else 1
        self._known: dict[int, int] = {}

    def cost(self, position: int) -> int:
        if position not in self._known:
            self._known[position] = self._price(self.index.seqs[position])
        return self._known[position]

    def fill(self, order: Iterable[int], remaining: int) -> int:
        """Select every entry that still fits, in the given order.

        Return the number of unused tokens.
        """
        for position in order:
            if remaining < self._least:
                break
            # Rendering is expensive, so counting tokens stops when the prompt is full.
            too_long = self._is_dear and self.index.tokens[position] > remaining + _MERGED
            if position in self.selected_positions or too_long:
                continue
            if (cost := self.cost(position)) <= remaining:
                self.selected_positions.add(position)
                remaining -= cost
                self.left -= cost
        return remaining

    def top_up(self, positions: Sequence[int], remaining: int, tolerance: int) -> None:
        """Use leftover tokens by replacing selected messages with longer ones.

        Stop when at most `tolerance` tokens are left or nothing longer fits. Long messages leave gaps that no
        other message fits, which would give the sides unequal shares.
        """
        while remaining > tolerance:
            pool = [p for p in positions if p not in self.selected_positions][:_SWAP_POOL]
            swaps = [
                (self.cost(addition) - self.cost(removal), addition, removal)
                for removal in positions
                if removal in self.selected_positions
                for addition in pool
                if 0 < self.cost(addition) - self.cost(removal) <= remaining
            ]
            if not swaps:
                break
            extra_cost, addition, removal = max(swaps)
            self.selected_positions.remove(removal)
            self.selected_positions.add(addition)
            self.left -= extra_cost
            remaining -= extra_cost

    def spent(self, positions: Iterable[int]) -> int:
        return sum(self.cost(p) for p in positions)

    def evidence(self, ranked_positions: Sequence[int]) -> SelectedEvidence:
        """Return the selected messages and the number of omitted messages.

        If no message fits, the caller should truncate the first message in `ranked_positions`.
        """
        seqs, positions = self.index.seqs, sorted(self.selected_positions)
        return SelectedEvidence(
            seqs=tuple(seqs[p] for p in positions),
            tokens=self.spent(positions),
            omitted=len(seqs) - len(positions),
            oversize=None if positions or not ranked_positions else seqs[ranked_positions[0]],
        )
