"""Chat models that run in this process: they are handed what a provider never sees.

`ScriptedModel` says what it is told to: for examples, notebooks and tests.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field, PrivateAttr

from moot.state.entries import JsonObject
from moot.state.errors import ModelError

_WORDS = re.compile(" ?[^ ]+| ")
"""Words, each with the space before it: put together they are the text."""


class LocalModel(BaseChatModel):
    """A model without a provider.

    `complete` passes it, as keyword arguments, `hints` (the call's), `json_schema` (of a structured answer,
    else `None`), `tools`, `seed`, `max_tokens` and `prompt_tokens`.
    """

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the whole answer to a prompt."""
        raise NotImplementedError

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages, **kwargs))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield from _chunks(self.respond(messages, **kwargs))

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self.respond(messages, **kwargs)):
            yield chunk


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    for piece in _WORDS.findall(str(message.content)):
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            additional_kwargs=message.additional_kwargs,
            tool_calls=message.tool_calls,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
    )


ScriptReply = str | JsonObject | AIMessage | Exception
"""Text, a structured answer, a whole message (with tool calls or usage), or an error to raise."""

Script = Iterable[ScriptReply] | Callable[[list[BaseMessage]], ScriptReply]


@dataclass(frozen=True)
class ScriptedCall:
    """One call that a `ScriptedModel` was given."""

    messages: list[BaseMessage]
    parameters: JsonObject = field(default_factory=dict)
    """Everything beside the messages: `hints`, `json_schema`, `seed`, `max_tokens`, …"""


class ScriptedModel(LocalModel):
    """A chat model that follows a script and records its calls.

    The script is a list or an iterator, used up one reply a call, or a function from the messages to the
    reply. Streams word by word.

    Raises:
        ModelError: on a call after the script has ended.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    script: Any
    """A list or iterator of replies, or a function from the messages to one."""
    calls: list[ScriptedCall] = Field(default_factory=list)
    """Every call so far, in order."""

    _replies: Iterator[ScriptReply] | None = PrivateAttr(default=None)

    def __init__(self, script: Script, **fields: Any) -> None:
        super().__init__(script=script, calls=[], **fields)
        self._replies = None if callable(script) else iter(script)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the script's next reply, or raise the error that it names."""
        self.calls.append(ScriptedCall(messages, kwargs))
        try:
            reply: ScriptReply = self.script(messages) if self._replies is None else next(self._replies)
        except StopIteration:
            raise ModelError(f"the script has ended after {len(self.calls) - 1} replies") from None
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, dict):
            reply = json.dumps(reply, ensure_ascii=False)
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)
