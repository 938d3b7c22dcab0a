"""Protocol `escalate`, which adds answers and then a debate only while the answers disagree.

Voting gives most of what a debate gains (Choi et al. 2025, *Debate or Vote*, arXiv 2508.17536). The protocol
therefore spends calls where answers differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice

from pydantic import Field

from moot.config import DebateConfig, ProtocolSettings
from moot.prompts.templates import load_prompt_template, system_message
from moot.prompts.truncation import Block, problem_block, truncate_by_priority
from moot.protocols import schedule
from moot.protocols.outcome import Proceedings
from moot.protocols.prompt_context import PromptContext, entry_block
from moot.protocols.schedule import OVER, End, Phase, TurnCount, make_step, make_turn, phase_table
from moot.protocols.single import ANSWER_PHASE, SINGLE_ANSWER_WORDS, answers_since
from moot.protocols.suffix import SELF_CONTAINED, turn_suffix_block
from moot.protocols.vote import IndependentAnswers
from moot.protocols.voting import AnswerBallot, VoteCount, ballots_of_entries
from moot.state.conversation import ConversationState, Step
from moot.state.entries import Entry, traits_of
from moot.state.verdict import Stage

DEBATE = load_prompt_template("escalate", "own", "words", "ending", home=__package__)
SYSTEM = "You are one of several authors who answered a question differently."
DEBATE_PHASE = "debate"
PAIR = 2
"""Number of answers that the protocol requests at first."""
ALL = 5
"""Total number of answers if the protocol requests more than the first two."""


class EscalateConfig(ProtocolSettings):
    """Settings of the `escalate` protocol."""

    key = "escalate"

    rounds: int = Field(1, ge=0, le=10)
    """Number of debate rounds if no answer has a majority. The authors of different answers debate. 0: no
    debate."""


class Escalate(IndependentAnswers):
    """Protocol that starts with two answers and stops as soon as the answer is clear.

    It takes two answers, of different models where the debaters have different ones. If they differ, it takes
    three more. If no answer has a majority, the authors of different answers debate. Then `decide`
    applies to the last answer of each debater.
    """

    name = "escalate"
    settings = EscalateConfig
    debaters = tuple({"id": f"solver-{number}", "name": f"Solver {number}"} for number in range(1, ALL + 1))
    length_settings = ("escalate.rounds",)
    phases = phase_table(
        Phase(ANSWER_PHASE, (ANSWER_PHASE, DEBATE_PHASE, OVER)),
        Phase(DEBATE_PHASE, (ANSWER_PHASE, DEBATE_PHASE, OVER)),
    )

    def turns(self, config: DebateConfig) -> TurnCount:
        """Return the minimum and maximum number of turns."""
        people = min(ALL, len(config.debaters))
        return TurnCount(PAIR, ALL + people * EscalateConfig.of(config).rounds)

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Return the next stage, or `End` if the answer is clear or the debate is over."""
        answer_count, round_no = len(_answers(state)), state.get("round", 0) + 1
        order = _order(config)
        if answer_count == 0:
            return make_step(ANSWER_PHASE, round_no, [make_turn(debater) for debater in order[:PAIR]])
        if answer_count < ALL:
            if agreed := _agreed(state, config):
                return End(f"the first two answers agree: “{agreed}”")
            return make_step(ANSWER_PHASE, round_no, [make_turn(debater) for debater in order[answer_count:]])
        count = _independent_count(state, config)
        if count.majority and count.first:
            return End(
                f"“{count.first.answer}” has a majority: {count.most_votes:g} of {count.total:g} answers"
            )
        authors, debate_entries = _authors(state, config), _debate_entries(state)
        rounds = len({entry["round"] for entry in debate_entries})
        if len(authors) < 2 or (rounds and len(set(authors.values())) == 1):
            return End("the authors of different answers agree" if rounds else "no answer has a majority")
        if rounds >= EscalateConfig.of(config).rounds:
            return End("no answer has a majority, and the debate is over")
        return make_step(DEBATE_PHASE, round_no, [make_turn(debater) for debater in authors])

    def counts_messages(self, config: DebateConfig) -> bool:
        """Return True, because equal answers end the debate even if a judge decides."""
        return True

    def prompt_blocks(self, ctx: PromptContext) -> list[Block]:
        """Return the prompt blocks of a turn."""
        if ctx.step["phase"] != DEBATE_PHASE:
            return super().prompt_blocks(ctx)
        budget, fence = ctx.config.memory.budget, ctx.config.fence
        prefix = [
            Block("system", system_message(SYSTEM, fence), label="rules"),
            problem_block(ctx.state["topic"], budget, fence, ctx.count),
        ]
        latest = _latest(ctx.state, _authors(ctx.state, ctx.config))
        chunks = [entry_block(ctx, entry, 1, "answer") for entry in latest.values()]
        suffix = turn_suffix_block(
            ctx,
            contract="",
            instruction=self.instruction(ctx),
            query=ctx.state["topic"],
            hidden=SELF_CONTAINED,
        )
        return truncate_by_priority(prefix, chunks, suffix, ctx.token_budget, ctx.count)

    def instruction(self, ctx: PromptContext) -> str:
        """Return the instruction to answer the question, or to compare the different answers."""
        if ctx.step["phase"] != DEBATE_PHASE:
            return super().instruction(ctx)
        authors = _authors(ctx.state, ctx.config)
        own_entry = _latest(ctx.state, authors).get(ctx.turn["speaker"])
        return DEBATE.render(
            own=own_entry["id"] if own_entry else "",
            words=schedule.words_within(SINGLE_ANSWER_WORDS, ctx.config),
            ending=self.answer_ending(ctx.config),
        )

    def ballots(self, state: ConversationState, config: DebateConfig) -> list[AnswerBallot]:
        """Return the counting answers. A last answer in the debate replaces earlier ones."""
        debate_ballots = {each.debater: each for each in ballots_of_entries(_debate_entries(state), config)}
        other_ballots = [each for each in _ballots(state, config) if each.debater not in debate_ballots]
        return [*debate_ballots.values(), *other_ballots]

    def vote(self, state: ConversationState, config: DebateConfig) -> VoteCount | None:
        """Count the votes.

        Return `None` if a judge decides the debate. Even if `decide` names a judge, the votes are counted if
        the first two answers agree, if one answer has a majority, or if no answer can be counted.
        """
        count = _independent_count(state, config)
        clear = _agreed(state, config) if len(_answers(state)) < ALL else count.majority
        return count if clear or not count.counted else super().vote(state, config)

    def proceedings(self, state: ConversationState, config: DebateConfig) -> Proceedings:
        """Return the stages of the debate: two answers, five answers and the debate.

        After a debate, the answers are not independent any more.
        """
        answers, debate_entries = _answers(state), _debate_entries(state)
        stages = [_stage("two answers", len(answers[:PAIR]), _count(answers[:PAIR], config))]
        if len(answers) > PAIR:
            stages.append(_stage("five answers", len(answers) - PAIR, _count(answers, config)))
        if debate_entries:
            count = VoteCount(self.ballots(state, config), config)
            stages.append(_stage("debate", len(debate_entries), count))
        spec = replace(self.judge_spec, interactive=bool(debate_entries))
        return Proceedings(spec, stages=stages)


