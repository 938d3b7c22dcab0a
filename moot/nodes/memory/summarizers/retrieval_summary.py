"""`retrieval`: what is relevant now stands for the summary: passages of what has left the window, as said.

Chosen anew at each version, for the topic or aspect and for what was said last, from everything that has left
the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from moot.nodes.memory.indexes import Indexes
from moot.nodes.memory.recall import Memories
from moot.nodes.memory.summarizers.rule_based import RuleBased, folded_points
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest
from moot.nodes.prompts.rendering import speaker_label
from moot.nodes.text.plain import inert
from moot.nodes.text.tokens import cut_middle
from moot.state.entries import Entry

LATEST = 3
"""Messages of the window, the newest, that say what is relevant now."""
QUERY_CHARS = 1_500
ENTRY_TOKENS = 160
"""Most that is shown of one message."""


class Retrieval:
    """Summary by retrieval, without a model."""

    name = "retrieval"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Choose what bears on the debate now; yields no call."""
        text = relevant(request)
        if not text:
            return (yield from RuleBased().summarize(request))
        return Draft(text, cast(dict[str, Any], folded_points(request)), self.name)


def relevant(request: SummaryRequest) -> str:
    """Return the most relevant of what has left the window, in order, within the summary's tokens."""
    from moot.nodes.memory.retrieval import select_evidence

    past, names = {entry["seq"]: entry for entry in request.past}, request.config.names()

    def line(seq: int) -> str:
        entry = past[seq]
        words = cut_middle(inert(entry["content"]), ENTRY_TOKENS, request.count)
        return f"- {speaker_label(entry['speaker'], names)} [{entry['id']}]: {words}\n"

    memories = request.memories or Memories(Indexes(), "")
    index = memories.indexes.of(
        memories.debate, "summary", list(past.values()), names, memories.embeddings, split=_as_shown
    )
    chosen = select_evidence(
        index, _query(request, past), budget=request.max_tokens, costs=lambda seq: request.count(line(seq))
    )
    return cut_middle("".join(map(line, chosen.seqs)).rstrip(), request.max_tokens, request.count)


def _as_shown(entry: Entry) -> Iterable[Entry]:
    """Yield an entry with the tokens that are shown of it."""
    yield {**entry, "tokens": min(entry["tokens"], ENTRY_TOKENS)}


def _query(request: SummaryRequest, past: Iterable[int]) -> str:
    after = max(past, default=-1) + 1
    latest = [entry["content"][:QUERY_CHARS] for entry in request.transcript[after:][-LATEST:]]
    return "\n".join([request.topic[:QUERY_CHARS], *latest])
