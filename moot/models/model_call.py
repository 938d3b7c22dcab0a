"""Model calls with retries, fallbacks, reasoning, structured output and streaming."""

import asyncio
import json
import time
from dataclasses import dataclass, field, replace

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel

from moot.calls.model_calls import INCOMPLETE, REPEATED, ModelCall, Reply, WireMessage
from moot.config.model_settings import provider_of
from moot.models import adapters, failures as model_failures, learning, reply_faults
from moot.models.attempt import STREAM_ENDED_EARLY, SpeakerModel
from moot.models.endpoints import circuit_is_open, endpoint_slot, explanation, report_wait
from moot.models.offline import LocalModel, ScriptedModel
from moot.models.registry import Models
from moot.models.reply_markup import SplitText
from moot.models.structured import ParsedReply, parse_reply
from moot.models.usage import counted_usage, reported_usage
from moot.prompts.templates import fence_of, without_frame
from moot.state.entries import EntryUsage, ModelFacts
from moot.state.errors import UserError
from moot.state.langgraph_internals import model_settings_key, model_type
from moot.state.reducers import ENTRY, add_totals, merge_facts
from moot.state.settings import redact
from moot.text.plain_text import sanitize_line

SUMMARY_ATTEMPTS = 2
"""Maximum number of attempts to write a summary with one model. After these attempts, a rule-based summary is
used for now."""
MAX_EMPTY = 2
"""Maximum number of times to retry a call that returns an empty reply."""

MAX_BACKOFF_FAILURES = 30
"""Failure count for which the backoff policy returns its longest wait. It determines the pause after all
models have failed."""

LOADING_S = 120.0
"""Number of seconds to wait for a server that is loading the model. Large models load from disk for
minutes."""
LOADING_STEP_S = 5.0
"""Number of seconds between attempts while a server is loading the model, unless it asks for another wait."""
UNREACHABLE_ATTEMPTS = 3
"""Maximum number of attempts at an address where nothing answers. A server that restarts is back by then."""
UNREACHABLE_S = 4.0
"""Number of seconds after which an unreachable address gets no more attempts. A name server can take this
long to refuse a name."""
EXTRAS = frozenset({"summary", "perspective", "extract", "reflect", "evaluate"})
"""Purposes of calls whose failures leave the endpoint open for debaters."""
_REPLY_SETTINGS = {"judge": "judge.reply", "extract": "blackboard.reply", "reflect": "blackboard.reply"}
"""Settings of the reply's token limit, keyed by the purpose of the call."""

Messages = tuple[WireMessage, ...]


async def complete(call: ModelCall, models: Models, *, config: RunnableConfig | None = None) -> Reply:
    """Make one model call with retries and fallback models, and return the reply.

    A failure of a provider returns a `Reply` with `error`. It raises no exception.
    The text of a call with `stream_as` goes to LangGraph's `messages` stream under that id and name.

    Raises:
        ConfigError: the model of the call has an invalid name or no key.
    """
    run, started, waited = _CallState(call, models, config), time.perf_counter(), 0.0
    *others, last = dict.fromkeys((call.model, *call.fallbacks))
    while True:
        failures: dict[str, model_failures.Failure] = {}
        for name in (*others, last):
            if name in others and await circuit_is_open(models, name):
                failures[name] = model_failures.Failure(
                    "skipped, because other calls to it keep failing", retryable=True
                )
                continue
            request = None
            try:
                request = await _request(run, name)
                reply = await request.reply()
            except model_failures.Failure as failure:
                if failure.paused and request and request.latest:
                    failure.text = f"{request.latest.text}; {failure.text}"
                failures[name] = failure
                run.learn(
                    name, learning.facts_of_overflow(failure, call, call.max_tokens, models.facts_of(name))
                )
                continue
            return replace(reply, latency_s=time.perf_counter() - started, facts=run.facts)
        passing = [name for name, failure in failures.items() if failure.is_transient]
        soonest = min(passing, key=lambda name: failures[name].requested_wait_s, default=None)
        left = models.retry_for - max(waited, time.perf_counter() - started)
        if soonest is None or left <= failures[soonest].requested_wait_s:
            break
        pause_s = min(left, models.backoff.wait_s(MAX_BACKOFF_FAILURES, failures[soonest].retry_after))
        again = f"retry in {pause_s:.0f} s, for up to {left / 60:.0f} more minutes"
        report_wait(soonest, failures[soonest], pause_s, again)
        await models.backoff.sleep(pause_s)
        waited += pause_s
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
        excess=min(failure.excess_tokens(call.prompt_tokens, call.max_tokens) for failure in each),
        facts=run.facts,
    )


