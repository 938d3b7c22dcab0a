"""Panels of judges: presentation orders, biased judges, failures and agreement."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import krippendorff
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.effects import ModelCall, Reply
from moot.judging.judge_response import failed_verdict
from moot.judging.panel import Assessment, panel_report
from moot.models.offline import ScriptedCall, ScriptedModel
from moot.nodes.judge import assess_debate
from moot.runtime.environment import Environment
from moot.runtime.run_node import EffectHandler, JournalPosition, run_generator
from moot.state.config import DebateConfig
from moot.state.config.boundary import Permissions
from moot.state.config.config_files import make_config
from moot.state.entries import make_entry
from moot.state.verdict import Verdict
from moot.storage.records import records_of

SAID = [("ann", "A tax works, as Ben Ray admits."), ("ben", "It hits the poor, whatever Ann Lee says.")]
DEBATERS = [{"id": "ann", "name": "Ann Lee"}, {"id": "ben", "name": "Ben Ray"}]
CRITERIA = ("argument_quality", "evidence")

Reason = Callable[[str], dict[str, Any]]
"""From a judge's whole prompt to its answer."""


def state_of(config: DebateConfig) -> Any:
    entries = [make_entry(seq, who, "speech", words) for seq, (who, words) in enumerate(SAID, 1)]
    return {"topic": "A tax?", "full_transcript": entries, "config": config.to_json()}


def judged_by(script: Reason | dict[str, Reason], **judge: Any) -> Assessment:
    """Let scripted models judge; one for all, or one by model's name."""
    config = make_config({"debaters": DEBATERS, "judge": judge})
    environment = Environment(factory=lambda name, _: ScriptedModel(_answering(script, name)))

    async def run() -> Assessment:
        answering = EffectHandler(environment, Permissions.of_operator(config), JournalPosition())
        return await run_generator(
            assess_debate(state_of(config), config, environment.token_counter_for()), answering.handle
        )

    return asyncio.run(run())


def _answering(script: Reason | dict[str, Reason], name: str) -> Callable[[ScriptedCall], dict[str, Any]]:
    chosen = script[name] if isinstance(script, dict) else script
    return lambda call: chosen("\n".join(str(message.content) for message in call.messages))


def shown_order(prompt: str) -> list[str]:
    """Return the labels in the order in which the prompt presents the debaters."""
    listed = prompt.partition("# Debaters")[2].partition("# Rubric")[0]
    return re.findall(r"^- (.+)$", listed, re.M)


def response(winner: str, scores: dict[str, float], **more: Any) -> dict[str, Any]:
    given = [
        {
            "debater": who,
            "criterion": criterion,
            "score": score,
            "reason": "so",
            "citations": ["m000001", "m000099"],
        }
        for who, score in scores.items()
        for criterion in CRITERIA
    ]
    return {"reasoning": f"{winner} was better.", "winner": winner, "confidence": 80, "scores": given, **more}


def prefers_the_first(prompt: str) -> dict[str, Any]:
    first, second = shown_order(prompt)
    return response(first, {first: 9, second: 3})


def prefers_what_was_said(prompt: str) -> dict[str, Any]:
    """Favour whoever said that a tax works, wherever and under whatever label it stands."""
    winner = re.search(r"(Debater [A-Z]) \[m000001\]", prompt)
    assert winner
    other = next(label for label in shown_order(prompt) if label != winner[1])
    return response(winner[1], {winner[1]: 8, other: 5})


def fails(prompt: str) -> dict[str, Any]:
    return {"nothing": "of use"}


def test_a_judge_who_always_prefers_the_first_gives_ties_and_flips_every_time() -> None:
    made = judged_by(prefers_the_first, panel=[{"id": f"judge-{n}"} for n in range(5)])
    assert [verdict["winner"] for verdict in made.verdicts] == ["tie"] * 5
    assert made.decision["winner"] == "tie"
    assert made.decision["agreement"]["flip_rate"] == 1.0
    assert made.decision["agreement"]["flips"]["n"] == 5


def test_scores_of_judges_that_contradict_themselves_put_nobody_ahead() -> None:
    def leans(prompt: str) -> dict[str, Any]:
        first, second = shown_order(prompt)
        liked = prefers_what_was_said(prompt)["winner"]
        return response(first, {first: 9 if first == liked else 6, second: 3})

    made = judged_by(leans, panel=[{"id": "one"}, {"id": "two"}])
    assert made.verdicts[0]["totals"]["ann"] != made.verdicts[0]["totals"]["ben"]
    assert made.decision["winner"] == "tie"


def test_an_unbiased_judge_never_flips() -> None:
    made = judged_by(prefers_what_was_said, panel=[{"id": f"judge-{n}"} for n in range(5)])
    assert [verdict["winner"] for verdict in made.verdicts] == ["ann"] * 5
    assert made.decision["winner"] == "ann"
    assert made.decision["agreement"]["flip_rate"] == 0.0
    assert made.decision["agreement"]["unanimous"] is True


