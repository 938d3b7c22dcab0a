"""Floors that models take: all asked at the same time, then again and again those that call tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.effects import Errand, Job, Work
from moot.nodes.tools.exchange import Exchange, ToolCall, arguments_text
from moot.nodes.tools.tool import Surroundings, run_tool
from moot.nodes.tools.tool_table import TOOLS
from moot.state.entries import JsonObject


@dataclass(frozen=True)
class ModelFloor:
    """One floor that a model takes."""

    call: ModelCall
    """The first request."""
    tools: tuple[str, ...] = ()
    """Names of the tools that it may call."""
    limit: int = 0
    """Tool calls that it may make."""
    around: Surroundings = field(default_factory=Surroundings)
    again: Callable[[ModelCall, Sequence[Exchange], bool], ModelCall] | None = None
    """Returns the next request from the first, the exchanges so far and whether tools are still offered."""
    shorter: Callable[[ModelCall, int], ModelCall] | None = None
    """Returns the same request with so many tokens less in view."""


@dataclass(frozen=True)
class Spoken:
    """What came of one floor."""

    reply: Reply
    """The last one: the speech, or why there is none."""
    exchanges: tuple[Exchange, ...] = ()
    call: ModelCall | None = None
    """The request that it answers; `None` for a person."""

    @property
    def calls(self) -> int:
        """Tool calls made."""
        return sum(len(exchange.calls) for exchange in self.exchanges)


def let_speak(floors: Sequence[ModelFloor]) -> Errand[list[Spoken]]:
    """Ask all floors at once, run the tools that they call, ask those again, until everybody has spoken."""
    if not floors:
        return []
    replies: list[Reply] = yield [floor.call for floor in floors]
    spoken = [Spoken(reply, call=floor.call) for floor, reply in zip(floors, replies, strict=True)]
    if long := [i for i, each in enumerate(spoken) if each.reply.excess and floors[i].shorter]:
        again = [_shortened(floors[index], spoken[index].reply.excess) for index in long]
        for index, call, reply in zip(long, again, (yield again), strict=True):
            spoken[index] = Spoken(reply, call=call)
    while pending := [index for index, floor in enumerate(floors) if _wants_tools(floor, spoken[index])]:
        jobs = [
            _job(floors[index], call, allowed=place < floors[index].limit - spoken[index].calls)
            for index in pending
            for place, call in enumerate(spoken[index].reply.tool_calls)
        ]
        results = iter((yield Work(jobs)))
        for index in pending:
            spoken[index] = _with_results(
                floors[index], spoken[index], [next(results) for _ in spoken[index].reply.tool_calls]
            )
        again = [_next_call(floors[index], spoken[index]) for index in pending]
        for index, call, reply in zip(pending, again, (yield again), strict=True):
            spoken[index] = replace(spoken[index], reply=reply, call=call)
    return [_settled(each) for each in spoken]


def _wants_tools(floor: ModelFloor, spoken: Spoken) -> bool:
    return (
        spoken.reply.ok and bool(spoken.reply.tool_calls) and spoken.calls < floor.limit and bool(floor.tools)
    )


def _job(floor: ModelFloor, call: JsonObject, *, allowed: bool) -> Job:
    name, arguments = str(call["name"]), call["args"]
    asked = json.dumps([name, arguments, allowed], sort_keys=True, default=str)
    digest = hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()
    if not allowed:
        return Job(digest, lambda: f"error: the limit of {floor.limit} tool calls in one turn is reached")
    if name not in floor.tools:
        return Job(digest, lambda: f"error: there is no tool {name[:60]!r}: use {', '.join(floor.tools)}")
    return Job(digest, partial(run_tool, TOOLS[name], arguments, floor.around))


def _with_results(floor: ModelFloor, spoken: Spoken, results: Sequence[str]) -> Spoken:
    calls: list[ToolCall] = []
    for call, result in zip(spoken.reply.tool_calls, results, strict=True):
        name = call["name"] if call["name"] in floor.tools else "unknown_tool"
        number = spoken.calls + 1 + len(calls)
        calls.append(ToolCall(f"call_{number}", name, arguments_text(call["args"]), result))
    return replace(spoken, exchanges=(*spoken.exchanges, Exchange(spoken.reply, tuple(calls))))


def _shortened(floor: ModelFloor, excess: int) -> ModelCall:
    assert floor.shorter is not None  # noqa: S101  # asked for by who has looked
    return floor.shorter(floor.call, excess)


def _next_call(floor: ModelFloor, spoken: Spoken) -> ModelCall:
    assert floor.again is not None  # noqa: S101  # a floor with tools
    return floor.again(floor.call, spoken.exchanges, spoken.calls < floor.limit)


def _settled(spoken: Spoken) -> Spoken:
    """Turn a last reply without words into a failure that says so."""
    if spoken.reply.ok and not spoken.reply.text.strip():
        return replace(
            spoken, reply=replace(spoken.reply, error="the model called tools instead of speaking")
        )
    return spoken
