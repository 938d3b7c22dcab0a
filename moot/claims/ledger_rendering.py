"""Display of the claim ledger as text for debaters, judges and reports."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moot.claims import claim_status
from moot.claims.ledger_from_events import ledger_of
from moot.prompts.truncation import display_name
from moot.state import claim_events as ledger_events
from moot.state.conversation import StateValues
from moot.text.plain_text import clip, sanitize_line

Names = Mapping[str, str]
"""Display name of each debater, keyed by debater id."""

TEXT = 160
"""Maximum number of characters in a claim. The limit also applies to a quotation that is the main part of its
line."""
SHORT = 100
"""Maximum number of characters in an aspect of the topic. The limit also applies to a quotation beside other
text."""

NO_EXTRACTION = (
    "No claims: this debate extracts none. Set `blackboard.extraction` to `llm`. The model `offline` "
    "extracts no claims."
)
"""Message shown instead of claims if no model extracts claims."""

STANCE_WORDS: Mapping[ledger_events.StanceKind, str] = {
    "asserts": "yes",
    "denies": "no",
    "conditional": "yes",
    "concedes": "conceded",
    "withdraws": "withdrawn",
    "unsure": "open",
}


def why_no_claims(claim_events: Sequence[ledger_events.ClaimEvent], *, extracts: bool) -> str:
    """Return why a debate has no claims and what the user can do, or `""` if it has some."""
    kinds = {claim_event["type"] for claim_event in claim_events}
    if "event" in kinds:
        return ""
    if "extraction_pass" in kinds:
        return "No claims were found."
    return "No claims yet." if extracts else NO_EXTRACTION


def board_text(text: str, limit: int = TEXT) -> str:
    """Return a text on one line without markup, cut to `limit` characters."""
    return clip(sanitize_line(" ".join(map(sanitize_line, text.splitlines()))), limit)


def quotation(claim_event: Mapping[str, Any], limit: int = SHORT) -> str:
    """Return a claim event's quotation and message id on one line."""
    return f"“{board_text(claim_event['quote'], limit)}” [{claim_event['message_id']}]"


def stance_text(saying: ledger_events.StanceFields) -> str:
    """Return a stance as one word, followed by the condition if there is one."""
    return short_stance_text(saying) + (f": {saying['condition']}" if saying["condition"] else "")


def short_stance_text(saying: ledger_events.StanceFields) -> str:
    """Return a stance as one word, such as `yes`, with any option, and whether it has a condition."""
    if gave_up := saying.get("gave_up"):
        return f"gave up “{gave_up}”"
    if "moved_to" in saying:
        return "left for a changed proposal"
    word = "no" if claim_status.leaning(saying) < 0 else STANCE_WORDS[saying["kind"]]
    word = saying.get("option") or word if claim_status.leaning(saying) else word
    count = saying.get("condition_count", 1)
    several = f"{count} conditions" if count > 1 else "a condition"
    return word + (f", on {several}" if claim_status.is_conditional(saying) else "")


def answer_text(ledger: claim_status.Ledger, event: ledger_events.StanceEvent) -> str:
    """Return a debater's stance without its condition, and the changed proposal if it is about one."""
    proposal = board_text(ledger.claims[event["claim"]]["text"], SHORT)
    note = f" to “{proposal}”" if event["claim"] != ledger_events.MAIN_QUESTION else ""
    return short_stance_text(event) + note


def stances_text(ledger: claim_status.Ledger, names: Names, key: str, debaters: Iterable[str] = ()) -> str:
    """Return the debaters' stances on a claim as text, grouped by stance.

    Without `debaters`, all are included.
    """
    stances, labels_by_stance = ledger.stances(key), dict[str, list[str]]()
    for debater in debaters or stances:
        event = stances[debater]
        label = f"{names.get(debater) or sanitize_line(debater)} [{event['message_id']}]"
        labels_by_stance.setdefault(f"{stance_text(event)}{side_conceded(ledger, event)}", []).append(label)
    return "; ".join(f"{' and '.join(labels)} {stance}" for stance, labels in labels_by_stance.items())


def side_conceded(ledger: claim_status.Ledger, event: ledger_events.StanceEvent) -> str:
    """Return the answer that a concession accepts, in the form `: yes`, or `""`."""
    sign = ledger.sign(event["debater"], event["claim"]) if event["kind"] == "concedes" else 0
    return {1: ": yes", -1: ": no"}.get(sign, "")


def cards_of(state: StateValues) -> list[ledger_events.CruxCard]:
    """Return the crux cards of a debate, which record its side discussions, oldest first."""
    return list((state.get("crux_cards") or {}).values())


def card_status(card: ledger_events.CruxCard) -> str:
    """Return `resolved` or `not resolved` for a crux card, the record of a side discussion."""
    return "resolved" if card["resolved"] else "not resolved"


def card_results_text(card: ledger_events.CruxCard, names: Names) -> str:
    """Return each debater's answer in a side discussion on one line."""
    return "; ".join(f"{display_name(key, names)}: {side['answer']}" for key, side in card["sides"].items())


def current_reflections(state: StateValues) -> list[ledger_events.Reflection]:
    """Return the reflections on a debate that no later message contradicts, oldest first."""
    dropped = ledger_of(state).dropped_reflections
    return [each for each in state.get("reflections") or [] if each["id"] not in dropped]


def reflections_text(state: StateValues) -> str:
    """Return the current reflections as a Markdown list, starting with the most important reflection."""
    ranked = sorted(current_reflections(state), key=lambda item: (-item["importance"], item["id"]))
    return "\n".join(f"- {text}" for text in reflection_lines(ranked))


def reflection_lines(reflections: Iterable[ledger_events.Reflection]) -> list[str]:
    """Return reflections with their rounds, because later messages may have made them wrong."""
    rounds = {item["content"]: item["round"] for item in reflections}
    return [f"{text} (noted in round {number})" if number else text for text, number in rounds.items()]


def card_text(card: ledger_events.CruxCard, names: Names) -> str:
    """Return a crux card's question, sides and result as text."""
    sides = [
        f"- {sanitize_line(names.get(debater, debater))}: {side['answer']}. {side['reasoning']}"
        + (f" (what would change it: {side['falsifier']})" if side["falsifier"] else "")
        for debater, side in card["sides"].items()
    ]
    outcome = f"- {card_status(card)}: {card['resolution'] or card['diagnosis']}"
    return "\n".join([f"{card['question']} (kind of disagreement: {card['type']})", *sides, outcome])
