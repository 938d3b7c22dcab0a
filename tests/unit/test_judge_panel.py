"""Panels of judges: presentation orders, biased judges, failures and agreement."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import krippendorff
import pytest
from hypothesis import given, settings, strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.boundary import Permissions
from moot.config.config_files import make_config
from moot.judging.assessment import Assessment
from moot.judging.panel import panel_report
from moot.judging.response_check import failed_verdict
from moot.judging.shortcomings import shortcomings
from moot.models.offline import ScriptedCall, ScriptedModel
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.runtime.run_node import EffectHandler, JournalPosition, run_generator
from moot.state.entries import make_entry
from moot.state.verdict import Verdict
from moot.storage.records import records_of
from tests.support.waiting import LONG_TIMEOUT_S

MESSAGES = [("ann", "A tax works, as Ben Ray admits."), ("ben", "It hits the poor, whatever Ann Lee says.")]
DEBATERS = [{"id": "ann", "name": "Ann Lee"}, {"id": "ben", "name": "Ben Ray"}]
CRITERIA = ("argument_quality", "evidence")

JudgeScript = Callable[[str], dict[str, Any]]
"""A function from a judge's prompt to its response."""


def state_of(config: DebateConfig) -> Any:
    entries = [make_entry(seq, who, "speech", words) for seq, (who, words) in enumerate(MESSAGES, 1)]
    return {"topic": "A tax?", "full_transcript": entries, "config": config.to_json()}


def judge_with(script: JudgeScript | Mapping[str, JudgeScript], **judge: Any) -> Assessment:
    """Run the judges with scripted models: one script for all, or one per model name."""
    config = make_config({"debaters": DEBATERS, "judge": judge})
    environment = Environment(factory=lambda name, _: ScriptedModel(_scripted_reply(script, name)))

    async def run() -> Assessment:
        handler = EffectHandler(environment, Permissions.of_operator(config), JournalPosition())
        return await run_generator(
            node_context(environment, state_of(config)).judging.assess(), handler.handle
        )

    return asyncio.run(run())


def _scripted_reply(
    script: JudgeScript | Mapping[str, JudgeScript], name: str
) -> Callable[[ScriptedCall], dict[str, Any]]:
    chosen = script[name] if isinstance(script, Mapping) else script
    return lambda call: chosen("\n".join(str(message.content) for message in call.messages))


def shown_order(prompt: str) -> list[str]:
    """Return the labels in the order in which the prompt presents the debaters."""
    listed = prompt.partition("# Debaters")[2].partition("# Rubric")[0]
    return re.findall(r"^- (.+)$", listed, re.M)


def response(winner: str, scores: dict[str, float], **more: Any) -> dict[str, Any]:
    score_data = [
        {
            "debater": debater,
            "criterion": criterion,
            "score": score,
            "reason": "so",
            "citations": ["m000001", "m000099"],
        }
        for debater, score in scores.items()
        for criterion in CRITERIA
    ]
    return {
        "reasoning": f"{winner} was better.",
        "winner": winner,
        "confidence": 80,
        "scores": score_data,
        **more,
    }


def prefers_first_position(prompt: str) -> dict[str, Any]:
    first, second = shown_order(prompt)
    return response(first, {first: 9, second: 3})


def prefers_ann(prompt: str) -> dict[str, Any]:
    """Prefer the author of the first message, Ann, whatever her label and position."""
    winner = re.search(r"(Debater [A-Z]) \[m000001\]", prompt)
    assert winner
    other = next(label for label in shown_order(prompt) if label != winner[1])
    return response(winner[1], {winner[1]: 8, other: 5})


def returns_invalid_data(prompt: str) -> dict[str, Any]:
    return {"nothing": "of use"}


def test_a_judge_with_position_bias_flips_and_ties_every_time() -> None:
    assessment = judge_with(prefers_first_position, panel=[{"id": f"judge-{n}"} for n in range(5)])
    assert [verdict["winner"] for verdict in assessment.verdicts] == ["tie"] * 5
    assert assessment.decision["winner"] == "tie"
    assert assessment.decision["agreement"]["flip_rate"] == 1.0
    assert assessment.decision["agreement"]["flips"]["n"] == 5


