"""The whole blackboard in words: for closings, and as the summary that a dialogue ends with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moot.nodes.blackboard.by_rule import split_source
from moot.nodes.blackboard.claims import sides_text
from moot.nodes.blackboard.ledger import last_challenged, said_in
from moot.nodes.text.likeness import likeness
from moot.nodes.text.plain import inert
from moot.state.entries import seq_of

ACCEPTED = 0.25
"""Likeness of a concession or agreement with a piece of evidence from which that counts as accepted."""

State = Mapping[str, Any]
Names = Mapping[str, str]


def ledger_text(state: State, names: Names) -> str:
    """Return where everybody stands, with evidence, challenges, concessions and shifts."""
    return "\n".join(
        line for who, row in (state.get("ledger") or {}).items() for line in _row_lines(who, row, names)
    )


def _row_lines(who: str, row: Mapping[str, Any], names: Names) -> Iterable[str]:
    yield f"{_name(who, names)}: {row['stance']}"
    for aspect, held in row["aspects"].items():
        yield f"- on {inert(aspect)}: {held['position']}"
        yield from (f"  - evidence: {text}" for text in held["evidence"])
        yield from (f"  - challenged: {text}" for text in held["challenged"])
    yield from (f"- conceded: {text}" for text in row["concessions"])
    yield from (f"- agrees with {_name(a['with'], names)}: {a['on']}" for a in row["agreements"])
    yield from dict.fromkeys(_disagreement(item, names) for item in row["disagreements"])
    yield from (f"- moved: {_shift(shift)}" for shift in row["shifts"])


def _disagreement(item: Mapping[str, Any], names: Names) -> str:
    strength = f" ({item['strength']})" if item["strength"] else ""
    return f"- disagrees with {_name(item['with'], names)}{strength}: {item['on']}"


def _shift(shift: Mapping[str, Any]) -> str:
    return f"from “{shift['from']}” to “{shift['to']}” [{shift['message_id']}]"


def reflections_text(state: State) -> str:
    """Return all reflections, the most important first."""
    ranked = sorted(state.get("reflections") or [], key=lambda item: (-item["importance"], item["id"]))
    return "\n".join(f"- {item['content']}" for item in ranked)


def rounds_text(state: State) -> str:
    """Return a line for each round."""
    return "\n".join(
        f"- round {item['round']}: {item['summary']}" for item in state.get("round_records") or []
    )


def card_text(card: Mapping[str, Any], names: Names) -> str:
    """Return one crux card."""
    sides = [
        f"- {_name(who, names)}: {side['answer']}. {side['reasoning']}"
        + (f" (what would change it: {side['falsifier']})" if side["falsifier"] else "")
        for who, side in card["sides"].items()
    ]
    outcome = (
        f"- {'resolved' if card['resolved'] else 'not resolved'}: {card['resolution'] or card['diagnosis']}"
    )
    return "\n".join([f"{card['question']} ({card['type']})", *sides, outcome])


def cards_text(state: State, names: Names) -> str:
    """Return all crux cards."""
    return "\n\n".join(card_text(card, names) for card in (state.get("crux_cards") or {}).values())


def claims_text(state: State, names: Names) -> str:
    """Return the contested claims: whose, how far each has come, and what came of it."""
    return "\n".join(line for claim in _claims(state) for line in _claim_heads(claim, names))


def outcome_text(state: State, names: Names, flips: Mapping[str, Sequence[str]]) -> str:
    """Return what a dialogue brought, as Markdown: from the blackboard alone, the same for the same state.

    Args:
        state: the debate's state.
        names: display names by debater id.
        flips: what would change each debater's mind, by its contract.
    """
    sections = (
        ("Contested claims", _claim_lines(state, names)),
        ("Agreements", _agreement_lines(state, names)),
        ("Evidence", _evidence_lines(state, names)),
        ("Changes of mind", _shift_lines(state, names)),
        ("What would change minds", _flip_lines(state, names, flips)),
        ("Paths to a resolution", _path_lines(state)),
    )
    parts = ["# What the dialogue brought"]
    for title, lines in sections:
        parts.append(f"## {title}\n" + ("\n".join(lines) or "None noted."))
    return "\n\n".join(parts)


def _claim_lines(state: State, names: Names) -> list[str]:
    cards = state.get("crux_cards") or {}
    lines = []
    for claim in _claims(state):
        head, *outcome = _claim_heads(claim, names)
        card = cards.get(claim["card"])
        sides = [
            f"  - {_name(who, names)}: {side['answer']}. {side['reasoning']}"
            for who, side in (card["sides"] if card else {}).items()
        ]
        lines += [head, *sides, *outcome]
    return lines


def _claims(state: State) -> Iterable[Mapping[str, Any]]:
    return (state.get("claims") or {}).values()


def _claim_heads(claim: Mapping[str, Any], names: Names) -> list[str]:
    """Return a claim with whose it is and its status, and what came of it where something did."""
    sides = sides_text(claim, {who: _name(who, names) for who in claim["between"]})
    head = f"- {claim['claim']} ({sides}; {claim['status'].replace('_', ' ')})"
    return [head, *([f"  - {claim['resolution']}"] if claim["resolution"] else [])]


def _agreement_lines(state: State, names: Names) -> list[str]:
    return [
        f"- {_name(who, names)} with {_name(item['with'], names)}: {item['on']} [{item['message_id']}]"
        for who, row in (state.get("ledger") or {}).items()
        for item in row["agreements"]
    ]


def _evidence_lines(state: State, names: Names) -> list[str]:
    ledger = state.get("ledger") or {}
    return [
        f"- {_name(who, names)}: {text} ({_standing(text, who, aspect, ledger)})"
        for who, row in ledger.items()
        for aspect in row["aspects"].values()
        for text in aspect["evidence"]
    ]


def _standing(evidence: str, who: str, aspect: State, ledger: State) -> str:
    """Return what became of a piece of evidence: accepted by somebody, challenged, or neither.

    Only what was said after it counts, and a challenge stays one when it has been answered or talked over.
    """
    body, said = split_source(evidence)[0], said_in(evidence)
    accepted = any(
        likeness(body, item["on"]) >= ACCEPTED and (seq_of(item["message_id"]) or 0) > said
        for other, row in ledger.items()
        for item in row["agreements"]
        if other != who and item["with"] == who
    )
    if accepted:
        return "accepted"
    if any(said_in(text) > said for text in aspect["challenged"]):
        return "position challenged"
    return "position challenged, since talked over" if last_challenged(aspect) > said else "unchallenged"


def _shift_lines(state: State, names: Names) -> list[str]:
    return [
        f"- {_name(who, names)}, {inert(shift['aspect'])}: {_shift(shift)}"
        for who, row in (state.get("ledger") or {}).items()
        for shift in row["shifts"]
    ]


def _flip_lines(state: State, names: Names, flips: Mapping[str, Sequence[str]]) -> list[str]:
    lines = [f"- {_name(who, names)}: {inert(text)}" for who, texts in flips.items() for text in texts]
    for card in (state.get("crux_cards") or {}).values():
        for who, side in card["sides"].items():
            if side["falsifier"]:
                lines.append(f"- {_name(who, names)}, on “{card['question']}”: {side['falsifier']}")
    return lines


def _path_lines(state: State) -> list[str]:
    lines = []
    for card in (state.get("crux_cards") or {}).values():
        path = "settled" if card["resolved"] else card["resolution"] or card["diagnosis"]
        lines.append(f"- {card['question']} ({card['type']}): {path}")
    cards = state.get("crux_cards") or {}
    for claim in (state.get("claims") or {}).values():
        if claim["status"] != "resolved" and claim["card"] not in cards:
            lines.append(f"- still open: {claim['claim']}")
    return lines


def _name(who: str, names: Names) -> str:
    return inert(names.get(who, who))
