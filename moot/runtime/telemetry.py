"""Traces and metrics of debates, in OpenTelemetry and LangSmith.

The names follow OpenTelemetry's semantic conventions for generative AI. OpenTelemetry is used only if the
program has imported it. Texts are captured only if `CAPTURE` asks for them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from moot.calls.model_calls import ModelCall, Reply, WireMessage
from moot.config.model_settings import OPENAI, is_built_in, provider_of
from moot.state.entries import EntryUsage, JsonObject
from moot.state.settings import redact, redact_values, variable

if TYPE_CHECKING:
    from langsmith.run_trees import RunTree
    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Span

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable that allows prompts and replies in OpenTelemetry spans."""
_CAPTURING = frozenset({"true", "1", "span_only", "span_and_event"})
_SECONDS = tuple(0.01 * 2**power for power in range(14))
"""Histogram bucket bounds for durations, as OpenTelemetry's conventions define them."""
_TOKENS = tuple(4**power for power in range(14))
"""Histogram bucket bounds for token counts, as OpenTelemetry's conventions define them."""

_version = lru_cache(version)  # it reads a file
_KEY = "__moot_span"  # LangGraph stores no keys with this prefix in the metadata of checkpoints
SpanAttributes = Mapping[str, object]
_MUTED: ContextVar[bool] = ContextVar("muted", default=False)


@contextmanager
def muted_spans() -> Iterator[None]:
    """Disable OpenTelemetry spans inside a `with` block."""
    token = _MUTED.set(True)
    try:
        yield
    finally:
        _MUTED.reset(token)


def _start(
    name: str, attributes: SpanAttributes, parent: object = None, *, client: bool = False
) -> Span | None:
    """Start an OpenTelemetry span. It is a child of `parent` or of the current span."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or _MUTED.get() or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None  # without a provider of its own, the program exports no spans
    kind = trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL
    context = trace.set_span_in_context(parent) if parent else None
    tracer = trace.get_tracer("moot", _version("moot"))
    span: Span = tracer.start_span(name, context, kind, _drop_unknown(attributes))
    return span


def _drop_unknown(attributes: SpanAttributes) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value not in (None, "")}


@contextmanager
def _within(span: Span | None, *, current: bool = True) -> Iterator[None]:
    """Keep a span open until the `with` block ends. A failure is recorded by its type alone."""
    if span is None:
        yield
        return
    try:
        if current:
            trace = sys.modules["opentelemetry.trace"]
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        else:
            yield
    except Exception as error:
        _mark_failed(span, type(error).__name__)
        raise
    finally:
        span.end()


def _mark_failed(span: Span, kind: str) -> None:
    """Set a span's status to `ERROR` with the error's type, without its text."""
    trace = sys.modules["opentelemetry.trace"]
    span.set_attribute("error.type", kind)
    span.set_status(trace.Status(trace.StatusCode.ERROR, kind))


@contextmanager
def debate_span(config: RunnableConfig) -> Iterator[RunnableConfig]:
    """Create a span for a run of the debate graph. Yield a config that makes node spans its children."""
    place = config.get("configurable", {})
    attributes = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "debate"}
    span = _start("invoke_workflow debate", {**attributes, "gen_ai.conversation.id": place.get("thread_id")})
    with _within(span, current=False):  # a generator runs in the context of its consumer
        yield {**config, "configurable": {**place, _KEY: span}} if span else config


@contextmanager
def step_span(node: str, step: Mapping[str, object], config: RunnableConfig) -> Iterator[None]:
    """Create an OpenTelemetry span for a run of one graph node."""
    attributes = {f"moot.step.{key}": step.get(key) for key in ("number", "phase", "round")}
    span = _start(f"step {node}", {**attributes, "moot.node": node}, config["configurable"].get(_KEY))
    with _within(span):
        yield


def note_recovered(update: Mapping[str, object]) -> None:
    """Record failed summaries, extractions and tool calls of a node as events of the current span."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or _MUTED.get():
        return
    span = trace.get_current_span()
    errors, entries = update.get("errors"), update.get("full_transcript")
    for error in errors if isinstance(errors, list) else ():
        span.add_event("moot.recovered_error", {"moot.node": str(error.get("node", ""))})
    for entry in entries if isinstance(entries, list) else ():
        if entry.get("kind") == "tool_result" and entry["tool"]["failed"]:
            span.add_event("moot.tool_error", {"gen_ai.tool.name": entry["tool"]["name"]})


