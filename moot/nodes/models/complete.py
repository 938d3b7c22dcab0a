"""The one call: retries, fallbacks, reasoning, structured answers and streaming, all inside it."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.config import get_stream_writer
from langgraph.constants import TAG_NOSTREAM
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from moot.nodes.calls import ModelCall, Reply, WireMessage
from moot.nodes.models.adapters import (
    Attempt,
    ChatRequest,
    SpeaksOpenAI,
    can_stream,
    request_of,
    weaker_method,
)
from moot.nodes.models.failures import (
    REFUSALS,
    Failure,
    excess_tokens,
    failure_of,
    finish_of,
    is_too_long,
)
from moot.nodes.models.local import LocalModel
from moot.nodes.models.registry import Models
from moot.nodes.models.schemas import Method, Parsed, corrected, read_answer
from moot.nodes.models.speaker import SpeakerModel
from moot.nodes.models.thinking import part
from moot.nodes.models.turns import EndpointTurn, is_out
from moot.nodes.models.usage import counted, reported
from moot.nodes.models.wire import to_langchain
from moot.state.config.model_settings import provider_of
from moot.state.entries import EntryUsage, clean_text
from moot.state.errors import UserError
from moot.state.redaction import redacted
from moot.state.reducers import add_up

MAX_EMPTY = 2
"""Times that a model which said nothing is asked again."""
LONG_OUT = 30
"""Failures in a row after which the wait before another is the longest."""

Messages = tuple[WireMessage, ...]


async def complete(call: ModelCall, models: Models, *, config: RunnableConfig | None = None) -> Reply:
    """Make one call, whatever it takes, and return what came of it.

    A failure of a provider is a `Reply` with `error`, never an exception; a cancellation passes through.

    Args:
        call: the request. With `speak_as` its words go to LangGraph's `messages` stream under that id and
            name; every other call is silent.
        models: the models of the run, kept from call to call.
        config: the node's configuration, which carries the stream; `None` takes the surrounding one.

    Raises:
        ConfigError: the call's model cannot be used at all: a bad name, or no key.
    """
    run, started, waited = _Attempts(call, models, config), time.perf_counter(), 0.0
    while True:
        failures: list[tuple[str, Failure]] = []
        *others, last = dict.fromkeys((call.model, *call.fallbacks))
        for name in (*others, last):
            if name in others and await is_out(models, name):
                failures.append((name, Failure("out of order, as other calls found", retryable=True)))
                continue
            try:
                reply = await (await _asking(run, name)).reply()
            except Failure as failure:
                failures.append((name, failure))
                continue
            return replace(reply, latency_s=time.perf_counter() - started)
        soonest = min((each for each in failures if each[1].passes), key=_asked_wait_s, default=None)
        left = models.retry_for - max(waited, time.perf_counter() - started)
        if soonest is None or left <= _asked_wait_s(soonest):
            break
        pause_s = min(left, models.backoff.wait_s(LONG_OUT, soonest[1].retry_after))
        _tell(
            soonest[0], soonest[1], pause_s, f"asked again in {pause_s:.0f} s, for {left / 60:.0f} min more"
        )
        await models.backoff.sleep(pause_s)
        waited += pause_s
    from moot.nodes.models.offered import explained  # with a client of its own, for failures alone

    return Reply(
        model=call.model,
        usage=run.usage,
        latency_s=time.perf_counter() - started,
        attempts=run.attempts,
        error="; ".join([await explained(name, failure, models) for name, failure in failures]),
        status=failures[-1][1].status,
        retryable=any(failure.retryable for _, failure in failures),
        refused=call.schema is None and all(failure.refused for _, failure in failures),
        excess=0 if call.shortened else min(excess_tokens(each, call.prompt_tokens) for _, each in failures),
    )


def _asked_wait_s(failed: tuple[str, Failure]) -> float:
    return failed[1].retry_after or 0.0


def _tell(model: str, failure: Failure, wait_s: float, what_next: str) -> None:
    """Say why nothing happens for a while: to whoever watches the run, else to the log."""
    words = f"{failure.cause}, {what_next}"
    try:
        write = get_stream_writer()
    except RuntimeError:  # outside a graph
        logging.getLogger(__name__).warning("%s: %s", model, words)
        return
    write({"event": "retry", "model": model, "why": failure.text, "words": words, "wait_s": wait_s})


@dataclass
class _Attempts:
    """What the attempts of one call share, over all its models."""

    call: ModelCall
    models: Models
    config: RunnableConfig | None
    usage: EntryUsage = field(default_factory=EntryUsage)
    attempts: int = 0
    spoken: bool = False
    """Words went out already: what follows is not streamed, so nothing is shown twice."""


@dataclass(frozen=True)
class _ModelAnswer:
    message: AIMessage
    text: str
    reasoning: str
    finish_reason: str


async def _asking(run: _Attempts, name: str) -> _Asking:
    try:
        return _Asking(run, name, await run.models.client(name))
    except UserError as error:
        if name == run.call.model:
            raise
        raise Failure(str(error)) from error  # a fallback that cannot be used is only one way less


class _Asking:
    """One call put to one model until it answers or has failed for good."""

    def __init__(self, run: _Attempts, name: str, chat: BaseChatModel) -> None:
        self.run, self.name, self.chat = run, name, chat
        self.settings = run.models.settings_of(name)
        self.room = run.call.max_tokens + self.settings.reasoning_tokens
        self.wide = False
        self.failures = 0
        self.empty = 0

    async def reply(self) -> Reply:
        schema = self.run.call.schema
        data = None
        if schema is None:
            answer = await self._roomy(self.run.call.messages)
        else:
            answer, parsed = await self._structured()
            data = parsed.data
        return Reply(
            text=answer.text,
            data=data,
            tool_calls=tuple(
                {"id": tool["id"] or "", "name": tool["name"], "args": tool["args"]}
                for tool in (answer.message.tool_calls if schema is None else ())
            ),
            model=self.name,
            provider=self._provider(),
            usage=self.run.usage,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
            attempts=self.run.attempts,
        )

    def _provider(self) -> str:
        if isinstance(self.chat, SpeaksOpenAI):
            return self.run.models.provider(self.name)
        return provider_of(self.name) or self.chat._llm_type

    async def _structured(self) -> tuple[_ModelAnswer, Parsed]:
        messages = self.run.call.messages
        answer = await self._degrading(messages)
        parsed = self._parsed(answer)
        if parsed.error:
            answer = await self._degrading(corrected(messages, answer.text, parsed.error))
            parsed = self._parsed(answer)
        if parsed.error:
            raise Failure(f"the answer does not fit the schema: {parsed.error}")
        return answer, parsed

    def _parsed(self, answer: _ModelAnswer) -> Parsed:
        assert self.run.call.schema is not None  # noqa: S101  # only structured calls come here
        calls = answer.message.tool_calls
        said = answer.text or "".join(bad["args"] or "" for bad in answer.message.invalid_tool_calls)
        return read_answer(self.run.call.schema, said, calls[0]["args"] if calls else None)

    async def _degrading(self, messages: Messages) -> _ModelAnswer:
        """Ask by the method the model takes; a refused method gives way to a weaker one, remembered."""
        method = asked = self.run.models.method_of(self.name)
        while True:
            try:
                answer = await self._roomy(messages, method)
            except Failure as failure:
                weaker = weaker_method(self.chat, method)
                if weaker is None or not _refuses_method(failure):
                    raise
                method = weaker
                continue
            if method != asked:
                self.run.models.learn_method(self.name, method)
            return answer

    async def _roomy(self, messages: Messages, method: Method | None = None) -> _ModelAnswer:
        """Ask; an answer that is cut is asked for once more with double the room."""
        answer = await self._retried(messages, method)
        if answer.finish_reason != "length" or not self._widen():
            return answer
        try:
            return await self._retried(messages, method)
        except Failure:
            if answer.text:
                return answer
            raise

    def _widen(self) -> bool:
        room = 2 * self.room
        if self.settings.context_size:
            room = min(room, self.settings.context_size - self.run.call.prompt_tokens)
        if self.wide or room <= self.room:
            return False
        self.wide, self.room = True, room
        return True

    async def _retried(self, messages: Messages, method: Method | None) -> _ModelAnswer:
        retrying = AsyncRetrying(
            retry=retry_if_exception(self._worth_another),
            stop=lambda _: self.failures >= self.settings.max_attempts,
            wait=self._wait_s,
            before_sleep=self._before_another,
            sleep=self.run.models.backoff.sleep,
            reraise=True,
        )
        return await retrying(self._once, Attempt(self.run.call, messages, self.room, self.settings, method))

    def _worth_another(self, error: BaseException) -> bool:
        if not isinstance(error, Failure) or not error.retryable:
            return False
        self.empty += error.empty
        patient = (error.retry_after or 0.0) <= self.run.models.backoff.patience_s
        return patient and not (error.empty and self.empty > MAX_EMPTY)

    def _before_another(self, state: RetryCallState) -> None:
        failure, wait_s = state.outcome.exception() if state.outcome else None, state.upcoming_sleep
        if isinstance(failure, Failure):
            which = f"retry {self.failures} of {self.settings.max_attempts - 1} in {round(wait_s, 1):g} s"
            _tell(self.name, failure, wait_s, which)

    def _wait_s(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        asked = failure.retry_after if isinstance(failure, Failure) else None
        return self.run.models.backoff.wait_s(self.failures, asked)

    async def _once(self, attempt: Attempt) -> _ModelAnswer:
        def tell(busy: Failure, wait_s: float) -> None:
            _tell(self.name, busy, wait_s, f"asked in {wait_s:.0f} s")

        tokens = self.run.call.prompt_tokens + attempt.room
        async with EndpointTurn(self.run.models, self.name, tokens, tell).taken():
            return await self._asked_once(attempt)

    async def _asked_once(self, attempt: Attempt) -> _ModelAnswer:
        self.run.attempts += 1
        try:
            request = request_of(self.chat, attempt)
            answer = await self._sent(request, streams=can_stream(self.chat, attempt))
            return self._heard(request.messages, *answer)
        except UserError:
            raise
        except Exception as error:
            self.failures += 1
            raise failure_of(error, timeout_s=self.settings.timeout_s) from error

    async def _sent(self, request: ChatRequest, *, streams: bool) -> tuple[AIMessage, str]:
        speak_as, chat = self.run.call.speak_as, request.chat
        live = speak_as is not None and not self.run.spoken
        speaker = SpeakerModel(
            inner=chat,
            entry_id=speak_as.entry_id if speak_as else None,
            speaker=speak_as.speaker if speak_as else None,
            price=lambda message: self._cost_usd(reported(message)),
            disable_streaming=not (live and streams),
            callbacks=chat.callbacks,
            tags=chat.tags,
            metadata=chat.metadata,
        )
        prompt = to_langchain(
            request.messages,
            merge_roles=self.settings.merge_roles,
            system_role=self.settings.system_role,
            names=request.shows_names,
        )
        # The metadata names the speaker for clients that add chunks up: adding loses a message's name.
        heard = RunnableConfig(run_name=self.run.call.purpose)
        if speak_as:
            named = f"{speak_as.speaker} {speak_as.entry_id}"
            heard = RunnableConfig(run_name=named, metadata={"speaker": speak_as.speaker})
        config = merge_configs(self.run.config, heard, RunnableConfig(tags=[] if live else [TAG_NOSTREAM]))
        config.pop("run_id", None)
        if chat.rate_limiter is not None:  # here, so that nobody's silence is waited for
            await chat.rate_limiter.aacquire(blocking=True)
        silent_s, whole_s = self.settings.timeout_s, self.settings.total_timeout_s
        now = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(whole_s) as whole, asyncio.timeout(silent_s) as silence:
                speaker.on_chunk = lambda: silence.reschedule(now() + silent_s)
                message = await speaker.ainvoke(prompt, config, **request.fields)
        except TimeoutError as error:
            if not whole.expired():
                raise
            raise Failure(f"the answer took longer than total_timeout_s, {whole_s:g} s") from error
        finally:
            self.run.spoken = self.run.spoken or (live and speaker.emitted)
        return message, speaker.thoughts

    def _heard(self, sent: Messages, message: AIMessage, thoughts: str) -> _ModelAnswer:
        parted = part(message.text)
        thoughts = clean_text("\n".join(filter(None, (thoughts, parted.reasoning))))
        tokens = None if isinstance(self.chat, LocalModel) else reported(message)
        if tokens is None:
            tokens = counted(self.run.call, sent, message, thoughts, self.settings.encoding)
        cost = self._cost_usd(tokens)
        priced: EntryUsage = tokens if cost is None else {**tokens, "cost_usd": cost}
        self.run.usage = add_up(self.run.usage, [priced])
        finish = finish_of(message.response_metadata)
        answer = _ModelAnswer(message, clean_text(parted.text), thoughts, finish)
        self._refuse_nothing(answer)
        return answer

    def _cost_usd(self, tokens: EntryUsage | None) -> float | None:
        if tokens is None or isinstance(self.chat, LocalModel):
            return None
        return self.run.models.cost_usd(self.name, tokens)

    def _refuse_nothing(self, answer: _ModelAnswer) -> None:
        message = answer.message
        if answer.text or message.tool_calls:
            return
        if refusal := message.additional_kwargs.get("refusal"):
            raise Failure(f"the model refused: {redacted(str(refusal))[:300]}", refused=True)
        if answer.finish_reason in REFUSALS:
            raise Failure("the provider's content filter withheld the answer", refused=True)
        if message.invalid_tool_calls:
            if self.run.call.schema is None:
                raise Failure("a tool is called with arguments that are no JSON", retryable=True)
            return
        if answer.finish_reason == "length" and not self.wide:
            return  # thinking took all the room: more of it comes first
        said = "only reasoning" if answer.reasoning else "an empty answer"
        raise Failure(f"{said} (finish_reason {answer.finish_reason})", retryable=True, empty=True)


def _refuses_method(failure: Failure) -> bool:
    if failure.status == 404:  # routers that find no server for it
        text = failure.text.lower()
        return "response_format" in text or "structured" in text
    return failure.status in (400, 422) and not is_too_long(failure)
