"""Points of a summary: sentences as they were said, and the order in which they deserve room.

Each point is worth the terms that no better one has told yet, a term by how often it was said: the greedy
solution of budgeted maximum coverage (Lin and Bilmes 2011), of which every beginning is a summary itself.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict

from moot.nodes.reading.tool_results import passages, tool_use
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import term_set
from moot.nodes.text.tokens import cut_middle
from moot.state.entries import Entry, kind_of, seq_of

MAX_POINT = 240
"""Longest text of a point, in characters."""
READ_CHARS = 16_000
"""Characters of a message that are looked at."""
FEWEST_TERMS = 3
"""Sentences of fewer content terms are greetings, nods and beginnings."""

# On the 35 meetings of `benchmarks/summaries.py`: 5 segments .46, 10 segments .45.
SEGMENTS = 5
"""Parts of equal length, by messages, into which what was said falls; each has the same room."""
_LINE_CHARS = 40
"""What a point takes beside its text: mark, message id and line break."""


class Point(TypedDict):
    """One sentence worth remembering; JSON types only."""

    text: str
    """One inert line, at most `MAX_POINT` characters."""
    speaker: str
    message_ids: list[str]
    """The message that says it; of a summary from a document, all that it names."""
    place: NotRequired[int]
    """Which point of its message it is."""
    error: NotRequired[bool]
    """Whether it is a tool's error, which is shown whole."""


def read_entry(entry: Entry, terms: Mapping[str, int], error_chars: int = MAX_POINT) -> list[Point]:
    """Return the points that a message offers, the whole where no sentence of it is one; none for nothing.

    Of what a tool brought these are the passages that bear on the debate, by how often `terms` were said in
    it; an error is one point, whole up to `error_chars`.
    """
    content = entry["content"][:READ_CHARS]
    if brought := tool_use(entry):
        sentences = passages(*brought, terms)
        if brought[0]["failed"]:
            text = cut_middle(sentences[0], error_chars, len)
            return [Point(text=text, speaker=entry["speaker"], message_ids=[entry["id"]], error=True)]
    elif kind_of(entry).mechanical:
        sentences = [content]
    else:
        sentences = [sentence.text for sentence in split_sentences(content)]
    texts = [clip(inert(sentence), MAX_POINT) for sentence in sentences]
    telling = [text for text in texts if len(term_set(text)) >= FEWEST_TERMS]
    whole = clip(inert(content), MAX_POINT) or "".join(texts[:1])
    return [
        Point(text=text, speaker=entry["speaker"], message_ids=[entry["id"]], place=place)
        for place, text in enumerate(telling or [whole])
        if text
    ]


def first_seq(point: Point) -> int:
    """Return the `seq` of the message behind a point."""
    return seq_of(point["message_ids"][0]) or 0


class Ranking(NamedTuple):
    """Points in the order in which they deserve room."""

    points: list[Point]
    quota: int
    """How many of the first points are quotas: errors of tools, and one a speaker."""


def rank(
    points: Sequence[Point],
    spoken: Mapping[str, int],
    terms: Mapping[str, int],
    through: int,
    error_chars: int = 0,
) -> Ranking:
    """Rank points for a summary.

    First come the newest errors of tools, as far as `error_chars` go, then each speaker's best point, of
    whoever has `spoken` most messages first. Then the rest: in turn of the segment that has least room so far
    the point that tells most a character, by how often its `terms` were said. What tells nothing more comes
    last; of what one speaker said twice the first time stays. Deterministic.
    """
    distinct = _distinct(points)
    seqs, ordered = [seq for seq, _ in distinct.values()], [point for _, point in distinct.values()]
    contents = [content for _, content in distinct]
    # Whole numbers: a sum over a set must not depend on its order.
    weights = {term: round(1000 * math.log1p(terms.get(term, 1))) for term in set[str]().union(*contents)}
    costs = [len(point["text"]) + _LINE_CHARS for point in ordered]
    start = seqs[0] if seqs else 0
    segments = [min(SEGMENTS - 1, (seq - start) * SEGMENTS // max(1, through + 1 - start)) for seq in seqs]
    told, room, chosen = set[str](), [0] * SEGMENTS, list[int]()

    def worth(number: int) -> float:
        return sum(map(weights.__getitem__, contents[number] - told)) / costs[number]

    def take(number: int) -> None:
        chosen.append(number)
        told.update(contents[number])
        room[segments[number]] += costs[number]

    # The quotas: the newest errors that have room, then the best point of each speaker not heard with them.
    for number in reversed(range(len(ordered))):
        if ordered[number].get("error") and costs[number] <= error_chars:
            error_chars -= costs[number]
            take(number)
    heard = {ordered[number]["speaker"] for number in chosen}
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, point in enumerate(ordered):
        numbers[point["speaker"]].append(number)
    for who in sorted(numbers.keys() - heard, key=lambda who: (-spoken.get(who, 0), who)):
        take(max(numbers[who], key=lambda number: (worth(number), -number)))

    quota, taken = len(chosen), set(chosen)
    # What a point is worth only falls as more is told: a stale figure on top of the heap is looked at again.
    waiting = sorted((-worth(number), number) for number in range(len(ordered)) if number not in taken)
    heaps = [[each for each in waiting if segments[each[1]] == segment] for segment in range(SEGMENTS)]
    while open_segments := [segment for segment in range(SEGMENTS) if heaps[segment]]:
        heap = heaps[min(open_segments, key=lambda segment: (room[segment], segment))]
        while (value := -worth(heap[0][1])) > heap[0][0]:
            heapq.heapreplace(heap, (value, heap[0][1]))
        if not value:
            heap.clear()
            continue
        take(heapq.heappop(heap)[1])
    left = sorted(set(range(len(ordered))) - set(chosen), reverse=True)
    return Ranking([ordered[number] for number in [*chosen, *left]], quota)


def _distinct(points: Sequence[Point]) -> dict[tuple[str, frozenset[str]], tuple[int, Point]]:
    """Return points in the order they were said, each with its `seq`, by speaker and terms."""
    distinct: dict[tuple[str, frozenset[str]], tuple[int, Point]] = {}
    keyed = ((first_seq(point), point["speaker"], point["text"], point) for point in points)
    for seq, speaker, text, point in sorted(keyed, key=lambda key: key[:3]):
        distinct.setdefault((speaker, term_set(text) or frozenset([text])), (seq, point))
    return distinct
