"""`hierarchical`: notes of rounds, summaries of phases, and from these the summary of the debate.

Each level is made from the one below it, once: rounds from messages, a phase from the notes of its rounds as
it ends, the debate from phases and the rounds of the open one.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from moot.nodes.calls import Flow
from moot.nodes.memory.summarizers.notes import (
    SpanNote,
    chunks_of,
    condensed,
    input_room,
    kept_notes,
    merged,
    note_room,
    within_one_call,
    written,
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
        new = yield from condensed(request, chunks, [chunk[0]["phase"] or "debate" for chunk in chunks])
        notes = yield from _closed([*kept_notes(request), *new], request)
        notes = yield from within_one_call(request, notes)
        titled = [
            replace(note, text=f"{note.part.capitalize()}: {note.text}")
            if index == 0 or notes[index - 1].part != note.part
            else note
            for index, note in enumerate(notes)
        ]
        return (yield from written(self.name, request, notes, titled))


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


def _closed(notes: Sequence[SpanNote], request: SummaryRequest) -> Flow[list[SpanNote]]:
    """Return notes in which every phase but the last one is a single one."""
    phases = [list(group) for _, group in groupby(notes, key=lambda note: note.part)]
    ended = [group for group in phases[:-1] if len(group) > 1]
    summaries = iter((yield from merged(request, ended, 2 * note_room(request))))
    over = [next(summaries) if len(group) > 1 else group[0] for group in phases[:-1]]
    return [*over, *(phases[-1] if phases else [])]
