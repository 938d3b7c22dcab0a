"""Corrections of claims by a person: they outrank every extractor and are never undone."""

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

SAID = """Ada: I am against the bridge, and always was.

Bo: I support the bridge. I concede that the winter was mild this year.
"""


NOTE: StanceEvent = {
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


NOTES = [
    {"type": "claim", "id": "p001", "text": "The winter was mild", "aspect": "overall", "seq": 2},
    {**NOTE, "debater": "ada", "kind": "denies", "quote": "I am against the bridge"},
    {**NOTE, "id": "e002", "debater": "bo", "message_id": "m000002", "quote": "I support the bridge"},
    {
        **NOTE,
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
        made = debates.import_transcript(SAID, topic="Should the bridge be built?", name="b")
        with made.session.writing() as held:
            held.caught_up()
            held.update({"claim_events": NOTES})
        yield made


def _ledger(debate: Debate) -> Ledger:
    return ledger_of(debate.state().values)


def _stance(debate: Debate, who: str) -> StanceEvent:
    stance = _ledger(debate).stance(who)
    assert stance is not None
    return stance


def test_what_a_person_says_of_a_note_stands_whatever_is_read_later(debate: Debate) -> None:
    wrong = _stance(debate, "ada")
    [note] = debate.correct(wrong["id"], "asserts")
    assert (note["by"], _stance(debate, "ada")["kind"]) == ("person", "asserts")  # type: ignore[typeddict-item]
    again = {**wrong, "id": "e900", "by": "model"}
    state = {**debate.state().values}
    assert ledger_of({**state, "claim_events": [*state["claim_events"], again]}).sign("ada") == 1


def test_a_note_that_a_person_takes_back_is_gone(debate: Debate) -> None:
    [conceded] = _ledger(debate).concessions("bo")
    debate.correct(conceded["id"], why="He was asked about the winter.")
    assert not _ledger(debate).concessions("bo")
    assert debate.is_over()
    assert debate.state().values["claim_events"][-1]["why"] == "He was asked about the winter."


def test_a_debate_that_goes_on_goes_on_where_it_was(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        going = debates.start("Should the bridge be built?", name="g")
        following = going.state().next
        going.session.update({"claim_events": [NOTE]})
        going.correct("e001", "denies")
        assert going.state().next == following
        assert _stance(going, "advocate")["kind"] == "denies"


def test_two_propositions_are_made_one(debate: Debate) -> None:
    ledger = _ledger(debate)
    [key] = set(ledger.claims) - {"p000"}
    debate.correct(key, same_as="p000", opposite=True)
    assert set(_ledger(debate).claims) == {"p000"}


@pytest.mark.parametrize(
    ("note", "kind", "same_as", "told"),
    [
        ("e999", "", "", "no claim event 'e999': the newest are e001"),
        ("e001", "shouts", "", "use one of asserts, denies"),
        ("p001", "asserts", "", "no claim event 'p001'"),
        ("p001", "", "p001", "give the ids of two different claims"),
        ("p001", "", "p777", "no claim 'p777'"),
    ],
)
def test_what_cannot_be_corrected_is_refused_and_changes_nothing(
    debate: Debate, note: str, kind: str, same_as: str, told: str
) -> None:
    before = debate.state().values["claim_events"]
    with pytest.raises(InputError, match=told):
        debate.correct(note, kind, same_as=same_as)
    assert debate.state().values["claim_events"] == before


def test_the_command_corrects_a_note_and_says_so(debate: Debate, tmp_path: Path) -> None:
    wrong = _stance(debate, "ada")
    told = ["b", wrong["id"], "unsure", "--db", str(tmp_path / "d.sqlite"), "--json"]
    done = CliRunner().invoke(app_of("correct"), told)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["notes"][0]["kind"] == "unsure"
    assert _stance(debate, "ada")["kind"] == "unsure"
