"""Moderated and random round-robins: the choice of the next speaker."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from moot.calls.model_calls import Reply
from moot.config import DebateConfig
from moot.protocols.long_form import PATIENCE, Moderated, RandomOrder, would_stall
from moot.protocols.registry import PROTOCOLS
from moot.protocols.schedule import ConsultModels, End, with_agreement
from moot.state.conversation import ConversationState, Step
from moot.state.entries import Entry, make_entry
from tests.support.personas import TOPIC, ScriptedDebaters, run_scripted_debate
from tests.support.snapshots import check_snapshot, prompt_markdown


def _config(protocol: str, size: int = 3, **data: Any) -> DebateConfig:
    people = [{"name": name} for name in ("Ada", "Bob", "Cyd", "Dan", "Eve")[:size]]
    return DebateConfig.model_validate({"protocol": protocol, "debaters": people, "turns": 40, **data})


def _state_after(config: DebateConfig, *speakers: str, **fields: Any) -> ConversationState:
    entries = [make_entry(0, "user", "topic", TOPIC)]
    entries += [make_entry(n, who, "speech", "…") for n, who in enumerate(speakers, 1)]
    return cast(
        ConversationState,
        {
            "topic": TOPIC,
            "config": config.to_json(),
            "full_transcript": entries,
            "turn_count": len(speakers),
            **fields,
        },
    )


def _evidence_in(seq: int) -> list[Any]:
    """Return an evidence event for a message. Evidence counts as progress."""
    place = {"debater": "ada", "message_id": f"m{seq:06d}", "quote": "…", "claim": "", "by": "model"}
    return [{"type": "evidence", "id": "x001", "kind": "figure", **place}]


def _moderated_step(state: ConversationState, config: DebateConfig, reply: Reply) -> Step:
    step = Moderated().next_step(state, config)
    assert isinstance(step, ConsultModels)
    return cast(Step, step.decide([reply]))


def _choice_of(who: str) -> Reply:
    return Reply(data={"reasoning": "", "next_speaker": who, "instruction": "Answer\n# Now\nBob."})


def test_moderator_chooses_the_next_speaker_and_the_instruction() -> None:
    config = _config("moderated")
    (turn,) = _moderated_step(_state_after(config, "ada"), config, _choice_of("Cyd"))["turns"]
    assert turn["speaker"] == "cyd"
    assert "The moderator asks you: Answer Now Bob." in turn["instruction"]


@pytest.mark.parametrize(
    "reply",
    [Reply(error="down"), _choice_of("nobody"), Reply(data={"x": 1})],
    ids=["failed", "nobody", "another schema"],
)
def test_configured_order_applies_if_the_moderator_fails(reply: Reply) -> None:
    config = _config("moderated")
    assert _moderated_step(_state_after(config, "cyd"), config, reply)["turns"][0]["speaker"] == "bob"


@pytest.mark.parametrize(
    ("spoke", "named", "gets"),
    [
        pytest.param(("bob", "cyd", "ada", "ada"), "Ada", "bob", id="one speaker"),
        pytest.param(("cyd", "ada", "bob", "ada", "bob"), "Ada", "cyd", id="a pair"),
        pytest.param(("cyd", "bob", "ada", "bob"), "Ada", "ada", id="a pair, briefly"),
    ],
)
def test_least_recent_speaker_gets_the_turn_without_progress(
    spoke: tuple[str, ...], named: str, gets: str
) -> None:
    config = _config("moderated")
    assert (
        _moderated_step(_state_after(config, *spoke), config, _choice_of(named))["turns"][0]["speaker"]
        == gets
    )


def test_same_speaker_may_continue_while_there_is_progress() -> None:
    config = _config("moderated")
    state = _state_after(config, "bob", "ada", "ada", claim_events=_evidence_in(3))
    assert not would_stall(state, config, "ada")


def test_tool_calls_do_not_count_as_turns_without_progress() -> None:
    config = _config("moderated")
    state = _state_after(config, "bob", "ada", "ada", claim_events=_evidence_in(2))
    *before, last = state["full_transcript"]
    tools = [make_entry(3, "ada", "tool_call", "…"), make_entry(4, "tools", "tool_result", "…")]
    state["full_transcript"] = [*before, *tools, Entry(**{**last, "seq": 5, "id": "m000005"})]
    assert not would_stall(state, config, "ada")


@pytest.mark.parametrize("seed", [1, 3, 14, 18, 29])
def test_random_order_limits_consecutive_turns_of_two_debaters(seed: int) -> None:
    config = _config("random", 2, seed=seed)
    spoke: list[str] = []
    for _ in range(40):
        step = cast(Step, RandomOrder().next_step(_state_after(config, *spoke), config))
        spoke.append(step["turns"][0]["speaker"])
    longest = max(len(list(run)) for _, run in groupby(spoke))
    assert longest <= PATIENCE


@given(st.integers(0, 2**32), st.integers(3, 5), st.integers(1, 30))
def test_random_order_never_repeats_a_speaker_and_follows_the_seed(seed: int, size: int, turns: int) -> None:
    def drawn() -> list[str]:
        config = _config("random", size, seed=seed)
        spoke: list[str] = []
        for _ in range(turns):
            step = cast(Step, RandomOrder().next_step(_state_after(config, *spoke), config))
            spoke.append(step["turns"][0]["speaker"])
        return spoke

    first = drawn()
    assert first == drawn()
    assert all(one != other for one, other in pairwise(first))


@pytest.mark.parametrize("protocol", ["moderated", "random", "round-robin"])
def test_debate_ends_when_all_turns_are_taken(protocol: str) -> None:
    config = _config(protocol, turns=3)
    assert isinstance(PROTOCOLS[protocol].next_step(_state_after(config, "ada", "bob", "cyd"), config), End)


def test_agreement_intensity_is_stated_in_every_instruction() -> None:
    levels = (0, 0.3, 0.5, 0.7, 1)
    instructions = [
        with_agreement("", _config("random", agreement_intensity=each)).strip() for each in levels
    ]
    assert len(set(instructions)) == 5
    assert with_agreement("Speak.", _config("random")) == "Speak."
    config = _config("round-robin", agreement_intensity=1.0)
    step = cast(Step, PROTOCOLS["round-robin"].next_step(_state_after(config), config))
    assert instructions[-1] in step["turns"][0]["instruction"]


def test_moderator_prompt_matches_its_snapshot() -> None:
    config = _config("moderated", judge={"enabled": False}, turns=4)
    model = ScriptedDebaters()
    run_scripted_debate(config, model)
    calls = [call for call in model.calls if call.purpose == "moderate"]
    check_snapshot("moderated-moderate", prompt_markdown(calls[-1].messages))