def _is_loading(error: BaseException | None) -> bool:
    return isinstance(error, model_failures.Failure) and error.kind == "loading"


@dataclass
class _CallState:
    """State shared by all attempts at one call, including attempts with fallback models."""

    call: ModelCall
    models: Models
    config: RunnableConfig | None
    usage: EntryUsage = field(default_factory=EntryUsage)
    attempts: int = 0
    streamed: bool = False
    """True once some text of the reply has been streamed. Later attempts are not streamed, so that no text
    appears twice."""
    first_chunk_s: float | None = None
    """Number of seconds between the latest request and the first chunk of its reply."""
    facts: dict[str, ModelFacts] = field(default_factory=dict)
    """What the call has shown about the models that it asked."""

    def learn(self, name: str, facts: ModelFacts) -> None:
        """Remember facts about a model for later requests, and return them with the reply."""
        if facts:
            self.models.learn({name: facts})
            self.facts = merge_facts(self.facts, [{name: facts}])


@dataclass(frozen=True)
class _ModelResponse:
    message: AIMessage
    text: str
    reasoning: str
    finish_reason: str
    has_template_tokens: bool = False

    @property
    def raw_text(self) -> str:
        """Return the text, or the broken arguments of tool calls if there is no text."""
        return self.text or "".join(call["args"] or "" for call in self.message.invalid_tool_calls)

    def read(self, schema: type[BaseModel], fence: str) -> ParsedReply:
        """Parse a structured reply, which is in the arguments of a tool call, or else in the text."""
        calls = self.message.tool_calls
        is_cut = self.finish_reason in ("length", INCOMPLETE, *model_failures.REFUSALS)
        arguments = calls[0]["args"] if calls else None
        return parse_reply(schema, self.raw_text, arguments, fence=fence, is_cut=is_cut)


def speaker_labels(call: ModelCall) -> tuple[str, ...]:
    """Return the labels with which a model may begin its message."""
    name = "" if call.schema is not None else call.hints.get("speaker", "")
    return reply_faults.labels_of(name, call.hints.get("role", "")) if name else ()


def repetition_note(model: str) -> str:
    """Return the message about a model that repeated itself, with the setting that helps."""
    return (
        f"the model repeated itself: set `models.{model}.parameters`, for example to "
        "{frequency_penalty: 0.5}"
    )


def _tool_note(name: str) -> str:
    return f"[calls the tool {sanitize_line(name)[:60]}, which it was not offered]"


async def _request(run: _CallState, name: str) -> "_ModelRequest":
    try:
        return _ModelRequest(run, name, await run.models.client(name))
    except UserError as error:
        if name == run.call.model:
            raise
        raise model_failures.Failure(str(error)) from error  # skip a fallback model that cannot be used


