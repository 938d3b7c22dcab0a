"""`hierarchical`: summaries of rounds, then of phases, and from these the summary of the debate.

Each level is made from the level below, once: rounds from messages, a phase from its rounds when it ends, and
the debate from phases and the rounds of the open phase.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from moot.memory.summarizers import llm
from moot.memory.summarizers.summarizer import Summarizer, SummaryGenerator, SummaryRequest
from moot.state.entries import Entry

SMALL_GROUP_DIVISOR = 8
"""Divisor for the minimum length of a group of short rounds. Rounds are summarized together until their text
fills 1/`SMALL_GROUP_DIVISOR` of the input limit of a model call."""


class Hierarchical(Summarizer):
    """Summarizer that summarizes each round, then each phase of the debate, and then the whole debate.

    A model condenses the rounds and merges the summaries of finished phases.
    """

    name = "hierarchical"

    def summarize(self, request: SummaryRequest) -> SummaryGenerator:
        """Summarize new rounds, merge the summaries of finished phases, and write the debate's summary."""

        def chunks(entries: Sequence[Entry]) -> list[list[Entry]]:
            return [chunk for part in parts_of(request, entries) for chunk in llm.chunks_of(request, part)]

        def write(all_notes: list[llm.ChunkSummary]) -> SummaryGenerator:
            # Every phase except the last one becomes a single chunk summary.
            phases = [list(group) for _, group in groupby(all_notes, lambda note: note.part)]
            groups = [group for group in phases[:-1] if len(group) > 1]
            limit = 2 * llm.chunk_summary_token_limit(request)
            merged_notes = iter((yield from llm.merge(request, groups, limit)))
            phase_notes = [next(merged_notes) if len(group) > 1 else group[0] for group in phases[:-1]]
            rest = phases[-1] if phases else []
            notes = yield from llm.merge_to_fit_one_call(request, [*phase_notes, *rest])
            titled_notes = [
                replace(note, text=f"{note.part.capitalize()}: {note.text}")
                if index == 0 or notes[index - 1].part != note.part
                else note
                for index, note in enumerate(notes)
            ]
            return (yield from llm.write_summary(self.name, request, notes, titled_notes))

        return (yield from llm.draft_from_chunks(request, chunks, write, by_phase=True))


def parts_of(request: SummaryRequest, entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split messages into groups of whole rounds. Short rounds of one phase share a group."""
    min_tokens, parts = llm.input_token_limit(request) // SMALL_GROUP_DIVISOR, list[list[Entry]]()
    for (phase, _), group in groupby(entries, key=lambda entry: (entry["phase"], entry["round"])):
        last = parts[-1] if parts else []
        is_small = last and last[-1]["phase"] == phase and sum(entry["tokens"] for entry in last) < min_tokens
        if is_small:
            last.extend(group)
        else:
            parts.append(list(group))
    return parts
