"""Long-form protocols, in which one debater speaks per turn for a configured number of turns."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pydantic import BaseModel, Field

from moot.calls.model_calls import ModelCall, Reply
from moot.claims.blackboard import render_blackboard
from moot.claims.ledger_from_events import ledger_of
from moot.claims.ledger_rendering import board_text
from moot.config import DebateConfig, ProtocolSettings
from moot.prompts import structured_calls
from moot.prompts.request import counter_of, model_params, narrow_schema, one_of
from moot.prompts.templates import break_fence, fenced, fenced_section, load_prompt_template
from moot.prompts.truncation import prompt_name
from moot.protocols import schedule
from moot.protocols.base import Protocol
from moot.protocols.schedule import OVER, Phase, phase_table
from moot.state.conversation import ConversationState, Step
from moot.state.entries import Entry, ends_turn, traits_of
from moot.text.plain_text import all_done_reason
from moot.text.tokens import truncate_middle

SPEECH = load_prompt_template("speech", "turn", "turns", "opening", "words", home=__package__)
INSTRUCTIONS = {
    "opening": "Open: state your position on the topic and give your strongest reason.",
    "argument": "First answer the strongest point made against you, then make one new point of your own.",
    "closing": "Close: state your strongest point, what you concede, and what would settle the rest.",
}
UNREAD = "You have not read the other debaters' opening statements yet."
_LOOKBACK_ENTRIES = 8
"""Number of recent entries per debater to search for the latest speakers."""


PATIENCE = 2
"""Number of consecutive turns without progress after which a debater must skip a turn. A pair of debaters
may take twice as many turns."""


class ModeratorConfig(ProtocolSettings):
    """Settings of the model that chooses the next speaker in the `moderated` protocol."""

    key = "moderator"

    model: str | None = None
    """Name of the model that moderates the debate. `None`: the debate's model moderates."""
    temperature: float | None = Field(0.3, ge=0, le=2)
    """Sampling temperature of the moderator's model, from 0 to 2. `None`: the provider's default."""

    def model_names(self) -> tuple[str, ...]:
        """Return the moderator's model name in a tuple, or an empty tuple if none is configured."""
        return (self.model,) if self.model else ()


class LongForm(Protocol):
    """Base class of protocols in which debaters speak one at a time for a fixed number of turns."""

    length_settings = ("turns", "rounds")
    phases = phase_table(*(Phase(phase, (*INSTRUCTIONS, OVER)) for phase in INSTRUCTIONS))

    def next_step(
        self, state: ConversationState, config: DebateConfig
    ) -> Step | schedule.End | schedule.ConsultModels:
        """Return the debate's next step, or `End` if the debate is over."""
        turns = config.total_turns()
        if state.get("turn_count", 0) >= turns:
            return schedule.End(all_done_reason(turns, "turn", "taken"))
        if config.openings == "independent" and not _has_begun(state, config):
            return opening_step(config)
        return self.next_turn(state, config)

    def next_turn(self, state: ConversationState, config: DebateConfig) -> Step | schedule.ConsultModels:
        """Return a step with the next turn, or `ConsultModels` if models must choose the next speaker."""
        raise NotImplementedError

    def turns(self, config: DebateConfig) -> schedule.TurnCount:
        """Return the configured number of turns."""
        return schedule.TurnCount(config.total_turns(), config.total_turns())


class RoundRobin(LongForm):
    """Protocol in which the debaters take turns in the configured order."""

    name = "round-robin"
    uses_order = True

    def next_turn(self, state: ConversationState, config: DebateConfig) -> Step:
        """Return a step with a turn for the next debater in the configured order."""
        turn, order = state.get("turn_count", 0), config.turn_order()
        if turn < len(order) and config.openings == "independent":
            order = first_round(config)
        position, turns_left = turn % len(order), config.total_turns() - turn - 1
        speaker, following = order[position], [*order[position + 1 :], *order[: position + 1]]
        return turn_step(
            state,
            config,
            speaker,
            first=turn < len(order) and speaker not in order[:position],
            last=speaker not in following[: max(0, turns_left)],
        )


