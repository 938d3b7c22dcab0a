"""Dialogue protocol, in which personas discuss a topic aspect by aspect and in crux rooms.

The phases are openings, then a first take and minirounds of response and reply for each aspect, then
closings. An opening's prompt shows no other message. A disagreement that is left after the replies may open a
crux room of two debaters. All turns of a phase are taken at the same time. Rooms of different debaters run at
the same time, too.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from math import comb
from types import MappingProxyType

from pydantic import BaseModel

from moot.calls.model_calls import Hints, ModelCall, Reply
from moot.claims import ledger_rendering
from moot.claims.claim_status import Ledger
from moot.claims.crux_cards import at_a_glance, findings_text
from moot.claims.ledger_from_events import ledger_of
from moot.claims.model_extraction import uses_model
from moot.config import DebateConfig
from moot.config.debate_config import frozen_config
from moot.judging.judge_spec import JudgeSpec
from moot.memory.background import select_background
from moot.memory.cross_debate_memory import RetrievalQuery
from moot.prompts.debate_context import DebateContext
from moot.prompts.request import counter_of, many, model_params, narrow_schema
from moot.prompts.structured_calls import debater_lines, structured_call, structured_data
from moot.prompts.templates import fenced, load_prompt_template
from moot.prompts.truncation import Block, prompt_name
from moot.protocols import prompt_context, schedule
from moot.protocols.base import Protocol
from moot.protocols.dialogue.crux_rooms import DialogueConfig, new_rooms, open_rooms, room_step
from moot.protocols.dialogue.dialogue_prompt import dialogue_prompt_blocks, dialogue_query
from moot.protocols.schedule import OVER, End, Phase, TurnCount, make_step, make_turn, phase_table
from moot.state.claim_events import MAIN_QUESTION, OVERALL
from moot.state.conversation import ConversationState, Step, Turn
from moot.state.entries import JsonObject, traits_of
from moot.text.plain_text import all_done_reason

SPLIT = load_prompt_template("aspects", "topic", "debaters", "most", home=__package__)
PROMPTS = {
    "opening": load_prompt_template("opening", "rounds", "words", home=__package__),
    "take": load_prompt_template("take", "round", "rounds", "aspect", "words", home=__package__),
    "respond": load_prompt_template(
        "respond", "round", "rounds", "aspect", "target", "words", home=__package__
    ),
    "reply": load_prompt_template("reply", "round", "rounds", "aspect", "target", "words", home=__package__),
    "closing": load_prompt_template("closing", "rounds", "words", home=__package__),
}
UNANSWERED = load_prompt_template(
    "unanswered", "round", "rounds", "aspect", "target", "words", home=__package__
)
"""Prompt template for a debater to whom nobody responded."""

WORDS = {"opening": 180, "take": 120, "respond": 120, "reply": 100, "closing": 200}
"""Maximum number of words in a message, keyed by phase of the dialogue."""

PLACE = "dialogue"
"""Key under which `protocol_state` stores the dialogue's current stage, aspect and miniround."""

PHASE_TOKENS = 4_000
"""Default token limit for dialogue prompts, which are short on purpose."""
DESCRIPTIONS = "aspect_descriptions"
"""Key under which `protocol_state` stores the descriptions of the topic's aspects."""

LENSES = ("what there is to gain, and for whom", "what it costs and what can go wrong", "what must be true")
"""Default aspects of a topic, used if neither a model nor the topic names any."""
_TOPIC_CHARS = 6000
_CLAUSES = re.compile(r"(?<!\s)\s*(?:[;\n；]|\b(?:and|und|et|y)\b)\s*")
_LOOKBACK_ENTRIES = 200
"""Number of recent transcript entries to search for a debater's last message."""
_MAIN_QUESTION_WEIGHT = 0.01
"""Weight of a disagreement on the main question. Other claims have the weight 1, so the main question only
decides between otherwise equal pairs."""


class Aspects(BaseModel):
    """Model reply that splits a topic into aspects."""

    reasoning: str
    aspects: list[str]
    descriptions: list[str] = []
    """Sentences that say which points each aspect covers, in the same order as `aspects`."""


_AFTER_ROOM = ("crux-positions", "respond", "take", "closing")
"""Phases that may follow a short round or a crux room."""


