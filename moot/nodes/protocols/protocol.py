"""What a protocol is: pure functions from the state to the next step and to each floor's view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from moot.nodes.blackboard.by_model import asks_model
from moot.nodes.calls import Flow, ModelCall, Purpose, Reply
from moot.nodes.judging.opinions import JudgeBrief
from moot.nodes.prompts.fitting import Block
from moot.nodes.text.tokens import TokenCounter
from moot.nodes.views.scene import Scene
from moot.state.config import DebateConfig
from moot.state.config.section import Terms
from moot.state.conversation import ConversationState, Floor, StateValues, Step, StepKind
from moot.state.entries import Entry, EntryKind, JsonObject
from moot.state.errors import ConfigError
from moot.state.verdict import NO_WINNER, Decision


@dataclass(frozen=True)
class End:
    """The debate is over, by its own rules or by a limit."""

    reason: str
    """Why, in words for the report."""
    limit: str = ""
    """The setting that bounds it, where a limit ends it."""


Course = Literal["least", "planned", "most"]
"""How a debate may go that decides its own length: as short as can be, as planned, as long as can be."""

TOKENS_PER_WORD = 1.35
"""English, o200k."""
SPEECH_WORDS = 150
"""What a speech is asked to stay within, where nothing else is said."""


@dataclass(frozen=True)
class Outlay:
    """Calls that are made at the same time, as a forecast counts them; sizes are of one call, in tokens."""

    purpose: Purpose
    phase: str
    calls: int = 1
    shown: float = 0.0
    """What its prompt shows beside its frame and the topic."""
    reply: float = 100.0
    """What its answer is expected to have: a sentence of reasoning and a choice."""
    reserve: int | None = None
    """What its answer has at most; `None` for `memory.budget.reply`."""
    frame: float = 450.0
    """Rules, debaters, contract and instruction."""


@dataclass(frozen=True)
class Consult:
    """Models must be asked before the next step is known: one batch of calls, and what follows from them."""

    calls: Callable[[], Sequence[ModelCall]]
    """Makes the requests, once they are really to be made."""
    decide: Callable[[Sequence[Reply]], Step | End | Consult]
    """From the replies, in order and also failed ones, to the step: a pure function."""
    outlay: Outlay
    """The requests, as a forecast counts them."""
    supposed: Mapping[Course, Sequence[Reply]] = field(default_factory=dict)
    """What a forecast takes the replies to be, where they decide how long the debate is; else they fail."""


class Protocol(Terms):
    """The rules of one kind of debate: pure methods, which depend on their arguments alone.

    A protocol derives from this class and says at least `name`, `next_step` and `view`.
    """

    least_debaters: int = 1
    """Fewer have nobody to argue with."""
    brief: JudgeBrief = JudgeBrief()
    minutes_after: str = ""
    """The one phase after which the minutes of a round are taken, by a model alone; `""` where they are taken
    as the debate goes."""
    minutes_every_step: bool = False
    """Whether minutes are taken after every step, by a model where `blackboard.extraction` is `auto`; else
    as messages leave the window."""
    perspectives: bool = False
    """Whether debaters have perspective summaries, brought up to date as a round begins."""
    shows_summary: bool = True
    """Whether its views show the rolling summary; a summary that only a judge may read calls no model."""
    judge_reads_summary: bool = True
    """Whether a judge is shown the rolling summary; where nobody is, none is made."""
    always_answers: bool = False
    """Whether `answer` follows what the verdict gave, instead of standing in for it."""
    goes_on: bool = True
    """Whether more turns make a debate go on that has come to its end."""
    entry_kinds: Mapping[str, EntryKind] = MappingProxyType({})
    """The kind of entry that a floor of each phase produces, where that is no speech."""
    won: str = "{} wins"
    """What it means that a judge named somebody, who stands for the braces."""
    result: str = "Verdict"
    """What a debate of this kind comes to, as a heading."""
    answer_leads: str = ""
    """What the answer is called where that is what was asked for, and so stands before the verdict."""
    bounded_by: tuple[str, ...] | None = None
    """The settings that decide how long a debate is, as the user writes them, `()` where nothing does; `None`
    where the protocol does not say."""

    def check(self, config: DebateConfig) -> None:
        """Refuse a configuration that this protocol cannot run.

        Raises:
            ConfigError: what is wrong and what to do.
        """
        if len(config.debaters) < self.least_debaters:
            raise ConfigError(
                f"protocol {self.name!r} needs at least {self.least_debaters} debaters, not "
                f"{len(config.debaters)}: add one under `debaters`, or use protocol 'single'"
            )

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End | Consult:
        """Return the next step, whose `no` is filled in by `plan`, or whom to ask for it."""
        raise NotImplementedError

    def view(self, scene: Scene) -> Sequence[Block]:
        """Return the blocks of a floor's view in layout order: the view policy, phase by phase."""
        raise NotImplementedError

    def instruction(self, scene: Scene) -> str:
        """Return what the floor's speaker is asked to do, as a model and a person are told it."""
        return scene.floor["instruction"]

    def stand_in(
        self, state: ConversationState, config: DebateConfig, floor: Floor, error: str
    ) -> str | None:
        """Return the notice that stands in for a floor whose call failed; `None` where that ends the run.

        Where every floor of a step fails, the run ends in any case, saved.
        """
        return None

    def look(self, state: ConversationState, config: DebateConfig, count: TokenCounter) -> Flow[JsonObject]:
        """Carry out a step of the kind `judge` that ends no debate, and return the state's update."""
        raise NotImplementedError

    def at_a_glance(self, solution: str) -> str:
        """Return as much of a debate's result as one screen has room for."""
        return solution

    def evidence(self, state: ConversationState) -> list[Entry] | None:
        """Return the entries that a judge must see, in order; `None` for everything that debaters said."""
        return None

    def final_round(self, state: ConversationState) -> list[Entry]:
        """Return what the judge's own summary is made of, once it is long; `[]` for none."""
        return []

    def ruling(self, state: ConversationState, config: DebateConfig) -> Decision | None:
        """Return the verdict that follows by rule alone, without a judge; `None` where there is none."""
        return None

    def answer(self, state: ConversationState) -> str:
        """Return the debate's answer where no verdict gave one, Markdown."""
        return ""

    def headline(self, verdict: Decision, names: Mapping[str, str]) -> str:
        """Return what a verdict that did not fail comes to, in a line that calls debaters by name."""
        winner = verdict["winner"]
        if not winner:
            return "Judged, without a winner"
        nobody = NO_WINNER.get(winner, "")
        return nobody.capitalize() or self.won.format(names.get(winner, winner))

    # What forecasts go by

    words: Mapping[str, int] = MappingProxyType({})
    """What a speech is asked to stay within, by phase, where that is not `SPEECH_WORDS`."""
    frame: float = 450.0
    """Tokens of a view beside the topic and what was said."""

    def shown_tokens(self, phase: str, config: DebateConfig) -> float | None:
        """Return about how many tokens of what was said a floor is shown; `None` for summary and window.

        What it is shown of its own past, where it has a perspective, comes on top.
        """
        return None

    def is_decided(self, config: DebateConfig) -> bool:
        """Return whether the configuration alone decides which steps are taken."""
        return True

    def repeats(self, config: DebateConfig) -> tuple[int, int]:
        """Return up to which turn a debate repeats itself, and every how many turns; else `0, 0`.

        A forecast walks a few rounds of them and counts the others as these.
        """
        return 0, 0

    def suppose(
        self, state: ConversationState, config: DebateConfig, course: Course
    ) -> tuple[StateValues, Sequence[Outlay]]:
        """Return what follows the step on a course beside its speeches: an update of the state, and calls."""
        return {}, ()

    def reads_by_model(self, config: DebateConfig) -> bool:
        """Return whether a model notes what was said."""
        return asks_model(config, auto=self.minutes_every_step)