class RandomOrder(LongForm):
    """Protocol in which the next debater is drawn at random. The same seed gives the same draws.

    With more than two debaters nobody speaks twice in a row. A debater or pair without progress must pause.
    """

    name = "random"
    settings = ModeratorConfig

    def next_turn(self, state: ConversationState, config: DebateConfig) -> Step:
        """Draw a debater at random, and return a step with the debater's turn."""
        last_speakers = recent_speakers(state, config)[-1:] if len(config.debaters) > 2 else []
        free = [debater for debater in config.names() if debater not in last_speakers]
        candidates = [debater for debater in free if not would_stall(state, config, debater)] or free
        # The draw depends only on seed and turn, so a resumed debate continues like an uninterrupted debate.
        turn = state.get("turn_count", 0)
        digest = hashlib.sha256(f"{config.seed or 0}:{turn}".encode()).digest()
        speaker = candidates[int.from_bytes(digest[:8], "big") % len(candidates)]
        return turn_step(state, config, speaker)


def first_round(config: DebateConfig) -> tuple[str, ...]:
    """Return a first round's order: each debater's opening, then the turns that `order` repeats."""
    rest = list(config.turn_order())
    openers = tuple(dict.fromkeys(rest))
    for opener in openers:
        rest.remove(opener)
    return (*openers, *rest)


def opening_step(config: DebateConfig) -> Step:
    """Return the step in which all debaters write their opening statements at the same time.

    Nobody sees another debater's opening. A debate with fewer turns than debaters has fewer openings.
    """
    turns, openers = config.total_turns(), tuple(dict.fromkeys(config.turn_order()))
    speakers = openers[:turns]
    unread = UNREAD if len(speakers) > 1 else ""
    return schedule.make_step(
        "opening",
        1,
        [
            schedule.make_turn(speaker, _instruction(config, "opening", turn, unread))
            for turn, speaker in enumerate(speakers, 1)
        ],
    )


def _has_begun(state: ConversationState, config: DebateConfig) -> bool:
    """Return True if a debater has already taken a turn, in this debate or in an imported transcript."""
    names = config.names()
    return bool(state.get("turn_count")) or any(
        entry["speaker"] in names for entry in state.get("full_transcript", ())
    )


def _instruction(config: DebateConfig, phase: str, turn: int, request: str = "") -> str:
    """Return the instruction of a turn, counted from 1. `request` replaces that of an argument."""
    text = SPEECH.render(
        turn=str(turn),
        turns=str(config.total_turns()),
        opening="" if request and phase == "argument" else f"{INSTRUCTIONS[phase]} ",
        words=schedule.words_within(schedule.TURN_WORDS, config),
    )
    return "\n\n".join(filter(None, (schedule.with_agreement(text, config), request)))


