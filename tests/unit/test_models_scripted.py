from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from moot.calls.model_calls import ModelCall, Reply
from moot.config.model_settings import ModelSettings
from moot.models.failures import Backoff
from moot.models.model_call import complete
from moot.models.offline import Script, ScriptedCall, ScriptedModel
from moot.models.registry import Models
from moot.state.errors import ModelError

CALL = ModelCall(
    "turn", "scripted", ({"role": "user", "content": "Hello"},), 99, seed=3, hints={"phase": "take"}
)


class Pair(BaseModel):
    """A structured answer."""

    a: int
    b: str


async def _no_wait(seconds: float) -> None:
    pass


def ask(script: Script, *calls: ModelCall, **settings: Any) -> list[Reply]:
    """Make calls of a scripted model."""
    model = ScriptedModel(script)
    models = Models(
        settings={"scripted": ModelSettings(**settings)},
        factory=lambda name, given: model,
        backoff=Backoff(sleep=_no_wait),
    )

    async def run() -> list[Reply]:
        return [await complete(call, models) for call in calls]

    return asyncio.run(run())


def test_a_list_gives_one_reply_for_each_call() -> None:
    model = ScriptedModel(["one", {"two": 2}, AIMessage("three")])
    replies = [model.invoke("x").content for _ in range(3)]
    assert replies == ["one", '{"two": 2}', "three"]
    with pytest.raises(ModelError, match="has only 3 replies"):
        model.invoke("x")


def test_an_iterator_or_a_function_can_be_a_script() -> None:
    assert ScriptedModel(iter(["one"])).invoke("x").content == "one"

    def echo(call: ScriptedCall) -> str:
        return f"you said {call.messages[-1].text}"

    assert ScriptedModel(echo).invoke("hi").content == "you said hi"


def test_an_error_in_the_script_is_raised() -> None:
    with pytest.raises(RuntimeError, match="broken"):
        ScriptedModel([RuntimeError("broken")]).invoke("x")


def test_a_scripted_model_streams_word_by_word() -> None:
    pieces = [chunk.text for chunk in ScriptedModel(["one two  three"]).stream("x")]
    assert [piece for piece in pieces if piece] == ["one", " two", " ", " three"]


def test_a_scripted_model_records_its_calls() -> None:
    model = ScriptedModel(["one"])
    asyncio.run(complete(CALL, Models(factory=lambda name, given: model)))
    (call,) = model.calls
    assert call.messages == [HumanMessage("Hello")]
    assert call.parameters["hints"] == {"purpose": "turn", "phase": "take"}
    assert (call.parameters["seed"], call.parameters["max_tokens"]) == (3, 99)


def test_an_invalid_structured_reply_is_requested_again() -> None:
    (reply,) = ask([{"a": "x"}, {"a": 1, "b": "y"}], replace(CALL, schema=Pair))
    assert (reply.data, reply.attempts) == ({"a": 1, "b": "y"}, 2)


def test_an_exception_of_a_local_model_becomes_an_error_reply() -> None:
    (reply,) = ask([RuntimeError("broken")], CALL)
    assert reply.error == "scripted: unusable answer (RuntimeError): broken"
    assert not reply.ok


def test_attempts_stop_at_the_configured_number() -> None:
    (reply,) = ask([TimeoutError()] * 9, CALL, max_attempts=4)
    assert (reply.attempts, reply.retryable) == (4, True)


def test_a_summary_call_has_at_most_two_attempts() -> None:
    (reply,) = ask([TimeoutError()] * 9, replace(CALL, purpose="summary"), max_attempts=4)
    assert reply.attempts == 2


def test_usage_of_a_local_model_is_counted_exactly() -> None:
    known, unknown = ask(["Trams win."] * 2, replace(CALL, prompt_tokens=77), CALL)
    assert known.usage == {"prompt_tokens": 77, "completion_tokens": 4}
    assert unknown.usage["prompt_tokens"] == 8


def test_a_reply_survives_a_json_round_trip() -> None:
    (reply,) = ask([{"a": 1, "b": "y"}], replace(CALL, schema=Pair))
    assert Reply.from_json(reply.to_json()) == reply
