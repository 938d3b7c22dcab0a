"""Floors made ready: the view of each, the request it is put in, and the next one after tools were called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from moot.nodes.calls import Hints, ModelCall, SpeakAs, View
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Job
from moot.nodes.floors.human_floors import HumanFloor, given_floor
from moot.nodes.floors.model_floors import ModelFloor
from moot.nodes.memory.indexes import embeddings_of
from moot.nodes.memory.recall import Memories, cue_for, embedding_job
from moot.nodes.memory.window import window_start
from moot.nodes.prompts.fitting import fit
from moot.nodes.prompts.material import pin_blocks, pins_tokens, with_pins
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.text.tokens import TokenCounter
from moot.nodes.tools.context_documents import context_sandbox
from moot.nodes.tools.exchange import Exchange, exchange_messages, exchange_report, wire_tokens
from moot.nodes.tools.tool import Surroundings, function_of
from moot.nodes.tools.tool_table import tool_named
from moot.nodes.views.scene import Scene
from moot.state.config import DebateConfig
from moot.state.config.memory_config import MINIMUM
from moot.state.conversation import ConversationState, Floor
from moot.state.entries import entry_id, seq_of

HINTED = 12
"""The last messages shown that the offline model is told of."""


@dataclass(frozen=True)
class Seat:
    """One floor of the step, ready."""

    index: int
    floor: Floor
    view: View | None = None
    """What the model is shown; `None` for a person."""
    asked: ModelFloor | None = None
    """What the model is asked; `None` for a person."""
    given: HumanFloor | None = None
    """What the person is shown and asked; `None` for a model."""


def make_seats(state: ConversationState, context: NodeContext, config: DebateConfig) -> list[Seat]:
    """Return the step's floors, ready to be asked."""
    floors = state["step"]["floors"]
    live = _live_floors(config, floors)
    return _told_apart(
        [_seat(state, context, config, index, live=index < live) for index in range(len(floors))]
    )


def floor_view(
    state: ConversationState, config: DebateConfig, index: int, context: NodeContext, *, taken: int = 0
) -> View:
    """Assemble the view of a floor of the state's step, a pure function; `taken` tokens stand after it."""
    floor = state["step"]["floors"][index]
    count = context.env.count_for(config)
    offered = functions_tokens(config.debater(floor["speaker"]).tools, count)
    total = config.memory.budget.total - offered - taken
    memories = _memories(context)
    pins = pin_blocks(state, config, count)
    scene = Scene(state, config, state["step"], floor, count, total - pins_tokens(pins, count), memories)
    return fit(with_pins(protocol_named(config.protocol).view(scene), pins), total, count)


def _memories(context: NodeContext) -> Memories:
    return Memories(context.env.indexes, context.debate, embeddings_of(context.claim, context.env.embeddings))


def embedding_work(state: ConversationState, context: NodeContext, config: DebateConfig) -> Job | None:
    """Return the work of embedding what the step's views compare, `None` where there is none."""
    memories = _memories(context)
    if memories.embeddings is None or not config.memory.retrieval.enabled:
        return None
    window = state["full_transcript"][window_start(state) :]
    cues = [cue_for(state, window, floor["speaker"]) for floor in state["step"]["floors"]]
    return embedding_job(state, memories, config.names(), cues)


def functions_tokens(tools: Sequence[str], count: TokenCounter) -> int:
    """Return what offering tools costs, by their definitions as JSON."""
    return sum(count(json.dumps(function_of(tool_named(name)))) for name in tools)


def tool_room(config: DebateConfig, tools: Sequence[str], count: TokenCounter) -> int:
    """Return the tokens that tool calls and results of one floor may take: half of the messages' budget."""
    return config.memory.budget.messages // 2 - functions_tokens(tools, count)


def _live_floors(config: DebateConfig, floors: Sequence[Floor]) -> int:
    """Return how many floors, from the first, can be streamed under their entries' ids.

    Calls of tools come before the speech that they are made for, so what follows the first floor that has
    tools is numbered once they are done.
    """
    with_tools = (index for index, floor in enumerate(floors) if config.debater(floor["speaker"]).tools)
    return next(with_tools, len(floors)) + 1


