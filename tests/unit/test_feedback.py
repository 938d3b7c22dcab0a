"""Brier scores from the feedback on decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config.config_files import make_config
from moot.debates.stored_debate import give_feedback
from moot.plugins.evals.statistics import brier_scores
from moot.state.errors import InputError
from moot.storage.records import Feedback, Forecast, Rating
from tests.support.fakes import FakeModel


def forecast(judge: str, confidence: float, *, agrees: bool = True) -> Forecast:
    return {
        "judge": judge,
        "model": "m",
        "decision": "merge" if agrees else "hold",
        "confidence": confidence,
        "agrees": agrees,
    }


def feedback(rating: Rating, *forecasts: Forecast) -> tuple[float, tuple[Forecast, ...]]:
    return Feedback("d", rating, "", "merge", forecasts, "2026-01-01").outcome, forecasts


def test_the_brier_score_is_the_mean_squared_error_of_the_confidence() -> None:
    scores = brier_scores(
        [
            feedback("right", forecast("a", 80)),
            feedback("wrong", forecast("a", 60)),
            feedback("mixed", forecast("a", 50)),
        ]
    )
    assert scores == [
        {"judge": "a", "model": "m", "decisions": 3, "brier": 0.1333, "confidence": 63.3, "right": 50.0}
    ]


def test_a_dissenting_judge_is_right_if_the_decision_was_wrong() -> None:
    records = [feedback("wrong", forecast("a", 90), forecast("b", 90, agrees=False))]
    assert {score["judge"]: score["brier"] for score in brier_scores(records)} == {"a": 0.81, "b": 0.01}


def test_feedback_stores_the_forecasts_and_is_replaced_by_new_feedback(tmp_path: Path) -> None:
    def reply(call: ModelCall) -> Reply:
        verdict = {"reasoning": "", "decision": "hold", "winner": "tie", "confidence": 70, "scores": []}
        return Reply(data=verdict, model="m") if call.schema else Reply(text="I say so.", model="m")

    config = make_config({"turns": 2, "options": ["merge", "hold"]})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=FakeModel(reply).environment()) as debates:
        debate = debates.start("Merge?", config)
        with pytest.raises(InputError, match="has no decision"):
            give_feedback(debate, "right", "", "2026-01-01")
        debate.run()
        give_feedback(debate, "wrong", "It broke.", "2026-01-01")
        latest = give_feedback(debate, "right", "", "2026-01-02")
        assert debates.records.follow_ups.feedback() == [latest]
        (one,) = latest.forecasts
        assert (one["judge"], one["decision"], one["confidence"]) == ("judge", "hold", 70)
        debate.delete()
        assert debates.records.follow_ups.feedback() == []


def test_feedback_on_a_placeholder_verdict_is_rejected(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start("Merge?", make_config({"turns": 2}))
        debate.run()
        with pytest.raises(InputError, match="has no decision"):
            give_feedback(debate, "right", "", "2026-01-01")
