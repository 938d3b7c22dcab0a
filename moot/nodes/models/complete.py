"""The one call: retries, fallbacks, reasoning, structured answers and streaming, all inside it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from moot.nodes.calls import ModelCall, Reply, WireMessage
from moot.nodes.models.adapters import (
    Attempt,
    ChatRequest,
    SpeaksOpenAI,
    can_stream,
    request_of,
    to_langchain,
    weaker_method,
)
from moot.nodes.models.endpoints import endpoint_turn, is_out, tell_of_wait
from moot.nodes.models.failures import (
    REFUSALS,
    Failure,
    excess_tokens,
    failure_of,
    finish_of,
)
from moot.nodes.models.local import LocalModel
from moot.nodes.models.registry import Models
from moot.nodes.models.schemas import Method, Parsed, read_answer, with_correction
from moot.nodes.models.speaker import SpeakerModel
from moot.nodes.models.thinking import part
from moot.nodes.models.usage import counted_usage, reported_usage
from moot.state.config.model_settings import provider_of
from moot.state.entries import EntryUsage, clean_text
from moot.state.errors import UserError
from moot.state.redaction import redact
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
    *others, last = dict.fromkeys((call.model, *call.fallbacks))
    while True:
        failures: dict[str, Failure] = {}
        for name in (*others, last):
            if name in others and await is_out(models, name):
                failures[name] = Failure("out of order, as other calls found", retryable=True)
                continue
            try:
                reply = await (await _asking(run, name)).reply()
            except Failure as failure:
                failures[name] = failure
                continue
            return replace(reply, latency_s=time.perf_counter() - started)
        passing = [name for name, failure in failures.items() if failure.passes]
        soonest = min(passing, key=lambda name: failures[name].asked_wait_s, default=None)
        left = models.retry_for - max(waited, time.perf_counter() - started)
        if soonest is None or left <= failures[soonest].asked_wait_s:
            break
        pause_s = min(left, models.backoff.wait_s(LONG_OUT, failures[soonest].retry_after))
        again = f"asked again in {pause_s:.0f} s, for {left / 60:.0f} min more"
        tell_of_wait(soonest, failures[soonest], pause_s, again)
        await models.backoff.sleep(pause_s)
        waited += pause_s
    from moot.nodes.models.offers import explanation  # with a client of its own, for failures alone

    each = failures.values()
    return Reply(
        model=call.model,
        usage=run.usage,
        latency_s=time.perf_counter() - started,
        attempts=run.attempts,
        error="; ".join([await explanation(name, failure, models) for name, failure in failures.items()]),
        status=failures[last].status,
        retryable=any(failure.retryable for failure in each),
        refused=call.schema is None and all(failure.refused for failure in each),
        excess=0 if call.shortened else min(excess_tokens(failure, call.prompt_tokens) for failure in each),
    )


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

    def read(self, schema: type[BaseModel]) -> Parsed:
        """Return the structured answer: a tool's arguments, else what the text holds."""
        calls, broken = self.message.tool_calls, self.message.invalid_tool_calls
        said = self.text or "".join(call["args"] or "" for call in broken)
        return read_answer(schema, said, calls[0]["args"] if calls else None)


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
        """Return the answer; one that does not fit the schema is asked for once more, with what is wrong."""
        call, parsed = self.run.call, Parsed()
        answer = await self._answer(call.messages)
        if call.schema is not None:
            parsed = answer.read(call.schema)
            if parsed.error:
                answer = await self._answer(with_correction(call.messages, answer.text, parsed.error))
                parsed = answer.read(call.schema)
            if parsed.error:
                raise Failure(f"the answer does not fit the schema: {parsed.error}")
        if isinstance(self.chat, SpeaksOpenAI):
            provider = self.run.models.provider(self.name)
        else:
            provider = provider_of(self.name) or self.chat._llm_type
        return Reply(
            text=answer.text,
            data=parsed.data,
            tool_calls=tuple(
                {"id": tool["id"] or "", "name": tool["name"], "args": tool["args"]}
                for tool in (answer.message.tool_calls if call.schema is None else ())
            ),
            model=self.name,
            provider=provider,
            usage=self.run.usage,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
            attempts=self.run.attempts,
        )

    async def _answer(self, messages: Messages) -> _ModelAnswer:
        """Ask; a method of structured answers that is refused gives way to a weaker one, remembered."""
        method = known = self.run.models.method_of(self.name) if self.run.call.schema else None
        while True:
            try:
                answer = await self._whole_answer(messages, method)
            except Failure as failure:
                weaker = weaker_method(self.chat, method) if method else None
                if weaker is None or not failure.refuses_method:
                    raise
                method = weaker
                continue
            if method and method != known:
                self.run.models.learn_method(self.name, method)
            return answer

    async def _whole_answer(self, messages: Messages, method: Method | None) -> _ModelAnswer:
        """Ask; an answer that is cut is asked for once more with double the room."""
        answer = await self._with_retries(messages, method)
        room = 2 * self.room
        if self.settings.context_size:
            room = min(room, self.settings.context_size - self.run.call.prompt_tokens)
        if answer.finish_reason != "length" or self.wide or room <= self.room:
            return answer
        self.wide, self.room = True, room
        try:
            return await self._with_retries(messages, method)
        except Failure:
            if answer.text:
                return answer
            raise

    async def _with_retries(self, messages: Messages, method: Method | None) -> _ModelAnswer:
        """Ask until there is an answer, or nothing speaks for another attempt."""
        backoff, most = self.run.models.backoff, self.settings.max_attempts

        def worth_another(error: BaseException) -> bool:
            if not isinstance(error, Failure) or not error.retryable:
                return False
            self.empty += error.empty
            mute = error.empty and self.empty > MAX_EMPTY
            return error.asked_wait_s <= backoff.patience_s and not mute

        def wait_s(state: RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome else None
            asked_s = failure.retry_after if isinstance(failure, Failure) else None
            return backoff.wait_s(self.failures, asked_s)

        def tell(state: RetryCallState) -> None:
            failure, pause_s = state.outcome.exception() if state.outcome else None, state.upcoming_sleep
            if isinstance(failure, Failure):
                which = f"retry {self.failures} of {most - 1} in {round(pause_s, 1):g} s"
                tell_of_wait(self.name, failure, pause_s, which)

        retrying = AsyncRetrying(
            retry=retry_if_exception(worth_another),
            stop=lambda _: self.failures >= most,
            wait=wait_s,
            before_sleep=tell,
            sleep=backoff.sleep,
            reraise=True,
        )
        attempt = Attempt(self.run.call, messages, self.room, self.settings, method)
        return await retrying(self._attempt, attempt)

    async def _attempt(self, attempt: Attempt) -> _ModelAnswer:
        """Put one attempt to the model when it may be asked, and account for what it says."""
        tokens = self.run.call.prompt_tokens + attempt.room
        async with endpoint_turn(self.run.models, self.name, tokens):
            self.run.attempts += 1
            try:
                request = request_of(self.chat, attempt)
                said = await self._speak(request, streams=can_stream(self.chat, attempt))
                answer = self._account(request.messages, *said)
                self._refuse_nothing(answer)
            except UserError:
                raise
            except Exception as error:
                self.failures += 1
                raise failure_of(error, timeout_s=self.settings.timeout_s) from error
            return answer

    async def _speak(self, request: ChatRequest, *, streams: bool) -> tuple[AIMessage, str]:
        """Return what the model says, streamed where somebody speaks, and what it thinks."""
        speak_as, chat = self.run.call.speak_as, request.chat
        live = speak_as is not None and not self.run.spoken
        speaker = SpeakerModel(
            inner=chat,
            entry_id=speak_as.entry_id if speak_as else None,
            speaker=speak_as.speaker if speak_as else None,
            price=lambda message: self._cost_usd(reported_usage(message)),
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

    def _account(self, sent: Messages, message: AIMessage, thoughts: str) -> _ModelAnswer:
        """Part an answer from its thoughts, and add what it has used to the call's usage."""
        parted = part(message.text)
        thoughts = clean_text("\n".join(filter(None, (thoughts, parted.reasoning))))
        tokens = None if isinstance(self.chat, LocalModel) else reported_usage(message)
        if tokens is None:
            tokens = counted_usage(self.run.call, sent, message, thoughts, self.settings.encoding)
        cost = self._cost_usd(tokens)
        priced: EntryUsage = tokens if cost is None else {**tokens, "cost_usd": cost}
        self.run.usage = add_up(self.run.usage, [priced])
        finish = finish_of(message.response_metadata)
        return _ModelAnswer(message, parted.text, thoughts, finish)

    def _cost_usd(self, tokens: EntryUsage | None) -> float | None:
        if tokens is None or isinstance(self.chat, LocalModel):
            return None
        return self.run.models.cost_usd(self.name, tokens)

    def _refuse_nothing(self, answer: _ModelAnswer) -> None:
        message = answer.message
        if answer.text or message.tool_calls:
            return
        if refusal := message.additional_kwargs.get("refusal"):
            raise Failure(f"the model refused: {redact(str(refusal))[:300]}", refused=True)
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
