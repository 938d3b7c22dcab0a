"""Dialogue protocol, in which personas discuss a topic aspect by aspect and in crux rooms.

The phases are openings, then a first take and minirounds of response and reply for each aspect, then
closings. An opening's prompt shows no other message. A disagreement that is left after the replies may open a
crux room of two debaters. All turns of a phase are taken at the same time. Rooms of different debaters run at
the same time, too.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import comb
from types import MappingProxyType

from pydantic import BaseModel

from moot.calls.model_calls import Hints, ModelCall, Reply, WireMessage
from moot.claims import ledger_rendering
from moot.claims.claim_status import Ledger
from moot.claims.crux_cards import at_a_glance, claim_text, findings_text
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
from moot.prompts.templates import FENCE_TOKENS, fenced, load_prompt_template
from moot.prompts.truncation import Block, prompt_name, truncate_by_priority
from moot.protocols import prompt_context, schedule
from moot.protocols.base import Protocol
from moot.protocols.dialogue.crux_rooms import DialogueConfig, new_rooms, open_rooms, room_step
from moot.protocols.schedule import OVER, End, Phase, TurnCount, make_step, make_turn, phase_table
from moot.protocols.suffix import blackboard_text, turn_suffix_block
from moot.state.claim_events import MAIN_QUESTION, OVERALL
from moot.state.conversation import ConversationState, MemoryKind, Step, Turn
from moot.state.entries import Entry, JsonObject, entries_of, traits_of
from moot.text.plain_text import all_done_reason
from moot.text.tokens import prompt_tokens

ASPECTS = load_prompt_template("rules", "aspects", home=__package__)

SUBJECT = 0
"""Priority of the message to answer and of the debater's commitments. 0 is the highest priority."""
EXCHANGE = 1
"""Priority of the messages before and after the message to answer."""
BACKGROUND = 2
"""Priority of other context in a dialogue prompt."""
EARLIER = 3
"""Priority of earlier messages that match the search query."""

BOARD_TOKENS = 600
"""Number of prompt tokens that are reserved for the blackboard, which lists the debate's claims. The
debater's own commitments come first in the blackboard."""
FRAME_TOKENS = 6
"""Number of tokens reserved for the message format around the blackboard's text."""


