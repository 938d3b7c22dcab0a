"""A judge measured on human-judged debates: orders, probabilities, budgets, failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moot.graph.judge_benchmark import measure_judge
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.judging.calibration import read_sessions
from moot.nodes.judging.quiz import sit_quiz
from moot.nodes.text.tokens import counter, prompt_tokens
from moot.state.config import DebateConfig
from moot.state.config.config_files import make_config
from moot.state.errors import InputError, JudgeFailed
from tests.support.fakes import FakeModel

COUNT = counter()


def session(name: str, *, correct: int = 0, debate: bool = True, length: int = 10) -> dict[str, Any]:
    speech = {"kind": "speech", "round": 1}
    turns: list[dict[str, Any]] = [
        {"kind": "judge", "round": 0, "speaker": "Jo", "dist": [0.5, 0.5], "text": "?", "end": False},
        {**speech, "side": 0, "speaker": "Ann", "text": "The letter says so. " * length},
    ]
    if debate:
        turns.append({**speech, "side": 1, "speaker": "Ben", "text": "It does not. " * length})
    return {
        "name": name,
        "question": "Who wrote the letter?",
        "answers": ["The captain", "The cook"],
        "correct": correct,
        "setting": {"isHuman": True, "isDebate": debate},
        "in_paper": True,
        "final": [0.9, 0.1],
        "turns": turns,
    }


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    rows = [
        session("s-1"),
        session("s-2", correct=1),
        session("s-3", debate=False),
        session("s-4", length=9000),
    ]
    path = tmp_path / "sessions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def believing(answer: str, percent: float) -> FakeModel:
    """Give so much probability to the answer with these words, whichever letter it has."""

    def reply(call: ModelCall) -> Reply:
        first = call.messages[0]["content"].partition("# Answer A")[2].partition("# Answer B")[0]
        return Reply(data={"reasoning": "so", "probability_a": percent if answer in first else 100 - percent})

    return FakeModel(reply)


def test_a_judge_that_knows_is_right_whatever_the_order(sessions: Path) -> None:
    measured = measure_judge(sessions, DebateConfig(), believing("The captain", 90).environment())
    found = measured.settings["debate"]
    assert measured.flips["rate"] == 0.0
    assert found["judge"]["accuracy"]["k"] == 2
    assert found["judge"]["brier"] == pytest.approx((0.01 + 0.81 + 0.01) / 3)
    assert found["panel"]["agreement"]["rate"] == 1.0
    assert found["humans"]["accuracy"]["n"] == 3
    assert measured.settings["consultancy"]["sessions"] == 1


def test_a_judge_that_always_says_a_is_undecided_and_always_flips(sessions: Path) -> None:
    always_a = FakeModel(lambda call: Reply(data={"reasoning": "so", "probability_a": 95}))
    measured = measure_judge(sessions, DebateConfig(), always_a.environment())
    assert measured.flips["rate"] == 1.0
    assert measured.settings["debate"]["judge"]["brier"] == pytest.approx(0.25)
    assert measured.settings["debate"]["judge"]["accuracy"]["k"] == 0
    assert measured.settings["debate"]["panel"]["undecided"] == 3


@pytest.mark.parametrize("total", [400, 2000, 8000])
def test_prompts_keep_to_their_budget_and_name_no_expert(sessions: Path, total: int) -> None:
    config = make_config({"memory": {"budget": {"total": total}}})
    calls = sit_quiz(read_sessions(sessions), config, COUNT).send(None)  # type: ignore[arg-type]  # starts it
    assert len(calls) == 8
    for call in calls:
        assert call.prompt_tokens == prompt_tokens(call.messages, COUNT) <= total
        assert not any(name in str(call.messages) for name in ("Ann", "Ben", "Jo"))


def test_the_limit_takes_the_first_sessions(sessions: Path) -> None:
    model = believing("The captain", 90)
    measured = measure_judge(sessions, DebateConfig(), model.environment(), limit=2, swap=False)
    assert len(model.calls) == 2
    assert measured.settings["debate"]["sessions"] == 2
    assert measured.flips["n"] == 0


def test_sessions_without_an_answer_are_named_and_left_out(sessions: Path) -> None:
    broken = FakeModel(
        lambda call: (
            Reply(error="no")
            if call.hints["topic"] and "One expert" in call.messages[0]["content"]
            else Reply(data={"reasoning": "", "probability_a": 700.0})
        )
    )
    measured = measure_judge(sessions, DebateConfig(), broken.environment())
    assert measured.failed == {"s-3": "no"}
    assert measured.settings["consultancy"]["sessions"] == 0


def test_a_judge_without_any_answer_fails(sessions: Path) -> None:
    with pytest.raises(JudgeFailed, match="none of 4: no"):
        measure_judge(sessions, DebateConfig(), FakeModel(lambda call: Reply(error="no")).environment())


def test_a_file_without_judged_sessions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no session"):
        measure_judge(tmp_path / "empty.jsonl", DebateConfig(), FakeModel().environment())


SHARED = Path(__file__).parents[3] / "shared" / "data" / "human-judged-debates.jsonl"


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")
def test_the_offline_model_sits_real_sessions() -> None:
    from moot.nodes.driving.environment import Environment

    measured = measure_judge(SHARED, DebateConfig(), Environment(), limit=6)
    assert sum(found["sessions"] for found in measured.settings.values()) == 6
    assert measured.failed == {}
