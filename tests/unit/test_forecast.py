from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.graph.api import open_debates
from moot.graph.documents import whole_document
from moot.graph.reports.spending import read_plan
from moot.nodes.blackboard.reflections import Reflections
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.protocols import stand_in
from moot.nodes.protocols.forecast import Forecast
from moot.state.config import DebateConfig
from moot.state.config.config_files import make_config
from tests.support.fakes import OPINION, FakeModel
from tests.support.personas import STATEMENTS, Personas, personas

TOPIC = "Design a rate limiter."
ALWAYS = {"perspectives": {"threshold_chars": 0}}
NEVER = {"perspectives": {"enabled": False}}
BY_RULE = {"perspectives": {"threshold_chars": 0, "method": "rule-based"}}


def forecast_of(config: DebateConfig) -> Forecast:
    forecast = stand_in.forecast(config)
    assert forecast is not None
    return forecast


def obliging(call: ModelCall) -> Reply:
    """Answer in the shape that the call wants."""
    usage: Any = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 20}
    shapes: dict[str, dict[str, Any]] = {
        "evaluate": {"reasoning": "r", "agreement": 0.0},
        "clarify": {"questions": []},
        "extract": {"entries": []},
    }
    if call.schema is not None:
        return Reply(data=shapes.get(call.purpose, OPINION), model=call.model, usage=usage)
    return Reply(text=f"I hold that {call.digest[:8]} matters, for 40 % fail.", model=call.model, usage=usage)


CASES: dict[str, dict[str, Any]] = {
    "round-robin": {"turns": 7},
    "round-robin of one": {"turns": 3, "debaters": [{"name": "Ann"}]},
    "round-robin with a panel": {"turns": 4, "judge": {"panel": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}},
    "round-robin in an order": {
        "turns": 7,
        "debaters": [{"name": "A"}, {"name": "B"}, {"name": "C"}],
        "order": ["a", "b", "a", "c"],
    },
    "round-robin unjudged": {"turns": 2, "judge": {"enabled": False}},
    "council": {"protocol": "council", "memory": NEVER},
    "council 3 by 3 with summaries": {"protocol": "council", "rounds": 3, "memory": ALWAYS},
    "council by rule": {"protocol": "council", "memory": BY_RULE},
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
        "memory": ALWAYS,
    },
    "council judged in two orders": {"protocol": "council", "judge": {"swap": True}, "memory": NEVER},
    "council unjudged": {"protocol": "council", "judge": {"enabled": False}, "memory": ALWAYS},
    "council with clarifications": {
        "protocol": "council",
        "rounds": 1,
        "clarifications": {"enabled": True},
        "memory": NEVER,
    },
    "council read by a model": {
        "protocol": "council",
        "rounds": 2,
        "blackboard": {"extraction": "llm", "second_look": False},
        "memory": NEVER,
    },
    "council until so many turns": {"protocol": "council", "turns": 40, "memory": NEVER},
    "moderated": {"protocol": "moderated", "turns": 5},
    "random": {"protocol": "random", "turns": 5, "seed": 4},
    "single": {"protocol": "single"},
    "vote": {"protocol": "vote", "vote": {"answers": 7}},
    "vote by a judge": {"protocol": "vote", "vote": {"answers": 3, "by": "judge"}},
}


@pytest.mark.parametrize("case", CASES)
def test_as_many_calls_are_made_as_were_planned(case: str, tmp_path: Path) -> None:
    config = make_config(CASES[case])
    model = FakeModel(obliging)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        document = debates.start(TOPIC, config).run()
    planned = forecast_of(config).calls_by_purpose()
    assert Counter(planned) == Counter(call.purpose for call in model.calls)
    assert document["planned"]["calls"] == document["usage"]["calls"] == len(model.calls)


def test_a_council_of_three_by_three_is_planned_with_38_calls_and_a_critical_path_of_11() -> None:
    forecast = forecast_of(make_config({"protocol": "council", "rounds": 3}))
    assert forecast.calls == 38
    assert forecast.calls_by_purpose() == {"turn": 30, "summary": 7, "judge": 1}
    assert forecast.critical_path == 11
    assert forecast.seconds(0.2) == pytest.approx(2.2)


def rooms_wanted(*, cooldown: int, aspects: int, max_rooms: int = 12) -> DebateConfig:
    crux = {"cooldown": cooldown, "max_rooms": max_rooms, "relevance": 0}
    named = ["freight", "who pays", "the levy", "dredging"][:aspects]
    return personas(3, dialogue={"aspects": named, "crux": crux}, judge={"enabled": True})