def _extracts(config: DebateConfig) -> bool:
    return True


def _extracts_takes(config: DebateConfig) -> bool:
    """Return True if the next step needs claims from first takes.

    First takes show all openings. After them, claims only decide who answers whom, and two debaters answer
    each other in any case.
    """
    return len(config.debaters) != 2


_phase = partial(Phase, budget=PHASE_TOKENS, reflects=False)
PHASES = phase_table(
    Phase("opening", ("take",), reflects=False),
    _phase("take", ("respond",), extracts=_extracts_takes),
    _phase("respond", ("reply",)),
    _phase("reply", _AFTER_ROOM, extracts=_extracts, reflects=True),
    _phase("crux-positions", ("crux-exchange",)),
    _phase("crux-exchange", ("crux-exchange", "crux-steelman")),
    _phase("crux-steelman", ("crux-steelman", "crux-exchange", *_AFTER_ROOM)),
    Phase("closing", (OVER,), extracts=_extracts, reflects=False),
)
"""Course of a dialogue. In a crux room, the two debaters alternate after the positions. Openings and closings
may use the whole token budget."""


class Dialogue(Protocol):
    """Protocol in which personas discuss the aspects of a topic one after the other."""

    name = "dialogue"
    settings = DialogueConfig
    min_debaters = 2
    extracts_by_default = True
    shows_summary = False
    retrieves_transcript = True
    phases = PHASES
    judge_spec = JudgeSpec(
        instruction="For `winner`, weigh who engaged with the others' strongest points, and who moved for a "
        "reason.",
        swap=False,
    )
    win_text = "{} engaged best with the others"
    always_answers = True
    answer_heading = "Where it stands"
    can_continue = False
    length_settings = ("dialogue.aspects", "dialogue.max_aspects", "dialogue.minirounds")

    def next_step(self, state: ConversationState, config: DebateConfig) -> schedule.NextStep:
        """Return `End` or the next step: open crux rooms, then new ones, then the main sequence."""
        memory = state.get("protocol_state") or {}
        if not memory.get("aspects"):
            return _split(state, config)
        rooms = open_rooms(state)
        if rooms:
            return room_step(state, config, rooms)
        place = memory.get(PLACE) or {}
        if place.get("stage") == "reply":
            rooms = new_rooms(state, config)
            if rooms:
                return room_step(state, config, rooms)
        aspects = list(memory["aspects"])
        stage, aspect, mini = _next_place(place, len(aspects), DialogueConfig.of(config).minirounds)
        if stage == "end":
            return End(all_done_reason(len(aspects), "aspect", "discussed"))
        return _main_step(state, config, aspects, stage, aspect, mini)

    def prompt_blocks(self, ctx: prompt_context.PromptContext) -> Sequence[Block]:
        """Return the blocks of a turn's prompt, depending on the turn's phase."""
        return dialogue_prompt_blocks(ctx)

    def query(self, ctx: prompt_context.PromptContext) -> RetrievalQuery:
        """Return the query that retrieves earlier messages for a turn of the dialogue."""
        return dialogue_query(ctx)

    def fallback_entry(
        self, state: ConversationState, config: DebateConfig, turn: Turn, error: str
    ) -> str | None:
        """Return a notice that replaces the message of a failed turn."""
        return f"The message of {config.names()[turn['speaker']]} is missing: {error}"

    def final_answer(self, state: ConversationState) -> str:
        """Return the findings of the dialogue as Markdown."""
        config = frozen_config(state)
        flips = {d.id: d.flip_conditions for d in config.debaters}
        extracts = uses_model(config.blackboard, config.model, auto=self.extracts_by_default)
        return findings_text(state, config.names(), flips, extracts=extracts)

    def at_a_glance(self, solution: str) -> str:
        """Return a short overview of a dialogue's findings. The full findings are in `solution`."""
        return at_a_glance(solution)

    def turns(self, config: DebateConfig) -> TurnCount:
        """Return the planned number of turns, and the maximum with all crux rooms."""
        dialogue, people = DialogueConfig.of(config), len(config.debaters)
        crux, aspects = dialogue.crux, len(dialogue.aspects) or dialogue.max_aspects
        planned = people * (2 + aspects * (1 + 2 * dialogue.minirounds))
        rooms = min(crux.max_rooms, comb(people, 2) * aspects)
        # A crux room has two positions and, in each cycle, an exchange and a steelman of both debaters.
        return TurnCount(planned, planned + rooms * (2 + 4 * crux.cycles))


