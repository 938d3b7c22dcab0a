"""Corrections of claim events by a person. They outrank every later extraction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moot import open_debates
from moot.claims.claim_status import Ledger
from moot.claims.ledger_from_events import ledger_of
from moot.cli.group import app_of
from moot.debates.stored_debate import Debate
from moot.state.claim_events import StanceEvent
from moot.state.errors import InputError
from tests.support.fakes import FakeModel

TRANSCRIPT = """Ada: I am against the bridge, and always was.

Bo: I support the bridge. I concede that the winter was mild this year.
"""


EVENT: StanceEvent = {
    "type": "event",
    "id": "e001",
    "kind": "asserts",
    "claim": "p000",
    "debater": "advocate",
    "message_id": "m000001",
    "quote": "Yes.",
    "condition": "",
    "ground": False,
    "by": "model",
    "confidence": 0.9,
}


EVENTS = [
    {"type": "claim", "id": "p001", "text": "The winter was mild", "aspect": "overall", "seq": 2},
    {**EVENT, "debater": "ada", "kind": "denies", "quote": "I am against the bridge"},
    {**EVENT, "id": "e002", "debater": "bo", "message_id": "m000002", "quote": "I support the bridge"},
    {
        **EVENT,
        "id": "e003",
        "debater": "bo",
        "kind": "concedes",
        "claim": "p001",
        "message_id": "m000002",
        "quote": "I concede that the winter was mild",
    },
]


@pytest.fixture
def debate(tmp_path: Path) -> Iterator[Debate]:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        imported = debates.import_transcript(TRANSCRIPT, topic="Should the bridge be built?", name="b")
        with imported.session.writing() as held:
            held.caught_up()
            held.update({"claim_events": EVENTS})
        yield imported


def _ledger(debate: Debate) -> Ledger:
    return ledger_of(debate.state().values)


def _stance(debate: Debate, who: str) -> StanceEvent:
    stance = _ledger(debate).stance(who)
    assert stance is not None
    return stance


def test_correction_outranks_a_later_extraction(debate: Debate) -> None:
    wrong = _stance(debate, "ada")
    [event] = debate.correct(wrong["id"], "asserts")
    assert (event["by"], _stance(debate, "ada")["kind"]) == ("person", "asserts")  # type: ignore[typeddict-item]
    again = {**wrong, "id": "e900", "by": "model"}
    state = {**debate.state().values}
    assert ledger_of({**state, "claim_events": [*state["claim_events"], again]}).sign("ada") == 1


def test_a_correction_to_conditional_takes_its_condition(debate: Debate) -> None:
    (event,) = debate.correct("e002", "conditional", condition="if the winter stays mild")
    assert event["type"] == "event"
    assert (event["kind"], event["condition"]) == ("conditional", "if the winter stays mild")
    assert event["leans"] == "yes"


def test_a_correction_to_conditional_needs_a_condition(debate: Debate) -> None:
    with pytest.raises(InputError, match="`condition`"):
        debate.correct("e002", "conditional")
    with pytest.raises(InputError, match="`condition` needs the kind 'conditional'"):
        debate.correct("e002", "denies", condition="if it rains")


def test_correction_without_a_kind_removes_the_event(debate: Debate) -> None:
    [conceded] = _ledger(debate).concessions("bo")
    debate.correct(conceded["id"], why="He was asked about the winter.")
    assert not _ledger(debate).concessions("bo")
    assert debate.is_over()
    assert debate.state().values["claim_events"][-1]["why"] == "He was asked about the winter."


def test_correction_leaves_the_next_node_of_a_running_debate_unchanged(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        running = debates.start("Should the bridge be built?", name="g")
        following = running.state().next
        running.session.update({"claim_events": [EVENT]})
        running.correct("e001", "denies")
        assert running.state().next == following
        assert _stance(running, "advocate")["kind"] == "denies"


@pytest.mark.parametrize(("opposite", "sign"), [(False, 1), (True, -1)])
def test_merged_claim_counts_as_the_other_or_as_its_negation(
    debate: Debate, opposite: bool, sign: int
) -> None:
    debate.correct(_stance(debate, "bo")["id"])  # only his stance on the merged claim is left
    debate.correct("e003", "asserts")
    debate.correct("p001", same_as="p000", opposite=opposite)
    ledger = _ledger(debate)
    assert set(ledger.claims) == {"p000"}
    assert (ledger.sign("ada"), ledger.sign("bo")) == (-1, sign)


@pytest.mark.parametrize(
    ("target", "kind", "same_as", "message"),
    [
        ("e999", "", "", "no claim event 'e999': the newest are e001"),
        ("e001", "shouts", "", "use one of asserts, denies"),
        ("p001", "asserts", "", "no claim event 'p001'"),
        ("p001", "", "p001", "give the ids of two different claims"),
        ("p001", "", "p777", "no claim 'p777'"),
    ],
)
def test_invalid_correction_is_refused_and_changes_nothing(
    debate: Debate, target: str, kind: str, same_as: str, message: str
) -> None:
    before = debate.state().values["claim_events"]
    with pytest.raises(InputError, match=message):
        debate.correct(target, kind, same_as=same_as)
    assert debate.state().values["claim_events"] == before


def test_correct_command_prints_the_corrected_event(debate: Debate, tmp_path: Path) -> None:
    wrong = _stance(debate, "ada")
    arguments = ["b", wrong["id"], "unsure", "--db", str(tmp_path / "d.sqlite"), "--json"]
    done = CliRunner().invoke(app_of("correct"), arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["notes"][0]["kind"] == "unsure"
    assert _stance(debate, "ada")["kind"] == "unsure"