def _seat(
    state: ConversationState, context: NodeContext, config: DebateConfig, index: int, *, live: bool
) -> Seat:
    floor = state["step"]["floors"][index]
    speaker = config.debater(floor["speaker"])
    if speaker.is_human:
        scene = Scene(state, config, state["step"], floor, context.env.count_for(config))
        return Seat(index, floor, given=given_floor(protocol_named(config.protocol), scene))
    view = floor_view(state, config, index, context)
    first = len(state["full_transcript"]) + index
    call = make_call(
        voice_of(config, speaker),
        "turn",
        view,
        tools=tuple(function_of(tool_named(name)) for name in speaker.tools),
        speak_as=SpeakAs(entry_id(first), speaker.id) if live else None,
        floor=index,
        hints=_hints(state, config, floor, view),
    )
    shorter = partial(_shorter, state, context, config)
    if not speaker.tools:
        return Seat(index, floor, view, ModelFloor(call, shorter=shorter))
    around = Surroundings(partial(context_sandbox, context.claim), state["full_transcript"])
    again = partial(_again, state, context, config)
    return Seat(
        index, floor, view, ModelFloor(call, speaker.tools, speaker.tool_call_limit, around, again, shorter)
    )


def _shorter(
    state: ConversationState, context: NodeContext, config: DebateConfig, call: ModelCall, excess: int
) -> ModelCall:
    """Return the request that a server took for too long, with a view that is shorter by the excess."""
    offered = functions_tokens(
        config.debater(state["step"]["floors"][call.floor]["speaker"]).tools, context.env.count_for(config)
    )
    room = max(call.prompt_tokens - excess, MINIMUM["total"])
    shortened = config.memory.budget.total - offered - room
    view = floor_view(state, config, call.floor, context, taken=shortened)
    return replace(call, messages=view.messages, prompt_tokens=view.total_tokens, shortened=shortened)


def _again(
    state: ConversationState,
    context: NodeContext,
    config: DebateConfig,
    call: ModelCall,
    exchanges: Sequence[Exchange],
    offered: bool,
) -> ModelCall:
    """Return the request that follows so many exchanges, within the same budget."""
    floor = state["step"]["floors"][call.floor]
    count = context.env.count_for(config)
    room = tool_room(config, config.debater(floor["speaker"]).tools, count)
    # Without tools on offer many servers refuse messages of the tools' roles: then in words.
    more = exchange_messages(exchanges, room, count) if offered else [exchange_report(exchanges, room, count)]
    taken = wire_tokens(more, count)
    view = floor_view(state, config, call.floor, context, taken=taken)
    number = sum(2 * len(exchange.calls) for exchange in exchanges)
    speak_as = call.speak_as and replace(
        call.speak_as, entry_id=entry_id(len(state["full_transcript"]) + call.floor + number)
    )
    return replace(
        call,
        messages=(*view.messages, *more),
        tools=call.tools if offered else (),
        prompt_tokens=view.total_tokens + taken,
        speak_as=speak_as,
        behind=len(more),
    )


def whole_view(state: ConversationState, config: DebateConfig, call: ModelCall, context: NodeContext) -> View:
    """Return what a floor's request shows: its view, and as a section of its own what tools brought."""
    more = call.messages[len(call.messages) - call.behind :]
    taken = wire_tokens(more, context.env.count_for(config))
    view = floor_view(state, config, call.floor, context, taken=taken + call.shortened)
    if not more:
        return view
    return replace(
        view,
        messages=(*view.messages, *more),
        layout=(*view.layout, *("tools" for _ in more)),
        sections={**view.sections, "tools": taken},
        total_tokens=view.total_tokens + taken,
    )


def _told_apart(seats: Sequence[Seat]) -> list[Seat]:
    """Give equal requests of one step seeds of their own, so that they are independent samples."""
    asked: Counter[str] = Counter()
    apart = []
    for seat in seats:
        if seat.asked is not None and len(seats) > 1:
            call = seat.asked.call
            before = asked[call.digest]
            asked[call.digest] += 1
            if before:
                seeded = replace(call, seed=(call.seed or 0) + before)
                seat = replace(seat, asked=replace(seat.asked, call=seeded))
        apart.append(seat)
    return apart


def _hints(state: ConversationState, config: DebateConfig, floor: Floor, view: View) -> Hints:
    speaker, names = config.debater(floor["speaker"]), config.names()
    seqs = [seq for key in view.shown[-HINTED:] if (seq := seq_of(key)) is not None]
    return {
        "phase": state["step"]["phase"],
        "round": state["step"]["round"],
        "speaker": speaker.name,
        "stance": speaker.stance,
        "topic": state["topic"],
        "targets": [names.get(target, target) for target in floor["targets"]],
        "said": [
            {"id": entry["id"], "who": names[entry["speaker"]], "text": entry["content"]}
            for entry in map(state["full_transcript"].__getitem__, seqs)
            if entry["speaker"] in names
        ],
    }