def test_scores_of_self_contradicting_judges_decide_nothing() -> None:
    def leans(prompt: str) -> dict[str, Any]:
        first, second = shown_order(prompt)
        liked = prefers_ann(prompt)["winner"]
        return response(first, {first: 9 if first == liked else 6, second: 3})

    assessment = judge_with(leans, panel=[{"id": "one"}, {"id": "two"}])
    assert assessment.verdicts[0]["totals"]["ann"] != assessment.verdicts[0]["totals"]["ben"]
    assert assessment.decision["winner"] == "tie"


def test_a_panel_of_unbiased_judges_agrees_and_never_flips() -> None:
    assessment = judge_with(prefers_ann, panel=[{"id": f"judge-{n}"} for n in range(5)])
    assert [verdict["winner"] for verdict in assessment.verdicts] == ["ann"] * 5
    assert assessment.decision["winner"] == "ann"
    assert assessment.decision["agreement"]["flip_rate"] == 0.0
    assert assessment.decision["agreement"]["unanimous"] is True


def test_position_bias_is_not_detected_without_swapping() -> None:
    assessment = judge_with(prefers_first_position, swap=False)
    assert assessment.decision["winner"] == "ann"
    assert assessment.decision["agreement"]["flip_rate"] is None


def test_blind_labels_are_replaced_by_ids_and_names() -> None:
    verdict = judge_with(prefers_ann).verdicts[0]
    assert set(verdict["scores"]) == {"ann", "ben"}
    assert "Ann Lee was better." in verdict["reasoning"]
    assert verdict["dropped_citations"] == 8


def test_a_judge_without_a_valid_response_fails_the_decision() -> None:
    assessment = judge_with(returns_invalid_data)
    assert assessment.decision["status"] == "failed"
    assert assessment.decision["winner"] == ""
    assert assessment.decision["error"]
    assert assessment.decision["agreement"]["failed"] == 1


def test_a_failed_judge_leaves_the_decision_to_the_others() -> None:
    panel = [{"id": each, "model": each} for each in ("good", "bad", "fine")]
    models = {"good": prefers_ann, "bad": returns_invalid_data, "fine": prefers_ann}
    assessment = judge_with(models, panel=panel)
    assert assessment.decision["winner"] == "ann"
    assert [verdict["status"] for verdict in assessment.verdicts] == ["ok", "failed", "ok"]
    assert assessment.decision["agreement"]["judges"] == 2
    lacks = ["2 of 3 judges gave a verdict.", "The judge gave no decision."]
    assert shortcomings(assessment.decision) == lacks
    assert shortcomings({**assessment.decision, "decision": "Go."}) == lacks[:1]


def test_half_of_a_panel_makes_no_decision() -> None:
    panel = [{"id": "good", "model": "good"}, {"id": "bad", "model": "bad"}]
    decision = judge_with({"good": prefers_ann, "bad": returns_invalid_data}, panel=panel).decision
    assert decision["status"] == "failed"
    assert decision["error"].startswith("only 1 of 2 judges gave a verdict, and 2 are needed: ")


def test_a_lower_quorum_lets_one_judge_decide() -> None:
    panel = [{"id": "good", "model": "good"}, {"id": "bad", "model": "bad"}]
    models = {"good": prefers_ann, "bad": returns_invalid_data}
    assert judge_with(models, panel=panel, quorum=1).decision["winner"] == "ann"


def test_the_decision_lists_dissent() -> None:
    def contrary(prompt: str) -> dict[str, Any]:
        ann_wins = prefers_ann(prompt)
        other = next(label for label in shown_order(prompt) if label != ann_wins["winner"])
        return response(other, {ann_wins["winner"]: 5, other: 6})

    panel = [{"id": "one", "model": "a"}, {"id": "two", "model": "a"}, {"id": "three", "model": "b"}]
    assessment = judge_with({"a": prefers_ann, "b": contrary}, panel=panel, rule="majority")
    assert assessment.decision["winner"] == "ann"
    assert assessment.decision["agreement"]["dissent"] == [{"judge": "three", "winner": "ben"}]
    assert {pair["agreement"] for pair in assessment.decision["agreement"]["pairs"]} == {0.0, 1.0}


