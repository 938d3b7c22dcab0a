"""Protocol `single`, in which one debater answers alone, and the base class for independent answers."""

from collections.abc import Sequence

from moot.config import DebateConfig, DebaterConfig
from moot.judging.judge_spec import JudgeSpec
from moot.prompts.templates import load_prompt_template, system_message
from moot.prompts.truncation import Block, problem_block, truncate_by_priority
from moot.protocols import base, prompt_context, schedule, suffix
from moot.protocols.schedule import OVER, End, Phase, TurnCount, make_step, make_turn, phase_table
from moot.state.conversation import ConversationState, Step
from moot.state.entries import Entry, traits_of

ANSWER = load_prompt_template("answer", "words", "ending", home=__package__)
SINGLE_SYSTEM = "You answer a question on your own."

SINGLE_ANSWER_WORDS = 400
ANSWER_PHASE = "answer"

SAID, DOCUMENT = 1, 2
"""Priorities of the prompt blocks that show people's messages and documents."""


class SoloProtocol(base.Protocol):
    """Base class of protocols in which each debater answers the question independently."""

    ending = ""
    """Instruction that says how an answer must end, or `""` if any ending is allowed."""
    can_continue = False
    phases = phase_table(Phase(ANSWER_PHASE, (ANSWER_PHASE, OVER)))
    compares_answers = False
    shows_summary = False

    def prompt_blocks(self, ctx: prompt_context.PromptContext) -> list[Block]:
        """Return the prompt blocks of a turn."""
        budget, count, speaker = ctx.config.memory.budget, ctx.count, ctx.speaker
        system = system_message(SINGLE_SYSTEM, ctx.config.fence)
        shared_prefix = [
            Block("system", system, label="rules"),
            problem_block(ctx.state["topic"], budget, ctx.config.fence, count),
        ]
        chunks = [
            prompt_context.user_provided_block(ctx, entry, message=SAID, document=DOCUMENT)
            for entry in prompt_context.user_provided_entries(ctx)
        ]
        # A debater without a role gets no contract, so that equal prompts produce independent samples.
        contract = prompt_context.contract_text(speaker)
        if contract == prompt_context.contract_text(DebaterConfig(name=speaker.name, id=speaker.id)):
            contract = ""
        turn_suffix = suffix.turn_suffix_block(
            ctx,
            contract=contract,
            instruction=self.instruction(ctx),
            query=ctx.state["topic"],
            hidden=suffix.SELF_CONTAINED,
        )
        return truncate_by_priority(shared_prefix, chunks, turn_suffix, ctx.token_budget, count)

    def instruction(self, ctx: prompt_context.PromptContext) -> str:
        """Return the instruction to answer the question, including how the answer must end."""
        return ANSWER.render(words=schedule.words_within(SINGLE_ANSWER_WORDS, ctx.config), ending=self.ending)


class Single(SoloProtocol):
    """Baseline protocol in which the first debater answers alone, without a judge."""

    name = "single"
    debaters = ({"id": "answerer", "name": "Answerer"},)
    judge_spec = JudgeSpec(judged=False)
    length_settings = ()
    answer_heading = "Answer"

    def turns(self, config: DebateConfig) -> TurnCount:
        """Return one turn, because one debater answers once."""
        return TurnCount(1, 1)

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Return a step with the answer, another one after a person's message, or `End`."""
        if answers_since(state["full_transcript"]):
            return End("the question is answered")
        return make_step(ANSWER_PHASE, state.get("round", 0) + 1, [make_turn(config.debaters[0].id)])

    def final_answer(self, state: ConversationState) -> str:
        """Return the debater's last answer, or `""` if a person has sent a message after it."""
        answers = answers_since(state["full_transcript"])
        return answers[-1]["content"] if answers else ""


def answers_since(transcript: Sequence[Entry]) -> list[Entry]:
    """Return all answers that debaters have given since the last message from a person."""
    interjection_seqs = [
        entry["seq"] for entry in transcript if traits_of(entry).user_input == "interjection"
    ]
    last_interjection = interjection_seqs[-1] if interjection_seqs else -1
    return [
        entry for entry in transcript if entry["phase"] == ANSWER_PHASE and entry["seq"] > last_interjection
    ]
