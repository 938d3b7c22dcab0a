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

from pydantic import BaseModel, Field

from moot.nodes.blackboard.board_words import SHORT, board_text
from moot.nodes.blackboard.by_model import debater_lines, found_in, structured_call
from moot.nodes.blackboard.outcome import at_a_glance, findings_text
from moot.nodes.calls import Hints, ModelCall, Reply
from moot.nodes.judging.opinions import JudgeBrief
from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.request import counter_of, many, narrow, voice_of
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
from moot.nodes.text.plain import all_done
from moot.nodes.views.scene import Scene
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, Floor, StateValues, Step
from moot.state.entries import JsonObject, kind_of
from moot.state.ledger import OVERALL

SPLIT = load_prompt("aspects", "topic", "debaters", "most", home=__package__)
PROMPTS = {
    "opening": load_prompt("opening", "rounds", "words", home=__package__),
    "take": load_prompt("take", "round", "rounds", "aspect", "words", home=__package__),
    "respond": load_prompt("respond", "round", "rounds", "aspect", "target", "words", home=__package__),
    "reply": load_prompt("reply", "round", "rounds", "aspect", "target", "words", home=__package__),
    "closing": load_prompt("closing", "rounds", "words", home=__package__),
}

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
_LOOK_BACK = 200
"""Entries among which what a debater said last on the main floor is looked for."""


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
    won = "{} engaged best with the others"
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
        aspects = list(memory["aspects"])
        stage, aspect, mini = _next_place(place, len(aspects), DialogueConfig.of(config).minirounds)
        if stage == "end":
            return End(all_done(len(aspects), "aspect", "talked through"))
        return _main_floor(state, config, aspects, stage, aspect, mini)

    def view(self, scene: Scene) -> Sequence[Block]:
        """See `dialogue_views`."""
        return dialogue_view(scene)

    def stand_in(
        self, state: ConversationState, config: DebateConfig, floor: Floor, error: str
    ) -> str | None:
        """Go on without one speaker, and say so."""
        return f"{config.names()[floor['speaker']]} could not be heard: {error}"

    def answer(self, state: ConversationState) -> str:
        """Return claims with stances, agreements, evidence, flip conditions and paths to a resolution."""
        config = frozen_config(state)
        flips = {d.id: d.flip_conditions for d in config.debaters}
        return findings_text(state, config.names(), flips)

    def at_a_glance(self, solution: str) -> str:
        """Return the first points of each section."""
        return at_a_glance(solution)

    words = MappingProxyType(WORDS | {f"crux-{stage}": ROOM_WORDS for stage in STAGES})

    def shown_tokens(self, phase: str, config: DebateConfig) -> float:
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
        return _open(state, config, [board_text(aspect, SHORT) for aspect in dialogue.aspects])
    outlay = Outlay("extract", "aspects", reserve=config.blackboard.reply)
    named = [f"aspect number {number}" for number in range(1, dialogue.max_aspects + 1)]
    fewest, most = ([Reply(data={"reasoning": "", "aspects": some})] for some in (named[:1], named))
    supposed: Mapping[Course, Sequence[Reply]] = {"least": fewest, "planned": most, "most": most}
    decide = partial(_open_by_reply, state, config)
    return Consult(lambda: [_aspects_call(state, config)], decide, outlay, supposed)


def _aspects_call(state: ConversationState, config: DebateConfig) -> ModelCall:
    topic, most = state["topic"], DialogueConfig.of(config).max_aspects
    system = SPLIT.render(topic=topic[:_TOPIC_CHARS], debaters=debater_lines(config), most=str(most))
    schema = narrow(Aspects, {"aspects": many(str, 1, most)})
    count = counter_of(voice_of(config, config.blackboard), config)
    hints: Hints = {"phase": "aspects", "topic": topic}
    return structured_call("extract", config, system, ["Split the topic."], schema, count, hints=hints)


def _open_by_reply(state: ConversationState, config: DebateConfig, replies: Sequence[Reply]) -> Step:
    found, most = found_in(Aspects, replies[0]) or {"aspects": ()}, DialogueConfig.of(config).max_aspects
    named = dict.fromkeys(board_text(aspect, SHORT) for aspect in found["aspects"])
    distinct = list(filter(None, named))[:most]
    return _open(state, config, distinct or aspects_by_rule(state["topic"], most))


def _open(state: ConversationState, config: DebateConfig, aspects: list[str]) -> Step:
    step = _main_floor(state, config, aspects, "opening", 0, 0)
    return {**step, "memo": {"aspects": aspects, **step["memo"]}}


def aspects_by_rule(topic: str, most: int) -> list[str]:
    """Return a topic's aspects without a model: its own parts where it lists some, else common lenses."""
    parts = [board_text(part, SHORT) for part in _CLAUSES.split(topic.strip()[:_TOPIC_CHARS])]
    parts = list(dict.fromkeys(part for part in parts if len(part) > 3))
    return (parts if len(parts) > 1 else list(LENSES))[:most]


def _next_place(place: JsonObject, aspects: int, minirounds: int) -> tuple[str, int, int]:
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


def _main_floor(
    state: ConversationState, config: DebateConfig, aspects: list[str], stage: str, aspect: int, mini: int
) -> Step:
    """Return a step of everybody's: in a response each answers another, and in a reply whoever responded."""
    last = len(aspects) + 2
    round_no = {"opening": 1, "closing": last}.get(stage, aspect + 2)
    about = OVERALL if stage in ("opening", "closing") else aspects[aspect]
    ids, floors = list(config.names()), []
    for place, who in enumerate(ids):
        targets: list[str] = []
        name = ""
        if stage in ("respond", "reply"):
            distance = 1 + (aspect + mini) % (len(ids) - 1)
            target = ids[(place + (distance if stage == "respond" else -distance)) % len(ids)]
            latest = reversed(state["full_transcript"][-_LOOK_BACK:])
            own = (each for each in latest if each["speaker"] == target and not each["room"])
            said = next(([each["id"]] for each in own if kind_of(each).argues), [])
            targets = [target, *said]
            name = " ".join([config.names()[target], *(f"[{key}]" for key in said)])
        asked = PROMPTS[stage].render(
            round=str(round_no), rounds=str(last), aspect=about, target=name, words=str(WORDS[stage])
        )
        floors.append(make_floor(who, with_agreement(asked, config), targets=targets))
    memo = {PLACE: {"stage": stage, "aspect": aspect, "mini": mini}}
    step = make_step(stage, round_no, floors, aspect=about)
    return {**step, "last_words": stage == "closing", "memo": memo}
