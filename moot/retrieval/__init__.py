"""Retrieval of messages for a question, and of memories for a turn, within a token budget."""

from moot.retrieval.index import EvidenceIndex
from moot.retrieval.memories import MemoryItem, MemoryItems, RetrievalResult, rank, retrieve
from moot.retrieval.retrieval_question import RetrievalQuestion, read_question
from moot.retrieval.score import concentration, probabilities
from moot.retrieval.selection import SelectedEvidence, select_evidence
from moot.retrieval.vectors import MessageVectors
from moot.retrieval.weights import ScoreWeights

__all__ = [
    "EvidenceIndex",
    "MemoryItem",
    "MemoryItems",
    "MessageVectors",
    "RetrievalQuestion",
    "RetrievalResult",
    "ScoreWeights",
    "SelectedEvidence",
    "concentration",
    "probabilities",
    "rank",
    "read_question",
    "retrieve",
    "select_evidence",
]