def _split(state: ConversationState, config: DebateConfig) -> Step | schedule.ConsultModels:
    """Return the debate's first step, or a request to split the topic into aspects.

    A model call splits the topic. The first step contains the opening statements.

    The call is needed only if no aspects are configured.
    """
    dialogue = DialogueConfig.of(config)
    if dialogue.aspects:
        return _open(
            state,
            config,
            [ledger_rendering.board_text(aspect, ledger_rendering.SHORT) for aspect in dialogue.aspects],
        )
    decide = partial(_open_by_reply, state, config)
    return schedule.ConsultModels(lambda: [_aspects_call(state, config)], decide)


def _aspects_call(state: ConversationState, config: DebateConfig) -> ModelCall:
    topic, max_aspects = state["topic"], DialogueConfig.of(config).max_aspects
    system = SPLIT.render(
        topic=fenced(topic[:_TOPIC_CHARS], config.fence),
        debaters=debater_lines(config),
        most=str(max_aspects),
    )
    schema = narrow_schema(Aspects, {"aspects": many(str, 1, max_aspects)})
    count = counter_of(model_params(config, config.blackboard), config)
    hints: Hints = {"phase": "aspects"}
    background = select_background(DebateContext(state, config, count)).texts(
        topic, config.memory.budget.total // 2
    )
    messages = [*background, "Split the topic."]
    return structured_call("extract", config, system, messages, schema, count, hints=hints)


def _open_by_reply(state: ConversationState, config: DebateConfig, replies: Sequence[Reply]) -> Step:
    reply_data, max_aspects = (
        structured_data(Aspects, replies[0]) or {"aspects": ()},
        DialogueConfig.of(config).max_aspects,
    )
    unique_aspects = dict.fromkeys(
        ledger_rendering.board_text(aspect, ledger_rendering.SHORT) for aspect in reply_data["aspects"]
    )
    aspects = list(filter(None, unique_aspects))[:max_aspects]
    pairs = zip(reply_data["aspects"], reply_data.get("descriptions", ()), strict=False)
    descriptions = {
        ledger_rendering.board_text(aspect, ledger_rendering.SHORT): ledger_rendering.board_text(text)
        for aspect, text in pairs
        if text
    }
    return _open(state, config, aspects or aspects_by_rule(state["topic"], max_aspects), descriptions)


def _open(
    state: ConversationState,
    config: DebateConfig,
    aspects: list[str],
    descriptions: Mapping[str, str] = MappingProxyType({}),
) -> Step:
    step = _main_step(state, config, aspects, "opening", 0, 0)
    memo = {"aspects": aspects, DESCRIPTIONS: {name: descriptions.get(name, "") for name in aspects}}
    return {**step, "protocol_update": {**memo, **step["protocol_update"]}}


def aspects_by_rule(topic: str, max_aspects: int) -> list[str]:
    """Return the aspects that the topic lists, or the default aspects if it lists none."""
    parts = [
        ledger_rendering.board_text(part, ledger_rendering.SHORT)
        for part in _CLAUSES.split(topic.strip()[:_TOPIC_CHARS])
    ]
    parts = list(dict.fromkeys(part for part in parts if len(part) > 3))
    return (parts if len(parts) > 1 else list(LENSES))[:max_aspects]


def _next_place(place: JsonObject, aspects: int, minirounds: int) -> tuple[str, int, int]:
    """Return the stage that follows `place`, and the index of its aspect and its miniround."""
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


