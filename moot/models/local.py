"""Chat models that run in this process.

`LocalModel` is their base class. `ScriptedModel` returns prepared replies in examples, notebooks and tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field, PrivateAttr

from moot.calls.event_loop import shield
from moot.models.failures import MESSAGE_CHARS, Failure
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, ModelError
from moot.state.settings import redact

_WORDS = re.compile(" ?[^ ]+| ")
"""Pattern that matches a word together with the space before it. All matches together form the
text."""


class LocalModel(BaseChatModel):
    """Base class of chat models that run in this process and need no provider.

    `complete` passes these keyword arguments: `hints` of the call, `json_schema` (`None` for text), `tools`,
    `seed`, `max_tokens` and `prompt_tokens`.
    """

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the model's reply to a prompt."""
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
"""Scripted reply to return, or an error to raise."""


@dataclass(frozen=True)
class ScriptedCall:
    """Record of one call to a `ScriptedModel`."""

    messages: list[BaseMessage]
    parameters: JsonObject = field(default_factory=dict)
    """Keyword arguments of the call, for example `hints`, `json_schema`, `seed` and `max_tokens`."""


Script = Iterable[ScriptReply] | Callable[[ScriptedCall], ScriptReply]


class ScriptedModel(LocalModel):
    """Chat model for tests that returns prepared replies in order and records its calls.

    The script is a list or an iterator of replies, one for each call, or a function from a call to its reply.
    The model streams its replies word by word.

    Raises:
        ModelError: the script has no reply left.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    script: Any
    """Replies to return, given as a list, an iterator or a function that maps a call to its reply."""
    calls: list[ScriptedCall] = Field(default_factory=list)
    """All calls to this model so far, oldest first."""

    _replies: Iterator[ScriptReply] | None = PrivateAttr(default=None)

    def __init__(self, script: Script, **fields: Any) -> None:
        super().__init__(script=script, calls=[], **fields)
        self._replies = None if callable(script) else iter(script)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the next scripted reply, or raise the scripted error in its place."""
        call = ScriptedCall(messages, kwargs)
        self.calls.append(call)
        try:
            reply: ScriptReply = self.script(call) if self._replies is None else next(self._replies)
        except StopIteration:
            raise ModelError(
                f"the script has only {len(self.calls) - 1} replies, but the model was called again: "
                "add replies to the script"
            ) from None
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, dict):
            reply = json.dumps(reply, ensure_ascii=False)
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)


MAX_BYTES = 4_000_000
"""Maximum number of bytes that a command may write to each of stdout and stderr."""
_HEADINGS = {"system": "", "human": "", "ai": "# Your earlier message\n\n"}


def check_command(name: str, command: Sequence[str]) -> None:
    """Raise an error if the program in a model's `command` is not installed.

    Raises:
        ConfigError: the program is not found or cannot be executed.
    """
    if shutil.which(command[0]) is None:
        raise ConfigError(
            f"models.{name}.command: the program {command[0]!r} was not found: install it, or give "
            "its full path"
        )


def prompt_text(messages: Sequence[BaseMessage]) -> str:
    """Join the messages of a prompt into one text for a command's stdin."""
    return "\n\n".join(f"{_HEADINGS.get(each.type, '')}{each.text}" for each in messages) + "\n"


class CommandModel(BaseChatModel):
    """Chat model that runs a command-line program for each call."""

    command: tuple[str, ...]
    """Program and arguments of the command."""

    @property
    def _llm_type(self) -> str:
        return "command"

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **__: object
    ) -> ChatResult:
        return asyncio.run(self._agenerate(messages))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **__: object
    ) -> ChatResult:
        """Run the command and return its stdout as the reply.

        Raises:
            Failure: the command cannot be started, ends with an exit code other than 0, or writes too much.
        """
        folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="moot-")
        try:
            text = await self._run(prompt_text(messages), folder)
        finally:
            await shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
        message = AIMessage(text.strip(), response_metadata={"finish_reason": "stop"})
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _run(self, prompt: str, folder: str) -> str:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, start_new_session=True
            )
        except OSError as error:
            raise Failure(f"the command {self.command[0]!r} cannot be started: {error.strerror}") from error
        stdin, pipes = process.stdin, [each for each in (process.stdout, process.stderr) if each]
        assert stdin is not None  # noqa: S101  # all are pipes
        tasks = [asyncio.create_task(_read(pipe)) for pipe in pipes]
        tasks.append(asyncio.create_task(_feed(stdin, prompt)))
        try:
            out, err, _ = await asyncio.gather(*tasks)
            code = await process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await shield(_reap(process, tasks, pipes))
        if code:
            said = redact(err.decode("utf-8", "replace")).strip()[-MESSAGE_CHARS:]
            raise Failure(
                f"the command {self.command[0]!r} ended with exit code {code}: {said}", retryable=True
            )
        return out.decode("utf-8", "replace")


async def _reap(
    process: asyncio.subprocess.Process,
    tasks: Sequence[asyncio.Task[bytes]],
    pipes: Sequence[asyncio.StreamReader],
) -> None:
    """Wait for a killed process to end.

    The rest of its output is read, because asyncio reports no end while a pipe holds unread data.
    """
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for pipe in pipes:
        while await pipe.read(65_536):
            pass
    await process.wait()


async def _feed(stdin: asyncio.StreamWriter, text: str) -> bytes:
    with contextlib.suppress(ConnectionError):  # a command need not read the whole prompt
        stdin.write(text.encode("utf-8", "replace"))
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()
    return b""


async def _read(stream: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(65_536):
        parts.append(part)
        if (size := size + len(part)) > MAX_BYTES:
            raise Failure(f"the command wrote more than {MAX_BYTES} bytes")
    return b"".join(parts)
