"""Undocumented parts of LangGraph, LangChain, langchain-openai and httpx that Moot uses, all in this module.

They may change with any release. `tests/unit/test_langgraph_internals.py` fails if one does. Overrides of
undocumented methods are mixins here, which call a documented hook of the class that uses them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import langgraph.checkpoint.base.id as id_clock
from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint
from langgraph.checkpoint.serde.types import RESUME
from pydantic import BaseModel

from moot.state.entries import JsonObject

if TYPE_CHECKING:
    from langchain_core.language_models.base import LangSmithParams
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.outputs import ChatGenerationChunk, ChatResult
    from langgraph.store.base.batch import AsyncBatchedBaseStore

Cursor = AbstractAsyncContextManager[Any]
"""Type of a psycopg cursor for an `async with` statement."""

TESTED_VERSIONS = {"langgraph": "1.2.24", "langchain-core": "1.8.3"}
"""Versions of LangGraph and LangChain that this release of Moot was tested with, as in `constraints.txt`."""

_TASK = "__pregel_task_id"
"""Config key that holds the id of a graph node's task. A graph inside another graph has it, too."""
_CHECKPOINTER = "__pregel_checkpointer"
"""Config key with which a parent graph passes its checkpointer to the graphs inside it."""


def checkpointer_in(config: RunnableConfig) -> BaseCheckpointSaver[str] | None:
    """Return the checkpointer in a graph node's config, or None if there is none."""
    saver: BaseCheckpointSaver[str] | None = config.get("configurable", {}).get(_CHECKPOINTER)
    return saver


def merged_config(*configs: RunnableConfig | None) -> RunnableConfig:
    """Return the config that LangGraph makes for a run from the given configs and the surrounding graph's.

    LangChain's `ensure_config` drops the surrounding graph's `configurable` if a config has one. LangGraph
    keeps it, so a graph that an agent's tool calls is a part of the agent's graph.
    """
    from langgraph._internal._config import ensure_config

    return ensure_config(*configs)


def sort_checkpoints_after(checkpoint_id: str) -> None:
    """Make all new checkpoint ids sort after a stored one.

    The id of a checkpoint begins with its time, and the highest id of a thread is its latest checkpoint. If
    the clock was set back since the last run, the new checkpoints of a resume would count as older ones.
    """
    number = UUID(checkpoint_id).int
    timestamp = number >> 80 << 12 | number >> 64 & 0xFFF
    newest = max(timestamp, id_clock._last_v6_timestamp or 0)
    id_clock._last_v6_timestamp = newest  # type: ignore[assignment]  # its type is inferred from `None`


def detached_config(config: RunnableConfig) -> RunnableConfig:
    """Return a config for running a separate graph inside a tool.

    Tracers are kept. The caller's checkpoint position is left out. So are the handlers of its message stream,
    because the separate graph's messages would appear among the caller's own.
    """
    from langgraph.pregel._messages import StreamMessagesHandler

    detached: RunnableConfig = {"configurable": {}}
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        for handler in [each for each in callbacks.handlers if isinstance(each, StreamMessagesHandler)]:
            callbacks.remove_handler(handler)
    elif callbacks:
        callbacks = [each for each in callbacks if not isinstance(each, StreamMessagesHandler)]
    if callbacks:
        detached["callbacks"] = callbacks
    return detached


def count_answers(pending_writes: Sequence[tuple[str, str, object]] | None) -> int:
    """Count the answers to interrupts among a checkpoint's pending writes."""
    stored = [value for task, channel, value in pending_writes or () if channel == RESUME and _is_task(task)]
    return sum(len(value) if isinstance(value, list) else 1 for value in stored)


def _is_task(task: str) -> bool:
    return bool(task.strip("0-"))  # a null task's write is a copy


def runs_next(checkpoint: Checkpoint, node: str) -> bool:
    """Return True if the checkpoint says that `node` runs next.

    A state snapshot has a list of the next nodes, but LangGraph rebuilds all channels to make that list.
    """
    return f"branch:to:{node}" in checkpoint["channel_values"]


def is_nested(checkpoint_ns: str) -> bool:
    """Return True if a checkpoint namespace belongs to a graph that runs inside another graph."""
    return "|" in checkpoint_ns


