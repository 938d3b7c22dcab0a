"""Records of a debate's rounds: each debater's position, key argument, evidence, and whom it engaged."""

from collections.abc import Iterator, Mapping, Sequence

from typing_extensions import TypedDict

from moot.claims.claim_status import Ledger
from moot.claims.ledger_rendering import board_text, quotation, side_conceded, stance_text
from moot.prompts.truncation import prompt_name
from moot.state import claim_events as ledger_events
from moot.state.entries import Entry, round_of
from moot.text.plain_text import sanitize_line


class RoundRecord(TypedDict):
    """Summary of the positions and disputes in one round of a debate."""

    round: int
    positions: dict[str, str]
    """Each debater's latest statement in the round, keyed by debater id."""
    arguments: dict[str, str]
    """Each debater's key argument in the round, keyed by debater id. It is what the debater said for or
    against a claim that its position rests on."""
    evidence: dict[str, list[str]]
    """Ids of the pieces of evidence given in this round, keyed by debater id."""
    engaged: dict[str, list[str]]
    """Debaters whom each debater challenged, questioned or answered in this round. Keys and values are
    debater ids."""
    new_disputes: list[str]
    """Ids of the claims that became disputed in this round."""
    moved: list[str]
    """Ids of this round's claim events with a concession or a change of stance."""


def round_records(ledger: Ledger, transcript: Sequence[Entry]) -> list[RoundRecord]:
    """Return a summary of the positions and disputes in each round."""
    records: dict[int, RoundRecord] = {}

    def record_of(event: ledger_events.QuotedEvent) -> RoundRecord:
        number = round_of(event["message_id"], transcript)
        empty = RoundRecord(
            round=number, positions={}, arguments={}, evidence={}, engaged={}, new_disputes=[], moved=[]
        )
        return records.setdefault(number, empty)

    moved_ids = {change.event["id"] for change in ledger.changes} | {e["id"] for e in ledger.concessions()}
    first_disputes = {
        timeline.dispute_starts[0] for timeline in ledger.timelines.values() if timeline.dispute_starts
    }
    for event in ledger.events:
        record, key = record_of(event), event["claim"]
        if key in ledger.proposals or event["debater"] not in record["positions"]:
            record["positions"][event["debater"]] = event["quote"]
        is_argument = event["kind"] not in (*ledger_events.GIVING_UP, "unsure")
        is_first = key not in ledger.proposals and event["debater"] not in record["arguments"]
        if is_argument and (event["ground"] or is_first):
            record["arguments"][event["debater"]] = event["quote"]
        if event["id"] in first_disputes:
            record["new_disputes"].append(key)
        if event["id"] in moved_ids:
            record["moved"].append(event["id"])
    for item in ledger.evidence:
        record_of(item)["evidence"].setdefault(item["debater"], []).append(item["id"])
    requests = {**ledger.challenges, **ledger.questions}
    engagements: list[tuple[ledger_events.QuotedEvent, str]] = [
        (each, each["to"]) for each in requests.values()
    ]
    engagements += [
        (each, requests[key]["debater"]) for key, each in ledger.answers.items() if key in requests
    ]
    for engagement, addressee in engagements:
        addressees = record_of(engagement)["engaged"].setdefault(engagement["debater"], [])
        if addressee and addressee != engagement["debater"] and addressee not in addressees:
            addressees.append(addressee)
    return [records[number] for number in sorted(records)]


def debater_lines(record: RoundRecord, ledger: Ledger, names: Mapping[str, str]) -> dict[str, str]:
    """Return what each debater held, argued and showed in a round, and whom it engaged, by debater id."""
    evidence = {each["id"]: each for each in ledger.evidence}
    lines: dict[str, str] = {}
    for debater in names:
        position, argument = record["positions"].get(debater, ""), record["arguments"].get(debater, "")
        evidence_text = "; ".join(quotation(evidence[key]) for key in record["evidence"].get(debater, ()))
        addressees = " and ".join(prompt_name(each, names) for each in record["engaged"].get(debater, ()))
        parts = {
            "": position and f"“{board_text(position)}”",
            "key argument: ": argument and argument != position and f"“{board_text(argument)}”",
            "evidence: ": evidence_text,
            "engaged ": addressees,
        }
        if text := "; ".join(f"{title}{part}" for title, part in parts.items() if part):
            lines[debater] = text
    return lines


def move_lines(record: RoundRecord, ledger: Ledger, names: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each dispute that began in a round, and for each concession and change of stance."""
    texts = {key: board_text(claim["text"]) for key, claim in ledger.claims.items()}
    for key in record["new_disputes"]:
        yield f"New dispute: {texts.get(key) or sanitize_line(key)}"
    events = {event["id"]: event for event in ledger.events}
    for event in filter(None, map(events.get, record["moved"])):
        claim = texts.get(event["claim"]) or sanitize_line(event["claim"])
        stance = f"{stance_text(event)}{side_conceded(ledger, event)}"
        yield f"{prompt_name(event['debater'], names)} moved on “{claim}”: {stance}: {quotation(event)}"
