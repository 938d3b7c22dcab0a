"""Retrieval of messages for a question, and of memories for a turn, within a token budget."""

from moot.retrieval.index import EvidenceIndex, MessageVectors
from moot.retrieval.memories import MemoryItem, MemoryItems, RetrievalResult, rank, retrieve
from moot.retrieval.score import (
    RetrievalQuestion,
    ScoreWeights,
    SelectedEvidence,
    concentration,
    probabilities,
    read_question,
    select_evidence,
)

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