@pytest.mark.parametrize(
    ("config", "rooms"),
    [
        pytest.param(rooms_wanted(cooldown=0, aspects=2), 6, id="every pair on every aspect"),
        pytest.param(rooms_wanted(cooldown=1, aspects=3), 6, id="every pair on every other aspect"),
        pytest.param(rooms_wanted(cooldown=0, aspects=4, max_rooms=5), 5, id="the cap"),
    ],
)
def test_a_dialogue_in_which_all_rooms_open_takes_as_many_calls_as_there_can_be(
    config: DebateConfig, rooms: int, tmp_path: Path
) -> None:
    names = ("Ada Quay", "Bob", "Cyd", "Ada Quay")
    everybody = tuple(zip(names, names[1:], STATEMENTS, strict=False))
    model = Personas({"respond": everybody})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        document = debates.start(TOPIC, config).run()
    assert len({entry["room"] for entry in document["transcript"]} - {""}) == rooms
    forecast, made = forecast_of(config), len(model.calls)
    assert forecast.calls_at_least == forecast.calls == made - rooms * (2 * 5 + 5 + 2) - reflections(model)
    spare = steps_of(forecast) - reflections(model)
    assert made == forecast.calls_at_most - spare
    assert document["planned"]["calls_at_most"] == forecast.calls_at_most
    compared = {row.name: row.planned for row in read_plan(whole_document(document))}
    assert (compared["Calls"], compared["Calls, at most"]) == (forecast.calls, forecast.calls_at_most)


def reflections(model: Personas) -> int:
    return sum(issubclass(call.schema, Reflections) for call in model.calls if call.schema)


def steps_of(forecast: Forecast) -> int:
    (reflecting,) = [batch for batch in forecast.batches if batch.phase == "reflection"]
    return reflecting.times_at_most


def test_a_dialogue_without_a_dispute_takes_as_many_calls_as_are_planned(tmp_path: Path) -> None:
    config, model = rooms_wanted(cooldown=0, aspects=2), Personas()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debates.start(TOPIC, config).run()
    assert len(model.calls) - reflections(model) == forecast_of(config).calls


def test_a_model_that_may_name_fewer_aspects_is_counted_with_one_at_least() -> None:
    read: Any = {"protocol": "dialogue", "model": "m"}
    forecast = forecast_of(make_config({**read, "dialogue": {"crux": {"enabled": False}}}))
    one = forecast_of(make_config({**read, "dialogue": {"aspects": ["freight"]}}))
    assert forecast.calls_at_least == one.calls + 1
    assert forecast.calls_at_least < forecast.calls < forecast.calls_at_most


def test_a_council_that_converges_at_once_takes_as_many_calls_as_there_are_at_least(tmp_path: Path) -> None:
    settings = {"rounds": 4, "termination": {"type": "convergence", "threshold": 0.0}, "memory": NEVER}
    config, model = make_config({"protocol": "council", **settings}), FakeModel(obliging)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debates.start(TOPIC, config).run()
    assert len(model.calls) == forecast_of(config).calls_at_least


def test_calls_beyond_the_concurrency_lengthen_the_critical_path() -> None:
    wide = make_config({"protocol": "vote", "vote": {"answers": 10}, "limits": {"concurrency": 4}})
    assert forecast_of(wide).critical_path == 3


@settings(max_examples=60, deadline=None)
@given(
    protocol=st.sampled_from(["round-robin", "council", "dialogue", "moderated", "single", "vote"]),
    debaters=st.integers(2, 9),
    rounds=st.integers(1, 40),
    total=st.integers(1000, 100_000),
    reply=st.integers(16, 8000),
)
def test_what_is_expected_never_passes_the_upper_bound(
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
    planned = forecast_of(config).to_json()
    assert 0 < planned["prompt_tokens"] <= planned["prompt_tokens_at_most"]
    assert 0 < planned["completion_tokens"] <= planned["completion_tokens_at_most"]
    assert planned["critical_path_calls"] <= planned["calls"]
    assert planned["calls_at_least"] <= planned["calls"] <= planned["calls_at_most"]
    assert planned["critical_path_calls"] <= planned["critical_path_calls_at_most"]


@settings(max_examples=40, deadline=None)
@given(
    protocol=st.sampled_from(["round-robin", "moderated"]),
    turns=st.integers(1, 500),
    people=st.lists(st.booleans(), min_size=1, max_size=5),
    summarizer=st.sampled_from(["rule-based", "llm"]),
    keep=st.integers(1, 60),
)
def test_turns_that_are_passed_over_are_counted_as_if_each_was_walked(
    protocol: str, turns: int, people: list[bool], summarizer: str, keep: int
) -> None:
    config = make_config(
        {
            "protocol": protocol,
            "turns": turns,
            "debaters": [
                {"name": f"D{place}", "model": "human" if is_human else None}
                for place, is_human in enumerate(people)
            ],
            "memory": {"summarizer": summarizer, "keep_recent": keep, "summarize_every": keep},
        }
    )
    passed_over = forecast_of(config).to_json()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stand_in.StandIn, "_skip", lambda _: None)
        walked = forecast_of(config).to_json()
    assert passed_over.pop("prompt_tokens") == pytest.approx(walked.pop("prompt_tokens"), rel=0.001)
    for one, other in zip(passed_over.pop("batches"), walked.pop("batches"), strict=True):
        assert one.pop("prompt_tokens") == pytest.approx(other.pop("prompt_tokens"), rel=0.001)
        assert one == other
    assert passed_over == walked


def test_a_forecast_of_ten_thousand_turns_is_as_short_as_one_of_ten() -> None:
    few, many = (forecast_of(make_config({"turns": turns})) for turns in (10, 10_000))
    assert len(many.batches) == len(few.batches)
    assert many.calls == 10_002
