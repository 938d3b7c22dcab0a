"""`hierarchical`: notes of rounds, summaries of phases, and from these the summary of the debate.

Each level is made from the one below it, once: rounds from messages, a phase from the notes of its rounds as
it ends, the debate from phases and the rounds of the open one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import groupby

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.memory.summarizers.by_model import (
    Note,
    chunks_of,
    condensed,
    input_room,
    kept_notes,
    merged,
    note_room,
    within_one_call,
)
from moot.nodes.memory.summarizers.by_rule import RuleBased
from moot.nodes.memory.summarizers.llm import PROSE_SHARE, finished
from moot.nodes.memory.summarizers.summarizer import Summarizing, SummaryRequest
from moot.state.entries import Entry

SMALL = 8
"""Rounds are condensed together while they take less than this part of a call's input: one in so many."""


class Hierarchical:
    """Summary by a model, following the debate's own parts."""

    name = "hierarchical"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Condense new rounds, close phases that have ended, and write the summary from what there is."""
        points = yield from RuleBased().summarize(request)
        chunks = [chunk for part in parts_of(request) for chunk in chunks_of(request, part)]
        parts = [chunk[0]["phase"] or "debate" for chunk in chunks]
        new = yield from condensed(request, chunks, parts)
        notes = yield from _closed([*kept_notes(request), *new], request)
        notes = yield from within_one_call(request, notes)
        room = int(request.max_tokens * PROSE_SHARE)
        (whole,) = yield from merged(request, [_titled(notes)], room)
        return finished(self.name, request, points.points, notes, whole.text)


def parts_of(request: SummaryRequest) -> list[list[Entry]]:
    """Split what is new where a phase ends, and between rounds that are long enough to stand alone."""
    least, parts = input_room(request) // SMALL, list[list[Entry]]()
    for (phase, _), group in groupby(request.entries, key=lambda entry: (entry["phase"], entry["round"])):
        entries = list(group)
        last = parts[-1] if parts else []
        small = last and last[-1]["phase"] == phase and sum(entry["tokens"] for entry in last) < least
        if small:
            last.extend(entries)
        else:
            parts.append(entries)
    return parts


def _closed(
    notes: Sequence[Note], request: SummaryRequest
) -> Generator[Sequence[ModelCall], list[Reply], list[Note]]:
    """Return notes in which every phase but the last one is a single one."""
    phases = [list(group) for _, group in groupby(notes, key=lambda note: note.part)]
    ended = [group for group in phases[:-1] if len(group) > 1]
    summaries = iter((yield from merged(request, ended, 2 * note_room(request))))
    over = [next(summaries) if len(group) > 1 else group[0] for group in phases[:-1]]
    return [*over, *(phases[-1] if phases else [])]


def _titled(notes: Sequence[Note]) -> list[Note]:
    """Return notes with the phase named at each that begins one."""
    titled, phase = [], ""
    for note in notes:
        text = note.text if note.part == phase else f"{note.part.capitalize()}: {note.text}"
        titled.append(Note(text, note.first, note.through, note.level, note.part))
        phase = note.part
    return titled