@lru_cache(maxsize=4)
def _histogram(name: str, unit: str, provider: object) -> Histogram:
    """Return an OpenTelemetry histogram with bucket bounds for seconds or tokens."""
    metrics = sys.modules["opentelemetry.metrics"]
    histogram: Histogram = metrics.get_meter("moot", _version("moot")).create_histogram(
        name, unit, explicit_bucket_boundaries_advisory=_SECONDS if unit == "s" else _TOKENS
    )
    return histogram


def _measure(facts: SpanAttributes, reply: Reply | None, seconds: float) -> None:
    """Record a call's duration, time to the first chunk and token counts as metrics."""
    metrics = sys.modules.get("opentelemetry.metrics")
    if metrics is None or _MUTED.get():
        return
    keys = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "moot.purpose")
    model_label = {"gen_ai.response.model": reply.model if reply and reply.ok else None}
    labels = _drop_unknown({**{key: facts[key] for key in keys}, **model_label})
    error_label = {} if reply and reply.ok else {"error.type": str((reply and reply.status) or "failed")}
    provider = metrics.get_meter_provider()
    _histogram("gen_ai.client.operation.duration", "s", provider).record(seconds, {**labels, **error_label})
    if reply and reply.first_chunk_s is not None:
        name = "gen_ai.client.operation.time_to_first_chunk"
        _histogram(name, "s", provider).record(reply.first_chunk_s, labels)
    usage: EntryUsage = reply.usage if reply else {}
    tokens = {"input": usage.get("prompt_tokens", 0), "output": usage.get("completion_tokens", 0)}
    for kind, count in tokens.items():
        if count:
            token_labels = {**labels, "gen_ai.token.type": kind}
            _histogram("gen_ai.client.token.usage", "{token}", provider).record(count, token_labels)


def _texts(call: ModelCall, reply: Reply) -> SpanAttributes:
    """Return a call's prompt and reply as span attributes, `{}` unless `CAPTURE` permits this."""
    if (variable(CAPTURE) or "").lower() not in _CAPTURING:
        return {}
    message: JsonObject = {"role": "assistant", "parts": [{"type": "text", "content": reply.text}]}
    if reply.data is not None:
        message["parts"] = [{"type": "text", "content": json.dumps(reply.data, ensure_ascii=False)}]
    message["parts"] += [
        {"type": "tool_call", "id": each["id"], "name": each["name"], "arguments": each["args"]}
        for each in reply.tool_calls
    ]
    output = [{**message, "finish_reason": reply.finish_reason}] if reply.ok else []
    attributes = {"gen_ai.input.messages": _message_parts(call.messages), "gen_ai.output.messages": output}
    return {key: redact(json.dumps(messages, ensure_ascii=False)) for key, messages in attributes.items()}


def _message_parts(messages: Iterable[WireMessage]) -> list[JsonObject]:
    """Convert prompt messages to the format defined by OpenTelemetry's conventions."""
    span_messages: list[JsonObject] = []
    for message in messages:
        part: JsonObject = {"type": "text", "content": message["content"]}
        if "tool_call_id" in message:
            part = {
                "type": "tool_call_response",
                "id": message["tool_call_id"],
                "response": message["content"],
            }
        calls = [
            {"type": "tool_call", "id": call["id"], **call["function"]}
            for call in message.get("tool_calls", ())
        ]
        span_messages.append({"role": message["role"], "parts": [part, *calls]})
    return span_messages