def dialogue_prompt_blocks(ctx: prompt_context.PromptContext) -> list[Block]:
    """Return the blocks of a dialogue prompt, such as the rules, aspects, messages and instruction.

    Documents and answers of people come before the messages of the phase. Interjections appear among these
    messages. Earlier messages that match fill the rest of the budget, except in an opening, which shows none.
    """
    material = {
        "opening": _message_blocks,
        "take": _openings,
        "respond": _exchange,
        "reply": _exchange,
        "closing": _before_closing,
    }
    phase, aspect = ctx.step["phase"], ctx.step.get("aspect") or OVERALL
    user_blocks = [
        prompt_context.user_provided_block(ctx, entry, message=EXCHANGE, document=BACKGROUND)
        for entry in prompt_context.user_provided_entries(ctx, "document", "answer")
    ]
    chunks = [*user_blocks, *material.get(phase, _room)(ctx)]
    target_texts = [
        entry["content"] for entry in entries_of(ctx.turn["targets"], ctx.state["full_transcript"])
    ]
    topic_or_aspect = ctx.state["topic"] if aspect == OVERALL else aspect
    memory = ctx.state.get("protocol_state") or {}
    aspects, descriptions = memory.get("aspects") or [], memory.get("aspect_descriptions") or {}
    lines = [f"- {each}: {descriptions[each]}" if descriptions.get(each) else f"- {each}" for each in aspects]
    aspects_text = ASPECTS.render(aspects="\n".join(lines)) if aspects else ""
    shared_prefix = [
        prompt_context.rules_block(ctx, extra=aspects_text),
        prompt_context.topic_block(ctx.state["topic"], ctx.config, ctx.count),
    ]
    query = "\n".join([topic_or_aspect, ctx.turn["instruction"], *target_texts])
    turn_suffix = turn_suffix_block(ctx, query=query)
    if phase == "opening":
        return truncate_by_priority(shared_prefix, chunks, turn_suffix, ctx.token_budget, ctx.count)
    priority_messages = [
        block.message for block in (*shared_prefix, *chunks, turn_suffix) if block.priority <= EXCHANGE
    ]
    left = ctx.token_budget - prompt_tokens(priority_messages, ctx.count)
    board = _board(ctx, max(left, min(BOARD_TOKENS, ctx.token_budget // 8)))
    return prompt_context.fill_with_earlier(
        ctx,
        shared_prefix,
        [*chunks[: len(user_blocks)], *board, *chunks[len(user_blocks) :]],
        turn_suffix,
        query=dialogue_query(ctx),
        make_block=lambda entry: prompt_context.entry_block(ctx, entry, EARLIER),
    )


def dialogue_query(ctx: prompt_context.PromptContext) -> RetrievalQuery:
    """Return the turn's query, in a crux room with the disputed claim."""
    room = ctx.state.get("crux_rooms", {}).get(ctx.turn["room"])
    if not room:
        return ctx.query
    return replace(ctx.query, query=f"{ctx.query.query}\n{claim_text(ctx.state, room)}")


def _board(ctx: prompt_context.PromptContext, remaining: int) -> Iterator[Block]:
    """Yield a prompt block that shows the debate's claims in at most `remaining` tokens.

    A closing shows the ledger of all debaters alike. Crux rooms have separate blocks with crux cards and
    reflections.
    """
    max_tokens = remaining - FENCE_TOKENS - FRAME_TOKENS
    if ctx.step["phase"] == "closing":
        text = ledger_rendering.render_blackboard(
            ctx.state,
            "",
            max_tokens=max_tokens,
            count=ctx.count,
            names=ctx.names,
            has_insights=False,
            evidence_of=ctx.speaker.id,
        )
    else:
        text = blackboard_text(
            ctx, max_tokens, has_insights=not ctx.turn["room"], aspect=ctx.step.get("aspect") or OVERALL
        )
    heading, _, board = text.partition("\n")
    yield from _text_block(
        ctx,
        heading.removeprefix("# "),
        board,
        SUBJECT,
        ledger_rendering.memory_tokens(text, ctx.state, ctx.count),
    )


def _openings(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield the speaker's own opening, others with claims not extracted yet, and interjections."""
    own_entries = (
        e for e in ctx.state["full_transcript"] if e["speaker"] == ctx.speaker.id and traits_of(e).argues
    )
    own_opening = next(own_entries, None)
    yield from _message_blocks(ctx, [*([own_opening] if own_opening else []), *_unread_openings(ctx)])


def _unread_openings(ctx: prompt_context.PromptContext) -> list[Entry]:
    """Return openings without extracted claims while the first aspect is under discussion."""
    if ctx.step["round"] != 2:
        return []
    read_through = ledger_of(ctx.state).read_through
    openings = (entry for entry in ctx.state["full_transcript"] if entry["phase"] == "opening")
    return [entry for entry in openings if entry["seq"] > read_through and traits_of(entry).argues]


def _exchange(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield prompt blocks with the messages of the current round.

    Opening statements from which no claims have been extracted come first.

    The message to answer has the highest priority. Messages of this round's crux rooms follow; if tokens are
    short, only those of the speaker's own rooms stay.
    """
    transcript, round_no = ctx.state["full_transcript"], ctx.step["round"]
    own_ids: list[str] = []
    other_ids: list[str] = []
    for room in ctx.state.get("crux_rooms", {}).values():
        if room["round"] == round_no:
            ids = own_ids if ctx.speaker.id in room["between"] else other_ids
            ids += room["message_ids"]
    other_entries = entries_of(other_ids, transcript)
    openings = _unread_openings(ctx)
    recent = recent_exchange(transcript, round_no)
    speeches = [*openings, *recent, *entries_of(own_ids, transcript), *other_entries]
    yield from _message_blocks(ctx, speeches, ctx.turn["targets"], [*openings, *other_entries])


def recent_exchange(transcript: Sequence[Entry], round_no: int) -> list[Entry]:
    """Return the debaters' messages from a round, oldest first, without those in side discussions."""
    messages: list[Entry] = []
    for entry in reversed(transcript):
        if entry["round"] != round_no:
            break
        traits = traits_of(entry)
        if not (entry["room"] or traits.tool or traits.user_input):
            messages.append(entry)
    return messages[::-1]


def _room(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield the prompt blocks for a turn in a crux room, which is a side discussion of two debaters."""
    room = ctx.state["crux_rooms"][ctx.turn["room"]]
    for card in ledger_rendering.cards_of(ctx.state):
        if set(card["sides"]) & set(room["between"]):
            text = ledger_rendering.card_text(card, ctx.names)
            yield from _text_block(ctx, "Result of an earlier side room", text, BACKGROUND, "cruxes")
    yield from _text_block(
        ctx, ledger_rendering.REMARKS, ledger_rendering.reflections_text(ctx.state), BACKGROUND, "reflections"
    )
    entries = entries_of([*room["trigger"], *room["message_ids"]], ctx.state["full_transcript"])
    yield from _message_blocks(ctx, entries, room["message_ids"])


def _message_blocks(
    ctx: prompt_context.PromptContext,
    speeches: Sequence[Entry] = (),
    subjects: Sequence[str] = (),
    background: Sequence[Entry] = (),
) -> Iterator[Block]:
    """Yield messages, tool results and interjections. `subjects` have the highest priority."""
    entries = {
        entry["seq"]: entry
        for entry in (*speeches, *prompt_context.user_provided_entries(ctx, "interjection"))
    }
    ranks = {entry["id"]: BACKGROUND for entry in background} | dict.fromkeys(subjects, SUBJECT)
    for _, entry in sorted(entries.items()):
        if traits_of(entry).user_input == "interjection" and entry["id"] not in subjects:
            yield prompt_context.user_provided_block(ctx, entry, message=EXCHANGE, document=BACKGROUND)
            continue
        rank = ranks.get(entry["id"], EXCHANGE)
        yield from prompt_context.tool_blocks(ctx, entry, rank)
        yield prompt_context.entry_block(ctx, entry, rank)


def _before_closing(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield the prompt blocks for a closing statement."""
    cards = "\n\n".join(
        ledger_rendering.card_text(card, ctx.names) for card in ledger_rendering.cards_of(ctx.state)
    )
    yield from _text_block(ctx, ledger_rendering.ROOMS, cards, SUBJECT, "cruxes")
    yield from _text_block(
        ctx, ledger_rendering.REMARKS, ledger_rendering.reflections_text(ctx.state), EXCHANGE, "reflections"
    )
    transcript, previous_round = ctx.state["full_transcript"], ctx.step["round"] - 1
    own_entries = [e for e in transcript if e["speaker"] == ctx.speaker.id and traits_of(e).argues]
    rooms = {entry["room"] for entry in own_entries} - {""}
    room_entries = [e for e in transcript if e["room"] in rooms and traits_of(e).argues]
    speeches = [*own_entries[:1], *room_entries, *recent_exchange(transcript, previous_round)]
    yield from _message_blocks(ctx, speeches, [entry["id"] for entry in own_entries[:1]], room_entries)


def _text_block(
    ctx: prompt_context.PromptContext,
    title: str,
    text: str,
    rank: int,
    memory: MemoryKind | Mapping[MemoryKind, int],
) -> Iterator[Block]:
    if text:
        message: WireMessage = {"role": "user", "content": fenced(text, ctx.config.fence, f"# {title}")}
        tokens_by_kind = {memory: ctx.count(text)} if isinstance(memory, str) else memory
        yield Block("blackboard", message, rank, label=title.lower(), memory=tokens_by_kind)


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
