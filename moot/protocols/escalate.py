"""Protocol `escalate`, which adds answers and then a debate only while the answers disagree.

Voting gives most of what a debate gains (Choi et al. 2025, *Debate or Vote*, arXiv 2508.17536). The protocol
therefore spends calls where answers differ. `is_informative` checks whether agreement means anything.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from math import log

from pydantic import Field
from typing_extensions import TypedDict

from moot.config import DebateConfig, ProtocolSettings
from moot.judging.judge_response import JudgeSpec
from moot.prompts.templates import load_prompt_template, system_message
from moot.prompts.truncation import Block, problem_block, truncate_by_priority
from moot.protocols.base import End, TurnCount, make_step, make_turn
from moot.protocols.prompt_context import PromptContext, entry_block
from moot.protocols.single import ANSWER_WORDS, PHASE, answers_since
from moot.protocols.suffix import SELF_CONTAINED, turn_suffix_block
from moot.protocols.vote import IndependentAnswers
from moot.protocols.voting import AnswerBallot, VoteCount, ballots_of_entries
from moot.state.conversation import ConversationState, Step
from moot.state.entries import Entry, JsonObject, traits_of
from moot.state.verdict import Stage

DEBATE = load_prompt_template("escalate", "own", "words", "ending", home=__package__)
SYSTEM = "You are one of several authors who answered a question differently."
DEBATE_PHASE = "debate"
PAIR = 2
"""Number of answers that the protocol requests at first."""
ALL = 5
"""Total number of answers if the protocol requests more than the first two."""
OVERTURNED_IF_INFORMATIVE = 0.01
"""Assumed share of reliable agreements between two answers that a vote of five overturns."""
OVERTURNED_IF_NOT = 0.10
"""Assumed share of unreliable agreements between two answers that a vote of five overturns."""
EVIDENCE = log(0.95 / 0.05)
"""Amount of evidence that makes the agreement of the first two answers unreliable. Audits provide the
evidence. The value is the log-likelihood ratio of a sequential test that allows errors of 5 % (Wald 1945,
*Sequential Tests of Statistical Hypotheses*)."""

EARLIER = "earlier"
"""Key under which `protocol_state` stores the statistics of the debaters' earlier debates."""
UNAUDITED = 5
"""Number of agreements before the first audit. In an audit, all five answers are requested although the first
two agree."""
FIRST_AUDITS = 15
"""Number of early audits, which are more frequent than later ones. 15 audits show with 92 % that a vote of
five overturns a quarter of the agreements."""
FIRST_SHARE = 0.5
"""Minimum share of agreements that are audited until there are `FIRST_AUDITS` audits."""


