"""LangChain models passed from Python under the names that the configuration uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import ConfigurableField, Runnable, RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field, PrivateAttr

from moot import ConfigError, DebateConfig, build_graph, debate_tool, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.models.model_call import complete
from moot.models.registry import ChatSource, Models
from tests.unit.test_models_scripted import Pair

CALL = ModelCall(
    "turn", "mine", ({"role": "user", "content": "Hello", "name": "ada"},), 99, temperature=0.3, seed=3
)


class Parrot(BaseChatModel):
    """Chat model with a fixed reply, without streaming and tools."""

    temperature: float | None = None
    max_output_tokens: int = 7
    says: str = "Trams win."
    requests: list[tuple[float | None, int, list[BaseMessage], dict[str, Any]]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.requests.append((self.temperature, self.max_output_tokens, messages, kwargs))
        message = AIMessage(self.says, response_metadata={"stop_reason": "end_turn"})
        return ChatResult(generations=[ChatGeneration(message=message)])


def ask(source: ChatSource, call: ModelCall = CALL) -> Reply:
    return asyncio.run(complete(call, Models(chats={"mine": source})))


def test_call_sets_unset_model_fields_and_keeps_the_temperature() -> None:
    unset, preset = Parrot(), Parrot(temperature=0.0, max_output_tokens=5)
    reply = ask(unset)
    ask(preset)
    assert (reply.text, reply.provider, reply.finish_reason) == ("Trams win.", "parrot", "stop")
    assert unset.requests[0][:2] == (0.3, 99)
    assert preset.requests[0][:2] == (0.0, 99)  # the call decides the output limit
    (message,) = preset.requests[0][2]
    assert (message.content, message.name, preset.requests[0][3]) == ("ada: Hello", None, {})


def test_schema_is_put_in_the_prompt_without_structured_output() -> None:
    parrot = Parrot(says='So: {"a": 1, "b": "y"}')
    assert ask(parrot, replace(CALL, schema=Pair)).data == {"a": 1, "b": "y"}
    assert "JSON Schema" in str(parrot.requests[0][2][-1].content)
    tools = replace(CALL, tools=({"type": "function", "function": {"name": "f"}},))
    assert "does not support tools" in ask(parrot, tools).error


class Connection:
    """Connection of a model that counts how often it is closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


class Connected(Parrot):
    """Chat model with an open connection."""

    _async_client: Connection = PrivateAttr(default_factory=Connection)


def test_models_made_by_a_function_are_closed_and_objects_stay_open(tmp_path: Path) -> None:
    model_object, models = Connected(), list[Connected]()

    def make() -> Connected:
        models.append(Connected())
        return models[-1]

    debaters = [{"name": "Ada", "model": "mine"}, {"name": "Bo", "model": "own"}]
    fields = {"turns": 2, "judge": {"enabled": False}, "debaters": debaters}
    config = DebateConfig.model_validate(fields)
    with open_debates(str(tmp_path / "d.sqlite"), models={"mine": make, "own": model_object}) as debates:
        debates.start("Trams?", config).run()
        assert [each._async_client.closed for each in models] == [0]
    assert [each._async_client.closed for each in models] == [1]
    assert (model_object._async_client.closed, len(model_object.requests)) == (0, 1)


def test_callbacks_and_rate_limiter_of_a_model_are_used() -> None:
    class CallCounter(BaseCallbackHandler):
        ended = 0

        def on_llm_end(self, *_: object, **__: object) -> None:
            self.ended += 1

    class Limiter(InMemoryRateLimiter):
        acquired = 0

        async def aacquire(self, *, blocking: bool = True) -> bool:
            self.acquired += 1
            return True

    counter, limiter = CallCounter(), Limiter()
    ask(Parrot(callbacks=[counter], rate_limiter=limiter))
    assert (counter.ended, limiter.acquired) == (1, 1)


def test_function_makes_one_model_per_event_loop_or_is_rejected() -> None:
    models = Models(chats={"mine": Parrot, "number": cast(Any, lambda: 3), "text": cast(Any, "gpt-5")})

    async def client(name: str) -> BaseChatModel:
        return await models.client(name)

    first, second = asyncio.run(client("mine")), asyncio.run(client("mine"))
    assert isinstance(first, Parrot)
    assert first is not second
    with pytest.raises(ConfigError, match=r"the function models\['number'\] returned a value of type int"):
        asyncio.run(client("number"))
    with pytest.raises(ConfigError, match=r"models\['text'\] has the type str: pass a LangChain chat model"):
        models.check(["text"])


PAIR = '{"a": 1, "b": "y"}'
TOOL = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": {"type": "object"}}}


