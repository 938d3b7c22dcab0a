"""What OpenTelemetry is told where a program uses it: spans for a debate, its steps and its calls.

Names and attributes are those of its semantic conventions for generative AI. No words are told, neither
prompts nor answers nor messages of errors, and nothing at all where nobody has imported OpenTelemetry.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from moot.nodes.calls import ModelCall, Reply
from moot.state.config.model_settings import OPENAI, is_built_in, provider_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_KEY = "__moot_span"  # LangGraph writes no key that begins like this into a checkpoint's metadata
Facts = Mapping[str, object]


def _start(name: str, facts: Facts, parent: object = None, *, client: bool = False) -> Span | None:
    """Begin a span, under the current one where no parent is given."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    kind = trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL
    context = trace.set_span_in_context(parent) if parent else None
    span: Span = trace.get_tracer("moot").start_span(name, context, kind, _drop_unknown(facts))
    return span


def _drop_unknown(facts: Facts) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value not in (None, "")}


@contextmanager
def _within(span: Span | None, *, current: bool = True) -> Iterator[None]:
    """End a span with a `with` block, under which other spans begin; of a failure its kind alone is told."""
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
        span.set_attribute("error.type", type(error).__name__)
        raise
    finally:
        span.end()


@contextmanager
def debate_span(config: RunnableConfig) -> Iterator[RunnableConfig]:
    """Tell of a run of the graph; yields a config by which the spans of its nodes find it."""
    place = config.get("configurable", {})
    facts = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "debate"}
    span = _start("invoke_workflow debate", {**facts, "gen_ai.conversation.id": place.get("thread_id")})
    with _within(span, current=False):  # a generator's context is its reader's
        yield {**config, "configurable": {**place, _KEY: span}} if span else config


@contextmanager
def step_span(node: str, step: Mapping[str, object], config: RunnableConfig) -> Iterator[None]:
    """Tell of one node of one step."""
    facts = {f"moot.step.{key}": step.get(key) for key in ("no", "phase", "round")}
    with _within(_start(f"step {node}", {**facts, "moot.node": node}, config["configurable"].get(_KEY))):
        yield


@contextmanager
def call_span(call: ModelCall, debate: str) -> Iterator[list[Reply]]:
    """Tell of one call; the reply is put into the list that this yields."""
    built_in = is_built_in(call.model)
    facts: Facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "moot" if built_in else provider_of(call.model) or OPENAI,
        "gen_ai.request.model": call.model,
        "gen_ai.request.max_tokens": call.max_tokens,
        "gen_ai.request.temperature": call.temperature,
        "gen_ai.request.seed": call.seed,
        "gen_ai.conversation.id": debate,
        "gen_ai.agent.name": call.speak_as.speaker if call.speak_as else None,
        "moot.purpose": call.purpose,
        "moot.message": call.speak_as.entry_id if call.speak_as else None,
    }
    span, replies = _start(f"chat {call.model}", facts, client=True), list[Reply]()
    with _within(span):
        yield replies
        if span is None:
            return
        (reply,) = replies
        outcome = {
            "gen_ai.response.model": reply.model,
            "gen_ai.response.finish_reasons": [reply.finish_reason],
            "gen_ai.usage.input_tokens": reply.usage.get("prompt_tokens"),
            "gen_ai.usage.output_tokens": reply.usage.get("completion_tokens"),
            "gen_ai.usage.cache_read.input_tokens": reply.usage.get("cached_tokens"),
            "moot.cost_usd": reply.usage.get("cost_usd"),
            "moot.attempts": reply.attempts,
            "error.type": "" if reply.ok else str(reply.status or "failed"),
        }
        span.set_attributes(_drop_unknown(outcome))
