"""What a protocol is: pure functions from the state to the next step and to each floor's view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.judging.brief import JudgeBrief
from moot.nodes.prompts.fitting import Block
from moot.nodes.views.scene import Scene
from moot.state.config import DebateConfig
from moot.state.config.section import Terms
from moot.state.conversation import ConversationState, Floor, Step, StepKind
from moot.state.entries import Entry
from moot.state.verdict import Decision

if TYPE_CHECKING:
    from moot.nodes.protocols.forecast import Forecast


@dataclass(frozen=True)
class End:
    """The debate is over, by its own rules."""

    reason: str
    """Why, in words for the report."""


@dataclass(frozen=True)
class Consult:
    """Models must be asked before the next step is known: one batch of calls, and what follows from them."""

    calls: Sequence[ModelCall]
    decide: Callable[[Sequence[Reply]], Step | End | Consult]
    """From the replies, in order and also failed ones, to the step: a pure function."""


class Protocol(Terms):
    """The rules of one kind of debate: pure methods, which depend on their arguments alone.

    A protocol derives from this class and says at least `name`, `next_step` and `view`.
    """

    brief: JudgeBrief = JudgeBrief()
    minutes_by_model: bool = False
    """Whether `blackboard.extraction: auto` means that a model reads what was said, after every step."""
    perspectives: bool = False
    """Whether debaters have perspective summaries, brought up to date as a round begins."""
    always_answers: bool = False
    """Whether `answer` follows what the verdict gave, instead of standing in for it."""
    goes_on: bool = True
    """Whether more turns make a debate go on that has come to its end."""
    bounded_by: tuple[str, ...] | None = None
    """The settings that decide how long a debate is, as the user writes them, `()` where nothing does; `None`
    where the protocol does not say."""

    def check(self, config: DebateConfig) -> None:
        """Refuse a configuration that this protocol cannot run.

        Raises:
            ConfigError: what is wrong and what to do.
        """
        return

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End | Consult:
        """Return the next step, whose `no` is filled in by `plan`, or whom to ask for it."""
        raise NotImplementedError

    def view(self, scene: Scene) -> Sequence[Block]:
        """Return the blocks of a floor's view in layout order: the view policy, phase by phase."""
        raise NotImplementedError

    def instruction(self, scene: Scene) -> str:
        """Return what the floor's speaker is asked to do, as a model and a person are told it."""
        return scene.floor["instruction"]

    def entry_kind(self, phase: str) -> str:
        """Return the kind of entry that a floor of this phase produces."""
        return "speech"

    def stand_in(
        self, state: ConversationState, config: DebateConfig, floor: Floor, error: str
    ) -> str | None:
        """Return the notice that stands in for a floor whose call failed; `None` where that ends the run.

        Where every floor of a step fails, the run ends in any case, saved.
        """
        return None

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

    def most_turns(self, config: DebateConfig) -> int | None:
        """Return how many utterances a run has at most, people's included; `None` where nobody can say."""
        return None

    def forecast(self, config: DebateConfig) -> Forecast | None:
        """Return what a run will take, in closed form; `None` where that cannot be said."""
        return None


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
