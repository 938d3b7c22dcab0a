"""One attempt at one model: what it says, under the speaker's name, without its thoughts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import cached_property
from typing import Any, cast

from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, PrivateAttr

from moot.nodes.models.adapters import SpeaksOpenAI
from moot.nodes.models.thinking import ThinkFilter, content_parts, reasoning_field
from moot.state.entries import JsonObject, clean_text
from moot.state.langgraph_internals import message_events


class SpeakerModel(BaseChatModel):
    """Delegates to another chat model and gives its words an id and a name.

    LangGraph's `messages` stream emits a chat model's chunks as they are, so this is where they become the
    speaker's: every chunk and the final message carry `entry_id` and `speaker`, and reasoning is taken out on
    the fly. Use a new one for each attempt: afterwards `thoughts` holds the reasoning, `emitted` says whether
    any words went out.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    inner: BaseChatModel
    """The provider's model."""
    entry_id: str | None = None
    """Id of the entry that the words become; `None` leaves the id to LangChain."""
    speaker: str | None = None
    """Slug of who speaks."""
    on_chunk: Callable[[], None] = lambda: None
    """Called for whatever streams in, thoughts too."""
    price: Callable[[AIMessage], float | None] = lambda _: None
    """What a message has cost in US$, for traces."""
    cache: Any = False
    """Never LangChain's global cache: two floors with one prompt are two utterances."""

    emitted: bool = False
    """Whether words of this attempt have been streamed."""

    _thoughts: list[str] = PrivateAttr(default_factory=list)
    _splitter: ThinkFilter = PrivateAttr(default_factory=ThinkFilter)

    @property
    def thoughts(self) -> str:
        """What the model thought aloud so far."""
        return "".join(self._thoughts).strip()

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        """Name the provider's model in traces, not this one."""
        return self.inner._get_ls_params(stop=stop, **kwargs)

    @cached_property
    def _serialized(self) -> JsonObject:
        # LangChain would print every field of both models, for each call anew.
        return {"lc": 1, "type": "not_implemented", "id": [__name__, type(self).__name__]}

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return self._as_speaker(self.inner._generate(messages, stop=stop, **kwargs))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return self._as_speaker(await self.inner._agenerate(messages, stop=stop, **kwargs))

    async def _agenerate_with_cache(self, *messages: Any, **options: Any) -> ChatResult:
        """Answer, streamed or not, with the cost where LangSmith looks for it."""
        result = await super()._agenerate_with_cache(*messages, **options)
        message = result.generations[0].message
        if isinstance(message, AIMessage) and (cost := self.price(message)) is not None:
            message.usage_metadata = cast(
                UsageMetadata, {**(message.usage_metadata or {}), "total_cost": cost}
            )
        return result

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        kwargs.pop("stream", None)  # the inner model's `_astream` sets it itself
        last = AIMessageChunk(content="", chunk_position="last")
        async for chunk in self.inner._astream(messages, stop=stop, **kwargs):
            self.on_chunk()
            message = chunk.message
            self._remember(last, message, chunk.generation_info)
            text = self._without_thoughts(message)
            if text or getattr(message, "tool_call_chunks", None):
                yield self._chunk(text, message)
        if rest := self._rest():
            yield self._chunk(rest, last)
        last.id, last.name = self.entry_id, self.speaker
        yield ChatGenerationChunk(message=last, generation_info=dict(last.response_metadata))

    async def _astream_chat_model_events(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Serve LangGraph's event protocol (v3), which would otherwise name the message after the run."""
        chunks = self._astream(messages, stop=stop, **kwargs)
        async for event in message_events(chunks, self.entry_id):
            yield event

    def _without_thoughts(self, message: BaseMessage) -> str:
        """Return what of a message can be said already, and keep its thoughts."""
        beside = content_parts(message.content)
        parted = self._splitter.feed(beside.text)
        self._thoughts += (beside.reasoning, reasoning_field(message.additional_kwargs), parted.reasoning)
        return parted.text

    def _rest(self) -> str:
        """Return what looked like the start of a tag and was none."""
        rest = self._splitter.close()
        self._thoughts.append(rest.reasoning)
        return rest.text

    def _chunk(self, text: str, source: BaseMessage) -> ChatGenerationChunk:
        self.emitted = self.emitted or bool(text)
        message = AIMessageChunk(
            content=clean_text(text),
            tool_call_chunks=list(getattr(source, "tool_call_chunks", ())),
            id=self.entry_id,
            name=self.speaker,
        )
        return ChatGenerationChunk(message=message)

    def _remember(self, last: AIMessageChunk, message: BaseMessage, info: JsonObject | None) -> None:
        # Some of OpenAI's imitators report the usage so far in every chunk; LangChain's models report parts.
        if usage := getattr(message, "usage_metadata", None):
            repeated = isinstance(self.inner, SpeaksOpenAI)
            last.usage_metadata = usage if repeated else add_usage(last.usage_metadata, usage)
        last.response_metadata = {**last.response_metadata, **message.response_metadata, **(info or {})}
        if refusal := message.additional_kwargs.get("refusal"):
            said = last.additional_kwargs.get("refusal", "")
            last.additional_kwargs["refusal"] = said + str(refusal)

    def _as_speaker(self, result: ChatResult) -> ChatResult:
        first = result.generations[0]
        text = self._without_thoughts(first.message) + self._rest()
        self.emitted = bool(text)
        message = AIMessage(
            content=clean_text(text),
            tool_calls=getattr(first.message, "tool_calls", []),
            invalid_tool_calls=getattr(first.message, "invalid_tool_calls", []),
            usage_metadata=getattr(first.message, "usage_metadata", None),
            response_metadata={**first.message.response_metadata, **(first.generation_info or {})},
            additional_kwargs={
                key: value for key, value in first.message.additional_kwargs.items() if key == "refusal"
            },
            id=self.entry_id,
            name=self.speaker,
        )
        return ChatResult(generations=[ChatGeneration(message=message)], llm_output=result.llm_output)