def _main_step(
    state: ConversationState, config: DebateConfig, aspects: list[str], stage: str, aspect: int, mini: int
) -> Step:
    """Return the next step of the dialogue.

    Every debater takes one turn in it. In the stage `respond`, every debater answers the debater that it
    opposes most. In the stage `reply`, every debater answers a debater that responded to it. A debater
    without a response has no objection to answer, so its instruction asks for a comment instead.
    """
    last = len(aspects) + 2
    round_no = {"opening": 1, "closing": last}.get(stage, aspect + 2)
    aspect_name = OVERALL if stage in ("opening", "closing") else aspects[aspect]
    memo: JsonObject = {"stage": stage, "aspect": aspect, "mini": mini}
    addressees: Mapping[str, str] = {}
    responses: Mapping[str, str] = {}
    if stage == "respond":
        addressees = memo["answers"] = pair_opponents(
            state, list(config.names()), aspect_name, shift=aspect + mini
        )
    elif stage == "reply":
        responses = state["protocol_state"][PLACE]["answers"]
        addressees = pair_replies(responses)
    turns = []
    for debater in config.names():
        target, targets, target_text = addressees.get(debater, ""), list[str](), ""
        if target:
            recent = reversed(state["full_transcript"][-_LOOKBACK_ENTRIES:])
            target_entries = (each for each in recent if each["speaker"] == target and not each["room"])
            message_ids = next(([each["id"]] for each in target_entries if traits_of(each).argues), [])
            targets = [target, *message_ids]
            target_text = " ".join(
                [prompt_name(target, config.names()), *(f"[{key}]" for key in message_ids)]
            )
        unanswered = stage == "reply" and debater not in responses.values()
        instruction = (UNANSWERED if unanswered else PROMPTS[stage]).render(
            round=str(round_no),
            rounds=str(last),
            aspect=aspect_name,
            target=target_text,
            words=schedule.words_within(WORDS[stage], config),
        )
        turns.append(make_turn(debater, schedule.with_agreement(instruction, config), targets=targets))
    step = make_step(stage, round_no, turns, aspect=aspect_name)
    return {**step, "is_final": stage == "closing", "protocol_update": {PLACE: memo}}


def pair_opponents(
    state: ConversationState, debaters: Sequence[str], aspect: str, *, shift: int = 0
) -> dict[str, str]:
    """Return an opponent for each debater, preferably the one who disagrees with the debater most.

    Debaters with whom nobody disagrees answer each other in turn. `shift` varies the order from step to step.
    """
    opposition = _opposition(ledger_of(state), aspect)
    opponents = {debater for pair in opposition for debater in pair}
    neutral = [debater for debater in debaters if debater not in opponents]

    def next_of(debater: str, candidates: Sequence[str]) -> list[str]:
        place, distance = candidates.index(debater), 1 + shift % (len(candidates) - 1)
        return [candidates[(place + distance + step) % len(candidates)] for step in range(len(candidates))]

    answers: dict[str, str] = {}
    for debater in debaters:
        others = [other for other in next_of(debater, debaters) if other != debater]
        if debater in opponents:
            answers[debater] = max(others, key=lambda other: opposition[frozenset((debater, other))])
        else:
            answers[debater] = next_of(debater, neutral)[0] if len(neutral) > 1 else others[0]
    return answers


def pair_replies(answers: Mapping[str, str]) -> dict[str, str]:
    """Choose the debater to whom each debater replies.

    The keys and values of the result are debater ids. A responder whom the debater has responded to comes
    first. A debater without responders replies to the debater whom it has responded to.
    """
    replies: dict[str, str] = {}
    for debater, addressee in answers.items():
        responders = [other for other, target in answers.items() if target == debater]
        replies[debater] = addressee if addressee in responders or not responders else responders[0]
    return replies


def _opposition(ledger: Ledger, aspect: str) -> Mapping[frozenset[str], float]:
    """Return how strongly each pair of debaters disagrees on an aspect.

    A pair's strength is the number of the aspect's claims on which the two debaters hold opposite sides. Each
    claim is weighted by the confidence of the extraction. A disagreement on the main question decides between
    pairs that are otherwise equal.
    """
    strengths: dict[frozenset[str], float] = defaultdict(float)
    for key, claim in ledger.claims.items():
        weight = _MAIN_QUESTION_WEIGHT if key == MAIN_QUESTION else float(claim["aspect"] == aspect)
        stances = ledger.stances(key) if weight else {}
        for pair in ledger.pairs(key) if weight else ():
            strengths[frozenset(pair)] += weight * min(stances[debater]["confidence"] for debater in pair)
    return strengths
