"""Private names of LangGraph and LangChain that Moot uses still exist and behave the same."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

import aiosqlite
import httpx
import langgraph.checkpoint.base.id as id_clock
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.sqlite import AsyncSqliteStore
from pydantic import SecretStr
from typing_extensions import TypedDict

from moot.state.langgraph_internals import (
    TESTED_VERSIONS,
    ChatDelegate,
    ChatOpenAIHooks,
    PostgresCursorHook,
    checkpointer_in,
    close_store,
    compiled_parts,
    message_events,
    model_type,
    replace_body,
    runs_next,
    sort_checkpoints_after,
    streams_tokens,
)
from tests.support.openai_server import OpenAIServer
from tests.support.source import ROOT, source_files, syntax_tree

INTERNALS = ROOT / "state" / "langgraph_internals.py"
CHAT_MODEL_METHODS = {"_generate", "_agenerate", "_stream", "_astream", "_llm_type"}
"""Methods that LangChain documents as those of a custom chat model, which may be overridden anywhere."""

THREAD: RunnableConfig = {"configurable": {"thread_id": "9d9b3c52-2f0a-4a77-8a51-6c1f0e7f3b11"}}


class Count(TypedDict):
    """State of a test graph."""

    count: int


def _changed(package: str, what: str) -> str:
    return (
        f"{package} {version(package)} does not {what} as {TESTED_VERSIONS[package]} did: "
        "mend moot/state/langgraph_internals.py, or keep the older version"
    )


def test_tested_versions_and_the_page_of_internals_are_current() -> None:
    pins = dict(line.split("==") for line in (ROOT.parent / "constraints.txt").read_text("utf-8").split())
    assert {package: pins[package] for package in TESTED_VERSIONS} == TESTED_VERSIONS
    text = " ".join((ROOT.parent / "docs" / "langgraph-internals.md").read_text("utf-8").split())
    assert all(f"`{package}` {version}" in text for package, version in TESTED_VERSIONS.items())
    rows = re.findall(r"\| (`[^|]+`) \| [^|]+ \| [^|]+ \| [^|]+ (?=\|)", text)
    defined = {getattr(node, "name", "_") for node in syntax_tree(INTERNALS).body}
    names = {name for name in defined if not name.startswith("_")}
    assert {name for row in rows for name in re.findall(r"\w+", row)} == names


def test_checkpointer_of_a_run_and_next_node_of_a_checkpoint_are_found() -> None:
    seen: list[Any] = []

    def first(state: Count, config: RunnableConfig) -> Count:
        seen.append(checkpointer_in(config))
        return {"count": state["count"] + 1}

    builder = StateGraph(Count)
    builder.add_node("first", RunnableLambda(first))
    builder.add_node("second", lambda state: state)
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda state: "second", ["second"])
    builder.add_edge("second", END)
    saver = InMemorySaver()
    builder.compile(saver).invoke({"count": 0}, THREAD)
    assert seen == [saver], _changed("langgraph", "hand a node its checkpointer")
    next_of = [
        {node for node in ("first", "second") if runs_next(stored.checkpoint, node)}
        for stored in saver.list(THREAD)
    ]
    assert next_of == [set(), {"second"}, {"first"}, set()], _changed("langgraph", "name what runs next")


def test_checkpointer_of_a_run_without_one_is_none() -> None:
    assert checkpointer_in({}) is None


def test_chunks_become_message_events_with_the_given_id() -> None:
    async def chunks() -> AsyncIterator[ChatGenerationChunk]:
        for text in ("One ", "two."):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text, id="another"))

    async def events() -> list[Any]:
        return [event async for event in message_events(chunks(), "m000007")]

    emitted = asyncio.run(events())
    names = [event["event"] for event in emitted]
    changed = _changed("langchain-core", "turn chunks into events")
    assert (names[0], names[-1]) == ("message-start", "message-finish"), changed
    assert emitted[0]["id"] == "m000007", changed


def test_a_copy_of_a_compiled_graph_runs_as_a_subclass() -> None:
    class Graph(CompiledStateGraph[Count, None, Count, Count]):
        """A subclass."""

    builder = StateGraph(Count)
    builder.add_node("first", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "first")
    builder.add_edge("first", END)
    compiled = builder.compile(InMemorySaver(), name="named")
    graph = Graph(**compiled_parts(compiled))
    assert graph.invoke({"count": 0}, THREAD) == {"count": 1}, _changed("langgraph", "build a graph")
    assert (graph.name, graph.checkpointer) == ("named", compiled.checkpointer)


class _CursorOpened(Exception):
    """A cursor was requested."""


class _Saver(PostgresCursorHook, AsyncPostgresSaver):  # type: ignore[misc]  # `_cursor`
    def open_cursor(
        self, original: Callable[..., AbstractAsyncContextManager[Any]], pipeline: bool
    ) -> AbstractAsyncContextManager[Any]:
        assert original.__name__ == "_cursor"
        raise _CursorOpened


def test_postgres_saver_runs_every_statement_through_its_cursor() -> None:
    async def calls() -> AsyncIterator[Any]:
        saver = _Saver(None)  # type: ignore[arg-type]  # nothing is connected
        stored = InMemorySaver()
        await stored.aput(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
            {**empty_checkpoint(), "channel_values": {"words": ["x"]}},
            {},
            {},
        )
        kept = await stored.aget_tuple({"configurable": {"thread_id": "t"}})
        assert kept is not None
        yield saver.aput(kept.config, kept.checkpoint, {}, {})
        yield saver.aput_writes(kept.config, [("words", "x")], "task")
        yield saver.aget_tuple(kept.config)
        yield anext(saver.alist(kept.config))
        yield saver.adelete_thread("t")
        yield saver.setup()

    async def run() -> None:
        async for call in calls():
            with pytest.raises(_CursorOpened):
                await call

    asyncio.run(run())


def test_closing_a_store_ends_its_background_task(tmp_path: Path) -> None:
    async def run() -> set[asyncio.Task[Any]]:
        async with aiosqlite.connect(tmp_path / "s.sqlite", isolation_level=None) as connection:
            store = AsyncSqliteStore(connection)
            await store.setup()
            await close_store(store)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(run()) == set(), _changed("langgraph", "run the task of a store")


class _Delegate(ChatDelegate, GenericFakeChatModel):
    inner: Any = None
    message_id: str | None = None
    finished: list[ChatResult] = []  # noqa: RUF012  # a field

    def finish_result(self, result: ChatResult) -> None:
        self.finished.append(result)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return self.call_inner(messages, stop, kwargs)

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in self.stream_inner(messages, stop, kwargs):
            yield chunk


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_delegating_chat_model_calls_the_inner_model_and_the_hook() -> None:
    inner = FakeListChatModel(responses=["One two."])
    chat = _Delegate(messages=iter(()), inner=inner, message_id="m000007")
    changed = _changed("langchain-core", "run chat models")
    assert model_type(inner) == "fake-list-chat-model"
    assert streams_tokens(inner)
    called = chat.acall_inner([AIMessage("?")], None, {})
    assert asyncio.run(called).generations[0].text == "One two."
    assert asyncio.run(chat.ainvoke("?")).text == "One two."
    assert [result.generations[0].text for result in chat.finished] == ["One two."], changed
    assert inner._get_ls_params()["ls_provider"] == chat._get_ls_params()["ls_provider"], changed
    assert chat._serialized["type"] == "not_implemented"

    async def stream() -> tuple[str, set[str]]:
        chunks = [chunk.text async for chunk in chat.stream_inner([AIMessage("?")], None, {})]
        events: Any = await chat.astream_events("?", version="v3")
        return "".join(chunks), {event["id"] async for event in events if "id" in event}

    assert asyncio.run(stream()) == ("One two.", {"m000007"}), changed


class _OpenAI(ChatOpenAIHooks, ChatOpenAI):
    seen: list[str] = []  # noqa: RUF012  # a field

    def change_request(self, payload: dict[str, Any]) -> dict[str, Any]:
        self.seen.append("request")
        return {**payload, "user": "somebody"}

    def change_reply(self, raw: dict[str, Any]) -> dict[str, Any]:
        self.seen.append("reply")
        return raw

    def change_message(self, message: BaseMessage, raw: dict[str, Any]) -> None:
        self.seen.append("message")
        message.additional_kwargs["raw"] = str(raw["content"])


def test_chat_openai_hooks_receive_requests_and_replies() -> None:
    changed = _changed("langchain-core", "call ChatOpenAI")

    async def call(chat: _OpenAI) -> tuple[AIMessage, list[Any]]:
        message = await chat.ainvoke("?")
        assert chat.seen == ["request", "reply", "message"], changed
        chunks = [chunk async for chunk in chat.astream("?")]
        await chat.root_async_client.close()
        return message, chunks

    with OpenAIServer() as server:
        chat = _OpenAI(model="m", base_url=server.base_url, api_key=SecretStr("k"), seen=[])
        message, chunks = asyncio.run(call(chat))
        assert message.additional_kwargs["raw"] == message.text, changed
        assert server.chats[-1]["user"] == "somebody", changed
    assert any(chunk.additional_kwargs.get("raw") for chunk in chunks), changed


def test_the_body_of_a_response_is_replaced() -> None:
    response = httpx.Response(200, content=b"before")
    replace_body(response, b"after")
    assert response.read() == b"after"


def _private_accesses() -> Iterator[str]:
    """Yield each access to a private attribute that Moot does not define."""
    trees = {path: list(ast.walk(syntax_tree(path))) for path in source_files()}
    del trees[INTERNALS]
    own = {getattr(node, "name", "") for nodes in trees.values() for node in nodes}
    for nodes in trees.values():
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own |= {node.attr} if ast.unparse(node.value) != "response" else set()
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                own |= {target.id for target in targets if isinstance(target, ast.Name)}
    for path, nodes in trees.items():
        for node in nodes:
            if isinstance(node, ast.Attribute) and re.match(r"_(?!_|(?:replace|asdict)$)", node.attr):
                of_super = ast.unparse(node.value) == "super()"
                if node.attr not in CHAT_MODEL_METHODS and (node.attr not in own or of_super):
                    yield f"{path.relative_to(ROOT)}:{node.lineno} {node.attr}"
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "__pregel" in node.value:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"


def test_no_other_module_uses_private_attributes_of_other_packages() -> None:
    assert list(_private_accesses()) == []


def test_new_checkpoint_ids_sort_after_ids_of_a_clock_that_was_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(id_clock, "_last_v6_timestamp", None)
    ahead = id_clock.uuid6(clock_seq=3)
    later = UUID(int=ahead.int + (10**10 << 80))
    sort_checkpoints_after(str(later))
    following = [str(id_clock.uuid6(clock_seq=step)) for step in range(3)]
    assert following == sorted([str(later), *following])[1:]
    sort_checkpoints_after(str(ahead))
    assert str(id_clock.uuid6()) > following[-1]
