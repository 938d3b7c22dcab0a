"""Scoring and selection of the messages that most probably answer a question.

`read_question` prepares a question. `select_evidence` selects messages within a token budget. One scorer
serves questions about a debate, memories of a turn, passages of documents, and earlier debates.
`ScoreWeights` names all its weights. A score adds up evidence in nats:

- the words that the message shares with the question (Okapi BM25, Robertson and Zaragoza 2009, §3.4),
- the same evidence of the messages around it, which fades with their distance in tokens,
- whether the message only asks, or replies to a message that asks about the subject of the question,
- whether the question names the message's speaker,
- in a whole transcript, the probability of the passages that contain the message. A message whose own words
  answer the question needs no such passage, so the two are mixed as probabilities.

Memories of a turn add recency and importance, as in Generative Agents (Park et al. 2023, §4.1).

The weights were fitted by conditional logistic regression on the questions of QMSum's validation meetings and
on five conversations of LoCoMo. `python -m benchmarks.retrieval` prints the result.
"""

import math
from collections.abc import Mapping

import numpy as np

from moot.retrieval.index import EvidenceIndex, Postings, as_ints
from moot.retrieval.retrieval_question import RetrievalQuestion
from moot.retrieval.spans import densities
from moot.retrieval.vectors import Floats, Ints, standardize
from moot.retrieval.weights import SEMANTIC_WEIGHTS, WEIGHTS, ScoreWeights

CONTEXT_TOKENS = 80
"""Distance, in tokens, over which nearby words influence a message's score. At this distance, the influence
has fallen to 1/e. From 60 to 100 tokens, results differ by less than .01."""
SPEAKERS_TOKENS = 400
"""Distance, in tokens, over which nearby speakers influence a message's score. At this distance, the
influence has fallen to 1/e."""
FOCUS_TOKENS = 2_000
"""Maximum total length, in tokens, of a few messages that answer a question. `concentration` adds up the
probabilities of the best-matching messages up to this length."""
_SATURATION, _LENGTH_PENALTY = 1.2, 0.5  # k1 and b of BM25; 0.6 to 2 and 0.25 to 0.75 differ by .003


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
    """Return the highest possible BM25 score of a short text for weighted query terms."""
    return (_SATURATION + 1) * sum(weights.values())


def own_evidence(postings: Postings, weights: Mapping[str, float], positions: Ints | None = None) -> Floats:
    """Return the BM25 score of each text, or of those at sorted positions, for weighted terms."""
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
    evidence[1:] += weights.answering * (np.array(index.asking)[selection] * word_evidence)[:-1]
    if question.speakers:
        is_named = np.isin(as_ints(index.speaker_of)[selection], question.speakers)
        tokens = as_ints(index.tokens)[selection].astype(float)
        named_tokens, all_tokens = (
            each + context_sum(each, middle, SPEAKERS_TOKENS) for each in (tokens * is_named, tokens)
        )
        share = np.log(named_tokens / all_tokens + weights.spans.share_smoothing)
        evidence += weights.speaker * is_named + weights.speakers_near * share
    return evidence


def probabilities(index: EvidenceIndex, question: RetrievalQuestion, *, semantic: bool = True) -> Floats:
    """Return the probability that each message answers the question. The sum is 1.

    `semantic=False` ignores the embeddings of the index. The weights are `SEMANTIC_WEIGHTS` with embeddings,
    `WEIGHTS` without.
    """
    if not len(index):
        return np.zeros(0)
    vectors = index.vectors if semantic else None
    similarity = None if vectors is None else vectors.similarity(question.text_to_embed)
    weights = WEIGHTS if similarity is None else SEMANTIC_WEIGHTS
    terms = term_weights(question, index.postings)
    own_score = message_evidence(index, question, own_evidence(index.postings, terms), weights)
    # Logarithms, because products of small probabilities would underflow.
    size = np.log(as_ints(index.tokens))
    alone = own_score + size + weights.asking * np.array(index.asking)
    within = weights.passage_words * own_score + size
    if similarity is not None:
        alone += weights.meaning * standardize(similarity.messages)
    density = densities(index, question, weights.spans, None if similarity is None else similarity.blocks)
    within += weights.passage * np.log(np.maximum(density, np.finfo(np.float64).tiny))
    mixed: Floats = weights.alone * _softmax(alone) + (1 - weights.alone) * _softmax(within)
    return mixed


def _softmax(score: Floats) -> Floats:
    odds = np.exp(score - score.max())
    shares: Floats = odds / odds.sum()
    return shares


def concentration(index: EvidenceIndex, probability: Floats) -> float:
    """Return the probability that a few messages contain the answer.

    The best-matching messages count, with at most `FOCUS_TOKENS` tokens together. The probability is high for
    a question about certain messages, and low for a question about the whole transcript.
    """
    tokens = as_ints(index.tokens)
    best = np.argsort(-probability / tokens, kind="stable")
    return float(probability[best][np.cumsum(tokens[best]) <= FOCUS_TOKENS].sum())