def runs_in_task(config: RunnableConfig) -> bool:
    """Return True if a graph with this config runs inside a parent graph.

    A client can send LangGraph's internal keys as JSON, but not the function with which a task reads the
    parent's state.
    """
    configurable = config.get("configurable", {})
    return _TASK in configurable and callable(configurable.get("__pregel_read"))


def set_by_parent(config: RunnableConfig) -> bool:
    """Return True if a run's or update's config comes from a parent graph, not from a client."""
    return runs_in_task(config) or isinstance(checkpointer_in(config), BaseCheckpointSaver)


def parent_keys_in(config: RunnableConfig) -> list[str]:
    """Return the keys in a config that only a parent graph can set."""
    configurable = config.get("configurable", {})
    return [key for key in ("checkpoint_ns", _TASK, _CHECKPOINTER) if configurable.get(key) not in (None, "")]


def compiled_parts(compiled: object) -> JsonObject:
    """Return the attributes of a compiled graph as constructor arguments.

    They create an instance of a subclass, which `StateGraph.compile` cannot do.
    """
    return {key: value for key, value in vars(compiled).items() if key != "__orig_class__"}


async def close_store(store: AsyncBatchedBaseStore) -> None:
    """Cancel a LangGraph store's background task before its event loop ends."""
    if (task := store._task) is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class EveryKey(dict[str, object]):
    """Dictionary that claims to contain every key.

    The dictionary holds the properties of a JSON Schema. LangGraph's server drops the keys of a request's
    `context` that the schema does not know, without an error. With this class it passes them on, so that the
    graph can refuse them.
    """

    def __contains__(self, key: object) -> bool:
        return True


class PostgresCursorHook:
    """Mixin for `AsyncPostgresSaver` that lets subclasses change how database cursors are opened."""

    def open_cursor(self, original: Callable[..., Cursor], pipeline: bool) -> Cursor:
        """Open a cursor. Subclasses override this hook. `original` is the saver's method."""
        return original(pipeline=pipeline)

    def cursor(self, *, pipeline: bool = False) -> Cursor:
        """Open a database cursor with the hook `open_cursor`."""
        return self._cursor(pipeline=pipeline)

    def _cursor(self, *, pipeline: bool = False) -> Cursor:
        return self.open_cursor(super()._cursor, pipeline)  # type: ignore[misc]  # of the saver


def message_events(
    chunks: AsyncIterator[ChatGenerationChunk], message_id: str | None
) -> AsyncIterator[object]:
    """Convert a reply's chunks to events of LangGraph's stream protocol (v3).

    LangChain would name the message after the run, unless a chat model makes the events itself.
    """
    from langchain_core.language_models._compat_bridge import achunks_to_events

    return achunks_to_events(chunks, message_id=message_id)


def model_type(chat: BaseChatModel) -> str:
    """Return the type name of a chat model, such as `openai-chat`."""
    return chat._llm_type


def model_settings_key(chat: BaseChatModel, fields: JsonObject) -> str:
    """Return the text that identifies a chat model and its settings in LangChain's caches."""
    return chat._get_llm_string(**fields)


def streams_tokens(chat: BaseChatModel) -> bool:
    """Return True if a chat model's class implements streaming."""
    from langchain_core.language_models.chat_models import BaseChatModel

    kind = type(chat)
    return kind._astream is not BaseChatModel._astream or kind._stream is not BaseChatModel._stream


