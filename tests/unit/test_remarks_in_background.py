"""Older messages of people: prompts show them whole with the background, and nowhere else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.memory.background import select_background
from moot.memory.window import window_start
from moot.prompts.debate_context import DebateContext
from moot.text.tokens import counter
from tests.support.fakes import FakeModel, fake_reply

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
MEMO = "The pilot in Noord cut lead at the tap from 18 to 4 micrograms. The pilot had 620 homes in Noord."
CORRECTION = (
    "Correction to the memo: in the pilot in Noord the samples were taken after the tap had run. "
    + "Measured at first draw, as the law asks, the values are different for every home. " * 4
    + "The 90th percentile at the end of the pilot is 11 micrograms, not 4; before the pilot it was 27."
)


def _run(correction: str = CORRECTION, **changes: Any) -> tuple[Any, FakeModel]:
    def reply(call: ModelCall) -> Reply:
        text = f"The pilot in Noord convinces me on point {len(model.calls)}, and lead at the tap fell. " * 6
        return fake_reply(call) if call.schema else Reply(text=text, model="m")

    model = FakeModel(reply)
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    config = DebateConfig.model_validate(
        {
            "turns": 14,
            "debaters": [{"name": "Ada"}, {"name": "Bo"}],
            "interjections": [{"after": 3, "text": correction}],
            "judge": {"enabled": False},
            "memory": {"keep_recent": 3, "summarize_every": 3},
            **changes,
        }
    )
    inputs = {"topic": "Should Velden dose?", "context_documents": [{"name": "memo.md", "content": MEMO}]}
    graph.invoke(inputs, THREAD, context=config)
    return graph.get_state(THREAD).values, model


def _turns(model: FakeModel) -> list[ModelCall]:
    return [call for call in model.calls if call.stream_as]


def test_old_message_of_a_person_is_whole_in_every_later_prompt() -> None:
    state, model = _run()
    assert window_start(state) > 6
    after = [call for call in _turns(model) if int(call.stream_as.entry_id[1:]) > 5]  # type: ignore[union-attr]
    assert len(after) > 8
    for call in after:
        text = "\n".join(message["content"] for message in call.messages)
        assert text.count(CORRECTION[-90:]) == 1
        assert text.count("the samples were taken after the tap had run") == 1
        assert call.prompt
    assert CORRECTION in after[-1].messages[after[-1].prompt.layout.index("background") + 1]["content"]  # type: ignore[union-attr]


def test_text_shown_whole_is_neither_summarized_nor_retrieved() -> None:
    state, model = _run()
    summary = state["rolling_summary"]
    assert summary["text"]
    assert "620 homes" not in summary["text"]
    assert "Correction" not in summary["text"]
    assert summary["covers_through_seq"] >= window_start(state) - 1
    for call in _turns(model):
        text = "\n".join(message["content"] for message in call.messages)
        assert text.count("620 homes") == 1
        assert call.prompt
        assert not {"m000001", "m000005"} & {*call.prompt.retrieved}


def test_too_long_message_of_a_person_is_shown_in_passages() -> None:
    filler = "The district has pipes of copper, and nobody measured them in that year. " * 400
    state, model = _run(filler + CORRECTION)
    config = DebateConfig.model_validate(state["config"])
    background = select_background(DebateContext(state, config, counter()), start=window_start(state))
    assert not background.is_whole
    assert background.whole_ids == {"m000001"}
    text = "\n".join(message["content"] for message in _turns(model)[-1].messages)
    assert text.count(MEMO) == 1
    assert "11 micrograms, not 4; before the pilot it was 27" in text
    total = config.memory.budget.total
    assert all(call.prompt and call.prompt.total_tokens <= total for call in model.calls)


def test_summary_cites_all_messages_of_debaters_outside_the_window() -> None:
    state, _ = _run(turns=5, memory={"keep_recent": 1, "summarize_every": 1})
    summary, start = state["rolling_summary"], window_start(state)
    assert summary["covers_through_seq"] == start - 1
    outside = [each["id"] for each in state["full_transcript"][:start] if each["kind"] == "speech"]
    assert outside == ["m000002", "m000003", "m000004", "m000006"]
    assert sorted(re.findall(r"m\d{6}", summary["text"])) == outside


@pytest.mark.parametrize("start", [0, 1, 4])
def test_recent_messages_of_people_are_not_in_the_background(start: int) -> None:
    state, _ = _run(turns=6)
    config = DebateConfig.model_validate(state["config"])
    background = select_background(DebateContext(state, config, counter()), start=start)
    assert background.ids == {"m000001"}