def _order(config: DebateConfig) -> list[str]:
    """Return the ids of the authors of the five answers, the second with another model if possible."""
    first, *others = config.debaters
    second = next((each for each in others if config.model_of(each) != config.model_of(first)), None)
    if second:
        others = [second, *(each for each in others if each is not second)]
    return list(islice(cycle([first.id, *(each.id for each in others)]), ALL))


def _answers(state: ConversationState) -> list[Entry]:
    """Return all independent answers and notices of missing ones since a person's last message."""
    return [entry for entry in answers_since(state["full_transcript"]) if traits_of(entry).ends_turn]


def _debate_entries(state: ConversationState) -> list[Entry]:
    answers = _answers(state)
    start = answers[-1]["seq"] if answers else len(state["full_transcript"])
    return [
        entry
        for entry in state["full_transcript"][start:]
        if entry["phase"] == DEBATE_PHASE and traits_of(entry).ends_turn
    ]


def _ballots(state: ConversationState, config: DebateConfig) -> list[AnswerBallot]:
    return ballots_of_entries(_answers(state), config)


def _count(entries: Sequence[Entry], config: DebateConfig) -> VoteCount:
    return VoteCount(ballots_of_entries(entries, config), config)


def _independent_count(state: ConversationState, config: DebateConfig) -> VoteCount:
    return _count(_answers(state), config)


def _agreed(state: ConversationState, config: DebateConfig) -> str:
    """Return the common answer of the first two authors, or `""` if they disagree."""
    count = _count(_answers(state)[:PAIR], config)
    return count.first.answer if count.first and count.most_votes == PAIR else ""


def _authors(state: ConversationState, config: DebateConfig) -> dict[str, str]:
    """Return the form of the latest answer of one author, by debater id, for each different answer."""
    current = {each.debater: each for each in _ballots(state, config) if not each.placeholder}
    author_by_form = {each.form: debater for debater, each in reversed(current.items())}
    latest = {each.debater: each for each in ballots_of_entries(_debate_entries(state), config)}
    authors = [debater for debater in current if debater in author_by_form.values()]
    return {debater: latest.get(debater, current[debater]).form for debater in authors}


def _latest(state: ConversationState, authors: Mapping[str, str]) -> dict[str, Entry]:
    """Return the latest message of each debater in `authors`, keyed by debater id."""
    entries = [*_answers(state), *_debate_entries(state)]
    return {entry["speaker"]: entry for entry in entries if entry["speaker"] in authors}


def _stage(name: str, calls: int, count: VoteCount) -> Stage:
    return Stage(name=name, calls=calls, answer=count.first.answer if count.first else "", votes=count.tally)
