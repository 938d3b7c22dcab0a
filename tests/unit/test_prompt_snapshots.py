"""Snapshots of assembled prompts: turns in both layouts, the judge, questions and summaries."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from moot.asking.select import ask_index, question_prompt
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.memory.cross_debate_memory import MemoryIndexes
from moot.prompts.debate_context import DebateContext
from moot.retrieval.indexes import Indexes
from moot.state.claim_events import MAIN_QUESTION
from moot.text.tokens import counter
from tests.support.fakes import FakeModel, fake_reply
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


def _line(message_id: str) -> str:
    return LINES[(int(message_id[1:]) - 1) % len(LINES)]


REPAIR = {"ref": "n1", "text": "Free trams save road repair"}
CLAIMS = {
    1: ("n1", "asserts", "so roads need less repair"),
    2: ("n1", "concedes", "I concede that roads need less repair"),
    3: (MAIN_QUESTION, "asserts", "less than one road bridge a year"),
    4: (MAIN_QUESTION, "denies", "the city saves nothing"),
}
"""Claim, kind and quotation of the claim event in each line of `LINES`."""


def _claims(call: ModelCall) -> dict[str, Any]:
    """Return the extractor's reply for the messages of a call."""
    events = []
    for message_id in call.hints["message_ids"]:
        if stance := CLAIMS.get((int(message_id[1:]) - 1) % len(LINES)):
            event = dict(zip(("claim", "kind", "quote"), stance, strict=True))
            more = {"condition": "", "ground": False, "confidence": 0.9}
            events.append({**event, **more, "message_id": message_id})
    schema: Any = call.schema
    lists: dict[str, Any] = {key: [] for key in schema.model_fields}
    return {**lists, "reasoning": "", "claims": [REPAIR], "events": events}


def _reply(call: ModelCall) -> Reply:
    if call.schema is not None and call.schema.__name__ == "ExtractedClaims":
        return Reply(data=_claims(call), model="m")
    if call.schema is not None:
        return fake_reply(call)
    if call.purpose == "summary":
        return Reply(
            text="Ada doubts that free trams pay [m000001]; Bo points to Tallinn [m000002].", model="m"
        )
    assert call.stream_as is not None
    return Reply(text=_line(call.stream_as.entry_id), model="m")


@lru_cache(maxsize=8)
def _run_debate(summarizer: str = "rule-based", layout: str = "shared") -> tuple[list[ModelCall], Any]:
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
                "summarizer": summarizer,
                "layout": layout,
            },
            "blackboard": {"extraction": "llm", "model": "m", "verify_changes": False},
        }
    )
    model = FakeModel(_reply)
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    graph.invoke({"topic": TOPIC}, THREAD, context=config)
    return model.calls, graph.get_state(THREAD).values


def _turns(layout: str = "shared") -> list[ModelCall]:
    return [call for call in _run_debate(layout=layout)[0] if call.purpose == "turn"]


@pytest.mark.parametrize(("phase", "turn"), [("opening", 0), ("argument", 9), ("closing", 11)])
def test_round_robin_prompts_match_their_snapshots(phase: str, turn: int) -> None:
    check_snapshot(f"round-robin-{phase}", prompt_markdown(_turns()[turn].messages))


def test_the_per_speaker_prompt_matches_its_snapshot() -> None:
    check_snapshot("round-robin-per-speaker", prompt_markdown(_turns("per-speaker")[9].messages))


def test_messages_before_the_window_are_summarized_and_retrieved() -> None:
    later = _turns()[9].messages
    assert later[2]["content"].startswith("# Summary of the debate up to [m000006]")
    assert "[m000007]:" in later[3]["content"]
    assert "# Where the debate stood at [m" in later[-1]["content"]
    assert "# Earlier messages that matter here" in later[-1]["content"]


def test_judge_prompts_in_both_orders_match_their_snapshots() -> None:
    requests = [call for call in _run_debate()[0] if call.purpose == "judge"]
    assert len(requests) == 2
    for name, call in zip(("first", "swapped"), requests, strict=True):
        check_snapshot(f"round-robin-judge-{name}", prompt_markdown(call.messages))


def test_the_question_prompt_matches_its_snapshot() -> None:
    state = _run_debate()[1]
    config = DebateConfig.model_validate(state["config"])
    debate = DebateContext(state, config, counter())
    index = ask_index(debate, MemoryIndexes(Indexes(), ""))
    asked = question_prompt(debate, "What do evening drivers cost?", index)
    check_snapshot("ask", prompt_markdown(asked.prompt.messages))


@pytest.mark.parametrize("method", ["llm", "hierarchical"])
def test_summary_prompts_match_their_snapshots(method: str) -> None:
    asked = [call for call in _run_debate(method)[0] if call.purpose == "summary"]
    kinds = {call.messages[0]["content"].split("\n")[0]: call for call in asked}
    for number, call in enumerate(kinds.values()):
        check_snapshot(f"summary-{method}-{number}", prompt_markdown(call.messages))


def test_prompts_show_the_times_of_a_dated_transcript() -> None:
    times = ["1:56 pm on 8 May, 2023", "2023-05-25T13:14:07Z", "[m000001] Judge:", "12"]
    entries = [
        {"speaker": ("ada", "bo")[n % 2], "content": line, "at": at}
        for n, (line, at) in enumerate(zip(LINES, times, strict=False))
    ]
    config = DebateConfig.model_validate(
        {
            "turns": 2,
            "debaters": [{"name": "Ada"}, {"name": "Bo"}],
            "blackboard": {"extraction": "llm", "model": "m", "verify_changes": False},
        }
    )
    model = FakeModel(_reply)
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    inputs = {"topic": TOPIC, "full_transcript": entries}
    state = graph.invoke(inputs, THREAD, context=config) and graph.get_state(THREAD).values
    debate = DebateContext(state, config, counter())
    index = ask_index(debate, MemoryIndexes(Indexes(), ""))
    asked = question_prompt(debate, "What do trams cost?", index)
    prompts = {
        "ask": asked.prompt.messages,
        "judge": next(call.messages for call in model.calls if call.purpose == "judge"),
        "extraction": next(
            call.messages for call in model.calls if call.schema and call.schema.__name__ == "ExtractedClaims"
        ),
    }
    for name, messages in prompts.items():
        check_snapshot(f"dated-{name}", prompt_markdown(messages))
        texts = [message["content"] for message in messages]
        assert sum("(1:56 pm on 8 May, 2023):" in text for text in texts) == 1
        assert sum("(2023-05-25 13:14):" in text for text in texts) == 1
        assert not any("(m000001" in text or "(12)" in text for text in texts)
