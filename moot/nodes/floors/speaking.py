"""Floors as they are taken: models at once, and again with what tools brought; people in one interrupt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.effects import Effect, Errand, Job, Work
from moot.nodes.floors.seats import HumanFloor, ModelFloor
from moot.nodes.people.questions import PersonQuestion, ask_people
from moot.nodes.tools.exchange import Exchange, ToolCall
from moot.nodes.tools.tool import run_tool
from moot.nodes.tools.tool_table import TOOLS
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import JsonObject

ARGUMENT_CHARS = 1000
"""Longest arguments that are repeated to the model."""

PASSES = "(passes)"
"""What the transcript shows of a person who says nothing."""


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

    if long := [at for at, each in enumerate(spoken) if each.reply.excess]:
        again = [floors[at].shorter(spoken[at].reply.excess) for at in long]
        for at, call, reply in zip(long, again, (yield again), strict=True):
            spoken[at] = Spoken(reply, call=call)

    while pending := [at for at, floor in enumerate(floors) if _wants_tools(floor, spoken[at])]:
        jobs = [
            _job(floors[at], call, allowed=place < _calls_left(floors[at], spoken[at]))
            for at in pending
            for place, call in enumerate(spoken[at].reply.tool_calls)
        ]
        results = iter((yield Work(jobs)))
        for at in pending:
            brought = [next(results) for _ in spoken[at].reply.tool_calls]
            exchange = _exchange(floors[at], spoken[at], brought)
            spoken[at] = replace(spoken[at], exchanges=(*spoken[at].exchanges, exchange))
        again = [
            floors[at].again(spoken[at].exchanges, offered=_calls_left(floors[at], spoken[at]) > 0)
            for at in pending
        ]
        for at, call, reply in zip(pending, again, (yield again), strict=True):
            spoken[at] = replace(spoken[at], reply=reply, call=call)

    for at, each in enumerate(spoken):
        if each.reply.ok and not each.reply.text.strip():
            silent = replace(each.reply, error="the model called tools instead of speaking")
            spoken[at] = replace(each, reply=silent)
    return spoken


def _wants_tools(floor: ModelFloor, spoken: Spoken) -> bool:
    asked = spoken.reply.ok and bool(spoken.reply.tool_calls)
    return asked and bool(floor.speaker.tools) and _calls_left(floor, spoken) > 0


def _calls_left(floor: ModelFloor, spoken: Spoken) -> int:
    return floor.speaker.tool_call_limit - spoken.calls


def _job(floor: ModelFloor, call: JsonObject, *, allowed: bool) -> Job:
    name, arguments, speaker = str(call["name"]), call["args"], floor.speaker
    asked = json.dumps([name, arguments, allowed], sort_keys=True, default=str)
    if not allowed:
        return Job(
            asked, lambda: f"error: the limit of {speaker.tool_call_limit} tool calls in one turn is reached"
        )
    if name not in speaker.tools:
        return Job(asked, lambda: f"error: there is no tool {name[:60]!r}: use {', '.join(speaker.tools)}")
    return Job(asked, partial(run_tool, TOOLS[name], arguments, floor.around))


def _exchange(floor: ModelFloor, spoken: Spoken, results: Sequence[str]) -> Exchange:
    calls: list[ToolCall] = []
    answered = zip(spoken.reply.tool_calls, results, strict=True)
    for number, (call, result) in enumerate(answered, spoken.calls + 1):
        name = call["name"] if call["name"] in floor.speaker.tools else "unknown_tool"
        arguments = json.dumps(call["args"], ensure_ascii=False, sort_keys=True)
        if len(arguments) > ARGUMENT_CHARS:
            arguments = json.dumps({"cut": arguments[: ARGUMENT_CHARS // 2]})
        calls.append(ToolCall(f"call_{number}", name, arguments, result))
    return Exchange(spoken.reply, tuple(calls))


def hear_people(state: ConversationState, floors: Sequence[HumanFloor]) -> Generator[Effect, Any, list[str]]:
    """Ask the people whose floors these are, all in one interrupt, and return their words in floor order."""
    if not floors:
        return []
    names = frozen_config(state).names()
    taken = Counter(receipt["speaker"] for receipt in state.get("receipts") or [])
    questions: list[PersonQuestion] = []
    for floor in floors:
        taken[floor.speaker] += 1
        key, name = f"{floor.speaker}.{taken[floor.speaker]}", names[floor.speaker]
        questions.append(PersonQuestion(id=key, debater=floor.speaker, name=name, question=floor.asked))
    said = yield from ask_people("turn", state["step"]["round"], questions)
    return [said[question["id"]] or PASSES for question in questions]
