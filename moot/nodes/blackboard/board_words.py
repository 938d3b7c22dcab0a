"""The blackboard's words: what views, reports and outcomes say of a note, alike."""

from collections.abc import Iterable, Mapping
from typing import Any

from moot.nodes.blackboard.standing import Ledger, is_conditional
from moot.nodes.prompts.rendering import display_name
from moot.nodes.text.plain import clip, inert
from moot.state.conversation import StateValues
from moot.state.ledger import CruxCard, Event, EventKind, Saying

Names = Mapping[str, str]
"""Display names by debater id."""

TEXT = 160
"""Characters of a quotation or a proposition, where it is repeated."""
SHORT = 100
"""Characters of what stands beside something else in a line."""

SAYS: Mapping[EventKind, str] = {
    "asserts": "yes",
    "denies": "no",
    "conditional": "yes",
    "concedes": "conceded",
    "withdraws": "withdrawn",
    "unsure": "open",
}

MOVED = "has changed its mind"
"""What the rules know of a withdrawal: that somebody says so, not where it leads."""


def board_text(text: str, limit: int = TEXT) -> str:
    """Return somebody's words as they may stand on the blackboard: one line, no markup, at most `limit`."""
    return clip(inert(" ".join(map(inert, text.splitlines()))), limit)


def quotation(note: Mapping[str, Any], limit: int = SHORT) -> str:
    """Return a note's quotation with the message that it is from, in a line of ours."""
    return f"“{board_text(note['quote'], limit)}” [{note['message_id']}]"


def says(saying: Saying) -> str:
    """Return what somebody says of a proposition, in a word, with the condition where there is one.

    The condition stands in the speaker's own words, be they “if”, “unless” or “as long as”.
    """
    return says_briefly(saying) + (f": {saying['condition']}" if saying["condition"] else "")


def says_briefly(saying: Saying) -> str:
    """Return what somebody says of a proposition, in a word, and whether there is a condition."""
    return SAYS[saying["kind"]] + (", on a condition" if is_conditional(saying) else "")


def stances_text(ledger: Ledger, names: Names, key: str, who: Iterable[str] = ()) -> str:
    """Return what some debaters, or all, say of a proposition; those who say the same together."""
    stances, said = ledger.stances(key), dict[str, list[str]]()
    for each in who or stances:
        event = stances[each]
        named = f"{names.get(each) or inert(each)} [{event['message_id']}]"
        said.setdefault(f"{says(event)}{side_conceded(ledger, event)}", []).append(named)
    return "; ".join(f"{' and '.join(named)} {what}" for what, named in said.items())


def side_conceded(ledger: Ledger, event: Event) -> str:
    """Return which side a concession gives in to, as what follows its word; `""` for anything else."""
    sign = ledger.sign(event["debater"], event["proposition"]) if event["kind"] == "concedes" else 0
    return {1: ": yes", -1: ": no"}.get(sign, "")


def cards_of(state: StateValues) -> list[CruxCard]:
    """Return the crux cards of a debate's state, the oldest first."""
    return list((state.get("crux_cards") or {}).values())


def answers_text(card: CruxCard, names: Names) -> str:
    """Return what each side of a crux card answers."""
    return "; ".join(f"{display_name(who, names)}: {side['answer']}" for who, side in card["sides"].items())


def reflections_text(state: StateValues) -> str:
    """Return all reflections, the most important first."""
    ranked = sorted(state.get("reflections") or [], key=lambda item: (-item["importance"], item["id"]))
    return "\n".join(dict.fromkeys(f"- {item['content']}" for item in ranked))


def card_text(card: CruxCard, names: Names) -> str:
    """Return one crux card."""
    sides = [
        f"- {inert(names.get(who, who))}: {side['answer']}. {side['reasoning']}"
        + (f" (what would change it: {side['falsifier']})" if side["falsifier"] else "")
        for who, side in card["sides"].items()
    ]
    outcome = (
        f"- {'resolved' if card['resolved'] else 'not resolved'}: {card['resolution'] or card['diagnosis']}"
    )
    return "\n".join([f"{card['question']} ({card['type']})", *sides, outcome])
