"""The one call against a real server on loopback: what goes out, what comes back, and what is survived."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from nodes.models.backoff import Backoff
from nodes.models.calls import ModelCall, Reply, SpeakAs, WireMessage
from nodes.models.complete import complete
from nodes.models.registry import Models
from state.config_models import ModelSettings
from state.entries import EntryUsage
from state.errors import ConfigError
from tests.support.openai_server import Act, OpenAIServer

PROMPT: tuple[WireMessage, ...] = (
    {"role": "system", "content": "Rules."},
    {"role": "user", "name": "Ada Lovelace", "content": "Trams are cheap."},
    {"role": "user", "name": "ben", "content": "They are slow."},
)
CALL = ModelCall("turn", "test-model", PROMPT, 200)
FLOOR = replace(CALL, speak_as=SpeakAs("m000007", "ada"))


class Score(BaseModel):
    """A structured answer."""

    reasoning: str
    winner: Literal["ada", "ben", "tie"]
    score: int = Field(ge=1, le=10)


class Free(BaseModel):
    """A structured answer that strict mode cannot say."""

    notes: dict[str, str]


class Bench:
    """A server, the models that reach it, and the waits that were asked for."""

    def __init__(self, server: OpenAIServer, **settings: Any) -> None:
        self.server = server
        self.waits: list[float] = []
        given = ModelSettings(base_url=server.base_url, **settings)
        self.models = Models(
            settings={name: given for name in ("test-model", "spare-model", "o3-mini")},
            backoff=Backoff(sleep=self._sleep, dice=lambda: 1.0),
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def ask(self, *calls: ModelCall) -> list[Reply]:
        """Make calls one after the other."""
        return asyncio.run(self._ask(calls))

    async def _ask(self, calls: Sequence[ModelCall]) -> list[Reply]:
        try:
            return [await complete(call, self.models) for call in calls]
        finally:
            await self.models.aclose()

    def stream(self, call: ModelCall, *silent: ModelCall) -> tuple[Reply, list[AIMessageChunk]]:
        """Make a call in a LangGraph node, others after it, and collect what the graph streams."""
        replies: list[Reply] = []

        async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
            for one in (call, *silent):
                replies.append(await complete(one, self.models, config=config))
            return {"messages": [AIMessage(replies[0].text, id="m000007", name="ada")]}

        async def run() -> list[AIMessageChunk]:
            graph = StateGraph(MessagesState)
            graph.add_node("turn", node)
            graph.add_edge(START, "turn")
            graph.add_edge("turn", END)
            stream = graph.compile().astream({"messages": []}, stream_mode="messages")
            chunks = [part[0] async for part in stream if isinstance(part, tuple)]
            await self.models.aclose()
            return chunks

        chunks = asyncio.run(run())
        return replies[0], chunks


def test_a_call_sends_the_prompt_with_names_as_slugs_and_the_room_for_the_answer() -> None:
    with OpenAIServer() as server:
        (reply,) = Bench(server).ask(replace(CALL, temperature=0.3, seed=5))
    (body,) = server.chats
    assert [(item["role"], item.get("name")) for item in body["messages"]] == [
        ("system", None),
        ("user", "Ada-Lovelace"),
        ("user", "ben"),
    ]
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (200, 0.3, 5)
    assert reply.ok
    assert reply.text.startswith("Point ")
    assert (reply.model, reply.provider, reply.finish_reason, reply.attempts) == (
        "test-model",
        "127.0.0.1",
        "stop",
        1,
    )


def test_the_same_request_gets_the_same_answer_streamed_or_not() -> None:
    with OpenAIServer() as server:
        bench = Bench(server)
        plain, streamed = bench.ask(CALL)[0], bench.stream(FLOOR)[0]
    assert server.chats[0].get("stream", False) is False
    assert server.chats[1]["stream"] is True
    assert plain.text == streamed.text


def test_a_server_without_a_key_is_given_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with OpenAIServer() as server:
        Bench(server).ask(CALL)
    assert server.requests[0].headers["authorization"] == "Bearer not-needed"


def test_the_key_comes_from_the_variable_that_the_settings_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_KEY", "secret-1")
    with OpenAIServer() as server:
        Bench(server, api_key_env="ROUTER_KEY").ask(CALL)
    assert server.requests[0].headers["authorization"] == "Bearer secret-1"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_passing_failure_is_retried(status: int) -> None:
    with OpenAIServer([Act(status=status), Act(status=status)]) as server:
        bench = Bench(server)
        (reply,) = bench.ask(CALL)
    assert reply.ok
    assert reply.attempts == 3
    assert bench.waits == [0.5, 1.0]


@pytest.mark.parametrize(
    ("header", "value", "waited"),
    [
        ("retry-after", "7", 7.5),
        ("retry-after-ms", "2500", 2.75),
        ("retry-after", format_datetime(datetime.now(UTC) + timedelta(seconds=3600 * 24 * 365 * 20)), None),
    ],
    ids=["seconds", "milliseconds", "a date beyond all patience"],
)
def test_retry_after_is_honoured(header: str, value: str, waited: float | None) -> None:
    with OpenAIServer([Act(status=429, headers={header: value})]) as server:
        bench = Bench(server)
        (reply,) = bench.ask(CALL)
    assert bench.waits == ([waited] if waited else [])
    assert reply.ok is bool(waited)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "context_length_exceeded"),
        (401, None),
        (403, None),
        (404, "model_not_found"),
        (429, "insufficient_quota"),
    ],
)
def test_a_lasting_failure_goes_straight_to_the_fallback(status: int, code: str | None) -> None:
    with OpenAIServer({"test-model": [Act(status=status, code=code)]}) as server:
        bench = Bench(server)
        (reply,) = bench.ask(replace(CALL, fallbacks=("spare-model",)))
    assert [body["model"] for body in server.chats] == ["test-model", "spare-model"]
    assert (reply.model, reply.attempts, bench.waits) == ("spare-model", 2, [])


def test_when_every_model_fails_the_reply_says_which_failed_how() -> None:
    acts = {
        "test-model": [Act(status=500, message="on fire")] * 3,
        "spare-model": [Act(status=401, message="who?")],
    }
    with OpenAIServer(acts) as server:
        (reply,) = Bench(server, max_attempts=3).ask(replace(CALL, fallbacks=("spare-model",)))
    assert reply.error == "test-model: HTTP 500: on fire; spare-model: HTTP 401: who?"
    assert (reply.status, reply.retryable, reply.attempts) == (401, True, 4)


def test_a_timeout_and_a_reset_are_retried() -> None:
    with OpenAIServer([Act(latency=1.0), Act(reset_after=0)]) as server:
        (reply,) = Bench(server, timeout_s=0.3).ask(CALL)
    assert reply.ok
    assert reply.attempts == 3


def test_a_server_that_is_not_there_is_a_reply_with_an_error() -> None:
    with OpenAIServer() as server:
        gone = Bench(server, max_attempts=2)
    (reply,) = gone.ask(CALL)
    assert reply.retryable
    assert "connection failed" in reply.error


@pytest.mark.parametrize("body", ['{"choices": null}', '{"choices": []}', "<html>busy</html>", "{}"])
def test_a_body_that_is_no_completion_is_retried(body: str) -> None:
    with OpenAIServer([Act(body=body)]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert reply.ok
    assert reply.attempts == 2


def test_an_error_inside_a_good_status_is_read() -> None:
    body = '{"error": {"message": "upstream is full", "code": 429}}'
    with OpenAIServer([Act(body=body)] * 2) as server:
        (reply,) = Bench(server, max_attempts=2).ask(CALL)
    assert (reply.status, reply.retryable) == (429, True)
    assert "upstream is full" in reply.error


def test_a_cancellation_passes_through() -> None:
    async def cancelled(bench: Bench) -> bool:
        task = asyncio.create_task(complete(CALL, bench.models))
        await asyncio.to_thread(bench.server.arrived.wait, 5)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        finally:
            await bench.models.aclose()
        return False

    with OpenAIServer([Act(latency=0.5)]) as server:
        assert asyncio.run(cancelled(Bench(server)))
    assert len(server.chats) == 1


def test_a_bad_key_situation_is_the_users_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*--model offline"):
        asyncio.run(complete(CALL, Models()))


# --- reasoning, room, emptiness


@pytest.mark.parametrize("live", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "act",
    [
        Act(text="<think>First, trams.</think>Trams win."),
        Act(pieces=["<th", "ink>First, ", "trams.</", "think", ">\n\nTrams", " win."]),
        Act(text="Trams win.", reasoning="First, trams."),
        Act(text="Trams win.", reasoning="First, trams.", reasoning_field="reasoning"),
    ],
    ids=["tags", "split tags", "reasoning_content", "reasoning"],
)
def test_reasoning_leaves_the_text(act: Act, live: bool) -> None:
    with OpenAIServer([act]) as server:
        bench = Bench(server)
        if live:
            reply, chunks = bench.stream(FLOOR)
            assert "".join(chunk.text for chunk in chunks) == "Trams win."
        else:
            (reply,) = bench.ask(CALL)
    assert (reply.text, reply.reasoning) == ("Trams win.", "First, trams.")


def test_an_answer_that_is_only_reasoning_is_asked_for_again() -> None:
    with OpenAIServer([Act(text="<think>never closed"), Act(text="Said.")]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert (reply.text, reply.attempts) == ("Said.", 2)


def test_a_model_that_says_nothing_three_times_has_failed() -> None:
    with OpenAIServer([Act(text="")] * 9) as server:
        (reply,) = Bench(server).ask(CALL)
    assert len(server.chats) == 3
    assert (reply.error, reply.retryable) == ("test-model: an empty answer (finish_reason stop)", True)


def test_a_cut_answer_is_asked_for_with_double_the_room() -> None:
    with OpenAIServer([Act(text="Trams are", finish_reason="length"), Act(text="Trams are good.")]) as server:
        (reply,) = Bench(server, reasoning_tokens=50).ask(CALL)
    assert [body["max_tokens"] for body in server.chats] == [250, 500]
    assert (reply.text, reply.finish_reason) == ("Trams are good.", "stop")


def test_an_answer_cut_twice_is_returned_as_cut() -> None:
    acts = [
        Act(text="Trams are", finish_reason="length"),
        Act(text="Trams are good, but", finish_reason="length"),
    ]
    with OpenAIServer(acts) as server:
        (reply,) = Bench(server).ask(CALL)
    assert len(server.chats) == 2
    assert (reply.text, reply.finish_reason) == ("Trams are good, but", "length")


def test_a_cut_answer_is_kept_where_the_second_try_fails() -> None:
    with OpenAIServer([Act(text="Trams are", finish_reason="length"), Act(status=400)]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert (reply.ok, reply.text, reply.finish_reason) == (True, "Trams are", "length")


def test_double_the_room_never_exceeds_the_context() -> None:
    cut = Act(text="Trams are", finish_reason="length")
    with OpenAIServer([cut, cut]) as server:
        Bench(server, context_size=500).ask(replace(CALL, prompt_tokens=220))
        Bench(server, context_size=400).ask(replace(CALL, prompt_tokens=220))
    assert [body["max_tokens"] for body in server.chats] == [200, 280, 200]


def test_a_reasoning_model_gets_its_own_field_and_no_temperature() -> None:
    with OpenAIServer() as server:
        Bench(server).ask(replace(CALL, model="o3-mini", temperature=0.7))
    (body,) = server.chats
    assert "temperature" not in body
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 200 + 4096
    assert body["messages"][0]["role"] == "developer"


def test_what_a_database_cannot_hold_leaves_the_text() -> None:
    with OpenAIServer([Act(text="tr\x00am \ud83d lone")]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert "\x00" not in reply.text
    reply.text.encode()


# --- streaming


def test_a_speech_is_streamed_once_under_its_id_and_name_and_nothing_else_is() -> None:
    with OpenAIServer([Act(text="Trams win the day."), Act(text="A summary.")]) as server:
        reply, chunks = Bench(server).stream(FLOOR, replace(CALL, purpose="summary"))
    assert {(chunk.id, chunk.name) for chunk in chunks} == {("m000007", "ada")}
    assert "".join(chunk.text for chunk in chunks) == reply.text == "Trams win the day."
    assert len([chunk for chunk in chunks if chunk.text]) == 4
    assert server.chats[0]["stream_options"] == {"include_usage": True}
    assert not server.chats[1].get("stream")


def test_an_endpoint_that_does_not_stream_gives_the_speech_in_one_piece() -> None:
    with OpenAIServer([Act(text="Trams win.")]) as server:
        _, chunks = Bench(server, stream=False).stream(FLOOR)
    assert [(chunk.text, chunk.id, chunk.name) for chunk in chunks] == [("Trams win.", "m000007", "ada")]
    assert not server.chats[0].get("stream")


@pytest.mark.parametrize(
    "act",
    [
        Act(text="Trams win the day again.", reset_after=3),
        Act(text="Trams win the day again.", error_event={"message": "overloaded", "code": 502}),
    ],
    ids=["reset", "error event"],
)
def test_after_a_stream_that_broke_the_retry_is_silent(act: Act) -> None:
    with OpenAIServer([act, Act(text="Buses win.")]) as server:
        reply, chunks = Bench(server).stream(FLOOR)
    assert (reply.text, reply.attempts) == ("Buses win.", 2)
    assert "Trams win the day again.".startswith("".join(chunk.text for chunk in chunks))
    assert not server.chats[1].get("stream")


def test_a_stream_that_failed_before_its_first_word_is_streamed_again() -> None:
    with OpenAIServer([Act(status=503), Act(text="Buses win.")]) as server:
        _, chunks = Bench(server).stream(FLOOR)
    assert "".join(chunk.text for chunk in chunks) == "Buses win."


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_the_event_protocol_shows_a_speech_once_under_its_id() -> None:
    async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        reply = await complete(FLOOR, bench.models, config=config)
        silent = await complete(CALL, bench.models, config=config)
        await bench.models.aclose()
        usages.extend((reply.usage, silent.usage))
        return {"messages": [AIMessage(reply.text, id="m000007", name="ada")]}

    async def run() -> list[Any]:
        graph = StateGraph(MessagesState)
        graph.add_node("turn", node)
        graph.add_edge(START, "turn")
        stream: Any = await graph.compile().astream_events({"messages": []}, version="v3")
        return [event["params"]["data"][0] async for event in stream if event["method"] == "messages"]

    usages: list[EntryUsage] = []
    with OpenAIServer([Act(text="<think>Hm.</think>Trams win."), Act(text="Quiet.")]) as server:
        bench = Bench(server)
        events = asyncio.run(run())
    assert [event["id"] for event in events if event["event"] == "message-start"] == ["m000007"]
    texts = [event["delta"]["text"] for event in events if event["event"] == "content-block-delta"]
    assert "".join(texts) == "Trams win."
    assert all(usage["completion_tokens"] > 0 for usage in usages)


# --- structured answers

VERDICT = replace(CALL, purpose="judge", schema=Score)
GOOD = '{"reasoning": "r", "winner": "ada", "score": 7}'


def test_a_schema_is_sent_strictly_and_the_answer_validated() -> None:
    with OpenAIServer() as server:
        (reply,) = Bench(server).ask(VERDICT)
    sent = server.chats[0]["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["additionalProperties"] is False
    assert reply.data == Score.model_validate(reply.data).model_dump()


def test_a_schema_that_strict_mode_cannot_say_is_sent_as_it_is() -> None:
    with OpenAIServer() as server:
        (reply,) = Bench(server).ask(replace(VERDICT, schema=Free))
    assert server.chats[0]["response_format"]["json_schema"]["strict"] is False
    assert reply.data is not None


@pytest.mark.parametrize("method", ["function_calling", "json_mode", "prompt"])
def test_every_method_gets_its_answer(method: str) -> None:
    with OpenAIServer() as server:
        (reply,) = Bench(server, structured_output=method).ask(VERDICT)
    assert Score.model_validate(reply.data)
    assert reply.tool_calls == ()


def test_json_is_found_in_prose_and_fences() -> None:
    text = f"Sure! Here {{it}} is:\n```json\n{GOOD}\n```\nAnything else?"
    with OpenAIServer([Act(text=text)]) as server:
        (reply,) = Bench(server, structured_output="prompt").ask(VERDICT)
    assert reply.data == {"reasoning": "r", "winner": "ada", "score": 7}


def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_error() -> None:
    with OpenAIServer([Act(text=GOOD.replace("7", "77")), Act(text=GOOD)]) as server:
        (reply,) = Bench(server).ask(VERDICT)
    assert reply.data is not None
    assert "score: Input should be less than or equal to 10" in server.chats[1]["messages"][-1]["content"]


def test_an_answer_that_never_fits_is_an_error_that_retrying_does_not_cure() -> None:
    with OpenAIServer([Act(text="no"), Act(text="still no")]) as server:
        (reply,) = Bench(server).ask(VERDICT)
    assert len(server.chats) == 2
    assert (reply.ok, reply.retryable) == (False, False)
    assert "does not fit the schema" in reply.error


def test_a_refused_method_gives_way_to_a_weaker_one_and_is_not_tried_again() -> None:
    def refuse(request: dict[str, Any], number: int) -> Act | None:
        kind = (request.get("response_format") or {}).get("type")
        return Act(status=400, message="unknown response_format") if kind else None

    with OpenAIServer(refuse) as server:
        first, second = Bench(server).ask(VERDICT, VERDICT)
    kinds = [(body.get("response_format") or {}).get("type") for body in server.chats]
    assert kinds == ["json_schema", "json_object", None, None]
    assert first.data == second.data is not None


def test_a_prompt_that_is_too_long_does_not_weaken_the_method() -> None:
    with OpenAIServer([Act(status=400, code="context_length_exceeded")]) as server:
        failed, later = Bench(server).ask(VERDICT, VERDICT)
    assert failed.status == 400
    assert later.ok
    assert server.chats[1]["response_format"]["type"] == "json_schema"


def test_a_refusal_goes_to_the_fallback() -> None:
    with OpenAIServer({"test-model": [Act(text="", refusal="I will not.")]}) as server:
        (reply,) = Bench(server).ask(replace(VERDICT, fallbacks=("spare-model",)))
    assert (reply.model, reply.attempts) == ("spare-model", 2)


# --- tools, usage, roles


def test_tools_are_offered_and_their_calls_returned() -> None:
    tool = {
        "type": "function",
        "function": {"name": "add", "parameters": {"type": "object", "properties": {}}},
    }
    with OpenAIServer([Act(tool_calls=[("add", {"a": 1})], finish_reason="tool_calls")]) as server:
        (reply,) = Bench(server).ask(replace(CALL, tools=(tool,)))
    assert server.chats[0]["tools"] == [tool]
    assert reply.tool_calls == ({"id": "call_0", "name": "add", "args": {"a": 1}},)
    assert (reply.ok, reply.finish_reason) == (True, "tool_calls")


def test_a_tools_answer_goes_back_in_openais_form() -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    talk: tuple[WireMessage, ...] = (
        *PROMPT,
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "content": "2", "tool_call_id": "c1"},
    )
    with OpenAIServer() as server:
        Bench(server, merge_roles=True).ask(replace(CALL, messages=talk))
    sent = server.chats[0]["messages"]
    assert sent[-2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert (sent[-1]["role"], sent[-1]["tool_call_id"], sent[-1]["content"]) == ("tool", "c1", "2")


@pytest.mark.parametrize("live", [False, True], ids=["whole", "streamed"])
def test_usage_and_cost_are_the_providers(live: bool) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    prices = {"input_usd_per_million": 2.0, "cached_usd_per_million": 1.0, "output_usd_per_million": 10.0}
    with OpenAIServer([Act(usage=usage)]) as server:
        bench = Bench(server, **prices)
        reply = bench.stream(FLOOR)[0] if live else bench.ask(CALL)[0]
    assert reply.usage == {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "cached_tokens": 400,
        "reasoning_tokens": 30,
        "cost_usd": pytest.approx((600 * 2 + 400 * 1 + 100 * 10) / 1e6),
    }


def test_usage_is_counted_where_the_provider_reports_none() -> None:
    with OpenAIServer([Act(text="Trams win.", report_usage=False)]) as server:
        (reply,) = Bench(server).ask(replace(CALL, prompt_tokens=321))
    assert reply.usage == {"prompt_tokens": 321, "completion_tokens": 4}


def test_every_billed_attempt_is_in_the_usage() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    with OpenAIServer([Act(text="", usage=usage), Act(status=500), Act(text="Yes.", usage=usage)]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert reply.usage == {"prompt_tokens": 20, "completion_tokens": 10}


def test_roles_are_merged_and_the_system_message_moved_where_a_template_wants_it() -> None:
    with OpenAIServer() as server:
        Bench(server, merge_roles=True, system_role=False).ask(CALL)
    (message,) = server.chats[0]["messages"]
    assert message["role"] == "user"
    assert message["content"] == "Rules.\n\nAda Lovelace: Trams are cheap.\n\nben: They are slow."


def test_calls_of_a_batch_run_at_the_same_time_and_keep_their_replies() -> None:
    async def batch(bench: Bench) -> list[Reply]:
        calls = [replace(CALL, messages=(*PROMPT, {"role": "user", "content": str(n)})) for n in range(8)]
        try:
            return await asyncio.gather(*(complete(call, bench.models) for call in calls))
        finally:
            await bench.models.aclose()

    with OpenAIServer(latency=0.2) as server:
        together = asyncio.run(batch(Bench(server)))
        apart = asyncio.run(batch(Bench(server)))
    assert server.peak == 8
    assert [reply.text for reply in together] == [reply.text for reply in apart]
    assert len({reply.text for reply in together}) == 8
