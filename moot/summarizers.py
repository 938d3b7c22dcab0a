"""Public interface for summarizer plug-ins; every name here is stable.

A summarizer is a subclass of `Summarizer`. `register` adds it to this process. An installed package names the
class in an entry point of the group `moot.summarizers` instead. `memory.summarizer` selects it by name.
"""

from moot.calls.model_calls import ModelCall, Reply
from moot.memory.summarizers.llm import messages_text, summary_call
from moot.memory.summarizers.registry import register
from moot.memory.summarizers.summarizer import (
    Draft,
    Summarizer,
    SummaryFailed,
    SummaryGenerator,
    SummaryRequest,
)
from moot.state.entries import Entry

__all__ = [
    "Draft",
    "Entry",
    "ModelCall",
    "Reply",
    "Summarizer",
    "SummaryFailed",
    "SummaryGenerator",
    "SummaryRequest",
    "messages_text",
    "register",
    "summary_call",
]
