"""Dialogues end to end: crux rooms, concurrent rooms, resumes inside rooms, and the built-in model."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from moot.api import open_debates
from moot.claims.ledger_rendering import NO_EXTRACTION
from moot.config import DebateConfig
from moot.documents import ClaimStatusRecord, DebateDocument
from tests.support.personas import STATEMENTS, ScriptedDebaters, room_messages, scripted_debaters

ROOT = Path(__file__).parents[2]
TOPIC = "Should freight leave the harbour? Night trains, barges, levy and dredging are in dispute."
AB = ("Ada Quay", "Bob", STATEMENTS[0])
ONE_ASPECT: dict[str, Any] = {"dialogue": {"aspects": ["freight"]}}
CD = ("Cyd", "Dan", STATEMENTS[1])


def _run(path: Path, config: DebateConfig, model: ScriptedDebaters, name: str = "d") -> DebateDocument:
    with open_debates(str(path), environment=model.environment()) as debates:
        return debates.start(TOPIC, config, name=name).run()


def _resume(path: Path, model: ScriptedDebaters, name: str = "d") -> DebateDocument:
    with open_debates(str(path), environment=model.environment()) as debates:
        return debates.get(name).run()


def _disputes(document: DebateDocument) -> list[ClaimStatusRecord]:
    """Return the claims that were disputed, without the main question."""
    claims = document["blackboard"]["standing"]["claims"]
    return [each for each in claims if each["was_disputed"] and each["id"] != "p000"]


def _result_fields(document: DebateDocument) -> dict[str, Any]:
    return {key: document[key] for key in ("transcript", "blackboard", "solution", "status", "errors")}


def test_crux_room_resolves_a_disputed_claim_and_writes_a_card(
    tmp_path: Path,
) -> None:
    model = ScriptedDebaters({"respond": (AB,)}, resolved=frozenset({STATEMENTS[0]}))
    document = _run(tmp_path / "d.sqlite", scripted_debaters(3, **ONE_ASPECT), model)
    (card,) = document["blackboard"]["cards"]
    (claim,) = _disputes(document)
    assert room_messages(document["transcript"]) == {
        "room-01": [
            phase for stage in ("positions", "exchange", "steelman") for phase in [f"crux-{stage}"] * 2
        ]
    }
    assert (claim["status"], card["room"], claim["card"]) == ("settled", "room-01", card["id"])
    assert {who: each["kind"] for who, each in claim["stances"].items()} == {
        "ada": "asserts",
        "bob": "asserts",
    }
    assert card["resolved"]
    assert {who: side["answer"] for who, side in card["sides"].items()} == {"ada": "yes", "bob": "yes"}
    spoken = {entry["id"] for entry in document["transcript"]}
    assert set(card["message_ids"]) <= spoken
    assert {each["message_id"] for each in claim["stances"].values()} <= set(card["message_ids"])
    assert document["status"] == "done"


def test_unresolved_room_ends_at_its_limit_with_a_path_to_a_resolution(
    tmp_path: Path,
) -> None:
    document = _run(
        tmp_path / "d.sqlite", scripted_debaters(3, **ONE_ASPECT), ScriptedDebaters({"respond": (AB,)})
    )
    (claim,) = _disputes(document)
    assert (claim["status"], claim["card"]) == ("unresolved", "card-room-01")
    assert len(room_messages(document["transcript"])["room-01"]) == 2 * (1 + 2 * 2)
    assert "Count for one winter." in document["solution"]
    assert "a winter without delays" not in document["solution"], "Ada has changed her mind without it"


def test_disputed_claims_without_a_room_end_unresolved(tmp_path: Path) -> None:
    crux = {"crux": {"max_rooms": 0}, "aspects": ["freight"]}
    model = ScriptedDebaters({"respond": (("Bob", "Ada Quay", STATEMENTS[0]),), "closing": (CD,)})
    document = _run(tmp_path / "d.sqlite", scripted_debaters(4, dialogue=crux), model)
    claims = {frozenset(claim["stances"]): claim["status"] for claim in _disputes(document)}
    assert claims == {frozenset({"bob", "ada"}): "unresolved", frozenset({"cyd", "dan"}): "unresolved"}
    assert "(unresolved; " in document["solution"]
    assert re.search(r"Bob \[m\d{6}\] yes", document["solution"])


def test_rooms_of_disjoint_pairs_run_at_the_same_time(tmp_path: Path) -> None:
    model = ScriptedDebaters({"respond": (AB, CD)}, resolved=frozenset({STATEMENTS[0]}))
    document = _run(tmp_path / "d.sqlite", scripted_debaters(4, **ONE_ASPECT), model)
    crux = [entry for entry in document["transcript"] if entry["phase"] == "crux-positions"]
    receipts = {receipt["entry_id"]: receipt["step"] for receipt in document["receipts"]}
    assert {entry["room"] for entry in crux} == {"room-01", "room-02"}
    assert len({receipts[entry["id"]] for entry in crux}) == 1
    assert len(model.turns_in_phase("crux-positions")) == 4
    assert model.peak >= 4
    messages = room_messages(document["transcript"])
    assert (len(messages["room-01"]), len(messages["room-02"])) == (6, 10)
    status = {claim["text"]: claim["status"] for claim in _disputes(document)}
    assert status == {STATEMENTS[0]: "settled", STATEMENTS[1]: "unresolved"}


def test_rooms_that_share_a_debater_run_one_after_the_other(tmp_path: Path) -> None:
    model = ScriptedDebaters(
        {"respond": (AB, ("Ada Quay", "Cyd", STATEMENTS[2]))}, resolved=frozenset(STATEMENTS)
    )
    document = _run(tmp_path / "d.sqlite", scripted_debaters(3, **ONE_ASPECT), model)
    order = [entry["room"] for entry in document["transcript"] if entry["room"]]
    assert order == ["room-01"] * 6 + ["room-02"] * 6


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[DebateDocument, ScriptedDebaters]:
    model = ScriptedDebaters({"respond": (AB, CD), "reply": (AB,)}, resolved=frozenset({STATEMENTS[0]}))
    document = _run(tmp_path_factory.mktemp("whole") / "d.sqlite", scripted_debaters(4), model)
    return document, model


def _last_call_number(model: ScriptedDebaters, phase: str) -> int:
    """Return the number of the last call of a phase, counted among all calls."""
    return max(n for n, call in enumerate(model.calls, 1) if call.hints.get("phase") == phase)


@pytest.mark.parametrize(
    ("phase", "after"),
    [
        ("opening", 0),
        ("respond", 1),
        ("crux-positions", -1),
        pytest.param("crux-positions", 0, marks=pytest.mark.slow),
        ("crux-exchange", 0),
        pytest.param("crux-steelman", 0, marks=pytest.mark.slow),
        pytest.param("crux-steelman", 1, marks=pytest.mark.slow),
        ("crux-steelman", 2),
        pytest.param("closing", 0, marks=pytest.mark.slow),
    ],
)
def test_dialogue_that_fails_in_any_phase_resumes_to_the_same_result(
    tmp_path: Path, uninterrupted: tuple[DebateDocument, ScriptedDebaters], phase: str, after: int
) -> None:
    whole, model = uninterrupted
    path, number = tmp_path / "d.sqlite", _last_call_number(model, phase) + after
    dying = ScriptedDebaters(model.disputes, model.resolved, fail_at=number)
    with pytest.raises(ConnectionAbortedError):
        _run(path, scripted_debaters(4), dying)
    resumed = _resume(path, ScriptedDebaters(model.disputes, model.resolved))
    assert _result_fields(resumed) == _result_fields(whole)


def test_dialogue_finishes_without_claims_if_extraction_fails(tmp_path: Path) -> None:
    model = ScriptedDebaters(broken=frozenset({"extract", "reflect"}))
    document = _run(tmp_path / "d.sqlite", scripted_debaters(3), model)
    assert document["status"] == "done"
    assert {event["type"] for event in document["blackboard"]["claim_events"]} == {"extraction_pass"}
    assert document["solution"].startswith("No claims were found.")
    assert document["errors"]


@pytest.mark.parametrize("protocol", ["dialogue", "moderated", "random"])
def test_built_in_model_stays_within_the_prompt_budget(tmp_path: Path, protocol: str) -> None:
    people = [{"name": name} for name in ("Ada", "Bob", "Cyd", "Dan")]
    config = DebateConfig.model_validate({"protocol": protocol, "debaters": people, "seed": 1, "turns": 9})
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        document = debates.start(TOPIC, config).run()
    assert document["status"] == "done"
    assert all(receipt["total_tokens"] <= 8000 for receipt in document["receipts"])
    assert all(
        r["sections"]["turn_suffix"] <= config.memory.budget.turn_suffix + 4 for r in document["receipts"]
    )
    assert document["errors"] == []
    assert document["blackboard"]["claim_events"] == []
    assert (NO_EXTRACTION in document["solution"]) is (protocol == "dialogue")


def test_fork_inside_a_crux_room_continues_in_that_room(tmp_path: Path) -> None:
    model = ScriptedDebaters({"respond": (AB,)}, resolved=frozenset({STATEMENTS[0]}))
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        whole = debates.start(TOPIC, scripted_debaters(3, **ONE_ASPECT, model="another"))  # without a seed
        document = whole.run()
        exchange = [entry["seq"] for entry in document["transcript"] if entry["phase"] == "crux-exchange"]
        fork = whole.fork(after=exchange[-1]).run()
    assert fork["transcript"] == document["transcript"]
    assert fork["blackboard"] == document["blackboard"]


def test_dialogue_state_contains_only_json_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    model = ScriptedDebaters({"respond": (AB,)})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, scripted_debaters(2, **ONE_ASPECT))
        debate.run()
        values = dict(debate.state().values)
    assert all(isinstance(message, BaseMessage) for message in values.pop("messages"))
    assert json.loads(json.dumps(values)) == values
    assert [key for key in ("claim_events", "crux_cards", "protocol_state", "step") if not values[key]] == []


_KILLED_SCRIPT = """
import os, signal, sys
from pathlib import Path
from moot.api import open_debates
from moot.retrieval import static_vectors
from moot.runtime import environment
from tests.integration.test_dialogue import AB, CD, STATEMENTS, TOPIC
from tests.support.personas import ScriptedDebaters, scripted_debaters

