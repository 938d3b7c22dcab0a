"""`llm`: a model condenses what left the window into notes, and writes the summary from all notes so far.

Beside the prose stand key points found by rule, those first that the prose leaves out: what a model forgets
is not lost.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.memory.summarizers.by_model import (
    Note,
    chunks_of,
    condensed,
    directly,
    kept_notes,
    merged,
    with_notes,
    within_one_call,
)
from moot.nodes.memory.summarizers.by_rule import RuleBased, render_within
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest
from moot.nodes.prompts.request import voice_of
from moot.nodes.text.likeness import numbers
from moot.nodes.text.terms import term_set
from moot.nodes.text.tokens import cut_middle

PROSE_SHARE = 0.65
"""Share of the summary's tokens that the model's prose may take; key points take all that it leaves."""
TOLD = 0.7
"""A point is told where the prose has this share of its terms and all of its numbers."""
HEADING = "Key points:"


class Llm:
    """Summary by a model."""

    name = "llm"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Condense what is new, and write the summary from the notes of everything."""
        points = yield from RuleBased().summarize(request)
        room = int(request.max_tokens * PROSE_SHARE)
        notes = yield from _notes(request, room)
        prose = yield from _prose(request, notes, room)
        return finished(self.name, request, points.points, notes, prose)


def _notes(request: SummaryRequest, room: int) -> Generator[Sequence[ModelCall], list[Reply], list[Note]]:
    kept, chunks = kept_notes(request), chunks_of(request, request.entries)
    if not kept and len(chunks) == 1:
        return [(yield from directly(request, chunks[0], room))]
    new = yield from condensed(request, chunks)
    return (yield from within_one_call(request, [*kept, *new]))


def _prose(
    request: SummaryRequest, notes: Sequence[Note], room: int
) -> Generator[Sequence[ModelCall], list[Reply], str]:
    (whole,) = yield from merged(request, [notes], room)
    return whole.text


def finished(
    method: str,
    request: SummaryRequest,
    points: Mapping[str, Any],
    notes: Sequence[Note],
    prose: str,
) -> Draft:
    """Return prose with the key points beside it, and all that the next version needs."""
    left = request.max_tokens - request.count(f"{prose}\n\n{HEADING}\n") - 2
    key_points = render_within(untold(points, prose), request, left) if left > 0 else ""
    text = f"{prose}\n\n{HEADING}\n{key_points}" if key_points else prose
    return Draft(
        text=cut_middle(text, request.max_tokens, request.count),
        points=with_notes(points, notes),
        method=method,
        temperature=voice_of(request.config, request.config.memory).temperature,
    )


def untold(points: Mapping[str, Any], prose: str) -> Mapping[str, Any]:
    """Return the points that prose leaves out; all of them where it leaves out none."""
    terms, told = term_set(prose), numbers(prose)
    missing = [point for point in points["points"] if not _is_told(point["text"], terms, told)]
    return {**points, "points": missing} if missing else points


def _is_told(text: str, terms: frozenset[str], told: frozenset[str]) -> bool:
    own = term_set(text)
    return told >= numbers(text) and len(own & terms) >= TOLD * len(own)
