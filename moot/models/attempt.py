"""Chat model wrapper that streams a reply under the speaker's name and removes its reasoning."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel, agenerate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, PrivateAttr
from typing_extensions import override

from moot.calls.effects import INCOMPLETE
from moot.models.adapters import OpenAICompatible
from moot.state.entries import JsonObject, clean_text
from moot.state.langgraph_internals import ChatDelegate, model_type
from moot.state.settings import StreamRedactor

MAX_REPLY_CHARS = 1_000_000
"""Maximum number of characters in one reply, including its reasoning. Longer replies are cut and marked as
cut."""
MAX_REPLY_CHUNKS = 50_000
"""Maximum number of text chunks in one streamed reply. LangChain keeps every chunk in memory, about 3 KB
each."""
STREAM_ENDED_EARLY = "stream_ended_early"
"""Key in `response_metadata` that marks a message whose stream was cut off. The connection was closed
early."""

_OPEN = re.compile(r"<(?:think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_OPEN_TAGS = ("<think>", "<thinking>")
_CLOSE_TAGS = ("</think>", "</thinking>")
_LONGEST = max(map(len, _CLOSE_TAGS))


@dataclass(frozen=True)
class SplitText:
    """Text of a model reply, split into visible text and reasoning.

    It may be a part of the reply.
    """

    text: str
    reasoning: str


class ThinkFilter:
    """Streaming filter that separates `<think>…</think>` sections from the rest of a reply.

    A tag may be split between two chunks. Text after an unclosed tag is reasoning. Leading white space is
    dropped. The run time is linear in the length of the reply.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._thinking = False
        self._begun = False

    def feed(self, piece: str) -> SplitText:
        """Process a chunk of a stream, and return its visible text and its reasoning."""
        self._buffer += piece
        text: list[str] = []
        reasoning: list[str] = []
        while tag := (_CLOSE if self._thinking else _OPEN).search(self._buffer):
            (reasoning if self._thinking else text).append(self._buffer[: tag.start()])
            self._buffer = self._buffer[tag.end() :]
            self._thinking = not self._thinking
        # Keep the end in the buffer if it may be the start of a tag.
        tags = _CLOSE_TAGS if self._thinking else _OPEN_TAGS
        end = self._buffer.rfind("<", max(0, len(self._buffer) - _LONGEST))
        if end < 0 or not any(tag.startswith(self._buffer[end:].lower()) for tag in tags):
            end = len(self._buffer)
        (reasoning if self._thinking else text).append(self._buffer[:end])
        self._buffer = self._buffer[end:]
        return self._part("".join(text), "".join(reasoning))

    def close(self) -> SplitText:
        """End the stream, and return the remaining text and reasoning."""
        rest, self._buffer = self._buffer, ""
        return self._part("", rest) if self._thinking else self._part(rest, "")

    def _part(self, text: str, reasoning: str) -> SplitText:
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        return SplitText(text, reasoning)


def split_thinking(text: str) -> SplitText:
    """Split a complete reply into its visible text and its reasoning.

    A closing tag without an opening tag also ends reasoning, because some chat templates put the opening tag
    into the prompt.
    """
    closing, opening = _CLOSE.search(text), _OPEN.search(text)
    lead = ""
    if closing and (opening is None or closing.start() < opening.start()):
        lead, text = text[: closing.start()], text[closing.end() :]
    splitter = ThinkFilter()
    pieces = (splitter.feed(text), splitter.close())
    reasoning = lead + "".join(piece.reasoning for piece in pieces)
    return SplitText("".join(piece.text for piece in pieces).strip(), reasoning.strip())


def content_parts(content: str | list[Any]) -> SplitText:
    """Return the text and the reasoning in a message's content.

    The content is a string or a list of blocks.
    """
    if isinstance(content, str):
        return SplitText(content, "")
    text: list[str] = []
    reasoning: list[str] = []
    for block in content:
        if isinstance(block, str):
            text.append(block)
        elif block.get("type") == "text":
            text.append(str(block.get("text", "")))
        elif block.get("type") in ("thinking", "reasoning"):
            inner = block.get(block["type"], block.get("text", ""))
            reasoning.append(content_parts(inner).text if isinstance(inner, str | list) else "")
    return SplitText("".join(text), "".join(reasoning))


def reasoning_field(fields: JsonObject) -> str:
    """Return the text of the `reasoning_content` or `reasoning` field, or `""` if neither exists."""
    for name in ("reasoning_content", "reasoning"):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


