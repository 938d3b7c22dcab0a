"""`retrieval`: what is relevant now stands for the summary: passages of what has left the window, as said.

Chosen anew at each version, for the topic or aspect and for what was said last, from everything that has left
the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moot.nodes.memory.recall import Memories
from moot.nodes.memory.summarizers.by_rule import RuleBased
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest
from moot.nodes.prompts.rendering import display_name
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.tokens import cut_middle
from moot.state.entries import Entry

LATEST = 3
"""Messages of the window, the newest, that say what is relevant now."""
QUERY_CHARS = 1_500
ENTRY_TOKENS = 160
"""Most that is shown of one message."""
NAME_CHARS = 40


class Retrieval:
    """Summary by retrieval, without a model."""

    name = "retrieval"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Choose what bears on the debate now; yields no call."""
        points = yield from RuleBased().summarize(request)
        text = relevant(request)
        if not text:
            return points
        return Draft(text, points.points, self.name)


def relevant(request: SummaryRequest) -> str:
    """Return the most relevant of what has left the window, in order, within the summary's tokens."""
    from moot.nodes.memory.indexes import Indexes
    from moot.nodes.memory.retrieval import select_evidence

    past = list(request.past)
    memories = request.memories or Memories(Indexes(), "")
    index = memories.indexes.of(memories.debate, "summary", past, request.config.names(), memories.embeddings)
    lines = _Lines({entry["seq"]: entry for entry in past}, request)
    chosen = select_evidence(index, _query(request, past), budget=request.max_tokens, costs=lines)
    text = "".join(map(lines.text, chosen.seqs))
    return cut_middle(text.rstrip(), request.max_tokens, request.count)


class _Lines(Mapping[int, int]):
    """Entries as one line each, and what each costs, made when asked for."""

    def __init__(self, entries: Mapping[int, Entry], request: SummaryRequest) -> None:
        self._entries, self._request = entries, request
        self._names = request.config.names()

    def text(self, seq: int) -> str:
        entry, request = self._entries[seq], self._request
        who = clip(inert(display_name(entry["speaker"], self._names)), NAME_CHARS)
        words = cut_middle(inert(entry["content"]), ENTRY_TOKENS, request.count)
        return f"- {who} [{entry['id']}]: {words}\n"

    def __getitem__(self, seq: int) -> int:
        return self._request.count(self.text(seq))

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _query(request: SummaryRequest, past: list[Entry]) -> str:
    after = past[-1]["seq"] + 1 if past else 0
    latest = [entry["content"][:QUERY_CHARS] for entry in request.transcript[after:][-LATEST:]]
    return "\n".join([request.topic[:QUERY_CHARS], *latest])