def make_step(
    phase: str, round_no: int, floors: Sequence[Floor], *, kind: StepKind = "turn", aspect: str = ""
) -> Step:
    """Build a step."""
    return {
        "no": 0,
        "kind": kind,
        "phase": phase,
        "round": round_no,
        "aspect": aspect,
        "floors": list(floors),
    }


def make_floor(speaker: str, instruction: str = "", *, targets: Sequence[str] = (), room: str = "") -> Floor:
    """Build a floor."""
    return {"speaker": speaker, "targets": list(targets), "instruction": instruction, "room": room}


_BANDS = (
    (0.2, "Give no ground where you have an answer, and look for the fault in what you hear."),
    (0.4, "Be hard to convince: concede only what is proven."),
    (0.6, "Hold what nobody has answered, and give up what somebody has."),
    (0.8, "Look for common ground: say first what you can accept, then what you cannot."),
    (1.0, "Seek agreement: adopt what you can of the others' views, and press only what you must."),
)
"""How readily debaters agree, in words, up to each `agreement_intensity`."""


def with_agreement(instruction: str, config: DebateConfig) -> str:
    """Return an instruction with what is configured about agreeing."""
    intensity = config.agreement_intensity
    if intensity is None:
        return instruction
    return f"{instruction}\n\n{next(text for most, text in _BANDS if intensity <= most)}"
