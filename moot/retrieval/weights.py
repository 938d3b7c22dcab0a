"""Weights of the scorer."""

from dataclasses import dataclass, field


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
    meaning: float = 0.425
    """Weight of the embedding similarity between the question and a span of messages. The similarity is the
    mean z-score of the messages' blocks. It counts only if there are embeddings."""
    meaning_front: float = 0.25
    """Weight of the embedding similarity between the question and the beginning of a span. The beginning is
    the first quarter of the span. The similarity is the mean z-score of the messages."""
    smoothing: float = 300.0
    """Number of virtual words that smooth the word frequencies of a span of messages. The words represent the
    whole transcript (Dirichlet smoothing)."""
    share_smoothing: float = 0.03
    """Amount added to a speaker's share of the text. With this amount, even a share of zero has a
    logarithm."""


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
    """Weight of the embedding similarity between the question and a message. The similarity is a z-score. It
    counts only for messages as separate answers."""
    spans: SpanWeights = field(default_factory=SpanWeights)
    """Weights for scoring spans of messages. They are tuned on the validation meetings of QMSum. They improve
    the results on each of five parts of the set."""


WEIGHTS = ScoreWeights()
"""Default weights for scoring transcript messages and memories by words. Recency, relevance and importance
are those of the released code of Generative Agents."""

SEMANTIC_WEIGHTS = ScoreWeights(
    passage_words=0.6, alone=0.4, meaning=0.85, spans=SpanWeights(evidence=0.77, front=0.49, lead=0.14)
)
"""Default weights for a transcript that has embeddings, chosen with static word vectors on all development
data. A search on either half of it gave an `alone` of .3, a `passage_words` of .6 and .75, and a `meaning` of
.7 and 1.1. A higher `alone` finds more single messages (LoCoMo), and less of a passage (QMSum)."""