class SpeakerModel(ChatDelegate, BaseChatModel):
    """Chat model wrapper that adds a speaker and a message id to streamed chunks.

    LangGraph's `messages` stream emits the chunks of a chat model unchanged. Therefore this wrapper sets
    `message_id` and `speaker` on each chunk and on the final message, and removes reasoning and secrets.
    Create a new one for each attempt. After the call, `thoughts` holds the reasoning, and `emitted` is True
    if text was streamed.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    inner: BaseChatModel
    """Chat model that this wrapper calls."""
    message_id: str | None = None
    """Id of the message that holds the reply in the debate's state. `None` uses LangChain's own id."""
    speaker: str | None = None
    """Id of the debater whose message the model writes."""
    on_chunk: Callable[[], None] = lambda: None
    """Function that is called for each chunk of text or reasoning."""
    price: Callable[[AIMessage], float | None] = lambda _: None
    """Function that returns a reply's cost in US dollars, or `None` if it is unknown. LangSmith traces show
    this cost."""
    cache: Any = False
    """LangChain's cache setting. `False` turns off the cache for this wrapper. The module
    `moot.models.model_call` looks up cached replies before it calls the wrapper."""

    streams: bool = False
    """True if the inner model's reply is streamed even if nobody reads the stream, so that `on_chunk` sees
    silence."""
    emitted: bool = False
    """True if this attempt has already streamed text to the user."""

    _chars: int = PrivateAttr(default=0)
    _thoughts: list[str] = PrivateAttr(default_factory=list)
    _splitter: ThinkFilter = PrivateAttr(default_factory=ThinkFilter)
    _redactor: StreamRedactor = PrivateAttr(default_factory=StreamRedactor)

    @property
    def thoughts(self) -> str:
        """Return the reasoning that the model has produced so far in this call."""
        return "".join(self._thoughts).strip()

    @property
    def _llm_type(self) -> str:
        return model_type(self.inner)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return self._as_speaker(self.call_inner(messages, stop, kwargs))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        if self.streams:
            return await agenerate_from_stream(self._astream(messages, stop, **kwargs))
        return self._as_speaker(await self.acall_inner(messages, stop, kwargs))

    @override
    def finish_result(self, result: ChatResult) -> None:
        """Add a reply's cost to its usage metadata.

        LangSmith reads the cost there.
        """
        message = result.generations[0].message
        if isinstance(message, AIMessage) and (cost := self.price(message)) is not None:
            message.usage_metadata = cast(
                UsageMetadata, {**(message.usage_metadata or {}), "total_cost": cost}
            )

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        last = AIMessageChunk(content="", chunk_position="last")
        chunks = 0
        inner = cast(AsyncGenerator[ChatGenerationChunk], self.stream_inner(messages, stop, kwargs))
        async with aclosing(inner):
            async for chunk in inner:
                self.on_chunk()
                message = chunk.message
                self._remember(last, message, chunk.generation_info)
                text = self._without_thoughts(message)
                if text or getattr(message, "tool_call_chunks", None):
                    chunks += 1
                    yield self._chunk(text, message)
                if self._chars >= MAX_REPLY_CHARS or chunks >= MAX_REPLY_CHUNKS:
                    last.response_metadata["finish_reason"] = INCOMPLETE
                    break
        if rest := self._rest():
            yield self._chunk(rest, last)
        last.id, last.name = self.message_id, self.speaker
        yield ChatGenerationChunk(message=last, generation_info=dict(last.response_metadata))

    def _without_thoughts(self, message: BaseMessage) -> str:
        """Store a message's reasoning, and return its visible text without secrets."""
        parts = content_parts(message.content)
        split = self._splitter.feed(parts.text)
        thoughts = parts.reasoning + reasoning_field(message.additional_kwargs) + split.reasoning
        remaining = MAX_REPLY_CHARS - self._chars
        self._chars += len(thoughts) + len(split.text)
        self._thoughts.append(thoughts[:remaining])
        return self._redactor.feed(split.text[:remaining])

    def _rest(self) -> str:
        """Return the text that is still buffered at the end of a reply.

        The filters for reasoning and secrets hold it back.
        """
        rest = self._splitter.close()
        self._thoughts.append(rest.reasoning)
        return self._redactor.feed(rest.text) + self._redactor.close()

    def _chunk(self, text: str, source: BaseMessage) -> ChatGenerationChunk:
        self.emitted = self.emitted or bool(text)
        message = AIMessageChunk(
            content=clean_text(text),
            tool_call_chunks=list(getattr(source, "tool_call_chunks", ())),
            id=self.message_id,
            name=self.speaker,
        )
        return ChatGenerationChunk(message=message)

    def _remember(self, last: AIMessageChunk, message: BaseMessage, info: JsonObject | None) -> None:
        # Some OpenAI-compatible servers report running totals in every chunk. Other models report increments.
        if usage := getattr(message, "usage_metadata", None):
            repeated = isinstance(self.inner, OpenAICompatible)
            last.usage_metadata = usage if repeated else add_usage(last.usage_metadata, usage)
        last.response_metadata = {**last.response_metadata, **message.response_metadata, **(info or {})}
        if refusal := message.additional_kwargs.get("refusal"):
            last.additional_kwargs["refusal"] = last.additional_kwargs.get("refusal", "") + str(refusal)

    def _as_speaker(self, result: ChatResult) -> ChatResult:
        first = result.generations[0]
        text = self._without_thoughts(first.message) + self._rest()
        metadata = {**first.message.response_metadata, **(first.generation_info or {})}
        if self._chars >= MAX_REPLY_CHARS:
            metadata["finish_reason"] = INCOMPLETE
        self.emitted = bool(text)
        message = AIMessage(
            content=clean_text(text),
            tool_calls=getattr(first.message, "tool_calls", []),
            invalid_tool_calls=getattr(first.message, "invalid_tool_calls", []),
            usage_metadata=getattr(first.message, "usage_metadata", None),
            response_metadata=metadata,
            additional_kwargs={
                key: value for key, value in first.message.additional_kwargs.items() if key == "refusal"
            },
            id=self.message_id,
            name=self.speaker,
        )
        return ChatResult(generations=[ChatGeneration(message=message)], llm_output=result.llm_output)
