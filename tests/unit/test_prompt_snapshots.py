"""Snapshots of assembled prompts: the long form in both layouts, the judge, questions, summaries."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from moot.graph.debate import build_graph
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.memory.indexes import Indexes
from moot.nodes.text.tokens import counter
from moot.nodes.views.question_view import ask_index, ask_view
from moot.state.config import DebateConfig
from tests.support.fakes import FakeModel, answer
from tests.support.snapshots import check_snapshot, prompt_markdown

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
TOPIC = "Should the city make its trams free?"
LINES = (
    "I maintain that free trams cost 40 million crowns a year. That is what the budget of 2019 says.",
    "Ada, you count only the fares. Ridership rose by 12 % in Tallinn, so roads need less repair.",
    "I concede that roads need less repair. Still, who pays for drivers in the evening?",
    "Evening drivers cost 3 million crowns, which is less than one road bridge a year.",
    "I disagree: the bridge of 2021 was paid by the state, so the city saves nothing.",
    "You changed the subject from fares to bridges. Have you any figure for the evening?",
    "In the evening a tram carries 11 people on average, as counted in March.",
    "I now think that free trams should end at nine in the evening, for 11 people are few.",
)


def _reply(call: ModelCall) -> Reply:
    if call.schema is not None:
        return answer(call)
    if call.purpose == "summary":
        return Reply(
            text="Ada doubts that free trams pay [m000001]; Bo points to Tallinn [m000002].", model="m"
        )
    assert call.speak_as is not None
    return Reply(text=LINES[(int(call.speak_as.entry_id[1:]) - 1) % len(LINES)], model="m")


@lru_cache(maxsize=8)
def _debate(layout: str, summarizer: str = "rule-based") -> tuple[list[ModelCall], Any]:
    config = DebateConfig.model_validate(
        {
            "turns": 12,
            "debaters": [
                {"name": "Ada", "stance": "against free trams", "persona": "You count every crown."},
                {"name": "Bo", "stance": "for free trams"},
            ],
            "memory": {
                "keep_recent": 3,
                "summarize_every": 3,
                "layout": layout,
                "summarizer": summarizer,
            },
        }
    )
    model = FakeModel(_reply)
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    graph.invoke({"topic": TOPIC}, THREAD, context=config)
    return model.calls, graph.get_state(THREAD).values


def _turns(layout: str) -> list[ModelCall]:
    return [call for call in _debate(layout)[0] if call.purpose == "turn"]


@pytest.mark.parametrize(("phase", "turn"), [("opening", 0), ("argument", 9), ("closing", 11)])
def test_the_prompt_of_a_turn_in_the_long_form(phase: str, turn: int) -> None:
    check_snapshot(f"round-robin-{phase}", prompt_markdown(_turns("shared")[turn].messages))


def test_what_the_window_has_lost_is_in_the_summary_on_the_blackboard_and_brought_back() -> None:
    later = _turns("shared")[9].messages
    assert later[2]["content"].startswith("# Summary of the debate up to [m000003]")
    assert "# Where the debate stood at [m" in later[-1]["content"]
    assert "# From earlier in the debate" in later[-1]["content"]


def test_the_prompt_of_a_turn_in_the_per_speaker_layout() -> None:
    check_snapshot("round-robin-per-speaker", prompt_markdown(_turns("per-speaker")[9].messages))


def test_the_prompts_of_a_judge_in_both_orders() -> None:
    sittings = [call for call in _debate("shared")[0] if call.purpose == "judge"]
    assert len(sittings) == 2
    for name, call in zip(("first", "swapped"), sittings, strict=True):
        check_snapshot(f"round-robin-judge-{name}", prompt_markdown(call.messages))


def test_the_prompt_of_a_question() -> None:
    state = _debate("shared")[1]
    config = DebateConfig.model_validate(state["config"])
    index = ask_index(Indexes(), "", state, config)
    asked = ask_view(state, config, "What do evening drivers cost?", index, counter())
    check_snapshot("ask", prompt_markdown(asked.view.messages))


@pytest.mark.parametrize("method", ["llm", "hierarchical"])
def test_the_prompts_of_summaries(method: str) -> None:
    asked = [call for call in _debate("shared", method)[0] if call.purpose == "summary"]
    kinds = {call.messages[0]["content"].split("\n")[0]: call for call in asked}
    for number, call in enumerate(kinds.values()):
        check_snapshot(f"summary-{method}-{number}", prompt_markdown(call.messages))
