"""What a debate brought: the summary that a dialogue ends with, whole and on one screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moot.nodes.blackboard.board_words import SHORT, TEXT, answers_text, noted, quotation, says, stances_text
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.standing import Ledger, Stage, stage_of
from moot.nodes.text.plain import inert
from moot.state.conversation import OVER
from moot.state.ledger import MOTION

LEADING, GLANCE = ("Cruxes", "What would change minds", "Where they stand"), 4
"""Sections, and points of each, that a screen has room for; of the others it says how much they hold."""
_FOLD_MARK = re.compile(r"^(?:<details><summary>\d+ more</summary>|</details>)\n+", re.MULTILINE)
"""How earlier builds wrote that the rest of a section folds away."""

State = Mapping[str, Any]
Names = Mapping[str, str]


def is_over(state: State) -> bool:
    """Return whether nothing more will be said in a debate, unless it is gone on with."""
    closing = (state.get("step") or {}).get("kind") in ("judge", "close")
    return closing or state.get("status") in OVER


def stages(state: State, ledger: Ledger) -> dict[str, Stage]:
    """Return how far each proposition's dispute has come, by its id."""
    cards = list((state.get("crux_cards") or {}).values())
    in_rooms = {room["claim"] for room in (state.get("crux_rooms") or {}).values() if not room["closed"]}
    over = is_over(state)
    return {
        key: stage_of(ledger, key, cards, in_room=key in in_rooms and not over, over=over)
        for key in ledger.by_salience
    }


def findings_text(state: State, names: Names, flips: Mapping[str, Sequence[str]]) -> str:
    """Return what a dialogue brought, as Markdown: from the ledger alone, the same for the same state."""
    ledger = ledger_of(state)
    shown = {who: inert(name) for who, name in names.items()}
    sections = (
        ("Cruxes", list(_cruxes(state, ledger, shown))),
        ("What would change minds", list(_flips(state, shown, flips))),
        ("Where they stand", list(_stances(ledger, shown))),
        ("Changes of mind", list(_changes(ledger, shown))),
        ("Conceded", list(_concessions(ledger, shown))),
        ("Propositions", list(_propositions(state, ledger, shown))),
        ("Admitted not to know", list(_gaps(ledger, shown))),
    )
    return "\n\n".join(f"## {title}\n{chr(10).join(lines)}" for title, lines in sections if lines)


def unfolded(outcome: str) -> str:
    """Return such a summary without the marks that earlier builds put into it."""
    return _FOLD_MARK.sub("", f"{outcome}\n").rstrip("\n")


def at_a_glance(outcome: str) -> str:
    """Return such a summary with what leads in it, and how much more there is."""
    sections = re.split(r"^(?=## )", unfolded(outcome), flags=re.MULTILINE)
    shown, held = list[str](), list[str]()
    for section in filter(None, map(str.strip, sections)):
        lines = section.split("\n")
        title = lines[0].removeprefix("## ")
        if title in LEADING or not section.startswith("## "):
            shown.append(_shortened(lines))
        else:
            held.append(f"{title.lower()} ({len(_points(lines))})")
    return "\n\n".join([*shown, *([f"In the report: {', '.join(held)}."] if held else [])])


def _shortened(section: Sequence[str]) -> str:
    points = _points(section)
    if len(points) <= GLANCE:
        return "\n".join(section)
    return "\n".join([*section[: points[GLANCE]], f"- … and {len(points) - GLANCE} more, in the report"])


def _points(section: Sequence[str]) -> list[int]:
    """Return which lines begin a point."""
    return [index for index, line in enumerate(section) if line.startswith("- ")]


def _stances(ledger: Ledger, names: Names) -> Iterator[str]:
    for who, event in ledger.stances(MOTION).items():
        yield f"- {names.get(who, who)}: {says(event)}: {quotation(event, TEXT)}"


def _propositions(state: State, ledger: Ledger, names: Names) -> Iterator[str]:
    """Yield each proposition that more than one took up: what is open first."""
    found = stages(state, ledger)
    order = {"active": 0, "in_crux_room": 0, "abandoned": 0, "resolved": 1, "": 2}
    for key in sorted(ledger.by_salience, key=lambda key: order[found[key]]):
        status = ledger.status(key)
        if key == MOTION or status == "open":
            continue
        stances = stances_text(ledger, names, key)
        state_of = {"active": "open", "abandoned": "still open", "": status}.get(found[key], found[key])
        yield f"- {noted(ledger.propositions[key]['text'])} ({state_of.replace('_', ' ')}; {stances})"


def _changes(ledger: Ledger, names: Names) -> Iterator[str]:
    for change in ledger.changes:
        before = f"from “{noted(change.before['quote'], SHORT)}” to " if change.before else ""
        who = names.get(change.event["debater"], change.event["debater"])
        yield f"- {who}: {before}{quotation(change.event)}"


def _concessions(ledger: Ledger, names: Names) -> Iterator[str]:
    told = {change.event["id"] for change in ledger.changes} | ledger.repeated
    for event in ledger.concessions():
        if event["id"] not in told:
            core = ", core" if ledger.is_core(event) else ""
            who = names.get(event["debater"], event["debater"])
            yield f"- {who}{core}: {quotation(event)}"


def _gaps(ledger: Ledger, names: Names) -> Iterator[str]:
    for gap in ledger.gaps:
        who = names.get(gap["debater"], gap["debater"])
        yield f"- {who}: {quotation(gap)}"


def _cruxes(state: State, ledger: Ledger, names: Names) -> Iterator[str]:
    found = stages(state, ledger)
    for card in (state.get("crux_cards") or {}).values():
        # A card is not final: what was said after it may have reopened the question, or settled it.
        settled = found.get(card["claim"], "resolved" if card["resolved"] else "") == "resolved"
        stands, path = "settled" if settled else "open", card["resolution"] or card["diagnosis"]
        yield f"- {card['question']} ({answers_text(card, names)}; {stands}): {path}"


def _flips(state: State, names: Names, flips: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for who, texts in flips.items():
        yield from (f"- {names.get(who, who)}: {inert(text)}" for text in texts)
    for card in (state.get("crux_cards") or {}).values():
        for who, side in card["sides"].items():
            if side["falsifier"]:
                yield f"- {names.get(who, who)}, on “{card['question']}”: {side['falsifier']}"
