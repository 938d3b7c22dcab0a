"""The rule-based rolling summary: points of what was said, folded in as messages leave the window.

No model and no randomness: the same messages always give the same summary. It is what stands in whenever a
model's summary fails, so it must hold for any text and any budget.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from typing_extensions import TypedDict

from moot.nodes.memory.summarizers.points import Point
from moot.nodes.memory.summarizers.pool import FIRST_MESSAGES, absorb
from moot.nodes.memory.summarizers.ranking import grouped, rank
from moot.nodes.text.plain import clip, inert
from moot.state.entries import Entry, seq_of

Count = Callable[[str], int]


class SummaryPoints(TypedDict):
    """A rolling summary as data: a pool of points and how much of it is shown; JSON types only.

    The pool is larger than what is shown, so that a summary squeezed into little room for one step is whole
    again at the next.
    """

    points: list[Point]
    """The pool, most deserving first, bounded by the budget."""
    shown: int
    """How many of the first points the rendering shows."""
    text_chars: int
    """Longest text shown of a point, in characters."""
    name_chars: int
    """Longest name shown of a speaker, in characters."""
    notice: str
    """Stands in the place of the points where there is no room for them, and below them where there is too
    little for every speaker; `""` otherwise."""
    messages: int
    """Messages folded in so far."""
    speakers: dict[str, int]
    """Messages by speaker, of the first `MAX_SPEAKERS`."""
    covers_through_seq: int
    """`seq` of the last message folded in, -1 before the first."""


Fits = Callable[[SummaryPoints], bool]

MAX_SPEAKERS = 256
NOTICE_BELOW = 50
"""Below so many tokens a notice stands in the summary's place."""
ROOM_A_SPEAKER = 60
"""Where there are so many tokens for each speaker, every speaker has a point, however short."""
_POOL_FLOOR, _POOL_CEILING = 48, 600
_TOKENS_A_POINT = 16  # the pool holds two to three times what its budget shows
_BATCH = 32  # messages folded in between two prunings: bounds the pool while a long import is folded
_ROOMY = 0.6  # share of the budget that the speakers' quota may take before texts are shortened
_FILL_TRIES = 8
_NAMED_FROM = 16  # where names are cut shorter than so many characters, only the speaker's own stays


class _Detail(NamedTuple):
    name_chars: int
    text_chars: int


_DETAILS = tuple(map(_Detail._make, ((40, 240), (40, 160), (32, 100), (24, 60), (16, 30), (8, 12), (6, 4))))
_LEGIBLE = _DETAILS[:4]  # with less room than that, fewer speakers are quoted and the others named
_NAMES_IN_NOTICE = 40
# Every kind has a label: no debater's words begin a line, so none can be a heading, a list or a fence.
_LABELS = {
    "opening": "opened",
    "stance": "now",
    "position": "held",
    "shift": "changed position",
    "concession": "conceded{to}",
    "question": "open question{to}",
    "asked": "asked{to}",
    "answered": "asked{to}, answered",
    "challenge": "contradicted{about}",
    "agreement": "agreed{with}",
    "evidence": "evidence",
    "claim": "said",
    "result": "tool",
    "notice": "note",
}
_PLACE = {"opening": 0, "stance": 2}


def empty() -> SummaryPoints:
    """Return the summary of nothing."""
    return SummaryPoints(
        points=[],
        shown=0,
        text_chars=0,
        name_chars=0,
        notice="",
        messages=0,
        speakers={},
        covers_through_seq=-1,
    )