class Killed(ScriptedDebaters):
    def reply(self, call):
        if len(self.calls) >= int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().reply(call)

# Its prompts equal those of the uninterrupted debate, as conftest.py provides.
environment.token_hex = lambda length: ""
static_vectors.PACKAGE = "moot_without_word_vectors"
model = Killed({"respond": (AB, CD), "reply": (AB,)}, resolved=frozenset({STATEMENTS[0]}))
with open_debates(sys.argv[1], environment=model.environment()) as debates:
    debates.start(TOPIC, scripted_debaters(4), name="d").run()
"""


@pytest.mark.parametrize("phase", ["crux-positions", "crux-exchange", "crux-steelman"])
@pytest.mark.slow
def test_dialogue_killed_in_a_crux_room_resumes_to_the_same_result(
    tmp_path: Path, uninterrupted: tuple[DebateDocument, ScriptedDebaters], phase: str
) -> None:
    whole, model = uninterrupted
    path = tmp_path / "d.sqlite"
    number = str(_last_call_number(model, phase))
    died = subprocess.run([sys.executable, "-c", _KILLED_SCRIPT, str(path), number], check=False, cwd=ROOT)
    assert died.returncode == -signal.SIGKILL
    resumed = _resume(path, ScriptedDebaters(model.disputes, model.resolved))
    assert _result_fields(resumed) == _result_fields(whole)
