"""A model that says what it is told to: for examples, notebooks and tests."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import ConfigDict, Field, PrivateAttr

from moot.nodes.models.local import LocalModel
from moot.state.entries import JsonObject
from moot.state.errors import ModelError

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
        reply = self._next(messages)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, dict):
            reply = json.dumps(reply, ensure_ascii=False)
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)

    def _next(self, messages: list[BaseMessage]) -> ScriptReply:
        if self._replies is None:
            said: ScriptReply = self.script(messages)
            return said
        for reply in self._replies:
            return reply
        raise ModelError(f"the script has ended after {len(self.calls) - 1} replies")
