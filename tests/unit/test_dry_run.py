"""Estimates compared with the calls that debates make."""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.debates import dry_run
from moot.debates.dry_run import SCALING_ERROR, Estimate, with_plan
from moot.debates.stub_replies import Scenario, StubReplies
from moot.documents import whole_document
from moot.judging.draft_test import QUESTIONS
from moot.memory.summarizers.registry import SUMMARIZERS
from moot.memory.summarizers.summarizer import Draft, SummaryGenerator, SummaryRequest
from moot.models.offline import recording_config, recordings
from moot.protocols.registry import PROTOCOLS
from moot.reports.positions import read_plan
from moot.runtime.environment import Environment
from moot.state.errors import WaitingForPerson
from tests.support.fakes import JUDGE_REPLY, FakeModel

TOPIC = "Design a rate limiter."
SCENARIOS = get_args(Scenario)
ALWAYS = {"perspectives": {"threshold_chars": 0}}
NEVER = {"perspectives": {"enabled": False}}
BY_RULE = {"perspectives": {"threshold_chars": 0, "method": "rule-based"}}


def estimate_of(config: DebateConfig) -> Estimate:
    estimate = dry_run.estimate(config)
    assert estimate is not None
    return estimate


def obliging(call: ModelCall) -> Reply:
    """Return a brief reply in the format that the call requests."""
    usage: Any = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 20}
    shapes: dict[str, dict[str, Any]] = {
        "evaluate": {
            "reasoning": "r",
            "agreement": 0.0,
            **{question: {"quotes": [], "problem": ""} for question in QUESTIONS},  # a test of the decision
        },
        "judge": {**JUDGE_REPLY, "solution_markdown": "Build it."},
        "clarify": {"questions": []},
        "extract": {"entries": []},
    }
    if call.schema is not None:
        return Reply(data=shapes.get(call.purpose, JUDGE_REPLY), model=call.model, usage=usage)
    return Reply(text=f"I hold that {call.digest[:8]} matters, for 40 % fail.", model=call.model, usage=usage)


FIXED = {"termination": {"type": "fixed"}}
"""Settings of a council that runs all its rounds."""
CASES: dict[str, dict[str, Any]] = {
    "round-robin": {"turns": 7},
    "round-robin of one": {"turns": 3, "debaters": [{"name": "Ann"}]},
    "round-robin with a panel": {"turns": 4, "judge": {"panel": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}},
    "round-robin with an order": {
        "turns": 7,
        "debaters": [{"name": "A"}, {"name": "B"}, {"name": "C"}],
        "order": ["a", "b", "a", "c"],
    },
    "round-robin without a judge": {"turns": 2, "judge": {"enabled": False}},
    "council": {"protocol": "council", "memory": NEVER},
    "council 3 by 3 with summaries": {"protocol": "council", "rounds": 3, "memory": ALWAYS},
    "council with rule-based summaries": {"protocol": "council", "memory": BY_RULE},
    "council of two, one round": {
        "protocol": "council",
        "rounds": 1,
        "debaters": [{"name": "Ann"}, {"name": "Bo"}],
        "memory": ALWAYS,
    },
    "council that may converge": {
        "protocol": "council",
        "rounds": 4,
        "termination": {"type": "convergence", "threshold": 0.9},
        "memory": NEVER,
    },
    "council judged in two orders": {"protocol": "council", "judge": {"swap": True}, "memory": NEVER},
    "council without a judge": {"protocol": "council", "judge": {"enabled": False}, "memory": ALWAYS},
    "council with clarifications": {
        "protocol": "council",
        "rounds": 1,
        "clarifications": {"enabled": True},
        "memory": NEVER,
    },
    "council with extraction": {
        "protocol": "council",
        "rounds": 2,
        "blackboard": {"extraction": "llm", "verify_changes": False},
        "memory": NEVER,
    },
    "council with a turn limit": {"protocol": "council", "turns": 40, "memory": NEVER},
    "moderated": {"protocol": "moderated", "turns": 5},
    "pairwise": {"protocol": "pairwise"},
    "random": {"protocol": "random", "turns": 5, "seed": 4},
    "single": {"protocol": "single"},
    "vote": {"protocol": "vote", "vote": {"answers": 7}},
    "escalate": {"protocol": "escalate"},
    "vote after a discussion": {"turns": 4, "decide": "vote", "options": ["merge", "hold"]},
    "round-robin that stops on agreement": {"turns": 8, "stop": "agreement"},
    "vote decided by a judge": {"protocol": "vote", "vote": {"answers": 3}, "decide": "judge"},
}
EXTRACTION_CASES: dict[str, dict[str, Any]] = {
    "dialogue": {"protocol": "dialogue", "model": "m", "dialogue": {"max_aspects": 2}},
    "dialogue of three with rooms": {
        "protocol": "dialogue",
        "model": "m",
        "debaters": [{"name": "A"}, {"name": "B"}, {"name": "C"}],
        "dialogue": {"aspects": ["cost"], "crux": {"cooldown": 0, "max_rooms": 3, "cycles": 2}},
    },
    "dialogue without rooms": {
        "protocol": "dialogue",
        "model": "m",
        "dialogue": {"aspects": ["cost", "speed"], "crux": {"max_rooms": 0}},
    },
    "round-robin with extraction": {
        "turns": 40,
        "model": "m",
        "blackboard": {"extraction": "llm"},
        "memory": {"summarizer": "llm"},
    },
}
SLOW = {
    "council 3 by 3 with summaries",
    "council with rule-based summaries",
    "council of two, one round",
    "council judged in two orders",
    "council with extraction",
    "council that may converge",
    "council without a judge",
    "council with a turn limit",
    "council with clarifications",
    "dialogue of three with rooms",
    "dialogue without rooms",
    "round-robin with extraction",
}
"""Cases that take seconds. The other cases cover the most important parts of them."""


