"""Texts of turns: marks for other speakers and loops, and streamed text that is replaced."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import REPEATED, ModelCall, Reply
from moot.config import DebateConfig, DebaterConfig
from moot.graph.debate import build_graph
from moot.plugins.web.debate_host import append_token
from moot.protocols.prompt_context import contract_text
from tests.support.fakes import FakeModel

USAGE: Any = {"prompt_tokens": 1, "completion_tokens": 1}


def debate(text: str, finish_reason: str = "stop") -> Any:
    """Run a debate of two turns in which Ann's replies have the given text, and return its state."""

    def answer(call: ModelCall) -> Reply:
        said = text if call.hints.get("speaker") == "Ann" else "The bridge opens in June, as the plan says."
        return Reply(text=said, model="m", usage=USAGE, finish_reason=finish_reason)

    debaters = [{"name": "Ann", "role": "harbour master"}, {"name": "Bob"}]
    settings = {"debaters": debaters, "model": "m", "turns": 3, "judge": {"enabled": False}}
    model = FakeModel(answer)
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    thread: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15d"}}
    graph.invoke({"topic": "Ferries?"}, thread, context=DebateConfig.model_validate(settings))
    return graph.get_state(thread).values


def messages(state: Any) -> list[str]:
    return [entry["content"] for entry in state["full_transcript"] if entry["speaker"] == "ann"]


def test_line_in_another_debaters_name_is_marked_in_the_transcript() -> None:
    assert (
        messages(debate("Keep it.\n\nBob: I give up."))[0] == "Keep it.\n\nBob (written by Ann): I give up."
    )


def test_exact_quotation_of_an_earlier_message_is_not_marked() -> None:
    text = "You said:\nBob: The bridge opens in June, as the plan says."
    first, second = messages(debate(text))
    assert "(written by Ann)" in first  # Bob has not said it yet
    assert second == text


def test_loop_is_marked_and_the_setting_is_named() -> None:
    state = debate("Keep it. Keep it.", REPEATED)
    assert messages(state)[0].endswith("[…cut off: the model repeated itself]")
    assert any("`models.m.parameters`" in each["error"] for each in state["errors"])


def test_replaced_text_of_a_stream_starts_anew() -> None:
    streamed: Any = {}
    token: Any = {"event": "token", "id": "m000001", "speaker": "ann", "text": "I plan"}
    append_token(streamed, token)
    for text in ("Keep ", "it."):
        event: Any = {**token, "text": text, "replaces": text == "Keep "}
        append_token(streamed, event)
    assert streamed == {"m000001": {"speaker": "ann", "text": "Keep it.", "replaces": True}}


def test_a_stance_with_a_full_stop_gets_no_second_one() -> None:
    text = contract_text(DebaterConfig(name="Ada", role="the cook.", stance="Close it."))
    assert "Your role: the cook.\n" in text
    assert "Your stance at the start: Close it.\n" in f"{text}\n"
