"""Dialogue: personas on a topic split into aspects, with crux rooms where two disagree on a specific claim.

Openings (a cold start) → per aspect a first take, then minirounds of response and reply → crux rooms after a
response or reply that brought a disagreement worth one → closings. Everybody speaks at the same time within a
phase; rooms of disjoint pairs run at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, Field

from moot.nodes.blackboard.board_words import SHORT, noted
from moot.nodes.blackboard.by_model import debater_lines, found_in
from moot.nodes.blackboard.outcome import at_a_glance, findings_text
from moot.nodes.calls import Hints, ModelCall, Reply, WireMessage
from moot.nodes.judging.opinions import JudgeBrief
from moot.nodes.prompts.fitting import Block, fit_messages
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.request import counter_of, make_call, many, narrowed, voice_of
from moot.nodes.protocols.dialogue.crux_rooms import (
    STAGES,
    new_rooms,
    open_rooms,
    room_step,
    supposed_dispute,
)
from moot.nodes.protocols.dialogue.crux_rooms import WORDS as ROOM_WORDS
from moot.nodes.protocols.dialogue.dialogue_settings import DialogueConfig
from moot.nodes.protocols.dialogue.dialogue_views import dialogue_view
from moot.nodes.protocols.protocol import (
    TOKENS_PER_WORD,
    Consult,
    Course,
    End,
    Outlay,
    Protocol,
    make_floor,
    make_step,
    with_agreement,
)
from moot.nodes.views.scene import Scene
from moot.state.amounts import all_done
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, Floor, StateValues, Step
from moot.state.entries import JsonObject, kind_of
from moot.state.ledger import OVERALL

SPLIT = load_prompt("aspects", "topic", "debaters", "most", home=__package__)
OPENING = load_prompt("opening", "rounds", "words", home=__package__)
TAKE = load_prompt("take", "round", "rounds", "aspect", "words", home=__package__)
RESPOND = load_prompt("respond", "round", "rounds", "aspect", "target", "words", home=__package__)
REPLY = load_prompt("reply", "round", "rounds", "aspect", "target", "words", home=__package__)
CLOSING = load_prompt("closing", "rounds", "words", home=__package__)

WORDS = {"opening": 180, "take": 120, "respond": 120, "reply": 100, "closing": 200}
"""What speeches are asked to stay within."""

PLACE = "dialogue"
"""Where `protocol_state` holds how far the main floor has come."""

BOARD_TOKENS = 300.0
"""About what the blackboard takes in a view."""

LENSES = ("what there is to gain, and for whom", "what it costs and what can go wrong", "what must be true")
"""Aspects of a topic that neither the configuration nor a model has split."""
_TOPIC_CHARS = 6000
_CLAUSES = re.compile(r"\s*(?:[;\n；]|\b(?:and|und|et|y)\b)\s*")


class Aspects(BaseModel):
    """How a topic is split."""

    reasoning: str
    aspects: list[str] = Field(description="Short phrases, the most important first.")


class Dialogue(Protocol):
    """Personas in conversation."""

    name = "dialogue"
    settings = DialogueConfig
    least_debaters = 2
    minutes_every_step = True
    shows_summary = False
    brief = JudgeBrief(
        wanted="Weigh who engaged with the others' strongest points and who moved for a reason."
    )
    always_answers = True
    answer_leads = "Where it stands"
    goes_on = False
    bounded_by = ("dialogue.aspects", "dialogue.max_aspects", "dialogue.minirounds")

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End | Consult:
        """Go on in the rooms that are open, open those that are due, else go on on the main floor."""
        memory = state.get("protocol_state") or {}
        if not memory.get("aspects"):
            return _split(state, config)
        rooms = open_rooms(state)
        if rooms:
            return room_step(state, config, rooms)
        place = memory.get(PLACE) or {}
        if place.get("stage") in ("respond", "reply"):
            rooms = new_rooms(state, config)
            if rooms:
                return room_step(state, config, rooms)
        return _main_floor(state, config, place, list(memory["aspects"]))

    def view(self, scene: Scene) -> Sequence[Block]:
        """See `dialogue_views`."""
        return dialogue_view(scene)

    def stand_in(
        self, state: ConversationState, config: DebateConfig, floor: Floor, error: str
    ) -> str | None:
        """Go on without one speaker, and say so."""
        return f"{config.names()[floor['speaker']]} could not be heard: {error}"

    def won(self, winner: str) -> str:
        """Nobody was to be beaten."""
        return f"{winner} engaged best with the others"

    def answer(self, state: ConversationState) -> str:
        """Return claims with stances, agreements, evidence, flip conditions and paths to a resolution."""
        config = frozen_config(state)
        flips = {d.id: d.flip_conditions for d in config.debaters}
        return findings_text(state, config.names(), flips)

    def at_a_glance(self, solution: str) -> str:
        """Return the first points of each section."""
        return at_a_glance(solution)

    words = MappingProxyType(WORDS | {f"crux-{stage}": ROOM_WORDS for stage in STAGES})

    def shown(self, phase: str, config: DebateConfig) -> float:
        """The blackboard, and what is answered with what was said around it."""
        dialogue, people = DialogueConfig.of(config), len(config.debaters)
        if phase in ("respond", "reply"):
            heard = (WORDS["take"] + WORDS["respond"]) * (1 + dialogue.minirounds) / 2
            return BOARD_TOKENS + TOKENS_PER_WORD * people * heard
        if phase in WORDS:
            return {"opening": 0.0, "closing": BOARD_TOKENS * people}.get(phase, BOARD_TOKENS)
        return BOARD_TOKENS + TOKENS_PER_WORD * ROOM_WORDS * (1 + 2 * dialogue.crux.cycles)

    def is_decided(self, config: DebateConfig) -> bool:
        """Unless a model names the aspects, or crux rooms may open."""
        dialogue = DialogueConfig.of(config)
        return bool(dialogue.aspects) and not (dialogue.crux.enabled and dialogue.crux.max_rooms)

    def suppose(
        self, state: ConversationState, config: DebateConfig, course: Course
    ) -> tuple[StateValues, Sequence[Outlay]]:
        """On the longest course every pair disagrees whenever a room may open for it, one after the other."""
        pairs = list(combinations(config.names(), 2)) if course == "most" else []
        return {"minutes": supposed_dispute(state, config, pairs)}, ()


def _split(state: ConversationState, config: DebateConfig) -> Step | Consult:
    """Open with the configured aspects, else ask a model for them."""
    dialogue = DialogueConfig.of(config)
    if dialogue.aspects:
        return _open(config, [noted(aspect, SHORT) for aspect in dialogue.aspects])
    decide = partial(_open_with_reply, config, state["topic"])
    outlay = Outlay("extract", "aspects", reserve=config.blackboard.reply)
    named = [f"aspect number {number}" for number in range(1, dialogue.max_aspects + 1)]
    fewest, most = ([Reply(data={"reasoning": "", "aspects": some})] for some in (named[:1], named))
    supposed: Mapping[Course, Sequence[Reply]] = {"least": fewest, "planned": most, "most": most}
    return Consult(lambda: [_aspects_call(state, config)], decide, outlay, supposed)


def _aspects_call(state: ConversationState, config: DebateConfig) -> ModelCall:
    system = SPLIT.render(
        topic=state["topic"][:_TOPIC_CHARS],
        debaters=debater_lines(config),
        most=str(DialogueConfig.of(config).max_aspects),
    )
    voice = voice_of(config, config.blackboard)
    count = counter_of(voice, config)
    asked: list[WireMessage] = [
        {"role": "system", "content": system},
        {"role": "user", "content": "Split the topic."},
    ]
    view = fit_messages(asked, config.memory.budget.total, count)
    hints: Hints = {"phase": "aspects", "topic": state["topic"]}
    schema = narrowed(Aspects, {"aspects": many(str, 1, DialogueConfig.of(config).max_aspects)})
    return make_call(voice, "extract", view, schema=schema, hints=hints)


def _open_with_reply(config: DebateConfig, topic: str, replies: Sequence[Reply]) -> Step:
    found = found_in(Aspects, replies[0]) or {"aspects": ()}
    named = [noted(aspect, SHORT) for aspect in found["aspects"]]
    distinct = list(dict.fromkeys(filter(None, named)))[: DialogueConfig.of(config).max_aspects]
    return _open(config, distinct or aspects_by_rule(topic, DialogueConfig.of(config).max_aspects))


def aspects_by_rule(topic: str, most: int) -> list[str]:
    """Return a topic's aspects without a model: its own parts where it lists some, else common lenses."""
    parts = [noted(part, SHORT) for part in _CLAUSES.split(topic.strip()[:_TOPIC_CHARS])]
    parts = list(dict.fromkeys(part for part in parts if len(part) > 3))
    return (parts if len(parts) > 1 else list(LENSES))[:most]