def quick_and_slow(cases: Iterable[str]) -> list[Any]:
    """Return the cases with a mark on the slow ones."""
    return [pytest.param(case, marks=pytest.mark.slow) if case in SLOW else case for case in cases]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("case", quick_and_slow([*CASES, *EXTRACTION_CASES]))
def test_estimate_of_a_scenario_equals_the_calls_of_its_debate(
    case: str, scenario: Scenario, tmp_path: Path
) -> None:
    config = make_config({**CASES, **EXTRACTION_CASES}[case])
    model = StubReplies(scenario, config)
    environment = Environment(complete=model, factory=FakeModel().environment().factory)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        document = run_with_replies(debates.start(TOPIC, config))
    planned = estimate_of(config)
    bound = planned.shortest_run if scenario == "agreeing" else planned.longest_run
    assert bound.by_purpose() == Counter(each.call.purpose for each in model.planned)
    assert bound.calls == document["usage"]["calls"] == len(model.planned)


def run_with_replies(debate: Any) -> Any:
    """Run a debate to its end. Reply to each question to a person."""
    answer = None
    while True:
        try:
            return debate.run(answer=answer)
        except WaitingForPerson:
            answer = "As you like."


def test_cases_cover_every_shipped_protocol() -> None:
    shipped = {name for name in PROTOCOLS if type(PROTOCOLS[name]).__module__.startswith("moot.")}
    assert shipped <= {make_config(case).protocol for case in (*CASES.values(), *EXTRACTION_CASES.values())}


@pytest.mark.parametrize("case", quick_and_slow(sorted(CASES.keys() - {"council with extraction"})))
def test_brief_replies_take_a_number_of_calls_within_the_estimate(case: str, tmp_path: Path) -> None:
    config = make_config(CASES[case])
    model = FakeModel(obliging)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debates.start(TOPIC, config).run()
    planned = estimate_of(config)
    assert planned.calls_at_least <= len(model.calls) <= planned.calls_at_most


@pytest.mark.parametrize("recording", recordings())
def test_estimate_is_within_20_percent_of_a_recorded_debate(recording: str, tmp_path: Path) -> None:
    config = make_config(recording_config(recording))
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        made = debates.start(config=config).run()["usage"]["calls"]
    planned = estimate_of(config)
    assert planned.calls_at_least <= made <= planned.calls_at_most
    assert planned.calls == pytest.approx(made, rel=0.2)


