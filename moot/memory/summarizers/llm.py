"""`llm`: a model condenses messages into chunk summaries and writes the summary from all of them."""

from moot.memory.summarizers.chunk_summaries import (
    chunks_of,
    condense,
    reusable_chunk_summaries,
    summarize_at_once,
    truncate_to_one_call,
    unread_entries,
    write_summary,
)
from moot.memory.summarizers.summarizer import Summarizer, SummaryGenerator, SummaryRequest


class Llm(Summarizer):
    """Summarizer that lets a model write the summary."""

    name = "llm"

    def summarize(self, request: SummaryRequest) -> SummaryGenerator:
        """Condense new messages into chunk summaries, and write the debate's summary from all of them."""
        notes, chunks = reusable_chunk_summaries(request), chunks_of(request, unread_entries(request))
        if not notes and len(chunks) == 1:
            notes = [(yield from summarize_at_once(request, chunks[0]))]
        else:
            new = yield from condense(request, chunks)
            notes = yield from truncate_to_one_call(request, [*notes, *new])
        return (yield from write_summary(self.name, request, notes))
