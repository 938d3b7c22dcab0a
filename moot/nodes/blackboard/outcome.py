"""What a debate brought: the summary that a dialogue ends with, whole and on one screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from moot.nodes.blackboard.board_words import (
    SHORT,
    TEXT,
    Names,
    answers_text,
    board_text,
    cards_of,
    quotation,
    says,
    stances_text,
)
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.standing import Ledger, Stage, stage_of
from moot.nodes.text.plain import inert
from moot.state.conversation import OVER, StateValues
from moot.state.ledger import MOTION, Event, Gap

LEADING, GLANCE = ("Cruxes", "What would change minds", "Where they stand"), 4
"""Sections, and points of each, that a screen has room for; of the others it says how much they hold."""
_FOLD_MARK = re.compile(r"^(?:<details><summary>\d+ more</summary>|</details>)\n+", re.MULTILINE)
"""How earlier builds wrote that the rest of a section folds away."""


def stages(state: StateValues) -> dict[str, Stage]:
    """Return how far each proposition's dispute has come, by its id."""
    ledger, cards = ledger_of(state), cards_of(state)
    # Nothing more will be said in the debate, unless it is gone on with.
    closing = (state.get("step") or {}).get("kind") in ("judge", "close")
    over = closing or state.get("status") in OVER
    in_rooms = {room["claim"] for room in (state.get("crux_rooms") or {}).values() if not room["closed"]}
    return {
        key: stage_of(ledger, key, cards, in_room=key in in_rooms and not over, over=over)
        for key in ledger.by_salience
    }


def findings_text(state: StateValues, names: Names, flips: Mapping[str, Sequence[str]]) -> str:
    """Return what a dialogue brought, as Markdown: from the ledger alone, the same for the same state."""
    ledger, found = ledger_of(state), stages(state)
    shown = {who: inert(name) for who, name in names.items()}

    def by(note: Event | Gap) -> str:
        return shown.get(note["debater"], note["debater"])

    stances = [
        f"{by(event)}: {says(event)}: {quotation(event, TEXT)}" for event in ledger.stances(MOTION).values()
    ]
    changes = []
    for change in ledger.changes:
        held = f"from “{board_text(change.before['quote'], SHORT)}” to " if change.before else ""
        changes.append(f"{by(change.event)}: {held}{quotation(change.event)}")
    told = {change.event["id"] for change in ledger.changes} | ledger.repeated
    conceded = [
        f"{by(event)}{', core' if ledger.is_core(event) else ''}: {quotation(event)}"
        for event in ledger.concessions()
        if event["id"] not in told
    ]
    sections = (
        ("Cruxes", list(_cruxes(state, found, shown))),
        ("What would change minds", list(_flips(state, shown, flips))),
        ("Where they stand", stances),
        ("Changes of mind", changes),
        ("Conceded", conceded),
        ("Propositions", list(_propositions(ledger, found, shown))),
        ("Admitted not to know", [f"{by(gap)}: {quotation(gap)}" for gap in ledger.gaps]),
    )
    return "\n\n".join("\n- ".join([f"## {title}", *lines]) for title, lines in sections if lines)


def _cruxes(state: StateValues, found: Mapping[str, Stage], names: Names) -> Iterator[str]:
    for card in cards_of(state):
        # A card is not final: what was said after it may have reopened the question, or settled it.
        settled = found.get(card["claim"], "resolved" if card["resolved"] else "") == "resolved"
        stands, path = "settled" if settled else "open", card["resolution"] or card["diagnosis"]
        yield f"{card['question']} ({answers_text(card, names)}; {stands}): {path}"


def _flips(state: StateValues, names: Names, flips: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for who, texts in flips.items():
        yield from (f"{names.get(who, who)}: {inert(text)}" for text in texts)
    for card in cards_of(state):
        for who, side in card["sides"].items():
            if side["falsifier"]:
                yield f"{names.get(who, who)}, on “{card['question']}”: {side['falsifier']}"


def _propositions(ledger: Ledger, found: Mapping[str, Stage], names: Names) -> Iterator[str]:
    """Yield each proposition that more than one took up: what is open first."""
    order = {"active": 0, "in_crux_room": 0, "abandoned": 0, "resolved": 1, "": 2}
    for key in sorted(ledger.by_salience, key=lambda key: order[found[key]]):
        status = ledger.status(key)
        if key == MOTION or status == "open":
            continue
        stands = {"active": "open", "abandoned": "still open", "": status}.get(found[key], found[key])
        text, stances = board_text(ledger.propositions[key]["text"]), stances_text(ledger, names, key)
        yield f"{text} ({stands.replace('_', ' ')}; {stances})"


def strip_marks(outcome: str) -> str:
    """Return such a summary without the marks that earlier builds put into it."""
    return _FOLD_MARK.sub("", f"{outcome}\n").rstrip("\n")


def at_a_glance(outcome: str) -> str:
    """Return such a summary with what leads in it, and how much more there is."""
    sections = re.split(r"^(?=## )", strip_marks(outcome), flags=re.MULTILINE)
    shown, held = list[str](), list[str]()
    for section in filter(None, map(str.strip, sections)):
        lines = section.split("\n")
        title = lines[0].removeprefix("## ")
        points = [index for index, line in enumerate(lines) if line.startswith("- ")]
        if section.startswith("## ") and title not in LEADING:
            held.append(f"{title.lower()} ({len(points)})")
            continue
        if len(points) > GLANCE:
            lines[points[GLANCE] :] = [f"- … and {len(points) - GLANCE} more, in the report"]
        shown.append("\n".join(lines))
    return "\n\n".join([*shown, *([f"In the report: {', '.join(held)}."] if held else [])])