def test_without_swapping_a_bias_goes_unseen() -> None:
    made = judged_by(prefers_the_first, swap=False)
    assert made.decision["winner"] == "ann"
    assert made.decision["agreement"]["flip_rate"] is None


def test_labels_come_back_as_ids_and_names() -> None:
    verdict = judged_by(prefers_what_was_said).verdicts[0]
    assert set(verdict["scores"]) == {"ann", "ben"}
    assert "Ann Lee was better." in verdict["reasoning"]
    assert verdict["dropped_citations"] == 8


def test_a_judge_that_gives_no_answer_fails_and_says_so() -> None:
    made = judged_by(fails)
    assert made.decision["status"] == "failed"
    assert made.decision["winner"] == ""
    assert made.decision["error"]
    assert made.decision["agreement"]["failed"] == 1


def test_one_judge_that_fails_leaves_the_decision_to_the_others() -> None:
    panel = [{"id": "good", "model": "good"}, {"id": "bad", "model": "bad"}]
    made = judged_by({"good": prefers_what_was_said, "bad": fails}, panel=panel)
    assert made.decision["winner"] == "ann"
    assert [verdict["status"] for verdict in made.verdicts] == ["ok", "failed"]
    assert made.decision["agreement"]["judges"] == 1


def test_dissent_is_in_the_decision() -> None:
    def contrary(prompt: str) -> dict[str, Any]:
        said = prefers_what_was_said(prompt)
        other = next(label for label in shown_order(prompt) if label != said["winner"])
        return response(other, {said["winner"]: 5, other: 6})

    panel = [{"id": "one", "model": "a"}, {"id": "two", "model": "a"}, {"id": "three", "model": "b"}]
    made = judged_by({"a": prefers_what_was_said, "b": contrary}, panel=panel, rule="majority")
    assert made.decision["winner"] == "ann"
    assert made.decision["agreement"]["dissent"] == [{"judge": "three", "winner": "ben"}]
    assert {pair["agreement"] for pair in made.decision["agreement"]["pairs"]} == {0.0, 1.0}


def test_an_outcome_that_no_judge_named_is_noted() -> None:
    def scores_against_itself(prompt: str) -> dict[str, Any]:
        said = prefers_what_was_said(prompt)
        other = next(label for label in shown_order(prompt) if label != said["winner"])
        return response(said["winner"], {said["winner"]: 3, other: 9})

    made = judged_by(scores_against_itself, panel=[{"id": "one"}, {"id": "two"}])
    assert made.decision["winner"] == "ben"
    assert any("No judge named this outcome" in note for note in made.decision["notes"])


def test_every_judge_in_every_order_is_asked_at_the_same_time() -> None:
    config = make_config({"debaters": DEBATERS, "judge": {"panel": [{"id": f"j{n}"} for n in range(3)]}})
    flow = assess_debate(state_of(config), config, len)
    assert len(flow.send(None)) == 6  # type: ignore[arg-type]  # starts it


def test_answers_are_journalled_and_at_most_so_many_at_once() -> None:
    running = peak = made = 0
    full = asyncio.Event()

    async def complete(call: ModelCall, models: Any, *, config: Any = None) -> Reply:
        nonlocal running, peak, made
        running, made = running + 1, made + 1
        peak = max(peak, running)
        if running == 3:
            full.set()
        await full.wait()  # so that the limit is reached however late the journal answers
        running -= 1
        return Reply(data=response("Debater A", {}), model=call.model)

    panel = [{"id": f"j{n}"} for n in range(5)]
    config = make_config({"debaters": DEBATERS, "judge": {"panel": panel}, "limits": {"concurrency": 3}})
    saver = InMemorySaver()
    environment, records = Environment(complete=complete), records_of(saver)

    async def run() -> Assessment:
        answering = EffectHandler(
            environment,
            Permissions.of_operator(config),
            JournalPosition(records, "debate", 3, "rejudge-0", "c1"),
        )
        return await run_generator(assess_debate(state_of(config), config, len), answering.handle)

    first, again = asyncio.run(run()), asyncio.run(run())
    assert first.verdicts == again.verdicts
    assert (made, peak) == (10, 3)


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
def test_alpha_of_a_panel_is_that_of_another_implementation(panel: Sequence[Any]) -> None:
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


def test_flip_rates_by_judge_count_earlier_verdicts_too() -> None:
    earlier = [verdict_with("judge", {}, "tie", True)] * 3
    report = panel_report([verdict_with("judge", {}, "ann", False)], None, earlier)
    assert (report["flip_rates"]["judge"]["k"], report["flip_rates"]["judge"]["n"]) == (3, 4)
    assert report["flip_rate"] == 0.0
    assert json.dumps(report)