class ChatDelegate:
    """Mixin for a chat model that delegates all calls to the chat model `inner`.

    The public methods of `inner` would start a separate run in traces and streams. Messages are streamed
    under the id `message_id`.
    """

    if TYPE_CHECKING:  # at runtime, pydantic would turn these into fields
        inner: BaseChatModel
        message_id: str | None

    def finish_result(self, result: ChatResult) -> None:
        """Modify the result of a model call before LangChain's callbacks receive it."""

    def call_inner(
        self, messages: list[BaseMessage], stop: list[str] | None, options: JsonObject
    ) -> ChatResult:
        """Call the inner chat model and return its result."""
        return self.inner._generate(messages, stop=stop, **options)

    async def acall_inner(
        self, messages: list[BaseMessage], stop: list[str] | None, options: JsonObject
    ) -> ChatResult:
        """Call the inner chat model asynchronously and return its result."""
        return await self.inner._agenerate(messages, stop=stop, **options)

    def stream_inner(
        self, messages: list[BaseMessage], stop: list[str] | None, options: JsonObject
    ) -> AsyncIterator[ChatGenerationChunk]:
        """Stream the inner chat model's reply in chunks."""
        set_by_inner = {key: value for key, value in options.items() if key != "stream"}
        return self.inner._astream(messages, stop=stop, **set_by_inner)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop=stop, **kwargs)

    @property
    def _serialized(self) -> dict[str, object]:
        # LangChain would otherwise print every field of both models for each call
        return {"lc": 1, "type": "not_implemented", "id": [__name__, type(self).__name__]}

    async def _agenerate_with_cache(self, *messages: object, **options: object) -> ChatResult:
        result: ChatResult = await super()._agenerate_with_cache(*messages, **options)  # type: ignore[misc]
        self.finish_result(result)
        return result

    async def _astream_chat_model_events(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **kwargs: object
    ) -> AsyncIterator[object]:
        chunks = self._astream(messages, stop=stop, **kwargs)  # type: ignore[attr-defined]
        async for event in message_events(chunks, self.message_id):
            yield event


class ChatOpenAIHooks:
    """Mixin for `ChatOpenAI` that lets subclasses modify requests and raw replies."""

    def change_request(self, payload: JsonObject) -> JsonObject:
        """Return the changed body of a request. Subclasses override this method."""
        return payload

    def convert_chunk(self, raw: JsonObject) -> ChatGenerationChunk | None:
        """Convert the raw data of a chunk, or return None to leave this to `ChatOpenAI`."""
        return None

    def change_reply(self, raw: JsonObject) -> JsonObject:
        """Convert the raw data of a reply or chunk to a form that `ChatOpenAI` can process."""
        return raw

    def change_message(self, message: BaseMessage, raw: JsonObject) -> None:
        """Modify a message or chunk that `ChatOpenAI` has created from the raw reply data."""

    def _get_request_payload(
        self, input_: object, *, stop: list[str] | None = None, **kwargs: object
    ) -> JsonObject:
        return self.change_request(super()._get_request_payload(input_, stop=stop, **kwargs))  # type: ignore[misc]

    def _convert_chunk_to_generation_chunk(
        self, chunk: JsonObject, default_chunk_class: type, base_generation_info: JsonObject | None
    ) -> ChatGenerationChunk | None:
        if own_chunk := self.convert_chunk(chunk):
            return own_chunk
        raw = self.change_reply(chunk)
        converted: ChatGenerationChunk | None = super()._convert_chunk_to_generation_chunk(  # type: ignore[misc]
            raw, default_chunk_class, base_generation_info
        )
        choices = raw.get("choices") or []
        if converted is not None and choices:
            self.change_message(converted.message, choices[0].get("delta") or {})
        return converted

    def _create_chat_result(
        self, response: BaseModel | JsonObject, generation_info: JsonObject | None = None
    ) -> ChatResult:
        raw = response if isinstance(response, dict) else response.model_dump(warnings=False)
        raw = self.change_reply(raw)
        result: ChatResult = super()._create_chat_result(raw, generation_info)  # type: ignore[misc]
        for generation, choice in zip(result.generations, raw["choices"], strict=True):
            self.change_message(generation.message, choice["message"])
        return result


def replace_body(response: object, content: bytes) -> None:
    """Replace the body of an httpx response that has already been read."""
    response.__dict__["_content"] = content


def provider_package(provider: str) -> str:
    """Return the name of a provider's LangChain package, or `""` if it is unknown."""
    try:
        from langchain.chat_models.base import _BUILTIN_PROVIDERS
    except ImportError:
        return ""
    module = _BUILTIN_PROVIDERS[provider][0] if provider in _BUILTIN_PROVIDERS else ""
    return module.partition(".")[0].replace("_", "-")


def set_server_version(server: object, version: str) -> None:
    """Set the version that a server of version 1 of the package `mcp` reports."""
    server._mcp_server.version = version  # type: ignore[attr-defined]