def test_council_of_three_by_three_has_32_calls_and_a_critical_path_of_13() -> None:
    # 3 proposals; 6 critiques, then 3 in each of two rounds; 3 refinements and a check in each round;
    # the judge; 3 tests of the draft, and at most one answer to them
    estimate = estimate_of(make_config({"protocol": "council", "rounds": 3, **FIXED}))
    assert (estimate.calls_at_least, estimate.calls, estimate.calls_at_most) == (31, 32, 32)
    assert estimate.calls_by_purpose() == {"turn": 24, "judge": 2, "evaluate": 6}
    assert estimate.critical_path == 13
    assert estimate.seconds(0.2) == pytest.approx(2.6)


def test_council_that_converges_at_once_makes_the_minimum_of_calls(tmp_path: Path) -> None:
    settings = {"rounds": 4, "termination": {"type": "convergence", "threshold": 0.0}, "memory": NEVER}
    config, model = make_config({"protocol": "council", **settings}), FakeModel(obliging)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debates.start(TOPIC, config).run()
    assert len(model.calls) == estimate_of(config).calls_at_least


def test_estimate_counts_no_calls_for_a_summarizer_without_a_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Headlines:
        name = "headlines"

        def summarize(self, request: SummaryRequest) -> SummaryGenerator:
            yield from ()
            return Draft(" ".join(entry["content"][:40] for entry in request.entries))

    monkeypatch.setitem(SUMMARIZERS, "headlines", Headlines())
    memory = {"summarizer": "headlines", "keep_recent": 4, "summarize_every": 2}
    config, model = make_config({"turns": 40, "memory": memory}), FakeModel(obliging)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        document = debates.start(TOPIC, config).run()
    planned = estimate_of(config)
    assert planned.calls_by_purpose() == {"turn": 40, "judge": 2}
    assert planned.calls_at_least == planned.calls_at_most == len(model.calls)
    assert {summary["method"] for summary in document["summaries"]} == {"headlines"}


def test_calls_beyond_the_concurrency_lengthen_the_critical_path() -> None:
    wide = make_config({"protocol": "vote", "vote": {"answers": 10}, "limits": {"concurrency": 4}})
    assert (
        estimate_of(wide).critical_path == 6
    )  # the middle of 3 batches of answers, and 8 if they are read, compared and judged


def test_human_debaters_take_turns_but_make_no_calls() -> None:
    config = make_config({"turns": 4, "debaters": [{"name": "A", "model": "human"}, {"name": "B"}]})
    estimate = estimate_of(config)
    assert estimate.calls_by_purpose() == {"turn": 2, "judge": 2}
    assert estimate.turns_at_most == 4


def test_dry_run_writes_no_file_and_starts_no_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOOT_DB", str(tmp_path / "moot.sqlite"))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", ModuleType("trace"))  # a span would fail here
    estimate_of(make_config({"turns": 2, "limits": {"cost_usd": 0.001}, "models": {"offline": {}}}))
    assert list(tmp_path.iterdir()) == []


def test_report_shows_the_estimate_and_its_bounds(tmp_path: Path) -> None:
    config = make_config(EXTRACTION_CASES["dialogue"])
    model = StubReplies("disputing", config)
    environment = Environment(complete=model, factory=FakeModel().environment().factory)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        document = with_plan(debates.start(TOPIC, config).run())
    planned = estimate_of(config.model_copy(update={"topic": TOPIC}))
    compared = {row.name: row.planned for row in read_plan(whole_document(document))}
    assert compared["Calls"] == planned.calls
    assert compared["Calls, at least"] == planned.calls_at_least
    assert compared["Calls, at most"] == planned.calls_at_most