class EscalateConfig(ProtocolSettings):
    """Settings of the `escalate` protocol."""

    key = "escalate"

    rounds: int = Field(1, ge=0, le=10)
    """Number of debate rounds if no answer has a majority. The authors of different answers debate. 0: no
    debate."""
    audit: float = Field(0.05, ge=0, le=1)
    """Share of agreements that are checked with all five answers. If the first two answers agree, all five
    are still requested in this share of the debates. The results of such an audit show later debates of the
    same debaters whether such agreement can be trusted. The first five agreements of these debaters in a
    database are not audited. Half of the following ones are, until there are 15 audits. 0: no audit."""


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

    def turns(self, config: DebateConfig) -> TurnCount:
        """Return the minimum and maximum number of turns."""
        people = min(ALL, len(config.debaters))
        return TurnCount(PAIR, ALL + people * EscalateConfig.of(config).rounds)

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Return the next stage, or `End` if the answer is clear or the debate is over."""
        answer_count, round_no = len(_answers(state)), state.get("round", 0) + 1
        order = _order(config)
        if answer_count == 0:
            return make_step(PHASE, round_no, [make_turn(debater) for debater in order[:PAIR]])
        if answer_count < ALL:
            agreed = _agreed(state, config)
            if agreed and not _wants_all(state, config):
                return End(f"the first two answers agree: “{agreed}”")
            return make_step(PHASE, round_no, [make_turn(debater) for debater in order[answer_count:]])
        count = _independent_count(state, config)
        if count.majority and count.first:
            return End(
                f"“{count.first.answer}” has a majority: {count.most_votes:g} of {count.total:g} answers"
            )
        if not is_informative(_earlier(state)):
            return End("all five answers are counted, because the agreement of two says little here")
        authors, debate_entries = _authors(state, config), _debate_entries(state)
        rounds = len({entry["round"] for entry in debate_entries})
        if len(authors) < 2 or (rounds and len(set(authors.values())) == 1):
            return End("the authors of different answers agree" if rounds else "no answer has a majority")
        if rounds >= EscalateConfig.of(config).rounds:
            return End("no answer has a majority, and the debate is over")
        return make_step(DEBATE_PHASE, round_no, [make_turn(debater) for debater in authors])

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
            words=str(ANSWER_WORDS),
            ending=self.answer_ending(ctx.config),
        )

    def judged_as(self, state: ConversationState) -> JudgeSpec:
        """Return the judge's settings. After a debate, the answers are not independent any more."""
        return replace(self.judge_spec, interactive=bool(_debate_entries(state)))

    def ballots(self, state: ConversationState, config: DebateConfig) -> list[AnswerBallot]:
        """Return the answers that count in the vote.

        A debater's last answer in the debate replaces earlier ones.
        """
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

    def stages(self, state: ConversationState, config: DebateConfig) -> list[Stage]:
        """Return the completed stages, each with its answer and its number of calls.

        The stages are two answers, five answers and the debate.
        """
        answers = _answers(state)
        stages = [_stage("two answers", len(answers[:PAIR]), _count(answers[:PAIR], config))]
        if len(answers) > PAIR:
            stages.append(_stage("five answers", len(answers) - PAIR, _count(answers, config)))
        if debate_entries := _debate_entries(state):
            count = VoteCount(self.ballots(state, config), config)
            stages.append(_stage("debate", len(debate_entries), count))
        return stages

    def notes(self, state: ConversationState, config: DebateConfig) -> list[str]:
        """Explain why the agreement of two answers did not end the debate.

        Return one sentence, or none if there is nothing to explain.
        """
        agreed, earlier = _agreed(state, config), _earlier(state)
        if len(_answers(state)) <= PAIR:
            return []
        if not is_informative(earlier):
            return [
                "The agreement of two answers says little here, so all five were counted: of "
                f"{earlier['audited']} audited agreements a vote of five overturned {earlier['overturned']}."
            ]
        if not agreed:
            return []
        return [f"The first two answers agree on “{agreed}”. All five were taken to audit such agreement."]

    def store_namespace(self, config: DebateConfig) -> tuple[str, ...]:
        """Return the storage namespace for debates with the same debaters.

        Their models, temperatures, roles and stances must be the same, too.
        """
        debaters = [
            [config.model_of(each), each.temperature, each.role, each.stance] for each in config.debaters
        ]
        facts = json.dumps([debaters, config.temperature], sort_keys=True)
        return ("moot", "escalate", hashlib.sha256(facts.encode()).hexdigest()[:16])

    def state_from_records(self, records: Sequence[Mapping[str, object]]) -> JsonObject:
        """Return protocol state with statistics of earlier debates, computed from their records."""
        keys = ("agreed", "audited", "overturned")
        return {EARLIER: {key: sum(bool(each.get(key)) for each in records) for key in keys}}

    def store_record(self, state: ConversationState, config: DebateConfig) -> JsonObject:
        """Return a record of this debate's first two answers.

        Later debates use it. The record says whether the answers agreed, were audited, and were overturned by
        the vote.
        """
        agreed, answers = _agreed(state, config), _answers(state)
        if len(ballots_of_entries(answers[:PAIR], config)) < PAIR:
            return {}
        count = _count(answers, config)
        first = _count(answers[:PAIR], config).first
        overturned = bool(first and count.first and count.first.form != first.form)
        audited = bool(agreed) and len(answers) >= ALL
        return {"agreed": bool(agreed), "audited": audited, "overturned": audited and overturned}


