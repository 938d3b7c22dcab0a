"""Weights of the scorer."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SpanWeights:
    """Weights for scoring how well a span, which consists of consecutive messages, answers a question."""

    evidence: float = 1.1
    """Weight of question terms anywhere in a span, scored by their log-likelihood ratio."""
    front: float = 0.7
    """Weight of question terms in the first quarter of a span, which often names the topic."""
    lead: float = 0.2
    """Weight of question terms just before a span or in its first quarter, which introduce it."""
    turning: float = 0.15
    """Weight of the speaker changes at the start and end of a span, in standard deviations."""
    speaker: float = 2.5
    """Weight of text by speakers whom the question names. The share of this text in a span of messages is
    compared with its share in the whole transcript, and counts as a logarithm."""
    length: float = 0.3
    """Weight of ln(tokens / 1,097) of a span if the question names no speaker."""
    length_named: float = -0.1
    """Weight of ln(tokens / 1,097) of a span if the question names a speaker."""
    length_square: float = -0.42
    """Weight of the square of ln(tokens / 1,097)."""
    meaning: float = 0.425
    """Weight of the embedding similarity between the question and a span: the mean z-score of its blocks."""
    meaning_front: float = 0.25
    """Weight of the same similarity for the first quarter of a span."""
    smoothing: float = 300.0
    """Number of virtual words from the whole transcript that smooth the word frequencies of a span
    (Dirichlet smoothing)."""
    share_smoothing: float = 0.03
    """Amount added to a speaker's share of the text, so that a share of zero has a logarithm."""


@dataclass(frozen=True)
class ScoreWeights:
    """Weights for scoring how well messages (in nats) and memories (from 0 to 1) match a question."""

    message: float = 0.35
    """Weight of a message's own BM25 score in the score of the message."""
    context: float = 0.25
    """Weight of the BM25 scores of nearby messages in the score of a message."""
    answering: float = 0.25
    """Weight of the previous message's questions in the score of a message, which probably answers them.
    Their share of the previous message's BM25 score counts. Values from .15 to .4 differ by .01."""
    asking: float = 0.0
    """Score added to a message that only asks, and in proportion to others. It counts for separate answers,
    because a passage with the answer often contains a question. Values from -1.5 to -3 differ by .004."""
    speaker: float = 0.8
    """Score added to a message if the question names its speaker."""
    speakers_near: float = 1.0
    """Weight of the logarithm of the share of nearby text by speakers whom the question names."""
    passage: float = 0.9
    """Weight, in the score of a message, of the logarithm of the probability that the message belongs to a
    passage with the answer. It is less than 1, because a passage repeats the evidence of its messages."""
    passage_words: float = 1.0
    """Weight of a message's own score in the score of the message as a part of a passage."""
    alone: float = 0.2
    """Prior probability that the answer is in separate messages. Otherwise, the answer is in one continuous
    passage. Values from .15 to .35 differ by .01."""
    recency: float = 0.5
    """Weight of recency in the score of a memory. Recency halves every 69 memories."""
    relevance: float = 3.0
    """Weight of relevance to the question in the score of a memory."""
    importance: float = 2.0
    """Weight of the importance rating in the score of a memory."""
    meaning: float = 0.0
    """Weight of the embedding similarity (z-score) of a message to the question, as a separate answer."""
    spans: SpanWeights = field(default_factory=SpanWeights)
    """Weights for scoring spans of messages. They are tuned on the validation meetings of QMSum. They improve
    the results on each of five parts of the set."""


WEIGHTS = ScoreWeights()
"""Default weights for scoring transcript messages and memories by words. Recency, relevance and importance
are those of the released code of Generative Agents."""

SEMANTIC_WEIGHTS = ScoreWeights(
    asking=-2.5,
    passage_words=0.6,
    alone=0.4,
    meaning=0.85,
    spans=SpanWeights(evidence=0.77, front=0.49, lead=0.14),
)
"""Default weights for a transcript that has embeddings, chosen with static word vectors on all development
data. A search on either half of it gave an `alone` of .3, a `passage_words` of .6 and .75, and a `meaning` of
.7 and 1.1. A higher `alone` finds more single messages (LoCoMo), and less of a passage (QMSum)."""