def test_estimate_in_a_report_includes_the_documents_of_the_debate(tmp_path: Path) -> None:
    document, config = {"name": "note.md", "content": "Pipes are of lead. " * 100}, DebateConfig(turns=2)
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(obliging).environment()) as debates:
        reported = with_plan(debates.start(TOPIC, config, documents=[document]).run())
    planned = dry_run.estimate(config.model_copy(update={"topic": TOPIC}), documents=[document])
    assert planned is not None
    assert reported["planned"] == planned.to_json()
    assert planned.to_json()["prompt_tokens"] > estimate_of(config).to_json()["prompt_tokens"] + 2 * 400


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    protocol=st.sampled_from(sorted(PROTOCOLS)),
    debaters=st.integers(2, 4),
    rounds=st.integers(1, 8),
    total=st.integers(1000, 100_000),
    reply=st.integers(16, 8000),
)
def test_expected_usage_never_exceeds_the_upper_bound(
    protocol: str, debaters: int, rounds: int, total: int, reply: int
) -> None:
    config = make_config(
        {
            "protocol": protocol,
            "rounds": rounds,
            "debaters": [{"name": f"D{index}"} for index in range(debaters)],
            "memory": {"budget": {"total": total, "reply": reply}},
        }
    )
    planned = estimate_of(config).to_json()
    assert 0 < planned["prompt_tokens"] <= planned["prompt_tokens_at_most"]
    assert 0 < planned["completion_tokens"] <= planned["completion_tokens_at_most"]
    assert planned["critical_path_calls"] <= planned["calls"]
    assert planned["calls_at_least"] <= planned["calls"] <= planned["calls_at_most"]
    assert planned["critical_path_calls"] <= planned["critical_path_calls_at_most"]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"turns": 300}, id="rule-based summaries"),
        pytest.param(
            {"turns": 300, "memory": {"summarizer": "llm"}, "model": "m"}, id="summaries by a model"
        ),
        pytest.param({"protocol": "moderated", "turns": 300, "model": "m"}, id="moderated"),
        pytest.param({"protocol": "council", "rounds": 16, "memory": NEVER, **FIXED}, id="council"),
        pytest.param({"protocol": "council", "rounds": 16, **FIXED}, id="council with fresh perspectives"),
    ],
)
@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scaled_dry_run_is_within_its_stated_error_of_a_whole_one(
    config: dict[str, Any], scenario: Scenario
) -> None:
    settings = make_config(config)
    scaled = dry_run.dry_run(settings, scenario)
    whole = dry_run._run(dry_run._without_side_effects(settings), scenario)
    assert len(scaled.planned) < len(whole.planned)
    assert scaled.turns == whole.turns
    for purpose in ("turn", "judge"):
        assert scaled.by_purpose()[purpose] == whole.by_purpose()[purpose]
    assert scaled.calls == pytest.approx(whole.calls, rel=SCALING_ERROR)
    assert scaled.prompt_tokens() == pytest.approx(whole.prompt_tokens(), rel=SCALING_ERROR)
    assert scaled.reply_tokens() == pytest.approx(whole.reply_tokens(), rel=SCALING_ERROR)
    assert scaled.critical_path == pytest.approx(whole.critical_path, rel=SCALING_ERROR)


def test_estimate_states_its_error_only_if_the_debate_is_scaled() -> None:
    short, long = (estimate_of(make_config({"turns": turns})) for turns in (60, 62))
    assert (short.error, long.error) == (0, SCALING_ERROR)
    assert long.to_json()["relative_error"] == SCALING_ERROR
    warnings = ["\n".join(dry_run.omission_warnings(each, DebateConfig())) for each in (short, long)]
    assert ["± 10 %" in each for each in warnings] == [False, True]


@pytest.mark.slow
def test_estimate_of_10000_turns_simulates_fewer_than_100_calls() -> None:
    few, many = (estimate_of(make_config({"turns": turns})) for turns in (10, 10_000))
    assert len(many.batches) == len(few.batches)
    assert many.calls == 10_002
    assert len(many.longest_run.planned) < 100


def test_verification_of_changed_positions_adds_one_call_to_the_maximum() -> None:
    checked, unchecked = (
        estimate_of(
            make_config({"model": "m", "turns": 8, "blackboard": {"extraction": "llm", "verify_changes": on}})
        )
        for on in (True, False)
    )
    assert checked.calls_at_most == unchecked.calls_at_most + 1
    assert checked.calls_at_least == unchecked.calls_at_least
