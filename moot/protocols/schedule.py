"""Schedule of a protocol: who speaks next, in which phases, and how long a debate takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from moot.calls.model_calls import CallGenerator, ModelCall, Reply
from moot.config import DebateConfig
from moot.config.section import ProtocolSpec
from moot.protocols.prompt_context import PromptSource
from moot.protocols.voting import with_answer_line
from moot.state.conversation import ConversationState, Step, StepKind, Turn
from moot.state.entries import EntryKind, JsonObject
from moot.state.errors import ConfigError


@dataclass(frozen=True)
class End:
    """Result that a protocol returns to end the debate."""

    reason: str
    """Reason why the debate ended, as shown in the report."""
    limit: str = ""
    """Name of the limit that ended the debate, or `""` if no limit ended it."""


DECIDE = "decide"
"""Name of the phase before the vote, in which each debater gives an independent final answer."""
TOKENS_PER_WORD = 1.35
"""Average number of o200k tokens per English word."""
MOST_TOKENS_PER_WORD = 1.8
"""Most tokens that a word of a long message needs: proposals of 600 words in Markdown had 990 to 1,072."""
TURN_WORDS = 150
"""Maximum number of words in a message of a long-form protocol."""


def words_within(words: int, config: DebateConfig) -> str:
    """Return the number of words to ask for: `words`, or the tens that fit `memory.budget.reply`."""
    tens = int(config.memory.budget.reply / MOST_TOKENS_PER_WORD / 10)
    return str(min(words, max(10, 10 * tens)))


class TurnCount(NamedTuple):
    """Number of debaters' turns in a debate, including turns taken by people."""

    planned: int
    """Number of turns if the debate does not end early. Turns in crux rooms, which are side discussions of
    two debaters, are not counted."""
    most: int
    """Maximum number of turns, including turns in side discussions of two debaters."""


@dataclass(frozen=True)
class ConsultModels:
    """Result that a protocol returns to call models before it chooses the debate's next step."""

    calls: Callable[[], Sequence[ModelCall]]
    """Function that returns the model calls to make before the next step is chosen. It runs only if the calls
    are made."""
    decide: "Callable[[Sequence[Reply]], Step | End | ConsultModels]"
    """Function that chooses the debate's next step from the models' replies. It has no side effects. The
    replies have the order of the calls and include failed ones."""


NextStep = Step | End | ConsultModels
"""Result of `next_step`: a step, the end of the debate, or a request to consult models first."""
OVER = "end"
"""Name in `Phase.following` that stands for the end of the debate, before a verdict."""


@dataclass(frozen=True)
class Phase:
    """Row of a protocol's table of phases. The graph of the protocol is drawn from the rows."""

    name: str
    following: tuple[str, ...]
    """Names of the phases that the next step may have. `end`: the debate may end after this phase."""
    kind: EntryKind = "speech"
    """Kind of transcript entry that debaters write in this phase."""
    budget: int | None = None
    """Default of the setting `memory.budget.phases` for this phase, in tokens. `None`: the whole budget."""
    extracts: Callable[[DebateConfig], bool] | None = None
    """Function that returns True if the next prompts or decisions need claims from this phase. They are then
    extracted after it. If no phase has one, claims are extracted when messages leave the window."""
    reflects: bool = True
    """True if a model may write reflections about the debate after this phase."""
    past_tokens: Callable[[PromptSource, str], int] | None = None
    """Function that estimates how many tokens of past messages fit into a debater's prompt of this phase. If
    a phase has one, each debater gets a perspective summary of these messages before a round."""
    assess: Callable[[PromptSource], CallGenerator[JsonObject]] | None = None
    """Function that runs a step of the node `judge` in this phase, and returns the state update. `None`: the
    debaters take turns in this phase."""


def phase_table(*phases: Phase) -> Mapping[str, Phase]:
    """Return phases keyed by name. The first one begins a debate."""
    return MappingProxyType({phase.name: phase for phase in phases})


def turn_phases(phases: Mapping[str, Phase]) -> tuple[str, ...]:
    """Return the names of the phases in which debaters take turns."""
    return tuple(phase.name for phase in phases.values() if phase.assess is None)