@contextmanager
def call_span(call: ModelCall, debate: str, *, compatible: bool = True) -> Iterator[list[Reply]]:
    """Create an OpenTelemetry span for one model call, and record its metrics.

    Append its reply to the list that this context manager yields.
    With `compatible`, a model without a provider in its name has an OpenAI-compatible endpoint.
    """
    provider = provider_of(call.model) or (OPENAI if compatible else "")
    attributes: dict[str, object] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "moot" if is_built_in(call.model) else provider,
        "gen_ai.request.model": call.model,
        "gen_ai.request.max_tokens": call.max_tokens,
        "gen_ai.request.temperature": call.temperature,
        "gen_ai.request.seed": call.seed,
        "gen_ai.conversation.id": debate,
        "gen_ai.agent.name": call.stream_as.speaker if call.stream_as else None,
        "moot.purpose": call.purpose,
        "moot.message": call.stream_as.entry_id if call.stream_as else None,
    }
    span, replies = _start(f"chat {call.model}", attributes, client=True), list[Reply]()
    started = time.perf_counter()
    with _within(span):
        try:
            yield replies
        finally:
            if replies and not attributes["gen_ai.provider.name"]:
                attributes["gen_ai.provider.name"] = replies[0].provider
            _measure(attributes, replies[0] if replies else None, time.perf_counter() - started)
        if span is None:
            return
        (reply,) = replies
        outcome = {
            "gen_ai.provider.name": attributes["gen_ai.provider.name"],
            "gen_ai.request.stream": True if reply.first_chunk_s is not None else None,
            "gen_ai.response.time_to_first_chunk": reply.first_chunk_s,
            "gen_ai.response.model": reply.model,
            "gen_ai.response.finish_reasons": [reply.finish_reason] if reply.ok else None,
            "gen_ai.usage.input_tokens": reply.usage.get("prompt_tokens"),
            "gen_ai.usage.output_tokens": reply.usage.get("completion_tokens"),
            "gen_ai.usage.cache_read.input_tokens": reply.usage.get("cached_tokens"),
            "moot.cost_usd": reply.usage.get("cost_usd"),
            "moot.attempts": reply.attempts,
            **_texts(call, reply),
        }
        span.set_attributes(_drop_unknown(outcome))
        if not reply.ok:
            _mark_failed(span, str(reply.status or "failed"))


def redact_langsmith() -> None:
    """Make LangSmith's client redact keys and passwords if tracing is enabled.

    An endpoint may repeat a key in a reply or in an error, which LangChain's tracer sends as it is.
    """
    from langsmith.utils import tracing_is_enabled

    if tracing_is_enabled() is True:
        from langsmith.run_trees import get_cached_client

        get_cached_client(anonymizer=redact_values)


def start_langsmith_root(debate: str, topic: str) -> RunTree | None:
    """Start the root run of a debate's LangSmith trace, or return `None` if tracing is disabled.

    Without it, the start of a debate and its first run would be two traces. Inside another traced run, that
    run is the root.
    """
    from langsmith.utils import tracing_is_enabled

    if tracing_is_enabled() is not True:
        return None
    from langsmith.run_helpers import get_current_run_tree, get_tracing_context
    from langsmith.run_trees import RunTree

    if get_current_run_tree() is not None:
        return None
    context = get_tracing_context()
    options = {"client": context.get("client"), "project_name": context.get("project_name")}
    root = RunTree(
        name="debate",
        run_type="chain",
        inputs={"topic": topic},
        extra={"metadata": {"thread_id": debate}},
        **_drop_unknown(options),
    )
    root.post()
    return root


@contextmanager
def within_langsmith_root(root: RunTree | None) -> Iterator[None]:
    """Run a `with` block under a trace's root run, which ends with the block."""
    if root is None:
        yield
        return
    from langsmith import tracing_context

    try:
        with tracing_context(parent=root):
            yield
    except BaseException as error:
        root.end(error=type(error).__name__)
        raise
    else:
        root.end()
    finally:
        root.patch()
