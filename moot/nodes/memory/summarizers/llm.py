"""`llm`: a model condenses what left the window into notes, and writes the summary from all notes so far."""

from moot.nodes.memory.summarizers.notes import (
    chunks_of,
    condense,
    fit_one_call,
    kept_notes,
    summarize_at_once,
    write_summary,
)
from moot.nodes.memory.summarizers.summarizer import Summarizing, SummaryRequest


class Llm:
    """Summary by a model."""

    name = "llm"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Condense what is new, and write the summary from the notes of everything."""
        notes, chunks = kept_notes(request), chunks_of(request, request.entries)
        if not notes and len(chunks) == 1:
            notes = [(yield from summarize_at_once(request, chunks[0]))]
        else:
            new = yield from condense(request, chunks)
            notes = yield from fit_one_call(request, [*notes, *new])
        return (yield from write_summary(self.name, request, notes))