class Bindable(Parrot):
    """Chat model that takes tools and streams its reply in two chunks."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools, **kwargs)

    def _stream(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> Any:
        self.requests.append((self.temperature, self.max_output_tokens, messages, kwargs))
        for text in ("Trams ", "win.") if self.says != PAIR else (PAIR,):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))


RUNNABLES: dict[str, Callable[[Bindable], Runnable[Any, Any]]] = {
    "bind": lambda chat: chat.bind(stop=["x"]),
    "with_retry": lambda chat: chat.with_retry(),
    "with_fallbacks": lambda chat: chat.with_fallbacks([Bindable()]),
    "with_config": lambda chat: chat.with_config(tags=["mine"]),
    "configurable_fields": lambda chat: chat.configurable_fields(says=ConfigurableField("says")),
    "sequence": lambda chat: RunnableLambda(lambda messages: messages) | chat,
}


@pytest.mark.parametrize("name", RUNNABLES)
def test_runnable_from_messages_to_a_message_is_a_model(name: str) -> None:
    chat = Bindable()
    reply = ask(RUNNABLES[name](chat))
    assert (reply.text, reply.error) == ("Trams win.", "")
    assert str(chat.requests[0][2][0].content) == "ada: Hello"
    chat.says = PAIR
    assert ask(RUNNABLES[name](chat), replace(CALL, schema=Pair)).data == {"a": 1, "b": "y"}
    tools = ask(RUNNABLES[name](chat), replace(CALL, tools=(TOOL,)))
    if name == "sequence":
        assert "does not support tools" in tools.error
    else:
        assert (tools.error, chat.requests[-1][3]["tools"]) == ("", [TOOL])


def test_fallbacks_of_another_class_get_the_schema_in_the_prompt() -> None:
    source = Bindable().with_fallbacks([Parrot()])
    assert "does not support tools" in ask(source, replace(CALL, tools=(TOOL,))).error
    chat = Bindable(says=PAIR)
    assert ask(chat.with_fallbacks([Parrot()]), replace(CALL, schema=Pair)).data == {"a": 1, "b": "y"}
    assert "JSON Schema" in str(chat.requests[0][2][-1].content)


def test_runnable_lambda_is_a_model_and_must_return_a_message() -> None:
    assert ask(RunnableLambda(lambda messages: AIMessage(f"{len(messages)} message"))).text == "1 message"
    with pytest.raises(ConfigError, match="returned a value of type str: return an AIMessage"):
        ask(RunnableLambda(lambda messages: "Trams win."))


def test_runnable_streams_once_and_ignores_request_configuration() -> None:
    inner = Bindable()
    chat = inner.configurable_fields(temperature=ConfigurableField("temperature"))
    settings = {"turns": 1, "judge": {"enabled": False}, "model": "mine"}
    graph = build_graph(InMemorySaver(), models={"mine": chat})
    config: RunnableConfig = {"configurable": {"thread_id": str(uuid4()), "temperature": 0.9}}
    stream = graph.stream(
        {"topic": "Trams?"}, config, context=DebateConfig.model_validate(settings), stream_mode="messages"
    )
    parts = [
        part[0].text for part in stream if isinstance(part, tuple) and isinstance(part[0], AIMessageChunk)
    ]
    assert "".join(parts) == "Trams win."
    assert inner.requests[0][0] is None


def test_debates_run_on_models_from_python(tmp_path: Path) -> None:
    parrot, config = Parrot(), DebateConfig(model="mine", turns=2, judge={"enabled": False})
    database = str(tmp_path / "moot.sqlite")
    with open_debates(database, models={"mine": parrot}) as debates:
        document = debates.start("Trams?", config).run()
    assert [entry["model"] for entry in document["transcript"] if entry["model"]] == ["mine", "mine"]
    assert debate_tool(config, database=database, models={"mine": Parrot}).invoke({"question": "Trams?"})


def test_request_may_name_only_the_models_of_the_program() -> None:
    graph = build_graph(models={"mine": Parrot()})
    settings = {"model": "mine", "turns": 1, "judge": {"enabled": False}}
    thread = RunnableConfig(configurable={"thread_id": "1"})
    context: Any = settings
    assert graph.invoke({"topic": "Trams?"}, thread, context=context)["status"] == "done"
    with pytest.raises(ConfigError, match=r"needs the operator's permission.* pass a `DebateConfig`"):
        graph.invoke({"topic": "Trams?"}, thread, context={**context, "model": "another"})
    context = 7
    with pytest.raises(ConfigError, match=r"^context: 7 is not a configuration: pass a `DebateConfig`"):
        build_graph(InMemorySaver()).invoke({"topic": "Trams?"}, thread, context=context)


def test_langchain_cache_is_used_if_it_is_set() -> None:
    parrot = Parrot(cache=InMemoryCache())
    first, again = ask(parrot), ask(parrot)
    assert (first.text, again.text) == ("Trams win.", "Trams win.")
    assert len(parrot.requests) == 1
    assert first.usage
    assert not again.usage
    ask(parrot, replace(CALL, seed=4))  # an independent sample
    assert len(parrot.requests) == 2
    set_llm_cache(InMemoryCache())
    try:
        everywhere, never = Parrot(), Parrot(cache=False)
        for model in (everywhere, everywhere, never, never):
            ask(model)
    finally:
        set_llm_cache(None)
    assert (len(everywhere.requests), len(never.requests)) == (1, 2)
    ask(everywhere)
    assert len(everywhere.requests) == 2


class Typed(Parrot):
    """Model whose structured output is any runnable, and which replies with it as an object, JSON or text."""

    gives: Any = None

    def with_structured_output(self, schema: Any, **_: Any) -> Runnable[Any, Any]:
        return RunnableLambda(lambda messages: self.gives(schema) if callable(self.gives) else self.gives)


@pytest.mark.parametrize(
    "gives",
    [
        {"a": 1, "b": "a"},
        lambda schema: schema(a=1, b="a"),
        '{"a": 1, "b": "a"}',
        AIMessage('{"a": 1, "b": "a"}'),
    ],
    ids=["mapping", "object", "text", "message"],
)
def test_any_runnable_of_with_structured_output_is_called(gives: Any) -> None:
    model = Typed(gives=gives)
    reply = ask(model, replace(CALL, schema=Pair))
    assert reply.data == {"a": 1, "b": "a"}
    assert model.requests == []