def test_a_winner_that_no_judge_named_gets_a_note() -> None:
    def scores_against_itself(prompt: str) -> dict[str, Any]:
        ann_wins = prefers_ann(prompt)
        other = next(label for label in shown_order(prompt) if label != ann_wins["winner"])
        return response(ann_wins["winner"], {ann_wins["winner"]: 3, other: 9})

    assessment = judge_with(scores_against_itself, panel=[{"id": "one"}, {"id": "two"}])
    assert assessment.decision["winner"] == "ben"
    assert any("No judge named this outcome" in note for note in assessment.decision["notes"])


def test_all_judges_and_orders_are_called_at_the_same_time() -> None:
    config = make_config({"debaters": DEBATERS, "judge": {"panel": [{"id": f"j{n}"} for n in range(3)]}})
    flow = node_context(Environment(), state_of(config)).judging.assess()
    assert len(flow.send(None)) == 6  # type: ignore[arg-type]  # starts it


def test_judge_calls_are_journalled_and_respect_the_concurrency_limit() -> None:
    running = peak = calls = 0
    full = asyncio.Event()

    async def complete(call: ModelCall, models: Any, *, config: Any = None) -> Reply:
        nonlocal running, peak, calls
        running, calls = running + 1, calls + 1
        peak = max(peak, running)
        if running == 3:
            full.set()
        await asyncio.wait_for(
            full.wait(), LONG_TIMEOUT_S
        )  # wait until the limit is reached, even if the journal is slow
        running -= 1
        return Reply(data=response("Debater A", {}), model=call.model)

    panel = [{"id": f"j{n}"} for n in range(5)]
    config = make_config({"debaters": DEBATERS, "judge": {"panel": panel}, "limits": {"concurrency": 3}})
    saver = InMemorySaver()
    environment, records = Environment(complete=complete), records_of(saver)

    async def run() -> Assessment:
        handler = EffectHandler(
            environment,
            Permissions.of_operator(config),
            JournalPosition(records, "debate", 3, "rejudge-0", "c1"),
        )
        return await run_generator(
            node_context(environment, state_of(config)).judging.assess(), handler.handle
        )

    first, again = asyncio.run(run()), asyncio.run(run())
    assert first.verdicts == again.verdicts
    assert (calls, peak) == (10, 3)


def verdict_with(
    judge: str, scores: dict[str, dict[str, float]], winner: str, flipped: bool | None
) -> Verdict:
    verdict = failed_verdict(judge, "")
    verdict["status"], verdict["winner"] = "ok", winner
    verdict["scores"] = {
        who: {key: {"score": score, "reason": "", "citations": []} for key, score in given.items()}
        for who, given in scores.items()
    }
    verdict["flip"] = {**verdict["flip"], "flipped": flipped}
    return verdict


SCORES = st.dictionaries(
    st.sampled_from(["ann", "ben"]),
    st.dictionaries(st.sampled_from(CRITERIA), st.integers(1, 10).map(float), max_size=2),
    max_size=2,
)


@settings(max_examples=60)
@given(panel=st.lists(SCORES, min_size=2, max_size=5))
def test_alpha_matches_the_krippendorff_package(panel: Sequence[Any]) -> None:
    verdicts = [verdict_with(f"j{n}", scores, "tie", None) for n, scores in enumerate(panel)]
    alpha = panel_report(verdicts, None)["alpha"]
    rows = [
        [scores.get(who, {}).get(key, float("nan")) for who in ("ann", "ben") for key in CRITERIA]
        for scores in panel
    ]
    rated = [[row[at] for row in rows if row[at] == row[at]] for at in range(4)]
    paired = [score for column in rated if len(column) > 1 for score in column]
    if len(set(paired)) < 2:
        assert alpha is None
    else:
        expected = krippendorff.alpha(reliability_data=rows, level_of_measurement="interval")
        assert alpha == pytest.approx(expected, abs=1e-9)


def test_flip_rates_by_judge_include_earlier_verdicts() -> None:
    earlier = [verdict_with("judge", {}, "tie", True)] * 3
    report = panel_report([verdict_with("judge", {}, "ann", False)], None, earlier)
    assert (report["flip_rates"]["judge"]["k"], report["flip_rates"]["judge"]["n"]) == (3, 4)
    assert report["flip_rate"] == 0.0
    assert json.dumps(report)
