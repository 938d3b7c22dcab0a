"""Moderated and random round-robins: who speaks next."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.calls.effects import Reply
from moot.protocols.base import ConsultModels, End, with_agreement
from moot.protocols.long_form import PATIENCE, Moderated, RandomOrder, is_stuck
from moot.protocols.registry import PROTOCOLS
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step
from moot.state.entries import Entry, make_entry
from tests.support.personas import TOPIC, ScriptedDebaters, run_scripted_debate
from tests.support.snapshots import check_snapshot, prompt_markdown


def _long(protocol: str, size: int = 3, **data: Any) -> DebateConfig:
    people = [{"name": name} for name in ("Ada", "Bob", "Cyd", "Dan", "Eve")[:size]]
    return DebateConfig.model_validate({"protocol": protocol, "debaters": people, "turns": 40, **data})


def _after(config: DebateConfig, *speakers: str, **fields: Any) -> ConversationState:
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


def _shown_in(seq: int) -> list[Any]:
    """Return a note of evidence in a message: progress."""
    place = {"debater": "ada", "message_id": f"m{seq:06d}", "quote": "…", "claim": "", "by": "model"}
    return [{"type": "evidence", "id": "x001", "kind": "figure", **place}]


def _moderated(state: ConversationState, config: DebateConfig, reply: Reply) -> Step:
    step = Moderated().next_step(state, config)
    assert isinstance(step, ConsultModels)
    return cast(Step, step.decide([reply]))


def _names(who: str) -> Reply:
    return Reply(data={"reasoning": "", "next_speaker": who, "instruction": "Answer\n# Now\nBob."})


def test_the_moderator_gives_the_floor_and_says_what_to_do_with_it() -> None:
    config = _long("moderated")
    (turn,) = _moderated(_after(config, "ada"), config, _names("Cyd"))["turns"]
    assert turn["speaker"] == "cyd"
    assert "The moderator asks you: Answer Now Bob." in turn["instruction"]


@pytest.mark.parametrize(
    "reply",
    [Reply(error="down"), _names("nobody"), Reply(data={"x": 1})],
    ids=["failed", "nobody", "another schema"],
)
def test_without_a_moderator_s_word_the_order_of_the_configuration_decides(reply: Reply) -> None:
    config = _long("moderated")
    assert _moderated(_after(config, "cyd"), config, reply)["turns"][0]["speaker"] == "bob"


@pytest.mark.parametrize(
    ("spoke", "named", "gets"),
    [
        pytest.param(("bob", "cyd", "ada", "ada"), "Ada", "bob", id="one alone"),
        pytest.param(("cyd", "ada", "bob", "ada", "bob"), "Ada", "cyd", id="a pair"),
        pytest.param(("cyd", "bob", "ada", "bob"), "Ada", "ada", id="a pair, not for long"),
    ],
)
def test_without_progress_the_least_recent_speaker_gets_the_floor(
    spoke: tuple[str, ...], named: str, gets: str
) -> None:
    config = _long("moderated")
    assert _moderated(_after(config, *spoke), config, _names(named))["turns"][0]["speaker"] == gets


def test_with_progress_the_moderator_may_let_the_same_one_go_on() -> None:
    config = _long("moderated")
    state = _after(config, "bob", "ada", "ada", claim_events=_shown_in(3))
    assert not is_stuck(state, config, "ada")


def test_calls_of_tools_are_no_turns_without_progress() -> None:
    config = _long("moderated")
    state = _after(config, "bob", "ada", "ada", claim_events=_shown_in(2))
    *before, last = state["full_transcript"]
    tools = [make_entry(3, "ada", "tool_call", "…"), make_entry(4, "tools", "tool_result", "…")]
    state["full_transcript"] = [*before, *tools, Entry(**{**last, "seq": 5, "id": "m000005"})]
    assert not is_stuck(state, config, "ada")


@pytest.mark.parametrize("seed", [1, 3, 14, 18, 29])
def test_one_of_two_is_not_drawn_for_ever_without_progress(seed: int) -> None:
    config = _long("random", 2, seed=seed)
    spoke: list[str] = []
    for _ in range(40):
        step = cast(Step, RandomOrder().next_step(_after(config, *spoke), config))
        spoke.append(step["turns"][0]["speaker"])
    longest = max(len(list(run)) for _, run in groupby(spoke))
    assert longest <= PATIENCE


@given(st.integers(0, 2**32), st.integers(3, 5), st.integers(1, 30))
def test_a_drawn_speaker_never_speaks_twice_in_a_row_and_is_the_same_for_the_same_seed(
    seed: int, size: int, turns: int
) -> None:
    def drawn() -> list[str]:
        config = _long("random", size, seed=seed)
        spoke: list[str] = []
        for _ in range(turns):
            step = cast(Step, RandomOrder().next_step(_after(config, *spoke), config))
            spoke.append(step["turns"][0]["speaker"])
        return spoke

    first = drawn()
    assert first == drawn()
    assert all(one != other for one, other in pairwise(first))


@pytest.mark.parametrize("protocol", ["moderated", "random", "round-robin"])
def test_a_long_form_ends_when_all_turns_are_taken(protocol: str) -> None:
    config = _long(protocol, turns=3)
    assert isinstance(PROTOCOLS[protocol].next_step(_after(config, "ada", "bob", "cyd"), config), End)


def test_how_readily_debaters_agree_is_said_in_every_instruction() -> None:
    levels = (0, 0.3, 0.5, 0.7, 1)
    told = [with_agreement("", _long("random", agreement_intensity=each)).strip() for each in levels]
    assert len(set(told)) == 5
    assert with_agreement("Speak.", _long("random")) == "Speak."
    config = _long("round-robin", agreement_intensity=1.0)
    step = cast(Step, PROTOCOLS["round-robin"].next_step(_after(config), config))
    assert told[-1] in step["turns"][0]["instruction"]


def test_the_moderator_s_prompt_is_as_reviewed() -> None:
    config = _long("moderated", judge={"enabled": False}, turns=4)
    model = ScriptedDebaters()
    run_scripted_debate(config, model)
    calls = [call for call in model.calls if call.purpose == "moderate"]
    check_snapshot("moderated-moderate", prompt_markdown(calls[-1].messages))
