"""Chat model wrapper that streams a reply under the speaker's name and removes its reasoning."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel, agenerate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, PrivateAttr
from typing_extensions import override

from moot.calls.model_calls import INCOMPLETE
from moot.models.adapters import OpenAICompatible
from moot.models.reply_faults import ENDLESS_CHARS, is_endless
from moot.models.reply_markup import ReplyFilter, SplitText
from moot.state.entries import JsonObject, clean_text
from moot.state.langgraph_internals import ChatDelegate, model_type
from moot.state.settings import StreamRedactor, redact

MAX_REPLY_CHARS = 1_000_000
"""Maximum number of characters in one reply, including its reasoning. Longer replies are cut and marked as
cut."""
MAX_REPLY_CHUNKS = 50_000
"""Maximum number of text chunks in one streamed reply. LangChain keeps every chunk in memory, about 3 KB
each."""
CHECK_CHARS = 500
"""Number of new characters after which a stream is searched for a loop. A search takes 1 to 3 ms."""
STREAM_ENDED_EARLY = "stream_ended_early"
"""Key in `response_metadata` that marks a message whose stream was cut off. The connection was closed
early."""

RETRACTS = "retracts"
"""Key in `response_metadata` that marks a chunk whose text replaces the text streamed so far."""


def content_parts(content: str | list[Any]) -> SplitText:
    """Return the text and the reasoning in a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return SplitText(content, "")
    text: list[str] = []
    reasoning: list[str] = []
    for block in content:
        kind = "text" if isinstance(block, str) else str(block.get("type", "text"))
        if isinstance(block, str):
            text.append(block)
        elif kind.startswith(("thinking", "reasoning")):
            inner = next((block[key] for key in (kind, "text", "summary") if block.get(key)), "")
            reasoning.append(content_parts(inner).text if isinstance(inner, str | list) else "")
        elif kind.endswith("text") or kind == "refusal":  # such as `output_text` or `summary_text`
            inner = block.get("text", block.get("content", ""))
            text.append(inner if isinstance(inner, str) else "")
    return SplitText("".join(text), "".join(reasoning))


def reasoning_field(fields: JsonObject) -> str:
    """Return the reasoning in the fields that servers use for it, or `""` if there is none."""
    for name in ("reasoning_content", "reasoning", "thinking", "reasoning_text"):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    details = fields.get("reasoning_details")
    rows = [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    return "".join(text for each in rows if isinstance(text := each.get("text") or each.get("summary"), str))


class SpeakerModel(ChatDelegate, BaseChatModel):
    """Chat model wrapper that adds a speaker and a message id to streamed chunks.

    LangGraph's `messages` stream emits the chunks of a chat model unchanged. Therefore this wrapper sets
    `message_id` and `speaker` on each chunk and on the final message, and removes reasoning and secrets.
    Create a new one for each attempt. After the call, `reply` holds the text and the reasoning, and `emitted`
    is True if text was streamed.
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

    names: tuple[str, ...] = ()
    """Labels of the speaker, which are removed from the start of the text."""
    reasons_first: bool = False
    """True if the model is known to begin with reasoning without an opening tag. A reply sets it, too."""

    streams: bool = False
    """True if the inner model's reply is streamed even if nobody reads the stream, so that `on_chunk` sees
    silence."""
    emitted: bool = False
    """True if this attempt has already streamed text to the user."""
    reply: SplitText = SplitText("", "")
    """Text and reasoning of the complete reply."""

    _chars: int = PrivateAttr(default=0)
    _end: str = PrivateAttr(default="")
    _thoughts: list[str] = PrivateAttr(default_factory=list)
    _filter: ReplyFilter = PrivateAttr()
    _redactor: StreamRedactor = PrivateAttr(default_factory=StreamRedactor)

    @override
    def model_post_init(self, _: object, /) -> None:
        self._filter = ReplyFilter(self.names, reasons_first=self.reasons_first)

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
        """Add a reply's cost to its usage metadata, where LangSmith reads it."""
        message = result.generations[0].message
        if isinstance(message, AIMessage) and (cost := self.price(message)) is not None:
            message.usage_metadata = cast(
                UsageMetadata, {**(message.usage_metadata or {}), "total_cost": cost}
            )

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        last = AIMessageChunk(content="", chunk_position="last")
        chunks = checked_chars = 0
        inner = cast(AsyncGenerator[ChatGenerationChunk], self.stream_inner(messages, stop, kwargs))
        async with aclosing(inner):
            async for chunk in inner:
                self.on_chunk()
                message = chunk.message
                self._remember(last, message, chunk.generation_info)
                text = self._visible(message)
                if retracts := self._filter.retracts:
                    self._filter.retracts, self.reasons_first = False, True
                if text or retracts or getattr(message, "tool_call_chunks", None):
                    chunks += 1
                    yield self._chunk(text, message, retracts=retracts)
                loops = False
                if self._chars - checked_chars >= CHECK_CHARS:
                    checked_chars, loops = self._chars, is_endless(self._end)
                if loops or self._chars >= MAX_REPLY_CHARS or chunks >= MAX_REPLY_CHUNKS:
                    last.response_metadata["finish_reason"] = INCOMPLETE
                    break
        rest = self._rest()
        if rest or self._filter.retracts:
            yield self._chunk(rest, last, retracts=self._filter.retracts)
        last.id, last.name = self.message_id, self.speaker
        yield ChatGenerationChunk(message=last, generation_info=dict(last.response_metadata))

    def _visible(self, message: BaseMessage) -> str:
        """Store a message's reasoning, and return its visible text without secrets."""
        parts = content_parts(message.content)
        remaining = MAX_REPLY_CHARS - self._chars
        thoughts = (parts.reasoning + reasoning_field(message.additional_kwargs))[:remaining]
        raw = parts.text[: remaining - len(thoughts)]
        self._chars += len(thoughts) + len(raw)
        self._end = (self._end + thoughts + raw)[-ENDLESS_CHARS:]
        self._thoughts.append(thoughts)
        text = self._filter.feed(raw)
        if self._filter.retracts:
            self._redactor = StreamRedactor()
        return self._redactor.feed(text)

    def _rest(self) -> str:
        """Split the complete reply, and return the text that was not streamed yet."""
        split = self._filter.close()
        thoughts = "\n".join(filter(None, ("".join(self._thoughts).strip(), split.reasoning)))
        self.reply = replace(split, text=clean_text(redact(split.text)), reasoning=clean_text(thoughts))
        rest = self._filter.rest(split.text)
        if self._filter.retracts:
            self._redactor = StreamRedactor()
        return self._redactor.feed(rest) + self._redactor.close()

    def _chunk(self, text: str, source: BaseMessage, *, retracts: bool = False) -> ChatGenerationChunk:
        self.emitted = self.emitted or bool(text)
        message = AIMessageChunk(
            content=clean_text(text),
            tool_call_chunks=list(getattr(source, "tool_call_chunks", ())),
            response_metadata={RETRACTS: True} if retracts else {},
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
        self._visible(first.message)
        self._rest()
        metadata = {**first.message.response_metadata, **(first.generation_info or {})}
        if self._chars >= MAX_REPLY_CHARS:
            metadata["finish_reason"] = INCOMPLETE
        self.emitted = bool(self.reply.text)
        message = AIMessage(
            content=self.reply.text,
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
