"""Floors made ready: what a model or a person is shown and asked, and what a model is asked after that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from moot.nodes.calls import Hints, ModelCall, SpeakAs, View
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Job
from moot.nodes.memory.indexes import embeddings_of
from moot.nodes.memory.recall import Memories, cue_for, embedding_job
from moot.nodes.memory.window import window_start
from moot.nodes.prompts.fitting import KEEP, fit
from moot.nodes.prompts.material import pin_blocks, pins_tokens, with_pins
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.tools.context_documents import context_sandbox
from moot.nodes.tools.exchange import Exchange, exchange_messages, exchange_report, wire_tokens
from moot.nodes.tools.tool import Surroundings, function_of
from moot.nodes.tools.tool_table import functions_tokens, tool_named
from moot.nodes.views.scene import Scene
from moot.state.config import DebateConfig, DebaterConfig
from moot.state.config.debate_config import frozen_config
from moot.state.config.memory_config import MINIMUM
from moot.state.conversation import ConversationState, Floor
from moot.state.entries import entry_id, seqs_of

HINTED = 12
"""The last messages shown that the offline model is told of."""


@dataclass(frozen=True)
class ModelFloor:
    """One floor that a model takes: its first request, and those that may have to follow."""

    state: ConversationState
    context: NodeContext
    call: ModelCall
    """The first request."""

    @property
    def speaker(self) -> DebaterConfig:
        """Who takes it."""
        return frozen_config(self.state).debater(self.state["step"]["floors"][self.call.floor]["speaker"])

    @property
    def around(self) -> Surroundings:
        """What its tools may look at."""
        return Surroundings(partial(context_sandbox, self.context.claim), self.state["full_transcript"])

    def shorter(self, excess: int) -> ModelCall:
        """Return the request that a server took for too long, with a view that is shorter by the excess."""
        config = frozen_config(self.state)
        offered = functions_tokens(self.speaker.tools, self.context.env.count_for(config))
        room = max(self.call.prompt_tokens - excess, MINIMUM["total"])
        shortened = config.memory.budget.total - offered - room
        view = floor_view(self.state, self.context, self.call.floor, taken=shortened)
        return replace(_showing(self.call, view), shortened=shortened)

    def again(self, exchanges: Sequence[Exchange], *, offered: bool) -> ModelCall:
        """Return the request that follows so many exchanges, within the same budget."""
        config = frozen_config(self.state)
        count = self.context.env.count_for(config)
        # Calls and results may take half of the messages' budget, the tools' definitions included.
        room = config.memory.budget.messages // 2 - functions_tokens(self.speaker.tools, count)
        if offered:
            more = exchange_messages(exchanges, room, count)
        else:  # then many servers refuse messages of the tools' roles: in words
            more = [exchange_report(exchanges, room, count)]
        taken = wire_tokens(more, count)
        view = floor_view(self.state, self.context, self.call.floor, taken=taken)
        if more:
            view = replace(
                view,
                messages=(*view.messages, *more),
                layout=(*view.layout, *("tools" for _ in more)),
                sections={**view.sections, "tools": taken},
                total_tokens=view.total_tokens + taken,
            )
        number = self.call.floor + sum(2 * len(exchange.calls) for exchange in exchanges)
        speech = entry_id(len(self.state["full_transcript"]) + number)
        return replace(
            _showing(self.call, view),
            tools=self.call.tools if offered else (),
            speak_as=self.call.speak_as and replace(self.call.speak_as, entry_id=speech),
        )


def _showing(call: ModelCall, view: View) -> ModelCall:
    return replace(call, messages=view.messages, prompt_tokens=view.total_tokens, view=view)


@dataclass(frozen=True)
class HumanFloor:
    """A floor, given to a person."""

    speaker: str
    """Id."""
    asked: str
    """What the person is shown and asked."""


def given_floor(scene: Scene) -> HumanFloor:
    """Return a floor as a person is given it: what every view must show, then what a model is asked to do."""
    protocol = protocol_named(scene.config.protocol)
    shown = [
        block.message["content"]
        for block in protocol.view(scene)
        if block.section in ("topic", "messages") and block.priority == KEEP
    ]
    asked = protocol.instruction(scene) or scene.step["phase"]
    answering = ", ".join(scene.names[target] for target in scene.floor["targets"] if target in scene.names)
    request = f"{asked} (Answering {answering}.)" if answering else asked
    return HumanFloor(scene.floor["speaker"], "\n\n".join([*shown, request]))


def make_seats(state: ConversationState, context: NodeContext) -> list[ModelFloor | HumanFloor]:
    """Return the step's floors, ready to be asked."""
    config, floors = frozen_config(state), state["step"]["floors"]
    # Calls of tools come before the speech that they are made for: what follows the first floor that has
    # tools is numbered once they are done, and cannot be streamed under its entry's id.
    with_tools = (at for at, floor in enumerate(floors) if config.debater(floor["speaker"]).tools)
    live = next(with_tools, len(floors)) + 1
    seats: list[ModelFloor | HumanFloor] = []
    alike = Counter[str]()
    for index, floor in enumerate(floors):
        speaker = config.debater(floor["speaker"])
        if speaker.is_human:
            seats.append(given_floor(Scene(state, config, floor, context.env.count_for(config))))
            continue
        view, entry = floor_view(state, context, index), entry_id(len(state["full_transcript"]) + index)
        call = make_call(
            voice_of(config, speaker),
            "turn",
            view,
            tools=tuple(function_of(tool_named(name)) for name in speaker.tools),
            speak_as=SpeakAs(entry, speaker.id) if index < live else None,
            floor=index,
            hints=_hints(state, config, floor, view),
        )
        # Equal requests of one step get seeds of their own, so that they are independent samples.
        before = alike[call.digest]
        alike[call.digest] += 1
        seats.append(
            ModelFloor(state, context, replace(call, seed=(call.seed or 0) + before) if before else call)
        )
    return seats


def floor_view(state: ConversationState, context: NodeContext, index: int, *, taken: int = 0) -> View:
    """Assemble the view of a floor of the state's step, a pure function; `taken` tokens stand after it."""
    config, floor = frozen_config(state), state["step"]["floors"][index]
    count = context.env.count_for(config)
    offered = functions_tokens(config.debater(floor["speaker"]).tools, count)
    total = config.memory.budget.total - offered - taken
    pins = pin_blocks(state, config, count)
    room = total - pins_tokens(pins, count)
    scene = Scene(state, config, floor, count, room, _memories(context))
    return fit(with_pins(protocol_named(config.protocol).view(scene), pins), total, count)


def embedding_work(state: ConversationState, context: NodeContext) -> Job | None:
    """Return the work of embedding what the step's views compare, `None` where there is none."""
    config, memories = frozen_config(state), _memories(context)
    if memories.embeddings is None or not config.memory.retrieval.enabled:
        return None
    window = state["full_transcript"][window_start(state) :]
    cues = [cue_for(state, window, floor["speaker"]) for floor in state["step"]["floors"]]
    return embedding_job(state, memories, config.names(), cues)


def _memories(context: NodeContext) -> Memories:
    return Memories(context.env.indexes, context.debate, embeddings_of(context.claim, context.env.embeddings))


def _hints(state: ConversationState, config: DebateConfig, floor: Floor, view: View) -> Hints:
    speaker, names = config.debater(floor["speaker"]), config.names()
    seqs = list(seqs_of(view.shown[-HINTED:]))
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