def turn_step(
    state: ConversationState,
    config: DebateConfig,
    speaker: str,
    *,
    first: bool | None = None,
    last: bool = False,
    request: str = "",
) -> Step:
    """Return a step in which one debater takes a turn.

    Its first turn is an opening, and its last one a closing.

    Args:
        state: the debate's state.
        config: the debate's configuration.
        speaker: id of the debater.
        first: True for the debater's first turn. `None`: found in the transcript.
        last: True for the debater's last turn. Ignored if `first` is `None`: the debate's last turns close.
        request: the moderator's instruction, which replaces the general one of an argument.
    """
    turn, turns, size = state.get("turn_count", 0), config.total_turns(), len(config.turn_order())
    if first is None:
        first = not any(entry["speaker"] == speaker for entry in state["full_transcript"])
        last = turns - turn <= size
    phase = "opening" if first else "argument"
    if last and not first and turns >= 3 * size:  # a shorter debate has no closings
        phase = "closing"
    instruction = _instruction(config, phase, turn + 1, request)
    return schedule.make_step(phase, turn // size + 1, [schedule.make_turn(speaker, instruction)])


def recent_speakers(state: ConversationState, config: DebateConfig) -> list[str]:
    """Return the ids of the debaters who took the latest turns, oldest turn first."""
    return _turns(state["full_transcript"][-_LOOKBACK_ENTRIES * len(config.debaters) :], config)


def would_stall(state: ConversationState, config: DebateConfig, speaker: str) -> bool:
    """Return True if a debater's turn would continue a run of turns without progress.

    Such a run consists of turns of the same debater, or of the same two debaters.

    Progress is a new dispute, a concession, a change of position or new evidence in the claim ledger.
    """
    recent = recent_speakers(state, config)
    solo_turns, pair_turns = recent[-PATIENCE:], recent[-2 * PATIENCE :]
    has_one_speaker = len(solo_turns) == PATIENCE and set(solo_turns) == {speaker}
    has_two_speakers = (
        len(config.debaters) > 2 and len(pair_turns) == 2 * PATIENCE and len({*pair_turns, speaker}) <= 2
    )
    span = PATIENCE if has_one_speaker else 2 * PATIENCE
    later_entries = state["full_transcript"][ledger_of(state).last_progress + 1 :]
    has_no_progress = len(_turns(later_entries, config)) >= span
    return has_no_progress and (has_one_speaker or has_two_speakers)


def _turns(entries: Sequence[Entry], config: DebateConfig) -> list[str]:
    """Return the debaters who took turns, in order. Tool calls, notices and interjections are none."""
    names = config.names()
    return [e["speaker"] for e in entries if e["speaker"] in names and ends_turn(e, names)]


MODERATE = load_prompt_template(
    "moderate", "topic", "debaters", "spoken", "board", "turn", "turns", home=__package__
)

SHOWN_MESSAGES = 6
"""Number of recent messages that the moderator's prompt shows."""
LISTED_TURNS = 12
"""Number of turns whose speakers the moderator's prompt lists. These are the latest turns."""
INSTRUCTION_CHARS = 300
"""Maximum number of characters in the moderator's instruction to a debater."""
MODERATOR_TOKENS = 300


class Nomination(BaseModel):
    """Moderator's reply that names the next speaker and gives that debater an instruction."""

    reasoning: str
    next_speaker: str
    instruction: str


class Moderated(LongForm):
    """Protocol in which a moderator chooses the next debater, or else the configured order."""

    name = "moderated"
    settings = ModeratorConfig
    min_debaters = 2

    def next_turn(self, state: ConversationState, config: DebateConfig) -> schedule.ConsultModels:
        """Return a request to ask the moderator's model who speaks next."""
        return schedule.ConsultModels(lambda: [_call(state, config)], partial(_decide, state, config))


def _call(state: ConversationState, config: DebateConfig) -> ModelCall:
    params = replace(model_params(config, ModeratorConfig.of(config)), reply=MODERATOR_TOKENS)
    count = counter_of(params, config)
    remaining, names = config.memory.budget.total // 4, config.names()
    speakers = recent_speakers(state, config)[-LISTED_TURNS:]
    board = render_blackboard(state, "", max_tokens=remaining, count=count, names=names)
    system = MODERATE.render(
        topic=fenced(truncate_middle(state["topic"], remaining, count), config.fence),
        debaters=structured_calls.debater_lines(config),
        spoken=break_fence(" → ".join(prompt_name(speaker, names) for speaker in speakers), config.fence)
        or "nobody yet",
        board=fenced_section(board, config.fence),
        turn=str(state.get("turn_count", 0) + 1),
        turns=str(config.total_turns()),
    )
    recent = [entry for entry in state["full_transcript"][-SHOWN_MESSAGES:] if traits_of(entry).in_prompts]
    messages = [*structured_calls.shown_entries(recent, config, remaining, count)]
    schema = narrow_schema(Nomination, {"next_speaker": one_of(names)})
    return structured_calls.structured_call(
        "moderate", config, system, messages or ["There are no messages yet."], schema, count, params=params
    )


def _decide(state: ConversationState, config: DebateConfig, replies: Sequence[Reply]) -> Step:
    nomination = structured_calls.structured_data(Nomination, replies[0]) or {
        "next_speaker": "",
        "instruction": "",
    }
    nominee = structured_calls.match_debater(nomination["next_speaker"], config.names())
    speaker = nominee or config.debaters[state.get("turn_count", 0) % len(config.debaters)].id
    instruction = board_text(nomination["instruction"], INSTRUCTION_CHARS) if nominee else ""
    if would_stall(state, config, speaker):
        recent = recent_speakers(state, config)
        latest_turns = {debater: index for index, debater in enumerate(recent)}
        others = [debater for debater in config.names() if debater not in recent[-1:]] or list(config.names())
        # The debater that has been silent longest, or the first of them in the configured order.
        speaker, instruction = min(others, key=lambda debater: latest_turns.get(debater, -1)), ""
    request = f"The moderator asks you: {instruction}" if instruction else ""
    return turn_step(state, config, speaker, request=request)