def _open(config: DebateConfig, aspects: list[str]) -> Step:
    rounds = str(len(aspects) + 2)
    instruction = with_agreement(OPENING.render(rounds=rounds, words=str(WORDS["opening"])), config)
    floors = [make_floor(debater.id, instruction) for debater in config.debaters]
    step = make_step("opening", 1, floors, aspect=OVERALL)
    return {**step, "memo": {"aspects": aspects, PLACE: _place("opening", 0, 0)}}


def _place(stage: str, aspect: int, mini: int) -> JsonObject:
    return {"stage": stage, "aspect": aspect, "mini": mini}


def _main_floor(
    state: ConversationState, config: DebateConfig, place: JsonObject, aspects: list[str]
) -> Step | End:
    """Return the main floor's next step."""
    stage, aspect, mini = _following(place, len(aspects), DialogueConfig.of(config).minirounds)
    if stage == "end":
        return End(all_done(len(aspects), "aspect", "talked through"))
    closing = stage == "closing"
    about = OVERALL if closing else aspects[aspect]
    last = len(aspects) + 2
    round_no = last if closing else aspect + 2
    instruction_of = partial(_instruction, config, stage, about, (round_no, last))
    floors = _floors(state, config, stage, aspect + mini, instruction_of)
    step = make_step(stage, round_no, floors, aspect=about)
    return {**step, "last_words": closing, "memo": {PLACE: _place(stage, aspect, mini)}}