class Schedule(ProtocolSpec):
    """Role of a protocol that chooses the steps of a debate.

    A protocol must define `name` and `next_step`. Methods are pure: their result depends on their arguments
    alone.
    """

    min_debaters: int = 1
    """Minimum number of debaters that the protocol needs."""
    phases: Mapping[str, Phase] = MappingProxyType({})
    """Phases of the debate, keyed by name, or an empty mapping if they are unknown."""
    length_settings: tuple[str, ...] | None = None
    """Names of the settings that limit the length of a debate. `()` means that no setting limits it, and
    `None` means unknown."""
    can_continue: bool = True
    """True if a finished debate can be continued with more turns."""
    compares_answers: bool = True
    """True if the `stop` setting can end a debate early, for example when the debaters' answers agree."""

    def check(self, config: DebateConfig) -> None:
        """Raise a `ConfigError` that says what to change if this protocol cannot run a debate."""
        if len(config.debaters) < self.min_debaters:
            raise ConfigError(
                f"protocol {self.name!r} needs at least {self.min_debaters} debaters, but `debaters` lists "
                f"{len(config.debaters)}: add a debater, or use protocol 'single'"
            )
        phases = turn_phases(self.phases)
        unknown = [phase for phase in config.memory.budget.phases if phase not in phases]
        if unknown and phases:
            raise ConfigError(
                f"memory.budget.phases: protocol {self.name!r} has no phase {unknown[0]!r}: use one of "
                f"{', '.join(phases)}"
            )

    def next_step(self, state: ConversationState, config: DebateConfig) -> NextStep:
        """Return the debate's next step.

        Return `End` after the last step, or a request to consult models. The models' replies then determine
        the next step.

        The node `plan` fills in the step's `number`.
        """
        raise NotImplementedError

    def turns(self, config: DebateConfig) -> TurnCount | None:
        """Return the planned and maximum number of turns, or `None` if they are unknown."""
        return None


def make_step(
    phase: str, round_no: int, turns: Sequence[Turn], *, kind: StepKind = "turn", aspect: str = ""
) -> Step:
    """Return a step in which all speakers take their turns at the same time.

    Entries and prompts show the phase. Rounds are counted from 1. `kind` names the node that runs the step.
    """
    return {
        "number": 0,
        "kind": kind,
        "phase": phase,
        "round": round_no,
        "aspect": aspect,
        "turns": list(turns),
    }


def make_turn(speaker: str, instruction: str = "", *, targets: Sequence[str] = (), room: str = "") -> Turn:
    """Return a new turn for a debater.

    `targets` are the ids of the debaters and messages that the turn replies to.
    """
    return {"speaker": speaker, "targets": list(targets), "instruction": instruction, "room": room}


AGREEMENT_INSTRUCTIONS = (
    (0.2, "Give no ground on a point that you can answer, and look for the weakness in every argument."),
    (0.4, "Be hard to convince: concede only what is proven."),
    (0.6, "Keep a position that nobody has refuted, and give up one that somebody has."),
    (0.8, "Look for common ground: state first what you can accept, then what you cannot."),
    (1.0, "Seek agreement: adopt what you can of the others' positions, and insist only on what you must."),
)
"""Instructions on how readily a debater should agree. Each one is given with the highest
`agreement_intensity` for which it applies."""


def with_agreement(instruction: str, config: DebateConfig, *, answer: bool = True) -> str:
    """Return `instruction` followed by rules about agreement and the final answer line.

    The rules about agreement say how readily to agree.

    Each rule is added only if the settings require it.

    Args:
        instruction: instruction of a turn.
        config: configuration of the debate.
        answer: False if the message is about another question than the debate's, such as a critique. The
            instruction then never asks for an answer line.
    """
    intensity = config.agreement_intensity
    if intensity is not None:
        rule = next(text for max_intensity, text in AGREEMENT_INSTRUCTIONS if intensity <= max_intensity)
        instruction = f"{instruction}\n\n{rule}"
    return with_answer_line(instruction, config) if answer else instruction
