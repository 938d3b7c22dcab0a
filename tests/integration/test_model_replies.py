"""Replies of a real server on loopback: streams, structured output, tools and usage."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from moot.calls.model_calls import Reply, WireMessage
from moot.models.model_call import complete
from moot.state.entries import EntryUsage
from tests.support.model_bench import CALL, PROMPT, TURN_CALL, ModelBench
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import LONG_TIMEOUT_S


class Score(BaseModel):
    """Structured reply."""

    reasoning: str
    winner: Literal["ada", "ben", "tie"]
    score: int = Field(ge=1, le=10)


class Free(BaseModel):
    """Structured reply that strict mode cannot express."""

    notes: dict[str, str]


# --- streaming


def test_stream_sends_only_the_turn_once_with_its_id_and_name() -> None:
    with OpenAIServer([ServerReply(text="Trams win the day."), ServerReply(text="A summary.")]) as server:
        reply, chunks = ModelBench(server).stream(TURN_CALL, replace(CALL, purpose="summary"))
    assert {(chunk.id, chunk.name) for chunk in chunks} == {("m000007", "ada")}
    assert "".join(chunk.text for chunk in chunks) == reply.text == "Trams win the day."
    assert len([chunk for chunk in chunks if chunk.text]) == 4
    assert server.chats[0]["stream_options"] == {"include_usage": True}


def test_endpoint_without_streaming_gives_the_message_in_one_chunk() -> None:
    with OpenAIServer([ServerReply(text="Trams win.")]) as server:
        _, chunks = ModelBench(server, stream=False).stream(TURN_CALL)
    assert [(chunk.text, chunk.id, chunk.name) for chunk in chunks] == [("Trams win.", "m000007", "ada")]
    assert not server.chats[0].get("stream")


@pytest.mark.parametrize(
    "broken_reply",
    [
        ServerReply(text="Trams win the day again.", reset_after=3),
        ServerReply(text="Trams win the day again.", error_event={"message": "overloaded", "code": 502}),
    ],
    ids=["reset", "error event"],
)
def test_the_retry_after_a_broken_stream_is_not_streamed(broken_reply: ServerReply) -> None:
    with OpenAIServer([broken_reply, ServerReply(text="Buses win.")]) as server:
        reply, chunks = ModelBench(server).stream(TURN_CALL)
    assert (reply.text, reply.attempts) == ("Buses win.", 2)
    assert "Trams win the day again.".startswith("".join(chunk.text for chunk in chunks))


def test_retry_is_streamed_if_the_first_attempt_sent_no_text() -> None:
    with OpenAIServer([ServerReply(status=503), ServerReply(text="Buses win.")]) as server:
        _, chunks = ModelBench(server).stream(TURN_CALL)
    assert "".join(chunk.text for chunk in chunks) == "Buses win."


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_astream_events_v3_streams_a_message_once_with_its_id() -> None:
    async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        reply = await complete(TURN_CALL, context.models, config=config)
        silent = await complete(CALL, context.models, config=config)
        await context.models.aclose()
        usages.extend((reply.usage, silent.usage))
        return {"messages": [AIMessage(reply.text, id="m000007", name="ada")]}

    async def run() -> list[Any]:
        graph = StateGraph(MessagesState)
        graph.add_node("turn", node)
        graph.add_edge(START, "turn")
        stream: Any = await graph.compile().astream_events({"messages": []}, version="v3")
        return [event["params"]["data"][0] async for event in stream if event["method"] == "messages"]

    usages: list[EntryUsage] = []
    with OpenAIServer(
        [ServerReply(text="<think>Hm.</think>Trams win."), ServerReply(text="Quiet.")]
    ) as server:
        context = ModelBench(server)
        events = asyncio.run(run())
    assert [event["id"] for event in events if event["event"] == "message-start"] == ["m000007"]
    texts = [event["delta"]["text"] for event in events if event["event"] == "content-block-delta"]
    assert "".join(texts) == "Trams win."
    assert all(usage["completion_tokens"] > 0 for usage in usages)


# --- structured output

VERDICT = replace(CALL, purpose="judge", schema=Score)
GOOD = '{"reasoning": "r", "winner": "ada", "score": 7}'


def test_stream_is_closed_at_a_long_loop() -> None:
    pieces = ["I am ready. ", *["You are right. "] * 20_000]
    with OpenAIServer([ServerReply(pieces=pieces)]) as server:
        reply, chunks = ModelBench(server).stream(TURN_CALL)
    assert (reply.text, reply.finish_reason) == ("I am ready. You are right", "repetition")
    assert (len(server.chats), len(chunks) < 200) == (1, True)


def test_a_schema_is_sent_in_strict_mode_and_the_reply_is_validated() -> None:
    with OpenAIServer() as server:
        (reply,) = ModelBench(server).ask(VERDICT)
    sent = server.chats[0]["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["additionalProperties"] is False
    assert reply.data == Score.model_validate(reply.data).model_dump()


def test_a_schema_that_strict_mode_cannot_express_is_sent_unchanged() -> None:
    with OpenAIServer() as server:
        (reply,) = ModelBench(server).ask(replace(VERDICT, schema=Free))
    assert server.chats[0]["response_format"]["json_schema"]["strict"] is False
    assert reply.data is not None


@pytest.mark.parametrize("method", ["function_calling", "json_mode", "prompt"])
def test_every_method_of_structured_output_works(method: str) -> None:
    with OpenAIServer() as server:
        (reply,) = ModelBench(server, structured_output=method).ask(VERDICT)
    assert Score.model_validate(reply.data)
    assert reply.tool_calls == ()


def test_json_is_found_in_prose_and_fences() -> None:
    text = f"Sure! Here {{it}} is:\n```json\n{GOOD}\n```\nAnything else?"
    with OpenAIServer([ServerReply(text=text)]) as server:
        (reply,) = ModelBench(server, structured_output="prompt").ask(VERDICT)
    assert reply.data == {"reasoning": "r", "winner": "ada", "score": 7}


def test_an_invalid_reply_is_requested_again_with_its_error() -> None:
    with OpenAIServer([ServerReply(text=GOOD.replace("7", "77")), ServerReply(text=GOOD)]) as server:
        (reply,) = ModelBench(server).ask(VERDICT)
    assert reply.data is not None
    assert "score: Input should be less than or equal to 10" in server.chats[1]["messages"][-1]["content"]


def test_a_reply_that_stays_invalid_is_a_permanent_error() -> None:
    with OpenAIServer([ServerReply(text="no"), ServerReply(text="still no")]) as server:
        (reply,) = ModelBench(server).ask(VERDICT)
    assert len(server.chats) == 2
    assert (reply.ok, reply.retryable) == (False, False)
    assert "does not match the schema" in reply.error


def test_rejected_output_method_is_replaced_for_later_calls() -> None:
    def refuse(request: dict[str, Any], number: int) -> ServerReply | None:
        kind = (request.get("response_format") or {}).get("type")
        return ServerReply(status=400, message="unknown response_format") if kind else None

    with OpenAIServer(refuse) as server:
        first, second = ModelBench(server).ask(VERDICT, VERDICT)
    kinds = [(body.get("response_format") or {}).get("type") for body in server.chats]
    assert kinds == ["json_schema", "json_object", None, None]
    assert first.data == second.data is not None


def test_too_long_prompt_does_not_change_the_output_method() -> None:
    with OpenAIServer([ServerReply(status=400, code="context_length_exceeded")]) as server:
        failed, later = ModelBench(server).ask(VERDICT, VERDICT)
    assert failed.status == 400
    assert later.ok
    assert server.chats[1]["response_format"]["type"] == "json_schema"


def test_refusal_is_retried_with_the_fallback_model() -> None:
    with OpenAIServer({"test-model": [ServerReply(text="", refusal="I will not.")]}) as server:
        (reply,) = ModelBench(server).ask(replace(VERDICT, fallbacks=("spare-model",)))
    assert (reply.model, reply.attempts) == ("spare-model", 2)


# --- tools, usage, roles


def test_tools_are_offered_and_their_calls_returned() -> None:
    tool = {
        "type": "function",
        "function": {"name": "add", "parameters": {"type": "object", "properties": {}}},
    }
    with OpenAIServer([ServerReply(tool_calls=[("add", {"a": 1})], finish_reason="tool_calls")]) as server:
        (reply,) = ModelBench(server).ask(replace(CALL, tools=(tool,)))
    assert server.chats[0]["tools"] == [tool]
    assert reply.tool_calls == ({"id": "call_0", "name": "add", "args": {"a": 1}},)
    assert (reply.ok, reply.finish_reason) == (True, "tool_calls")


def test_a_tool_result_is_sent_in_openais_format() -> None:
    tool_call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages: tuple[WireMessage, ...] = (
        *PROMPT,
        {"role": "assistant", "content": "", "tool_calls": [tool_call]},
        {"role": "tool", "content": "2", "tool_call_id": "c1"},
    )
    with OpenAIServer() as server:
        ModelBench(server, merge_roles=True).ask(replace(CALL, messages=messages))
    sent = server.chats[0]["messages"]
    assert sent[-2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert (sent[-1]["role"], sent[-1]["tool_call_id"], sent[-1]["content"]) == ("tool", "c1", "2")


@pytest.mark.parametrize("live", [False, True], ids=["whole", "streamed"])
def test_usage_and_cost_are_those_of_the_provider(live: bool) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    prices = {"input_usd_per_million": 2.0, "cached_usd_per_million": 1.0, "output_usd_per_million": 10.0}
    with OpenAIServer([ServerReply(usage=usage)]) as server:
        context = ModelBench(server, **prices)
        reply = context.stream(TURN_CALL)[0] if live else context.ask(CALL)[0]
    assert reply.usage == {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "cached_tokens": 400,
        "reasoning_tokens": 30,
        "cost_usd": pytest.approx((600 * 2 + 400 * 1 + 100 * 10) / 1e6),
    }


def test_usage_is_estimated_if_the_provider_reports_none() -> None:
    with OpenAIServer([ServerReply(text="Trams win.", report_usage=False)]) as server:
        (reply,) = ModelBench(server).ask(replace(CALL, prompt_tokens=321))
    assert reply.usage == {"prompt_tokens": 321, "completion_tokens": 4}


def test_usage_includes_every_billed_attempt() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    with OpenAIServer(
        [ServerReply(text="", usage=usage), ServerReply(status=500), ServerReply(text="Yes.", usage=usage)]
    ) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert reply.usage == {"prompt_tokens": 20, "completion_tokens": 10}


def test_messages_merge_into_one_for_templates_without_a_system_role() -> None:
    with OpenAIServer() as server:
        ModelBench(server, merge_roles=True, system_role=False).ask(CALL)
    (message,) = server.chats[0]["messages"]
    assert message["role"] == "user"
    assert message["content"] == "Rules.\n\nAda Lovelace: Trams are cheap.\n\nben: They are slow."


def test_calls_run_concurrently_and_get_their_own_replies() -> None:
    async def batch(context: ModelBench) -> list[Reply]:
        calls = [replace(CALL, messages=(*PROMPT, {"role": "user", "content": str(n)})) for n in range(8)]
        try:
            return await asyncio.gather(*(complete(call, context.models) for call in calls))
        finally:
            await context.models.aclose()

    all_there = threading.Barrier(8, timeout=LONG_TIMEOUT_S)

    def plan(request: Any, number: int) -> None:
        if number < 8:
            all_there.wait()

    with OpenAIServer(plan) as server:
        concurrent_replies = asyncio.run(batch(ModelBench(server)))
        second_replies = asyncio.run(batch(ModelBench(server)))
    assert server.peak == 8
    assert [reply.text for reply in concurrent_replies] == [reply.text for reply in second_replies]
    assert len({reply.text for reply in concurrent_replies}) == 8