def _following(place: JsonObject, aspects: int, minirounds: int) -> tuple[str, int, int]:
    """Return stage, aspect and miniround that come after a place on the main floor."""
    stage, aspect, mini = place["stage"], place["aspect"], place["mini"]
    if stage == "opening":
        return "take", 0, 0
    if stage == "take":
        return "respond", aspect, 0
    if stage == "respond":
        return "reply", aspect, mini
    if stage == "reply" and mini + 1 < minirounds:
        return "respond", aspect, mini + 1
    if stage == "reply" and aspect + 1 < aspects:
        return "take", aspect + 1, 0
    return ("closing" if stage == "reply" else "end"), aspect, mini


def _instruction(
    config: DebateConfig, stage: str, aspect: str, place: tuple[int, int], target: str, said: Sequence[str]
) -> str:
    """Return what a floor asks; `place` is its round, and of how many, and `said` the message it answers."""
    words, name = str(WORDS[stage]), " ".join([config.names().get(target, ""), *(f"[{key}]" for key in said)])
    round_no, rounds = map(str, place)
    if stage == "closing":
        text = CLOSING.render(rounds=rounds, words=words)
    elif stage == "take":
        text = TAKE.render(round=round_no, rounds=rounds, aspect=aspect, words=words)
    else:
        prompt = RESPOND if stage == "respond" else REPLY
        text = prompt.render(round=round_no, rounds=rounds, aspect=aspect, target=name, words=words)
    return with_agreement(text, config)


def _floors(
    state: ConversationState, config: DebateConfig, stage: str, turn: int, instruction_of: Any
) -> list[Floor]:
    """Return everybody's floor: in a response each answers another, and in a reply whoever responded."""
    ids = list(config.names())
    if stage not in ("respond", "reply"):
        return [make_floor(who, instruction_of("", ())) for who in ids]
    distance = 1 + turn % (len(ids) - 1)
    step = distance if stage == "respond" else -distance
    floors = []
    for place, who in enumerate(ids):
        target = ids[(place + step) % len(ids)]
        said = _last_said(state, target)
        floors.append(make_floor(who, instruction_of(target, said), targets=[target, *said]))
    return floors


_LOOK_BACK = 200


def _last_said(state: ConversationState, who: str) -> list[str]:
    """Return the id of what a debater said last on the main floor."""
    own = (each for each in reversed(state["full_transcript"][-_LOOK_BACK:]) if each["speaker"] == who)
    return next(([each["id"]] for each in own if not each["room"] and kind_of(each).argues), [])