def fold(
    previous: SummaryPoints | None,
    entries: Sequence[Entry],
    *,
    max_tokens: int,
    count: Count,
    names: Mapping[str, str],
) -> SummaryPoints:
    """Fold `entries` into `previous` and lay the result out within `max_tokens`.

    Args:
        previous: The summary so far; `None` or an empty mapping before the first.
        entries: Messages that left the window, in order, each exactly once over all calls.
        max_tokens: Budget of the rendering, in tokens of `count`.
        count: Exact token counter.
        names: Display name by speaker id; `render` must get the same.

    Returns:
        A summary whose rendering is empty or satisfies `count(render(result, names)) <= max_tokens`. Every
        speaker who said anything has a point in it where there are 60 tokens a speaker, the first being where
        it started. Time is linear in the new messages and the points kept, whatever came before.
    """
    base = previous or empty()
    pool = grouped(base["points"])
    spoken, now = dict(base["speakers"]), base["covers_through_seq"]
    room = max(_POOL_FLOOR, min(_POOL_CEILING, max_tokens // _TOKENS_A_POINT))
    for start in range(0, len(entries), _BATCH):
        for entry in entries[start : start + _BATCH]:
            now = max(now, entry["seq"])
            if entry["speaker"] in spoken or len(spoken) < MAX_SPEAKERS:
                spoken[entry["speaker"]] = spoken.get(entry["speaker"], 0) + 1
            absorb(pool, entry, names, early=spoken.get(entry["speaker"], 0) <= FIRST_MESSAGES)
        kept = rank([point for points in pool.values() for point in points], spoken, now).points[:room]
        pool = grouped(kept)
    folded = SummaryPoints(
        **{
            **empty(),
            "points": [point for points in pool.values() for point in points],
            "messages": base["messages"] + len(entries),
            "speakers": spoken,
            "covers_through_seq": now,
        }
    )
    return lay_out(folded, max_tokens=max_tokens, count=count, names=names)


def lay_out(
    summary: SummaryPoints, *, max_tokens: int, count: Count, names: Mapping[str, str]
) -> SummaryPoints:
    """Return `summary` showing as much as `max_tokens` hold: for a step with more or less room than the last.

    Texts are shortened before a speaker loses its place. Exact: what is shown was rendered and counted.
    """
    ranking = rank(summary["points"], summary["speakers"], summary["covers_through_seq"])
    laid = SummaryPoints(**{**summary, "points": ranking.points, "shown": 0, "notice": ""})
    if max_tokens <= 0 or not ranking.points:
        return laid

    def fits(candidate: SummaryPoints, limit: float = max_tokens) -> bool:
        return count(render(candidate, names)) <= limit

    if max_tokens >= NOTICE_BELOW:
        details = _DETAILS if max_tokens >= ROOM_A_SPEAKER * ranking.quota else _LEGIBLE
        tried = [_showing(laid, ranking.quota, detail) for detail in details]
        roomy = (c for c in tried if fits(c, max_tokens * _ROOMY))
        chosen = next(roomy, None) or next((c for c in tried if fits(c)), None)
        if chosen:
            return _filled(chosen, fits)
        few = _most(tried[-1], ranking.quota, lambda c: fits(c, max_tokens * _ROOMY))
        if few["shown"]:
            return _with_others(few, names, fits)
    who = ", ".join(_names(laid["speakers"], names))
    messages = "1 message" if laid["messages"] == 1 else f"{laid['messages']} messages"
    return _with_notice(laid, f"Earlier: {messages} by {who}; not shown for lack of room.", fits)


def _showing(summary: SummaryPoints, shown: int, detail: _Detail) -> SummaryPoints:
    sized = SummaryPoints(**{**summary, "shown": shown})
    sized["name_chars"], sized["text_chars"] = detail
    return sized


def _most(summary: SummaryPoints, high: int, fits: Fits) -> SummaryPoints:
    """Return `summary` showing as many of the first `high` points as fit."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if fits(SummaryPoints(**{**summary, "shown": middle})) else (low, middle - 1)
        )
    return SummaryPoints(**{**summary, "shown": low})


def _filled(summary: SummaryPoints, fits: Fits) -> SummaryPoints:
    """Return `summary`, which fits, with all further points that fit, and single later ones that still do."""
    most = _most(summary, len(summary["points"]), fits)
    filled = most if most["shown"] >= summary["shown"] and fits(most) else summary
    for at in range(filled["shown"] + 1, min(filled["shown"] + 1 + _FILL_TRIES, len(summary["points"]))):
        points, shown = filled["points"], filled["shown"]
        moved = [*points[:shown], points[at], *points[shown:at], *points[at + 1 :]]
        candidate = SummaryPoints(**{**filled, "points": moved, "shown": shown + 1})
        filled = candidate if fits(candidate) else filled
    return filled


def _with_others(summary: SummaryPoints, names: Mapping[str, str], fits: Fits) -> SummaryPoints:
    """Return `summary` with a last line that names the speakers it has no room to quote."""
    quoted = {point["speaker"] for point in summary["points"][: summary["shown"]]}
    others = [who for who in summary["speakers"] if who not in quoted]
    return _with_notice(summary, f"Also spoke: {', '.join(_names(others, names))}.", fits)


def _names(speakers: Iterable[str], names: Mapping[str, str]) -> Iterable[str]:
    return _labels(list(speakers)[:_NAMES_IN_NOTICE], names, 24).values()


def _with_notice(summary: SummaryPoints, text: str, fits: Fits) -> SummaryPoints:
    """Return `summary` with the longest beginning of the notice `text` that fits, if any does."""
    for chars in _shrinking(len(text)):
        noticed = SummaryPoints(**{**summary, "notice": clip(text, chars)})
        if fits(noticed):
            return noticed
    return summary


def _shrinking(chars: int) -> Iterator[int]:
    """Yield lengths from `chars` down to 1, in steps of a twelfth; a counter need not be monotonic."""
    while chars > 0:
        yield chars
        chars -= max(1, chars // 12)


def render(points: SummaryPoints, names: Mapping[str, str]) -> str:
    """Return the summary as text: a list of points under each speaker's name, with their message ids."""
    if not points:
        return ""
    groups = grouped(points["points"][: points["shown"]])
    order = sorted(groups, key=lambda who: (min(map(_first_seq, groups[who])), who))
    labels = _labels(order, names, points["name_chars"])
    detail = _Detail(points["name_chars"], points["text_chars"])
    lines: list[str] = []
    for who in order:
        lines.append(f"{labels[who]}:")
        lines.extend(_bullets(groups[who], names, detail))
    if points["notice"]:
        lines.append(points["notice"])
    return "\n".join(lines)


def _first_seq(point: Point) -> int:
    return seq_of(point["message_ids"][0]) or 0


def _bullets(own: Sequence[Point], names: Mapping[str, str], detail: _Detail) -> Iterator[str]:
    """Yield the lines of one speaker: where it started, what happened since, where it stands."""
    for point in sorted(own, key=lambda p: (_PLACE.get(p["kind"], 1), _first_seq(p), p["text"])):
        about = point["about"][:2] if detail.name_chars >= _NAMED_FROM else []
        whom = ", ".join(_labels(about, names, detail.name_chars).values())
        said = {key: f" {key} {whom}" if whom else "" for key in ("to", "with")}
        kind = "asked" if point["kind"] == "question" and not point["explicit"] else point["kind"]
        label = _LABELS[kind].format(**said, about=f" {whom}" if whom else "")
        ids = ", ".join(dict.fromkeys((point["message_ids"][0], point["message_ids"][-1])))
        yield f"- {label}: {clip(point['text'], detail.text_chars)} [{ids}]"


def _labels(speakers: Sequence[str], names: Mapping[str, str], chars: int) -> dict[str, str]:
    """Return a distinct, inert name for each speaker."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for who in speakers:
        name = clip(inert(names.get(who, who)[:200]) or inert(who[:200]) or "?", chars)
        label = next(
            each for n in itertools.count(1) if (each := name if n == 1 else f"{name} {n}") not in taken
        )
        taken.add(label)
        labels[who] = label
    return labels
