"""Base class of protocols, which choose the next step and build prompts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from moot.calls.model_calls import CallGenerator, ModelCall, Reply
from moot.claims.model_extraction import uses_model
from moot.config import DebateConfig
from moot.config.section import ProtocolSpec
from moot.judging.judge_spec import JudgeSpec
from moot.memory.cross_debate_memory import RetrievalQuery
from moot.prompts.truncation import Block
from moot.protocols.prompt_context import PromptContext, PromptSource
from moot.protocols.voting import AnswerBallot, VoteCount, ballots_of_answers, vote_headline, with_answer_line
from moot.state.conversation import ConversationState, Step, StepKind, Turn
from moot.state.entries import Entry, EntryKind, JsonObject
from moot.state.errors import ConfigError
from moot.state.verdict import COUNT, NO_WINNER, PanelVerdict, Stage


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
TURN_WORDS = 150
"""Maximum number of words in a message of a long-form protocol."""


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


class Protocol(ProtocolSpec):
    """Base class for debate protocols.

    A protocol decides who speaks next, what prompts show, and when a debate ends.

    Methods are pure: their result depends on their arguments alone.

    A subclass must define `name`, `next_step` and `prompt_blocks`. Every other member has a default.
    """

    min_debaters: int = 1
    """Minimum number of debaters that the protocol needs."""
    judge_spec: JudgeSpec = JudgeSpec()
    """Default settings for the judge of a debate."""
    extract_after: tuple[str, ...] = ()
    """Phases after which Moot extracts claims. The next prompts or decisions need these claims. If empty,
    claims are extracted when messages leave the window. `extracts_after` may leave a phase out."""
    extracts_by_default: bool = False
    """True if a model extracts claims when `blackboard.extraction` has its default value `auto`."""
    reflect_after: tuple[str, ...] | None = None
    """Names of the phases after which a model may write reflections about the debate. `()` means never, and
    `None` means after any phase."""
    perspectives: bool = False
    """True if Moot updates a perspective summary for each debater before every round."""
    shows_summary: bool = True
    """True if the debaters' prompts show the rolling summary. If only a judge reads the summary, it is
    made without a model."""
    judge_reads_summary: bool = True
    """True if the judge's prompt shows the rolling summary. If no prompt shows the summary, none is made."""
    always_answers: bool = False
    """True if the debate's solution always ends with the final answer. The final answer is the text that
    `final_answer` returns. Otherwise, this text is used only if there is no other solution."""
    can_continue: bool = True
    """True if a finished debate can be continued with more turns."""
    entry_kinds: Mapping[str, EntryKind] = MappingProxyType({})
    """Mapping from each phase to the kind of transcript entry that debaters write in it. Phases that are
    not listed produce entries of kind `speech`."""
    win_text: str = "{} wins"
    """Template of the text that announces the debate's winner. `{}` is replaced by the winner's name."""
    decides_by: Literal["judge", "vote", "weighted-vote"] = "judge"
    """Default of the setting `decide`: the judge, a vote, or a vote weighted by the debaters' confidence."""
    compares_answers: bool = True
    """True if the `stop` setting can end a debate early, for example when the debaters' answers agree."""
    result: str = "Verdict"
    """Title of the result section in reports."""
    answer_heading: str = ""
    """Heading for the debate's answer in reports. Reports show it above a verdict that states no decision. If
    it is `""`, the answer appears only below the verdict."""
    retrieves_transcript: bool = False
    """True if retrieval also searches messages that are still in the window. It then searches the whole
    transcript."""
    phases: tuple[str, ...] = ()
    """Names of the phases in which debaters take turns, or `()` if unknown."""
    phase_budgets: Mapping[str, int] = MappingProxyType({})
    """Default maximum number of prompt tokens in each phase, keyed by phase name. This mapping is the default
    value of the setting `memory.budget.phases`."""
    length_settings: tuple[str, ...] | None = None
    """Names of the settings that limit the length of a debate. `()` means that no setting limits it, and
    `None` means unknown."""

    def check(self, config: DebateConfig) -> None:
        """Raise an error if this protocol cannot run a debate with the given configuration.

        Raises:
            ConfigError: the configuration is unusable. The message says what to change.
        """
        if len(config.debaters) < self.min_debaters:
            raise ConfigError(
                f"protocol {self.name!r} needs at least {self.min_debaters} debaters, but `debaters` lists "
                f"{len(config.debaters)}: add a debater, or use protocol 'single'"
            )
        unknown = [phase for phase in config.memory.budget.phases if phase not in self.phases]
        if unknown and self.phases:
            raise ConfigError(
                f"memory.budget.phases: protocol {self.name!r} has no phase {unknown[0]!r}: use one of "
                f"{', '.join(self.phases)}"
            )

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End | ConsultModels:
        """Return the debate's next step.

        Return `End` after the last step, or a request to consult models. The models' replies then determine
        the next step.

        The node `plan` fills in the step's `number`.
        """
        raise NotImplementedError

    def prompt_blocks(self, ctx: PromptContext) -> Sequence[Block]:
        """Return the blocks of a turn's prompt in display order."""
        raise NotImplementedError

    def query(self, ctx: PromptContext) -> RetrievalQuery:
        """Return the query used to retrieve earlier messages and background for a turn."""
        return ctx.query

    def instruction(self, ctx: PromptContext) -> str:
        """Return the instruction for the model or person who takes the turn."""
        return ctx.turn["instruction"]

    def fallback_entry(
        self, state: ConversationState, config: DebateConfig, turn: Turn, error: str
    ) -> str | None:
        """Return a notice that replaces the message of a failed turn.

        Return `None` to stop the run. If every turn of a step fails, the run stops in any case. The debate is
        saved.
        """
        return None

    def judge_step(self, debate: PromptSource) -> CallGenerator[JsonObject]:
        """Run a step in which the judge assesses the debate so far, and return the state update."""
        raise NotImplementedError

    def at_a_glance(self, solution: str) -> str:
        """Return an excerpt of the solution that is short enough for one screen."""
        return solution

    def judged_as(self, state: ConversationState) -> JudgeSpec:
        """Return the judge's settings for a debate.

        They may depend on how the debate went.
        """
        return self.judge_spec

    def perspective_room(self, debate: PromptSource, debater: str) -> int:
        """Estimate how many tokens of past messages fit into a debater's next prompt.

        The estimate applies to a prompt without a summary. The past messages are those that the debater's
        perspective summary can replace.
        """
        return debate.config.memory.budget.messages

    def judged_entries(self, state: ConversationState) -> list[Entry] | None:
        """Return the entries that the judge must read.

        Return `None` if the judge must read all debaters' messages.
        """
        return None

    def final_round(self, state: ConversationState) -> list[Entry]:
        """Return the entries of the final round.

        The entries are summarized if the judge's prompt has no space for them.
        """
        return []

    def deciders(self, state: ConversationState, config: DebateConfig) -> list[str]:
        """Return the ids of the debaters who must give a final answer before the vote."""
        if self.method(config) == "judge":
            return []
        speakers = {entry["speaker"] for entry in state["full_transcript"]}
        return [debater for debater in config.names() if debater in speakers]

    def ballots(self, state: ConversationState, config: DebateConfig) -> list[AnswerBallot]:
        """Return the answers that count in the vote. By default, they are the debaters' final answers."""
        turns = state.get("turn_count", 0)
        return ballots_of_answers([each for each in state.get("final_answers", []) if each["turns"] == turns])

    def method(self, config: DebateConfig) -> Literal["judge", "vote", "weighted-vote"]:
        """Return the method that decides the debate, such as `vote`."""
        return config.decide or self.decides_by

    def vote(self, state: ConversationState, config: DebateConfig) -> VoteCount | None:
        """Count the votes.

        Return `None` if a judge decides the debate.
        """
        method = self.method(config)
        if method == "judge":
            return None
        return VoteCount(self.ballots(state, config), config, weighted=method == "weighted-vote")

    def protocol_verdict(self, state: ConversationState, config: DebateConfig) -> PanelVerdict | None:
        """Return the verdict if a vote or the protocol decides the debate, or `None` if a judge decides."""
        count = self.vote(state, config)
        return count.verdict(state["topic"]) if count else None

    def stages(self, state: ConversationState, config: DebateConfig) -> list[Stage]:
        """Return the stages of a debate, each with its answer and its number of calls.

        Return `[]` if the protocol has no stages.
        """
        return []

    def notes(self, state: ConversationState, config: DebateConfig) -> list[str]:
        """Return the protocol's remarks on how the debate was decided, one sentence each."""
        return []

    def final_answer(self, state: ConversationState) -> str:
        """Return the protocol's own final answer on the topic as Markdown, or `""` if there is none."""
        return ""

    def headline(self, verdict: PanelVerdict, names: Mapping[str, str]) -> str:
        """Return one line that states the result of a valid verdict.

        `names` maps debater ids to display names.
        """
        if verdict["judge"] == COUNT and "outcome" in verdict:
            return vote_headline(verdict)
        winner = verdict["winner"]
        if not winner:
            return "Judged, without a winner"
        no_winner = NO_WINNER.get(winner, "")
        return no_winner.capitalize() or self.win_text.format(names.get(winner, winner))

    def turns(self, config: DebateConfig) -> TurnCount | None:
        """Return the planned and maximum number of turns, or `None` if they are unknown."""
        return None

    def extracts_after(self, phase: str, config: DebateConfig) -> bool:
        """Return True if claims are extracted after this phase of a debate."""
        return phase in self.extract_after

    def extracts_by_model(self, config: DebateConfig) -> bool:
        """Return True if the debate uses a model to extract claims."""
        board = config.blackboard
        return uses_model(board.extraction, board.model or config.model, auto=self.extracts_by_default)


def make_step(
    phase: str, round_no: int, turns: Sequence[Turn], *, kind: StepKind = "turn", aspect: str = ""
) -> Step:
    """Return a step in which all speakers take their turns at the same time.

    Args:
        phase: name of the phase. Entries and prompts show it.
        round_no: round number, from 1.
        turns: turns of the step.
        kind: node that runs the step.
        aspect: aspect of the topic that the step is about.
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

    Args:
        speaker: id of the debater.
        instruction: task of the debater in this turn.
        targets: ids of the debaters and messages that the turn replies to.
        room: id of the crux room in which the turn is taken.
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
