"""Changed proposals: who accepts which version on what conditions, and who gave one up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from moot.claims.blackboard import render_blackboard
from moot.claims.claim_extraction import ClaimExtraction, correct_event
from moot.claims.claim_status import Ledger
from moot.claims.crux_cards import findings_text
from moot.claims.ledger_from_events import fold_events, ledger_of
from moot.claims.model_extraction import extraction_schema
from moot.documents import board_document
from moot.reports import render_markdown
from moot.state.claim_events import ClaimEvent, StanceKind
from moot.state.entries import make_entry
from tests.support.ledger_state import new_claim_events, retraction_event, stance_event
from tests.support.report_documents import debate_document

TOPIC = "Close the market street from April."
NAMES = {"maren": "Maren", "joost": "Joost"}


def amends(number: int, key: str, replaces: str = "p000", debater: str = "maren") -> list[ClaimEvent]:
    claim: ClaimEvent = {
        "type": "claim",
        "id": key,
        "text": f"Close the street from October, version {key}.",
        "aspect": "overall",
        "seq": number,
    }
    return [
        claim,
        {
            "type": "amends",
            "id": f"a{number:03d}",
            "claim": key,
            "replaces": replaces,
            "debater": debater,
            "message_id": f"m{number:06d}",
            "quote": "From October.",
            "by": "model",
        },
    ]


def says(number: int, debater: str, kind: StanceKind, key: str = "p000", condition: str = "") -> ClaimEvent:
    fields: dict[str, Any] = {"condition": condition, "condition_id": f"k{condition}"} if condition else {}
    return stance_event(number, debater, kind, key, **fields)


def would_reverse(number: int, debater: str) -> ClaimEvent:
    return {
        "type": "would_reverse",
        "id": f"w{number:03d}",
        "claim": "p000",
        "debater": debater,
        "message_id": f"m{number:06d}",
        "quote": "Above 4,500 I would change my mind.",
        "by": "model",
    }


OPENINGS = [says(1, "maren", "asserts"), says(2, "joost", "denies")]
MAREN = [*OPENINGS, *amends(3, "p001"), says(3, "maren", "asserts", "p001")]


@dataclass(frozen=True)
class Case:
    """Events of a debate, and the labels and live proposals that follow."""

    id: str
    events: list[ClaimEvent]
    labels: dict[str, str]
    live: list[str]


CASES = [
    Case(
        "both accept on different conditions",
        [
            *OPENINGS,
            *amends(3, "p001"),
            says(3, "maren", "conditional", "p001", "1"),
            says(4, "joost", "conditional", "p001", "2"),
        ],
        {"p000": "left", "p001": "conditional: yes, on 2 conditions"},
        ["p001"],
    ),
    Case(
        "both accept without a condition",
        [*MAREN, says(4, "joost", "asserts", "p001")],
        {"p000": "left", "p001": "agreed: yes"},
        ["p001"],
    ),
    Case(
        "who accepts the change rejects the first proposal again",
        [*MAREN, says(4, "joost", "asserts", "p001"), says(6, "joost", "denies")],
        {"p000": "left", "p001": "agreed: yes"},
        ["p001"],
    ),
    Case(
        "who changes the proposal withdraws the first one before",
        [
            *OPENINGS,
            *amends(3, "p001"),
            says(3, "maren", "withdraws"),
            says(3, "maren", "asserts", "p001"),
            says(4, "joost", "asserts", "p001"),
        ],
        {"p000": "left", "p001": "agreed: yes"},
        ["p001"],
    ),
    Case(
        "both accept on the same condition",
        [
            *OPENINGS,
            *amends(3, "p001"),
            says(3, "maren", "conditional", "p001", "1"),
            says(4, "joost", "conditional", "p001", "1"),
        ],
        {"p000": "left", "p001": "agreed: yes, on a condition"},
        ["p001"],
    ),
    Case(
        "the other side rejects the change, too",
        [*MAREN, says(4, "joost", "denies", "p001")],
        {"p000": "open", "p001": "disputed"},
        ["p001", "p000"],
    ),
    Case(
        "the other side says nothing about the change",
        MAREN,
        {"p000": "open", "p001": "open"},
        ["p001", "p000"],
    ),
    Case(
        "a debater goes back to the first proposal",
        [*MAREN, says(5, "maren", "asserts")],
        {"p000": "disputed", "p001": "left"},
        ["p000"],
    ),
    Case(
        "the change is changed again",
        [
            *MAREN,
            says(4, "joost", "asserts", "p001"),
            *amends(5, "p002", "p001", "joost"),
            says(5, "joost", "asserts", "p002"),
            says(6, "maren", "asserts", "p002"),
        ],
        {"p000": "left", "p001": "left", "p002": "agreed: yes"},
        ["p002"],
    ),
    Case(
        "the change is disputed, then accepted",
        [*MAREN, says(4, "joost", "denies", "p001"), says(6, "joost", "asserts", "p001")],
        {"p000": "left", "p001": "settled: yes"},
        ["p001"],
    ),
    Case(
        "who changed the proposal withdraws it",
        [*MAREN, says(5, "maren", "withdraws", "p001")],
        {"p000": "open", "p001": "withdrawn"},
        ["p000"],
    ),
    Case(
        "a person retracts the change",
        [*MAREN, retraction_event("a003", "person")],
        {"p000": "disputed", "p001": "open"},
        ["p000"],
    ),
    Case(
        "a finding that would change a mind is no condition",
        [
            *OPENINGS[:1],
            says(2, "joost", "asserts"),
            *(would_reverse(number, each) for number, each in enumerate(NAMES, 1)),
        ],
        {"p000": "agreed: yes"},
        ["p000"],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("steps", [1, 2, 100], ids=["one by one", "two by two", "at once"])
def test_each_proposal_has_its_own_status(case: Case, steps: int) -> None:
    ledger: Ledger = fold_events([], TOPIC)
    for end in range(steps, len(case.events) + steps, steps):
        ledger = fold_events(case.events[:end], TOPIC)
    assert {key: ledger.claim_status(key).label for key in case.labels} == case.labels
    assert ledger.live_proposals == case.live


def test_leaving_a_proposal_for_a_changed_one_is_a_change_of_mind() -> None:
    ledger = fold_events(CASES[0].events, TOPIC)
    changes = [(each.event["debater"], each.before and each.before["quote"]) for each in ledger.changes]
    assert changes == [("maren", "maren asserts"), ("joost", "joost denies")]
    assert [event["id"] for event in ledger.events] == ["e001", "e002", "e003", "e004"]
    stance = ledger.stance("joost")
    assert stance is not None
    assert (stance["claim"], stance["condition"]) == ("p001", "2")


def test_the_ledger_begins_with_the_live_proposal() -> None:
    state: Any = {"topic": TOPIC, "claim_events": CASES[0].events, "full_transcript": []}
    text = render_blackboard(state, "", max_tokens=900, count=lambda text: len(text.split()), names=NAMES)
    lines = text.splitlines()
    assert lines[2:6] == [
        "- proposal “Close the street from October, version p001.”, which Maren proposed [m000003]: "
        "conditional: yes, on 2 conditions",
        f"- proposal “{TOPIC}”: left by Maren and Joost after [m000004]",
        "- Maren: yes, on a condition to “Close the street from October, version p001.”: 1 [m000003]",
        "- Joost: yes, on a condition to “Close the street from October, version p001.”: 2 [m000004]",
    ]


def test_a_left_proposal_that_somebody_still_holds_keeps_its_status() -> None:
    state: Any = {"topic": TOPIC, "claim_events": CASES[0].events[:-1], "full_transcript": []}
    text = render_blackboard(state, "", max_tokens=900, count=lambda text: len(text.split()), names=NAMES)
    assert f"- proposal “{TOPIC}”: open; left by Maren after [m000003]" in text.splitlines()


def test_findings_name_the_live_proposal_that_each_debater_holds() -> None:
    state: Any = {"topic": TOPIC, "claim_events": CASES[0].events, "full_transcript": []}
    text = findings_text(state, NAMES, {}).partition("## Where they stand\n")[2]
    assert text.splitlines()[0].startswith(
        "- Maren: yes, on a condition to “Close the street from October, version p001.”: 1: “"
    )


def test_a_documents_stance_says_to_which_side_a_condition_leans() -> None:
    claim_event = amends(2, "p001")[0]
    denial = says(2, "joost", "conditional", "p001", "1")
    events = [claim_event, {**denial, "leans": "no"}]
    state: Any = {"topic": TOPIC, "claim_events": events, "full_transcript": []}
    claim = next(each for each in board_document(state)["standing"]["claims"] if each["id"] == "p001")
    assert claim["stances"]["joost"].get("leans") == "no"


def test_a_report_begins_its_claims_with_the_live_proposal() -> None:
    state: Any = {"topic": TOPIC, "claim_events": CASES[0].events, "full_transcript": []}
    people = {"debaters": [{"id": key, "name": name} for key, name in NAMES.items()]}
    text = render_markdown(
        debate_document(topic=TOPIC, config=people, blackboard=board_document(state), verdict=None)
    )
    proposals = text.partition("## Proposals, the live ones first")[2].partition("\n## ")[0]
    assert proposals.index("version p001") < proposals.index("Close the market street from April")
    assert "** left" in proposals


def test_positions_over_time_name_the_claim_but_not_a_proposal() -> None:
    events = [*CASES[0].events, *new_claim_events("p009"), says(5, "joost", "asserts", "p009")]
    events.append(says(6, "joost", "denies", "p009"))
    state: Any = {"topic": TOPIC, "claim_events": events, "full_transcript": []}
    people = {"debaters": [{"id": key, "name": name} for key, name in NAMES.items()]}
    text = render_markdown(
        debate_document(topic=TOPIC, config=people, blackboard=board_document(state), verdict=None)
    )
    lines = [line for line in text.splitlines() if line.startswith("1. During the debate")]
    named = [line for line in lines if "on “Statement p009”, from “joost asserts” to “joost denies”" in line]
    assert len(named) == 1
    assert not any("version p001”:" in line for line in lines)


def test_extraction_records_a_changed_proposal_and_who_accepts_it() -> None:
    entry = make_entry(
        3, "maren", "speech", "I accept it with one change: from October. The market stays open."
    )
    extraction = ClaimExtraction(OPENINGS, TOPIC, {entry["id"]: entry}, list(NAMES), "model")
    long = "Close the market street from October, " + "with a new plan for deliveries, " * 8 + "and paved."
    said = {"message_id": entry["id"], "quote": "I accept it with one change: from October."}
    stance = {**said, "claim": "n1", "kind": "asserts", "condition": "", "ground": False, "confidence": 0.9}
    fact = {**stance, "claim": "n2", "quote": "The market stays open."}
    other = {**said, "ref": "n3", "text": "Another text.", "replaces": "p002"}
    extraction.apply(
        {
            "claims": [{"ref": "n2", "text": "The market stays open."}],
            "proposals": [{**said, "ref": "n1", "text": long, "replaces": "p000"}, other],
            "events": [stance, fact],
        }
    )
    ledger = extraction.ledger
    assert list(ledger.amendments) == ["p001"]
    assert ledger.claims["p001"]["text"] == long
    assert ledger.main_claim("maren") == "p001"
    assert extraction.dropped["no proposal"] == 1
    state: Any = {"topic": TOPIC, "claim_events": [*OPENINGS, *extraction.new]}
    corrected: Any = {**state, "claim_events": [*state["claim_events"], *correct_event(state, "a001")]}
    assert ledger_of(state).live_proposals == ["p001", "p000"]
    assert ledger_of(corrected).live_proposals == ["p000"]


def test_only_a_question_without_options_has_changed_proposals() -> None:
    entry = make_entry(3, "maren", "speech", "From October.")
    empty = fold_events(new_claim_events(), TOPIC)
    fields = [
        extraction_schema([entry], list(NAMES), empty, options=options).model_fields
        for options in ((), ("build", "buy"))
    ]
    assert ["proposals" in each for each in fields] == [True, False]
