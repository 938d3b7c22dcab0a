"""`hierarchical`: notes of rounds, summaries of phases, and from these the summary of the debate.

Each level is made from the one below it, once: rounds from messages, a phase from the notes of its rounds as
it ends, the debate from phases and the rounds of the open one.
"""

from dataclasses import replace
from itertools import groupby

from moot.nodes.memory.summarizers.notes import (
    chunks_of,
    condense,
    fit_one_call,
    input_room,
    kept_notes,
    merge,
    note_room,
    write_summary,
)
from moot.nodes.memory.summarizers.summarizer import Summarizing, SummaryRequest
from moot.state.entries import Entry

SMALL = 8
"""Rounds are condensed together while they take less than this part of a call's input: one in so many."""


class Hierarchical:
    """Summary by a model, following the debate's own parts."""

    name = "hierarchical"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Condense new rounds, close phases that have ended, and write the summary from what there is."""
        chunks = [chunk for part in parts_of(request) for chunk in chunks_of(request, part)]
        new = yield from condense(request, chunks, [chunk[0]["phase"] or "debate" for chunk in chunks])

        # Every phase but the last one becomes a single note.
        phases = [list(group) for _, group in groupby([*kept_notes(request), *new], lambda note: note.part)]
        ended = [group for group in phases[:-1] if len(group) > 1]
        united = iter((yield from merge(request, ended, 2 * note_room(request))))
        over = [next(united) if len(group) > 1 else group[0] for group in phases[:-1]]
        notes = yield from fit_one_call(request, [*over, *(phases[-1] if phases else [])])

        titled = [
            replace(note, text=f"{note.part.capitalize()}: {note.text}")
            if index == 0 or notes[index - 1].part != note.part
            else note
            for index, note in enumerate(notes)
        ]
        return (yield from write_summary(self.name, request, notes, titled))


def parts_of(request: SummaryRequest) -> list[list[Entry]]:
    """Split what is new where a phase ends, and between rounds that are long enough to stand alone."""
    least, parts = input_room(request) // SMALL, list[list[Entry]]()
    for (phase, _), group in groupby(request.entries, key=lambda entry: (entry["phase"], entry["round"])):
        last = parts[-1] if parts else []
        small = last and last[-1]["phase"] == phase and sum(entry["tokens"] for entry in last) < least
        if small:
            last.extend(group)
        else:
            parts.append(list(group))
    return parts
