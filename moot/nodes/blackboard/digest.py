"""The blackboard as one speaker sees it: deterministic, within its tokens, the most urgent first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from moot.nodes.blackboard.claims import OPEN, sides_text
from moot.nodes.blackboard.ledger import open_challenges
from moot.nodes.text.plain import inert
from moot.nodes.text.tokens import TokenCounter

HEADING = "# Where the debate stands, as noted by the program"
INSIGHTS = 4
"""Reflections and crux cards that a speaker is shown."""
SECTIONS = (
    "Challenges to you, not answered yet",
    "Your position",
    "You conceded",
    "Where the others stand",
    "Open disputes",
    "Found out so far",
)
"""Headings in the order in which they are shown."""


class Line(NamedTuple):
    """One line of the view."""

    section: int
    urgency: int
    """The lowest number gets room first."""
    text: str


def render_blackboard(
    state: Mapping[str, Any],
    speaker: str,
    *,
    max_tokens: int,
    count: TokenCounter,
    names: Mapping[str, str],
) -> str:
    """Return what the blackboard tells a speaker, `""` where it holds nothing or there is no room.

    Unanswered challenges and the speaker's own commitments get room first, then the others' positions, open
    disputes and insights; whole lines are left out where room is short.

    Args:
        state: the debate's state; only its blackboard channels are read.
        speaker: id of the debater who gets the view.
        max_tokens: exact size that the text never exceeds.
        count: token counter.
        names: display names by debater id.
    """
    shown = {who: inert(name) for who, name in names.items()}
    lines = list(_lines(state, speaker, shown))
    return compose(lines, max_tokens, count)


def compose(lines: Sequence[Line], max_tokens: int, count: TokenCounter, heading: str = HEADING) -> str:
    """Return the most urgent lines that fit, each under its section's heading, in the order of sections."""
    left = max_tokens - count(f"{heading}\n")
    chosen: list[int] = []
    opened: set[int] = set()
    for index in sorted(range(len(lines)), key=lambda i: (lines[i].urgency, i)):
        line = lines[index]
        cost = count(f"- {line.text}\n")
        if line.section not in opened:
            cost += count(f"{SECTIONS[line.section]}:\n")
        if cost <= left:
            left -= cost
            chosen.append(index)
            opened.add(line.section)
    text = _join(lines, chosen, heading)
    while text and count(text) > max_tokens:  # a joined text may count a token more than its lines
        text = _join(lines, chosen := chosen[:-1], heading)
    return text


def _join(lines: Sequence[Line], chosen: Iterable[int], heading: str) -> str:
    shown = sorted(chosen, key=lambda i: (lines[i].section, i))
    if not shown:
        return ""
    out, section = [heading], -1
    for index in shown:
        if lines[index].section != section:
            section = lines[index].section
            out.append(f"{SECTIONS[section]}:")
        out.append(f"- {lines[index].text}")
    return "\n".join(out)


def _lines(state: Mapping[str, Any], speaker: str, names: Mapping[str, str]) -> Iterable[Line]:
    ledger: Mapping[str, Any] = state.get("ledger") or {}
    own = ledger.get(speaker) or {}
    yield from _own_lines(own)
    yield from _others(ledger, speaker, names)
    yield from _disputes(state.get("claims") or {}, speaker, names)
    yield from _insights(state, speaker)


def _own_lines(own: Mapping[str, Any]) -> Iterable[Line]:
    for text in reversed(open_challenges(own)):
        yield Line(0, 1, text)
    for number, (name, aspect) in enumerate(reversed((own.get("aspects") or {}).items())):
        if aspect["position"]:
            yield Line(1, 1 if number == 0 else 6, _on(name, aspect["position"]))
        for text in reversed(aspect["evidence"]):
            yield Line(1, 4 if number == 0 else 7, f"your evidence: {text}")
    for text in reversed(own.get("concessions") or []):
        yield Line(2, 2, text)
    for shift in reversed((own.get("shifts") or [])[-2:]):
        yield Line(2, 3, f"you changed your mind: {shift['to']} [{shift['message_id']}]")


def _on(aspect: str, position: str) -> str:
    return position if aspect == "overall" else f"{inert(aspect)}: {position}"


def _others(ledger: Mapping[str, Any], speaker: str, names: Mapping[str, str]) -> Iterable[Line]:
    for who, row in ledger.items():
        if who != speaker and row["aspects"]:
            name, aspect = next(reversed(row["aspects"].items()))
            text = _on(name, aspect["position"]) if aspect["position"] else row["stance"]
            if text:
                yield Line(3, 3, f"{names.get(who, who)}: {text}")


def _disputes(claims: Mapping[str, Any], speaker: str, names: Mapping[str, str]) -> Iterable[Line]:
    newest = sorted(claims.values(), key=lambda claim: (-claim["touched"], claim["id"]))
    for claim in newest:
        if claim["status"] in OPEN:
            urgency, sides = 5 if speaker in claim["between"] else 7, sides_text(claim, names)
            yield Line(4, urgency, f"{sides}: {claim['claim']} [{claim['message_ids'][-1]}]")


def _insights(state: Mapping[str, Any], speaker: str) -> Iterable[Line]:
    for card in list((state.get("crux_cards") or {}).values())[-INSIGHTS:][::-1]:
        outcome = card["resolution"] if card["resolved"] else f"unresolved: {card['diagnosis']}"
        yield Line(5, 5 if speaker in card["sides"] else 6, f"{card['question']} ({outcome})")
    recent = (state.get("reflections") or [])[-3 * INSIGHTS :]
    ranked = [item["content"] for item in sorted(recent, key=lambda item: -item["importance"])]
    for content in list(dict.fromkeys(ranked))[:INSIGHTS]:
        yield Line(5, 6, content)
