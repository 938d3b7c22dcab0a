"""LangChain models that a program brings, by the names that its configurations have for them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import RunnableConfig
from pydantic import Field, PrivateAttr

from moot import ConfigError, DebateConfig, build_graph, debate_tool, open_debates
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.models.complete import complete
from moot.nodes.models.registry import ChatSource, Models
from tests.unit.test_models_scripted import Pair

CALL = ModelCall(
    "turn", "mine", ({"role": "user", "content": "Hello", "name": "ada"},), 99, temperature=0.3, seed=3
)


class Parrot(BaseChatModel):
    """Says what it was set to; it neither streams nor takes tools."""

    temperature: float | None = None
    max_output_tokens: int = 7
    says: str = "Trams win."
    heard: list[tuple[float | None, int, list[BaseMessage], dict[str, Any]]] = Field(default_factory=list)

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
        self.heard.append((self.temperature, self.max_output_tokens, messages, kwargs))
        said = AIMessage(self.says, response_metadata={"stop_reason": "end_turn"})
        return ChatResult(generations=[ChatGeneration(message=said)])


def ask(source: ChatSource, call: ModelCall = CALL) -> Reply:
    return asyncio.run(complete(call, Models(chats={"mine": source})))


def test_parameters_are_those_that_its_class_has_and_what_it_was_made_with_stands() -> None:
    left_open, made = Parrot(), Parrot(temperature=0.0, max_output_tokens=5)
    reply = ask(left_open)
    ask(made)
    assert (reply.text, reply.provider, reply.finish_reason) == ("Trams win.", "parrot", "stop")
    assert left_open.heard[0][:2] == (0.3, 99)
    assert made.heard[0][:2] == (0.0, 99)  # the room for an answer is the view's
    (message,) = made.heard[0][2]
    assert (message.content, message.name, made.heard[0][3]) == ("ada: Hello", None, {})


def test_a_schema_is_described_to_a_model_that_has_no_way_for_it() -> None:
    parrot = Parrot(says='So: {"a": 1, "b": "y"}')
    assert ask(parrot, replace(CALL, schema=Pair)).data == {"a": 1, "b": "y"}
    assert "JSON Schema" in str(parrot.heard[0][2][-1].content)
    tools = replace(CALL, tools=({"type": "function", "function": {"name": "f"}},))
    assert "takes no tools" in ask(parrot, tools).error


class Connection:
    """What a model is reached through."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


class Connected(Parrot):
    """A model that holds a connection open."""

    _async_client: Connection = PrivateAttr(default_factory=Connection)


def test_what_a_program_made_stays_open_and_what_was_made_for_its_debates_is_closed(tmp_path: Path) -> None:
    given, made = Connected(), list[Connected]()

    def make() -> Connected:
        made.append(Connected())
        return made[-1]

    line = [{"name": "Ada", "model": "mine"}, {"name": "Bo", "model": "own"}]
    fields = {"turns": 2, "judge": {"enabled": False}, "debaters": line}
    config = DebateConfig.model_validate(fields)
    with open_debates(str(tmp_path / "d.sqlite"), models={"mine": make, "own": given}) as debates:
        debates.start("Trams?", config).run()
        assert [each._async_client.closed for each in made] == [0]
    assert [each._async_client.closed for each in made] == [1]
    assert (given._async_client.closed, len(given.heard)) == (0, 1)


def test_its_callbacks_and_its_rate_limiter_are_honoured() -> None:
    class Ears(BaseCallbackHandler):
        ended = 0

        def on_llm_end(self, *_: object, **__: object) -> None:
            self.ended += 1

    class Limiter(InMemoryRateLimiter):
        asked = 0

        async def aacquire(self, *, blocking: bool = True) -> bool:
            self.asked += 1
            return True

    ears, limiter = Ears(), Limiter()
    ask(Parrot(callbacks=[ears], rate_limiter=limiter))
    assert (ears.ended, limiter.asked) == (1, 1)


def test_a_function_makes_one_for_each_event_loop_and_what_is_no_model_is_refused() -> None:
    models = Models(chats={"mine": Parrot, "bound": cast(Any, lambda: Parrot().bind(stop=["x"]))})

    async def client(name: str) -> BaseChatModel:
        return await models.client(name)

    first, second = asyncio.run(client("mine")), asyncio.run(client("mine"))
    assert isinstance(first, Parrot)
    assert first is not second
    with pytest.raises(ConfigError, match=r"models\['bound'\] is no LangChain chat model"):
        asyncio.run(client("bound"))


def test_debates_are_held_by_models_from_python(tmp_path: Path) -> None:
    parrot, config = Parrot(), DebateConfig(model="mine", turns=2, judge={"enabled": False})
    database = str(tmp_path / "moot.sqlite")
    with open_debates(database, models={"mine": parrot}) as debates:
        document = debates.start("Trams?", config).run()
    assert [entry["model"] for entry in document["transcript"] if entry["model"]] == ["mine", "mine"]
    assert debate_tool(config, database=database, models={"mine": Parrot}).invoke({"question": "Trams?"})


def test_a_request_may_name_what_the_program_brought_and_no_other() -> None:
    graph = build_graph(models={"mine": Parrot()})
    said = {"model": "mine", "turns": 1, "judge": {"enabled": False}}
    thread = RunnableConfig(configurable={"thread_id": "1"})
    context: Any = said
    assert graph.invoke({"topic": "Trams?"}, thread, context=context)["status"] == "done"
    with pytest.raises(ConfigError, match="reaches outside"):
        graph.invoke({"topic": "Trams?"}, thread, context={**context, "model": "another"})