class Earlier(TypedDict):
    """Statistics of earlier debates between the same debaters."""

    agreed: int
    """Number of debates in which the first two answers agreed."""
    audited: int
    """Number of audited debates. In an audit, all five answers are requested although the first two agree."""
    overturned: int
    """Number of debates in which the first two answers agreed, but a vote of five chose a different answer.
    Only audited debates count."""


def is_informative(earlier: Earlier) -> bool:
    """Return False if earlier debates show that agreement of the first two answers is unreliable.

    Otherwise return True. A sequential probability ratio test decides this from the number of times that a
    vote of five overturned the first two answers.
    """
    ratio_if_kept = log((1 - OVERTURNED_IF_NOT) / (1 - OVERTURNED_IF_INFORMATIVE))
    ratio_if_overturned = log(OVERTURNED_IF_NOT / OVERTURNED_IF_INFORMATIVE)
    ratio = (earlier["audited"] - earlier["overturned"]) * ratio_if_kept + earlier[
        "overturned"
    ] * ratio_if_overturned
    return ratio < EVIDENCE


def _earlier(state: ConversationState) -> Earlier:
    """Return the statistics of earlier debates from the debate's state."""
    earlier: Earlier = (state.get("protocol_state") or {}).get(EARLIER) or _NOTHING
    return earlier


def _wants_all(state: ConversationState, config: DebateConfig) -> bool:
    """Return True if all five answers are needed even if the first two agree."""
    earlier, share = _earlier(state), EscalateConfig.of(config).audit
    if not is_informative(earlier):
        return True
    if not share or earlier["agreed"] < UNAUDITED:
        return False
    if earlier["audited"] < FIRST_AUDITS:
        share = max(share, FIRST_SHARE)
    return int.from_bytes(hashlib.sha256(state["topic"].encode()).digest()[:8], "big") / 2**64 < share


_NOTHING: Earlier = {"agreed": 0, "audited": 0, "overturned": 0}


def _order(config: DebateConfig) -> list[str]:
    """Return the debaters who give the five answers, in order.

    The values are debater ids. A debater may occur more than once. The second author has another model if
    possible.
    """
    first, *others = config.debaters
    second = next((each for each in others if config.model_of(each) != config.model_of(first)), None)
    if second:
        others = [second, *(each for each in others if each is not second)]
    return list(islice(cycle([first.id, *(each.id for each in others)]), ALL))


def _answers(state: ConversationState) -> list[Entry]:
    """Return all independent answers that debaters have given since a person's last message.

    Notices of missing answers are included.
    """
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
    """Return the latest answer of one author for each different answer.

    The keys are debater ids. One debater is chosen as the author of each distinct independent answer.
    """
    current = {each.debater: each for each in _ballots(state, config) if not each.placeholder}
    author_by_form = {each.form: debater for debater, each in reversed(current.items())}
    latest = {each.debater: each for each in ballots_of_entries(_debate_entries(state), config)}
    authors = [debater for debater in current if debater in author_by_form.values()]
    return {debater: latest.get(debater, current[debater]).answer for debater in authors}


def _latest(state: ConversationState, authors: Mapping[str, str]) -> dict[str, Entry]:
    """Return the latest message of each debater in `authors`, keyed by debater id."""
    entries = [*_answers(state), *_debate_entries(state)]
    return {entry["speaker"]: entry for entry in entries if entry["speaker"] in authors}


def _stage(name: str, calls: int, count: VoteCount) -> Stage:
    return Stage(name=name, calls=calls, answer=count.first.answer if count.first else "", votes=count.tally)
