"""Points as text within a budget: who said what, texts shortened before a speaker loses its place."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from typing_extensions import TypedDict

from moot.nodes.memory.summarizers.points import Point, first_seq, rank
from moot.nodes.text.plain import amount, clip, inert


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
    """Messages by speaker, of the first 256."""
    terms: dict[str, int]
    """How often each term was said, of the most frequent."""
    covers_through_seq: int
    """`seq` of the last message folded in, -1 before the first."""


Fits = Callable[[SummaryPoints], bool]

NOTICE_BELOW = 50
"""Below so many tokens a notice stands in the summary's place."""
ROOM_A_SPEAKER = 60
"""Where there are so many tokens for each speaker, every speaker has a point, however short."""
ERROR_SHARE, CHARS_A_TOKEN = 0.33, 3
"""Most of a summary that errors of tools take, which stand there whole; and characters of a token."""
_FILL_TRIES = 8
_LEAST_LINE = 10  # tokens of the shortest line: mark, a word or two, message id

_DETAILS = ((40, 240), (40, 160), (32, 100), (24, 60), (16, 30), (8, 12), (6, 4))
"""Longest name and longest text that are shown, in characters, from one try to the next."""
_LEGIBLE = _DETAILS[:4]  # with less room than that, fewer speakers are quoted and the others named
_NAMES_IN_NOTICE, _NAME_IN_NOTICE = 40, 24


def lay_out(
    summary: SummaryPoints, *, max_tokens: int, count: Callable[[str], int], names: Mapping[str, str]
) -> SummaryPoints:
    """Return `summary` showing as much as `max_tokens` hold: for a step with more or less room than the last.

    Texts are shortened before a speaker loses its place. Exact: what is shown was rendered and counted.
    """
    through, errors = summary["covers_through_seq"], int(max_tokens * ERROR_SHARE * CHARS_A_TOKEN)
    ranking = rank(summary["points"], summary["speakers"], summary["terms"], through, errors)
    laid = SummaryPoints(**{**summary, "points": ranking.points, "shown": 0, "notice": ""})
    if max_tokens <= 0 or not ranking.points:
        return laid

    def fits(candidate: SummaryPoints, limit: float = max_tokens) -> bool:
        return count(render(candidate, names)) <= limit

    def name_list(speakers: Iterable[str]) -> str:
        return ", ".join(_labels(list(speakers)[:_NAMES_IN_NOTICE], names, _NAME_IN_NOTICE).values())

    if max_tokens >= NOTICE_BELOW:
        details = _DETAILS if max_tokens >= ROOM_A_SPEAKER * ranking.quota else _LEGIBLE
        tried = [
            SummaryPoints(**{**laid, "shown": ranking.quota, "name_chars": name, "text_chars": text})
            for name, text in details
        ]
        chosen = next((each for each in tried if fits(each)), None)
        if chosen:
            return _fill(chosen, fits, ranking.quota + max_tokens // _LEAST_LINE)

        def naming(candidate: SummaryPoints) -> SummaryPoints:
            """Return a candidate that names those whom it does not quote, in a third of the room at most."""
            quoted = {point["speaker"] for point in candidate["points"][: candidate["shown"]]}
            others = name_list(who for who in candidate["speakers"] if who not in quoted)
            notice = clip(f"Also spoke: {others}.", max_tokens * CHARS_A_TOKEN // 3) if others else ""
            return SummaryPoints(**{**candidate, "notice": notice})

        few = _most(tried[-1], ranking.quota, lambda candidate: fits(naming(candidate)))
        if few["shown"]:
            return naming(few)
    messages = amount(laid["messages"], "message")
    who = name_list(laid["speakers"])
    return _with_notice(laid, f"Earlier: {messages} by {who}; not shown for lack of room.", fits)


def _most(summary: SummaryPoints, high: int, fits: Fits) -> SummaryPoints:
    """Return `summary` showing as many of the first `high` points as fit."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if fits(SummaryPoints(**{**summary, "shown": middle})):
            low = middle
        else:
            high = middle - 1
    return SummaryPoints(**{**summary, "shown": low})


def _fill(summary: SummaryPoints, fits: Fits, most_points: int) -> SummaryPoints:
    """Return `summary`, which fits, with all further points that fit, and single later ones that still do."""
    most = _most(summary, min(most_points, len(summary["points"])), fits)
    filled = most if most["shown"] >= summary["shown"] and fits(most) else summary
    for at in range(filled["shown"] + 1, min(filled["shown"] + 1 + _FILL_TRIES, len(summary["points"]))):
        points, shown = filled["points"], filled["shown"]
        moved = [*points[:shown], points[at], *points[shown:at], *points[at + 1 :]]
        candidate = SummaryPoints(**{**filled, "points": moved, "shown": shown + 1})
        filled = candidate if fits(candidate) else filled
    return filled


def _with_notice(summary: SummaryPoints, text: str, fits: Fits) -> SummaryPoints:
    """Return `summary` with the longest beginning of the notice `text` that fits, if any does."""
    chars = len(text)
    while chars > 0:  # in steps of a twelfth: a counter need not be monotonic
        noticed = SummaryPoints(**{**summary, "notice": clip(text, chars)})
        if fits(noticed):
            return noticed
        chars -= max(1, chars // 12)
    return summary


def render(points: SummaryPoints, names: Mapping[str, str]) -> str:
    """Return the summary as text: a list of points under each speaker's name, with their message ids."""
    if not points:
        return ""
    groups: dict[str, list[Point]] = defaultdict(list)
    for point in points["points"][: points["shown"]]:
        groups[point["speaker"]].append(point)
    order = sorted(groups, key=lambda who: (min(map(first_seq, groups[who])), who))
    labels = _labels(order, names, points["name_chars"])
    lines: list[str] = []
    for who in order:
        lines.append(f"{labels[who]}:")
        for point in sorted(groups[who], key=lambda point: (first_seq(point), point.get("place", 0))):
            ids = ", ".join(dict.fromkeys((point["message_ids"][0], point["message_ids"][-1])))
            text = point["text"] if point.get("error") else clip(point["text"], points["text_chars"])
            lines.append(f"- {text} [{ids}]")
    if points["notice"]:
        lines.append(points["notice"])
    return "\n".join(lines)


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