class _ModelRequest:
    """Call to one model, including its retries. A fallback model has a separate `_ModelRequest`."""

    def __init__(self, run: _CallState, name: str, chat: BaseChatModel) -> None:
        self.run, self.name, self.chat = run, name, chat
        self.settings, self.facts = run.models.settings_of(name), run.models.facts_of(name)
        self.max_tokens = run.call.max_tokens + self.settings.reasoning_tokens
        self.started = run.models.backoff.clock()
        self.limit_doubled = False
        self.failures = 0
        self.latest: model_failures.Failure | None = None
        """Latest failure of a call that was made."""
        self.empty = 0
        self.fence = fence_of(run.call.messages)
        self.partial: _ModelResponse | None = None
        """Reply whose stream ended early, used if all retries fail."""

    async def reply(self) -> Reply:
        """Call the model, and return its reply. One that does not fit the schema is asked for once more."""
        call, parsed = self.run.call, ParsedReply()
        answer = await self._answer(call.messages)
        if call.schema is not None:
            parsed = answer.read(call.schema, self.fence)
            if parsed.error:
                answer = await self._answer(
                    adapters.with_correction(call.messages, answer.text, parsed.error)
                )
                first, parsed = parsed, answer.read(call.schema, self.fence)
                parsed = parsed if parsed.data is not None or first.data is None else first
            if parsed.data is None:
                if answer.finish_reason == "length":
                    raise model_failures.Failure(self._length_note("the reply is cut off"))
                raise model_failures.Failure(f"the reply does not match the schema: {parsed.error}")
        elif self._calls_unknown_tool(answer):
            answer = await self._without_unknown_tools(answer)
        if isinstance(self.chat, adapters.OpenAICompatible):
            provider = self.run.models.endpoint_host(self.name)
        else:
            provider = provider_of(self.name) or model_type(self.chat)
        return Reply(
            text=answer.text,
            data=parsed.data,
            tool_calls=tuple(
                {"id": tool["id"] or "", "name": tool["name"], "args": tool["args"]}
                for tool in (answer.message.tool_calls if call.tools and call.schema is None else ())
            ),
            model=self.name,
            provider=provider,
            usage=self.run.usage,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
            misfit_template=answer.has_template_tokens,
            first_chunk_s=self.run.first_chunk_s,
            attempts=self.run.attempts,
        )

    def _calls_unknown_tool(self, answer: _ModelResponse) -> bool:
        """Return True if a reply calls a tool without an offer, or calls a tool in its text."""
        if answer.message.tool_calls:
            return not self.run.call.tools and not answer.text
        return reply_faults.without_tool_calls(answer.text, lambda _: "") != answer.text

    async def _without_unknown_tools(self, answer: _ModelResponse) -> _ModelResponse:
        """Tell the model once that it cannot call the tool. A second such call becomes text."""
        try:
            second = await self._answer(adapters.with_tool_refusal(self.run.call.messages, answer.text))
        except model_failures.Failure:
            second = answer
        if not self._calls_unknown_tool(second):
            return second
        tools = [tool["name"] for tool in second.message.tool_calls]
        text = (
            reply_faults.without_tool_calls(second.text, _tool_note)
            if second.text
            else "\n".join(map(_tool_note, tools))
        )
        return replace(second, text=text)

    async def _answer(self, messages: Messages) -> _ModelResponse:
        """Call the model, with weaker structured output methods if the endpoint refuses the first."""
        method = known = self.run.models.method_of(self.name) if self.run.call.schema else None
        while True:
            try:
                answer = await self._whole_answer(messages, method)
            except model_failures.Failure as failure:
                weaker = adapters.weaker_method(self.chat, method) if method else None
                if weaker is None or not failure.refuses_method:
                    raise
                method = weaker
                continue
            if method and method != known:
                self.run.models.learn_method(self.name, method)
            return answer

    async def _whole_answer(self, messages: Messages, method: adapters.Method | None) -> _ModelResponse:
        """Call the model, and once more with twice the `max_tokens` if the reply is cut, not looping."""
        answer = self._without_loop(await self._adapted(messages, method))
        max_tokens = self._reply_limit(2 * self.max_tokens)
        if answer.finish_reason != "length" or self.limit_doubled or max_tokens <= self.max_tokens:
            return answer
        self.limit_doubled, self.max_tokens = True, max_tokens
        try:
            return self._without_loop(await self._adapted(messages, method))
        except model_failures.Failure:
            if answer.text:
                return answer
            raise

    def _without_loop(self, answer: _ModelResponse) -> _ModelResponse:
        """Cut the loop with which a reply ended at its token limit. JSON and reasoning raise a `Failure`."""
        if answer.finish_reason not in ("length", INCOMPLETE):
            return answer
        kept = reply_faults.length_before_loop(answer.raw_text or answer.reasoning)
        if kept is None:
            return answer
        if self.run.call.schema is not None or not answer.text:
            raise model_failures.Failure(repetition_note(self.name))
        return replace(answer, text=answer.text[:kept].rstrip(), finish_reason=REPEATED)

    def _length_note(self, fault: str) -> str:
        setting = _REPLY_SETTINGS.get(self.run.call.purpose, "memory.budget.reply")
        return (
            f"{fault} at the limit of {self.max_tokens:,} tokens: raise `{setting}`, or set "
            f"`models.{self.name}.reasoning_tokens` if the model reasons"
        )

    def _reply_limit(self, max_tokens: int) -> int:
        return learning.reply_limit(self.run.call, max_tokens, self.settings.context_size, self.facts)

    async def _adapted(self, messages: Messages, method: adapters.Method | None) -> _ModelResponse:
        """Call the model, and change the request as often as an error names a refused part of it."""
        while True:
            try:
                return await self._with_retries(messages, method)
            except model_failures.Failure as failure:
                # A call at the same time may have learned the change since this request was built.
                facts = learning.facts_of_change(failure.change, self.facts) if failure.change else {}
                if not facts:
                    raise
                if facts["told"][0] not in self.run.models.facts_of(self.name).get("told", []):
                    report_wait(self.name, failure, 0, f"from now on {facts['told'][0]}")
                self.run.learn(self.name, facts)
                self.facts = self.run.models.facts_of(self.name)
                self.settings, self.failures = self.run.models.settings_of(self.name), self.failures - 1
                self.chat = await self.run.models.client(self.name)

    async def _with_retries(self, messages: Messages, method: adapters.Method | None) -> _ModelResponse:
        """Call the model until a reply arrives or all retries are used up."""
        backoff, max_attempts = self.run.models.backoff, self.settings.max_attempts
        if self.run.call.purpose == "summary":
            max_attempts = min(max_attempts, SUMMARY_ATTEMPTS)

        max_tokens = self._reply_limit(self.max_tokens)
        context = self.run.models.context_of(self.name, self.run.call.prompt_tokens + max_tokens)
        attempt = adapters.Attempt(self.run.call, messages, max_tokens, self.settings, context, method)
        self.partial = None
        while True:
            try:
                return await self._attempt(attempt)
            except model_failures.Failure as failure:
                is_loading = _is_loading(failure)
                if not self._should_retry(failure) or (self.failures >= max_attempts and not is_loading):
                    if self.partial is None:
                        raise
                    return self.partial
                step_s = LOADING_STEP_S if is_loading else None
                requested_s = step_s if failure.retry_after is None else failure.retry_after
                pause_s = backoff.wait_s(1 if is_loading else self.failures, requested_s)
                allowed_attempts = (
                    min(max_attempts, UNREACHABLE_ATTEMPTS) if failure.unreachable else max_attempts
                )
                limit = "" if is_loading else f" of {allowed_attempts - 1}"
                report_wait(
                    self.name, failure, pause_s, f"retry {self.failures}{limit} in {round(pause_s, 1):g} s"
                )
            await backoff.sleep(pause_s)

    def _should_retry(self, error: BaseException) -> bool:
        if not isinstance(error, model_failures.Failure) or not error.retryable or error.paused:
            return False
        passed_s = self.run.models.backoff.clock() - self.started
        if _is_loading(error):
            return passed_s + (error.retry_after or LOADING_STEP_S) <= LOADING_S
        if error.unreachable and (self.failures >= UNREACHABLE_ATTEMPTS or passed_s > UNREACHABLE_S):
            return False
        self.empty += error.empty
        too_often = error.empty and self.empty > MAX_EMPTY
        return error.requested_wait_s <= self.run.models.backoff.max_requested_wait_s and not too_often

    async def _attempt(self, attempt: adapters.Attempt) -> _ModelResponse:
        """Wait until the endpoint accepts another call, call the model once, and record the tokens used."""
        tokens = self.run.call.prompt_tokens + attempt.max_tokens
        is_extra = self.run.call.purpose in EXTRAS
        async with endpoint_slot(self.run.models, self.name, tokens, is_extra=is_extra):
            self.run.attempts += 1
            try:
                request = adapters.request_of(self.chat, attempt)
                known, cache = None, adapters.cache_of(request.chat)
                if cache is not None:
                    key = self._cache_key(request)
                    known = adapters.cached_reply(await cache.alookup(*key))
                if known is not None:
                    request = replace(request, chat=ScriptedModel([known]))
                message, split = await self._invoke(request, streams=adapters.can_stream(self.chat, attempt))
                answer = self._account(request.messages, message, split, is_free=known is not None)
                self._check_response(answer)
                if cache is not None and known is None:
                    await cache.aupdate(*key, [ChatGeneration(message=message)])
            except UserError:
                raise
            except Exception as error:
                self.failures += 1
                self.latest = model_failures.failure_of(error, timeout_s=self.settings.timeout_s)
                raise self.latest from error
            return answer

    def _cache_key(self, request: adapters.ChatRequest) -> tuple[str, str]:
        """Return a request's key in LangChain's cache. The seed keeps samples independent."""
        settings = model_settings_key(request.chat, request.fields)
        return json.dumps(request.messages), f"{settings} seed={self.run.call.seed}"

    def _run_config(self, *, live: bool) -> RunnableConfig:
        """Return the configuration of the request for LangChain. Only a live message reaches the stream."""
        labels, stream_as = RunnableConfig(run_name=self.run.call.purpose), self.run.call.stream_as
        if stream_as:  # the metadata names the speaker, because a sum of chunks has no name
            run_name = f"{stream_as.speaker} {stream_as.entry_id}"
            labelled = {"speaker": stream_as.speaker, ENTRY: stream_as.entry_id}
            labels = RunnableConfig(run_name=run_name, metadata=labelled)
        config = merge_configs(self.run.config, labels, RunnableConfig(tags=[] if live else [TAG_NOSTREAM]))
        config.pop("run_id", None)
        return config

    async def _invoke(self, request: adapters.ChatRequest, *, streams: bool) -> tuple[AIMessage, SplitText]:
        """Send a request, and return the reply message with its text and reasoning."""
        stream_as, chat = self.run.call.stream_as, request.chat
        live = stream_as is not None and not self.run.streamed
        speaker = SpeakerModel(
            inner=chat,
            message_id=(stream_as.message_id or stream_as.entry_id) if stream_as else None,
            speaker=stream_as.speaker if stream_as else None,
            names=speaker_labels(self.run.call),
            reasons_first=self.name in self.run.models.reasoning_first,
            price=lambda message: self._cost_usd(reported_usage(message)),
            streams=streams,
            disable_streaming=not (live and streams),
            callbacks=chat.callbacks,
            tags=chat.tags,
            metadata=chat.metadata,
        )
        learned = self.facts.get("settings", {})
        fields = request.fields
        if streams and learned.get("stream_usage") is False:
            fields = {**fields, "stream_usage": False}
        prompt = adapters.to_langchain(
            request.messages,
            merge_roles=self.settings.merge_roles,
            system_role=self.settings.system_role,
            names=request.shows_names and learned.get("names", True),
        )
        config = self._run_config(live=live)
        if chat.rate_limiter is not None:  # outside the timeouts, which apply only to the provider
            await chat.rate_limiter.aacquire(blocking=True)
        silent_s, total_s = self.settings.timeout_s, self.settings.total_timeout_s
        now = asyncio.get_running_loop().time
        too_long = model_failures.Failure(f"the answer took longer than total_timeout_s, {total_s:g} s")
        asked_at = now()
        deadline = asked_at + total_s
        self.run.first_chunk_s = None

        def on_chunk() -> None:
            if self.run.first_chunk_s is None:
                self.run.first_chunk_s = now() - asked_at
            if now() > deadline:  # a timeout cannot cancel a stream that always has data ready
                raise too_long
            silence.reschedule(now() + silent_s)

        try:
            async with asyncio.timeout(total_s) as total, asyncio.timeout(silent_s) as silence:
                speaker.on_chunk = on_chunk
                message = await speaker.ainvoke(prompt, config, **fields)
        except TimeoutError as error:
            if not total.expired():
                raise
            raise too_long from error
        finally:
            self.run.streamed = self.run.streamed or (live and speaker.emitted)
        if speaker.reasons_first:
            self.run.models.reasoning_first.add(self.name)
        if message.text != speaker.reply.text:  # a retracted part, or a secret that was split between chunks
            message = message.model_copy(update={"content": speaker.reply.text})
        return message, speaker.reply

    def _account(
        self, sent: Messages, message: AIMessage, split: SplitText, *, is_free: bool
    ) -> _ModelResponse:
        """Record the tokens that a reply used, none from a cache, and return its text and reasoning."""
        finish = model_failures.finish_of(message.response_metadata)
        text = split.text
        if self.run.call.schema is None:
            text = "" if reply_faults.is_empty_text(text) else without_frame(text, self.fence)
        answer = _ModelResponse(message, text, split.reasoning, finish, split.has_template_tokens)
        if is_free:
            return answer
        tokens = None if isinstance(self.chat, LocalModel) else reported_usage(message)
        if tokens is None:
            tokens = counted_usage(self.run.call, sent, message, split.reasoning, self.settings.encoding)
        elif sent is self.run.call.messages:
            self.run.learn(self.name, learning.facts_of_usage(self.run.call, tokens))
            changes = self.run.models.facts_of(self.name).get("told", [])
            if (words := learning.cut_words(self.run.call, tokens)) and not any(
                "cut the prompt" in each for each in changes
            ):
                self.run.learn(self.name, {"told": [words]})
                report_wait(self.name, model_failures.Failure(words), 0, "the reply is used")
        cost = self._cost_usd(tokens)
        priced: EntryUsage = tokens if cost is None else {**tokens, "cost_usd": cost}
        self.run.usage = add_totals(self.run.usage, [priced])
        return answer

    def _cost_usd(self, tokens: EntryUsage | None) -> float | None:
        if tokens is None or isinstance(self.chat, LocalModel):
            return None
        return self.run.models.cost_usd(self.name, tokens)

    def _check_response(self, answer: _ModelResponse) -> None:
        """Raise a `Failure` if the model refused, the reply is empty, or its stream ended early."""
        message, metadata = answer.message, answer.message.response_metadata
        is_early = metadata.get(STREAM_ENDED_EARLY) and not model_failures.has_finish(metadata)
        has_content = bool(answer.text or message.tool_calls)
        if answer.finish_reason == model_failures.BROKEN or (is_early and has_content):
            if answer.text and not message.tool_calls:
                self.partial = replace(answer, finish_reason=INCOMPLETE)
            reason = (
                "the stream ended without finish_reason or [DONE]" if is_early else "the server broke off"
            )
            raise model_failures.Failure(f"{reason}, so the reply is incomplete", retryable=True)
        if has_content:
            return
        if refusal := message.additional_kwargs.get("refusal"):
            raise model_failures.Failure(f"the model refused: {redact(str(refusal))[:300]}", refused=True)
        if answer.finish_reason in model_failures.REFUSALS:
            raise model_failures.Failure("the provider's content filter blocked the reply", refused=True)
        if message.invalid_tool_calls:
            if self.run.call.schema is None:
                raise model_failures.Failure(
                    "the model called a tool with arguments that are not valid JSON", retryable=True
                )
            return
        if answer.finish_reason == "length" and not self.limit_doubled:
            return  # reasoning used all tokens, so the caller retries with twice the limit
        is_endless = reply_faults.is_endless(answer.reasoning)
        if is_endless or answer.finish_reason == "length":  # the same request would fail again
            note = repetition_note(self.name) if is_endless else self._length_note("only reasoning")
            raise model_failures.Failure(note)
        content = "only reasoning" if answer.reasoning else "an empty answer"
        raise model_failures.Failure(
            f"{content} (finish_reason {answer.finish_reason})", retryable=True, empty=True
        )
