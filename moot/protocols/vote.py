"""Protocol `vote`, which collects independent answers and chooses the most frequent one.

Self-consistency: Wang et al. 2023, *Self-Consistency Improves Chain of Thought Reasoning in Language Models*.
"""

from collections.abc import Mapping

from pydantic import Field

from moot.config import DebateConfig, ProtocolSettings
from moot.config.debate_config import frozen_config
from moot.judging.judge_spec import JudgeSpec
from moot.protocols import voting
from moot.protocols.prompt_context import PromptContext
from moot.protocols.schedule import End, TurnCount, make_step, make_turn, words_within
from moot.protocols.single import ANSWER, ANSWER_PHASE, SINGLE_ANSWER_WORDS, SoloProtocol, answers_since
from moot.state.conversation import ConversationState, Step, Turn
from moot.state.verdict import COUNT, PanelVerdict
from moot.text.plain_text import all_done_reason, clip

WANTED = (
    "- `solution_markdown` is the answer that the given answers support best, with its reason. If most "
    "of them agree, give another answer only for a reason that you name. List in `unmet_requirements` what "
    "was asked for and the solution lacks."
)


class VoteConfig(ProtocolSettings):
    """Settings of the `vote` protocol."""

    key = "vote"

    answers: int = Field(5, ge=2, le=256)
    """Number of independent answers that the debaters give. If there are several debaters, they take turns in
    answering."""


class IndependentAnswers(SoloProtocol):
    """Base class of debate protocols that collect independent answers and count them as votes."""

    decides_by = "vote"
    judge_spec = JudgeSpec(
        instruction=WANTED,
        judging="synthesis",
        rubric="answers",
        swap=False,
        interactive=False,
        reads_summary=False,
    )
    result = "Answer"

    def answer_ending(self, config: DebateConfig) -> str:
        """Return the instruction that says how an answer must end."""
        form = (
            voting.answer_form(config) if config.options else "your final answer in as few words as possible"
        )
        if self.method(config) == "weighted-vote":
            return (
                f'End with two lines: "Answer: " and {form}; then "Confidence: " and how sure you are that '
                "this answer is right, from 0 to 100."
            )
        return f'End with one line: "Answer: " and {form}.'

    def instruction(self, ctx: PromptContext) -> str:
        """Return the instruction to answer the question."""
        return ANSWER.render(
            words=words_within(SINGLE_ANSWER_WORDS, ctx.config), ending=self.answer_ending(ctx.config)
        )

    def counts_messages(self, config: DebateConfig) -> bool:
        """Return True unless a judge decides."""
        return self.method(config) != "judge"

    def ballots(self, state: ConversationState, config: DebateConfig) -> list[voting.AnswerBallot]:
        """Return the answers since the last message from a person."""
        return voting.ballots_of_entries(answers_since(state["full_transcript"]), config)

    def protocol_verdict(self, state: ConversationState, config: DebateConfig) -> PanelVerdict | None:
        """Return the verdict of the vote, or `None` if a judge decides the debate."""
        count = self.vote(state, config)
        winner = count.first.debater if count and count.first else ""
        return count.verdict(state["topic"], winner=winner) if count else None

    def fallback_entry(
        self, state: ConversationState, config: DebateConfig, turn: Turn, error: str
    ) -> str | None:
        """Return a notice that replaces an answer whose model call failed."""
        return "One answer is missing: its call failed."

    def headline(self, verdict: PanelVerdict, names: Mapping[str, str]) -> str:
        """Return one line that states the winning answer."""
        solution = verdict["solution_markdown"]
        if verdict["judge"] != COUNT and solution:
            return clip(voting.answer_as_written(solution), voting.SHOWN_ANSWER_CHARS)
        return super().headline(verdict, names)

    def final_answer(self, state: ConversationState) -> str:
        """Return the first message with the winning answer, or `""` if there is a tie."""
        config = frozen_config(state)
        count = voting.VoteCount(
            self.ballots(state, config), config, weighted=self.method(config) == "weighted-vote"
        )
        return count.first.content if count.first else ""


class Vote(IndependentAnswers):
    """Protocol that chooses the best or most frequent of several independent answers.

    The setting `vote.answers` is the number of answers, and `decide` is the method of choosing.
    """

    name = "vote"
    settings = VoteConfig
    debaters = ({"id": "voter", "name": "Voter"},)
    length_settings = ("vote.answers",)

    def turns(self, config: DebateConfig) -> TurnCount:
        """Return the number of turns, which is the configured number of answers."""
        answers = VoteConfig.of(config).answers
        return TurnCount(answers, answers)

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Return a step with all answers, another one after a person's message, or `End`."""
        answers, speakers = VoteConfig.of(config).answers, list(config.names())
        if answers_since(state["full_transcript"]):
            return End(all_done_reason(answers, "answer", "given"))
        turns = [make_turn(speakers[index % len(speakers)]) for index in range(answers)]
        return make_step(ANSWER_PHASE, state.get("round", 0) + 1, turns)
