"""What somebody says of a proposition, in a word or two: views, reports and outcomes say it alike."""

from collections.abc import Iterable, Mapping

from moot.nodes.blackboard.standing import Ledger, is_conditional
from moot.nodes.text.plain import inert
from moot.state.ledger import Event, EventKind, Saying

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


def says(saying: Saying) -> str:
    """Return what somebody says of a proposition, in a word, with the condition where there is one.

    The condition stands in the speaker's own words, be they “if”, “unless” or “as long as”.
    """
    return says_briefly(saying) + (f": {saying['condition']}" if saying["condition"] else "")


def says_briefly(saying: Saying) -> str:
    """Return what somebody says of a proposition, in a word, and whether there is a condition."""
    return SAYS[saying["kind"]] + (", on a condition" if is_conditional(saying) else "")


def stances_text(ledger: Ledger, names: Mapping[str, str], key: str, who: Iterable[str] = ()) -> str:
    """Return what some debaters, or all, say of a proposition; those who say the same together."""
    stances, said = ledger.stances(key), dict[str, list[str]]()
    for each in who or stances:
        event = stances[each]
        said.setdefault(f"{says(event)}{given(ledger, event)}", []).append(
            f"{names.get(each) or inert(each)} [{event['message_id']}]"
        )
    return "; ".join(f"{' and '.join(named)} {what}" for what, named in said.items())


def given(ledger: Ledger, event: Event) -> str:
    """Return which side a concession gives in to, as what follows its word; `""` for anything else."""
    sign = ledger.sign(event["debater"], event["proposition"]) if event["kind"] == "concedes" else 0
    return {1: ": yes", -1: ": no"}.get(sign, "")
