"""What to bring back: evidence for a question under a budget, and memories for a turn."""

from nodes.memory.retrieval.index import EvidenceIndex
from nodes.memory.retrieval.items import MemoryItem, MemoryItems
from nodes.memory.retrieval.memory_score import Recall, recall
from nodes.memory.retrieval.question import Question, read_question
from nodes.memory.retrieval.selection import Evidence, select_evidence
from nodes.memory.retrieval.vectors import MessageVectors

__all__ = [
    "Evidence",
    "EvidenceIndex",
    "MemoryItem",
    "MemoryItems",
    "MessageVectors",
    "Question",
    "Recall",
    "read_question",
    "recall",
    "select_evidence",
]
