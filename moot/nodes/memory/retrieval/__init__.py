"""What to bring back: evidence for a question under a budget, and memories for a turn."""

from moot.nodes.memory.retrieval.index import EvidenceIndex, MemoryItem, MemoryItems
from moot.nodes.memory.retrieval.memory_score import Recall, recall
from moot.nodes.memory.retrieval.question import RetrievalQuestion, read_question
from moot.nodes.memory.retrieval.selection import SelectedEvidence, select_evidence
from moot.nodes.memory.retrieval.vectors import MessageVectors

__all__ = [
    "EvidenceIndex",
    "MemoryItem",
    "MemoryItems",
    "MessageVectors",
    "Recall",
    "RetrievalQuestion",
    "SelectedEvidence",
    "read_question",
    "recall",
    "select_evidence",
]
