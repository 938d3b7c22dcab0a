"""Collection of debaters' final answers, and the count of equal answers.

Self-consistency: Wang et al. 2023, *Self-Consistency Improves Chain of Thought Reasoning in Language Models*.
A vote after the discussion: Kaesberg et al. 2025, *Voting or Consensus?*, arXiv 2502.19130.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from moot.calls.effects import CallGenerator, Hints, ModelCall, Reply, errors_update
from moot.claims.model_extraction import structured_data
from moot.judging.panel import as_decision
from moot.judging.response_check import failed_verdict
from moot.prompts.request import between, make_call, model_params, narrow_schema, one_of, prompt_budget
from moot.prompts.templates import load_prompt_template
from moot.protocols.answers import (
    answer_form,
    match_option,
    parse_confidence,
    parse_final_answer,
    read_answer,
)
from moot.protocols.prompt_context import PromptContext, assemble_prompt
from moot.protocols.turn_suffix import long_form_blocks
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Turn
from moot.state.entries import Entry, JsonObject, traits_of
from moot.state.verdict import (
    COUNT,
    SYNTHESIS,
    TIE,
    UNDECIDED,
    FinalAnswer,
    PanelVerdict,
    RuleResult,
    Stage,
    Verdict,
)
from moot.text.plain_text import clip, count_noun, quoted
from moot.text.tokens import TokenCounter

ASK = load_prompt_template("final_answer", "form", home=__package__)

SHOWN_CHARS = 100
"""Maximum number of characters of an answer in the displayed tally."""
QUESTION_CHARS = 160
"""Maximum number of characters of the question in a verdict."""
UNSTATED = 50.0
"""Confidence from 0 to 100 that a weighted vote uses for an answer without a stated confidence."""


class FinalAnswerReply(BaseModel):
    """A debater's reply to the request for a final answer."""

    reasoning: str = Field("", description="What decides the question, in at most 80 words.")
    answer: str = Field(description="The answer, in as few words as possible.")
    confidence: float | None = Field(None, description="How sure you are that it is right, 0 to 100.")


def final_answers(
    state: ConversationState, config: DebateConfig, debaters: Sequence[str], count: TokenCounter
) -> CallGenerator[JsonObject]:
    """Ask all debaters for their final answers at the same time.

    A person's answer is read from the answer line of that person's last message. A failed call leaves out one
    answer and is recorded as an error.
    """
    calls = {
        who: _call(state, config, who, index, count)
        for index, who in enumerate(debaters)
        if not config.has_person(who)
    }
    replies = dict(zip(calls, (yield list(calls.values())) if calls else [], strict=True))
    given = [
        _by_model(who, calls[who], replies[who], config) if who in calls else _by_person(state, config, who)
        for who in debaters
    ]
    turns = state.get("turn_count", 0)
    failed = [f"no final answer of {config.names()[each['debater']]}: {each['error']}" for each in given]
    errors = [text for text, each in zip(failed, given, strict=True) if each["error"]]
    return {
        "final_answers": [{**each, "turns": turns} for each in given],
        **errors_update(state, "judge", errors),
    }


def _call(
    state: ConversationState, config: DebateConfig, who: str, index: int, count: TokenCounter
) -> ModelCall:
    types: dict[str, object] = {"confidence": between(0, 100)}
    if config.options:
        types["answer"] = one_of([*config.options, UNDECIDED])
    schema = narrow_schema(FinalAnswerReply, types)
    total = prompt_budget(config.memory.budget.total, schema, count)
    asked = ASK.render(form=answer_form(config))
    turn: Turn = {"speaker": who, "targets": [], "instruction": asked, "room": ""}
    context = PromptContext(state, config, turn, count, total)
    prompt = assemble_prompt(context, long_form_blocks(context), context.query, is_cached=True)
    params = model_params(config, config.debater(who))
    hints: Hints = {"phase": "decide", "speaker": config.names()[who]}
    return make_call(params, "decide", prompt, schema=schema, call_index=index, hints=hints)


def _by_model(who: str, call: ModelCall, reply: Reply, config: DebateConfig) -> FinalAnswer:
    said = structured_data(call.schema, reply) if call.schema else None
    answer = " ".join(str((said or {}).get("answer", "")).split())
    if config.options and answer:
        answer = match_option(answer, config.options) or UNDECIDED
    stated = (said or {}).get("confidence")
    return FinalAnswer(
        debater=who,
        answer=answer,
        confidence=None if stated is None else min(100.0, max(0.0, float(stated))),
        reasoning=(said or {}).get("reasoning", ""),
        model=reply.model,
        placeholder=reply.placeholder,
        error="" if answer else reply.error or "the reply has no answer",
        turns=0,
    )


def _by_person(state: ConversationState, config: DebateConfig, who: str) -> FinalAnswer:
    own = (each for each in reversed(state["full_transcript"]) if each["speaker"] == who)
    text = next((each["content"] for each in own if traits_of(each).argues), "")
    answer = read_answer(text, config.options)
    return FinalAnswer(
        debater=who,
        answer=answer,
        confidence=parse_confidence(text),
        reasoning="",
        model="",
        placeholder=False,
        error="" if answer else "the last message of this person has no answer line",
        turns=0,
    )


@dataclass(frozen=True)
class AnswerBallot:
    """One answer that counts in a vote."""

    debater: str
    answer: str
    """Text of the answer, as written by its author."""
    confidence: float | None = None
    """Stated confidence from 0 to 100, or `None` if the author stated no confidence."""
    model: str = ""
    """Name of the model that gave the answer."""
    placeholder: bool = False
    """True if the built-in offline model wrote the answer. Such an answer is not counted."""
    content: str = ""
    """Whole message that contains the answer, or `""` if there is no such message."""

    @property
    def form(self) -> str:
        """Normalised answer, used to compare ballots."""
        return parse_final_answer(self.answer)


def ballots_of_answers(given: Sequence[FinalAnswer]) -> list[AnswerBallot]:
    """Return a ballot for each final answer that names an answer."""
    return [
        AnswerBallot(each["debater"], each["answer"], each["confidence"], each["model"], each["placeholder"])
        for each in given
        if each["answer"] and each["answer"] != UNDECIDED
    ]


def ballots_of_entries(entries: Sequence[Entry], config: DebateConfig) -> list[AnswerBallot]:
    """Return a ballot for the answer in each message.

    With options, a message that names none of them casts no ballot.
    """
    found = []
    for entry in entries:
        text = entry["content"]
        answer = read_answer(text, config.options, whole=True) if traits_of(entry).argues else ""
        if answer:
            placeholder = bool(entry.get("placeholder"))
            confidence = parse_confidence(text)
            found.append(
                AnswerBallot(entry["speaker"], answer, confidence, entry["model"], placeholder, text)
            )
    return found


class VoteCount:
    """Result of a vote that counts how often each answer was given."""

    def __init__(
        self, ballots: Sequence[AnswerBallot], config: DebateConfig, *, weighted: bool = False
    ) -> None:
        self.config, self.weighted = config, weighted
        self.ballots = ballots
        self.counted = [each for each in ballots if not each.placeholder]
        """Ballots that count. Placeholders of the offline model do not."""
        self.votes: dict[str, float] = {}
        """Votes by normalised answer, in the order of their first ballot. Weights if confidences count."""
        for each in self.counted:
            self.votes[each.form] = self.votes.get(each.form, 0.0) + self._weight(each)
        self.total = sum(self.votes.values())
        self.most = max(self.votes.values(), default=0.0)
        leading = [form for form, votes in self.votes.items() if abs(votes - self.most) < 1e-9]
        self.tied = sorted(leading) if len(leading) > 1 else []
        """Normalised answers that share first place, else `[]`."""
        won = leading[0] if len(leading) == 1 and self.most > 0 else None
        self.first = next((each for each in self.counted if each.form == won), None)
        """First ballot with the winning answer, `None` for a tie or without ballots."""

    def _weight(self, ballot: AnswerBallot) -> float:
        if not self.weighted:
            return 1.0
        stated = UNSTATED if ballot.confidence is None else ballot.confidence
        return self.config.calibrated(ballot.model, stated) / 100

    @property
    def tally(self) -> dict[str, float]:
        """Number of votes for each answer, with long answers shortened for display."""
        return {_short(form): round(votes, 2) for form, votes in self.votes.items()}

    @property
    def majority(self) -> bool:
        """True if one answer has more than half of the votes."""
        return self.first is not None and self.most > self.total / 2

    def tie_text(self) -> str:
        """Return a sentence that explains why the vote has no winning answer."""
        if not self.counted:
            return "No answer could be counted, so the judge decided."
        tied = quoted([_short(form) for form in self.tied])
        return (
            f"The vote is a tie between {tied}, with {self.most:g} of {self.total:g} each: the judge decided."
        )

    def verdict(self, topic: str, *, winner: str = SYNTHESIS) -> PanelVerdict | None:
        """Return the verdict for the winning answer, or `None` if there is a tie or no answer.

        Its confidence is the winner's share in percent. If the offline model gave all answers, the verdict is
        a placeholder.

        Args:
            topic: the debate's topic.
            winner: id of the debater who wins. Default: a synthesis, because several gave the answer.
        """
        if self.first is None and (self.counted or not self.ballots):
            return None
        authors = [each.debater for each in self.ballots]
        verdict: Verdict = {
            **failed_verdict(COUNT, "", order=sorted(set(authors))),
            "status": "ok",
            "winner": winner,
            "question": clip(" ".join(topic.split()), QUESTION_CHARS),
        }
        if self.config.options:
            verdict["options"] = list(self.config.options)
        if self.first is None:
            verdict["placeholder"], verdict["winner"] = True, TIE
            return as_decision(verdict)
        counted = (
            "Sum of the confidences behind equal answers" if self.weighted else "Number of equal answers"
        )
        lines = [f"- {said}: {votes:g} of {round(self.total, 2):g}" for said, votes in self.tally.items()]
        verdict["reasoning"] = "\n".join([f"{counted}:", *lines])
        verdict["decision"] = self.first.answer
        verdict["confidence"] = float(round(100 * self.most / self.total))
        verdict["solution_markdown"] = self.first.content
        if len(set(authors)) == len(authors) > 1:
            verdict["final_position"] = {each.debater: each.answer for each in self.counted}
        outcome = RuleResult(
            rule="majority",
            winner=verdict["winner"],
            tally=self.tally,
            tied=[],
            mean_scores={},
            dissent=[],
            judges=len(self.counted),
        )
        return as_decision(verdict, outcome)


def stages_text(stages: Sequence[Stage]) -> str:
    """Return one sentence about the number of calls and the answer in each stage."""
    told = []
    for stage in stages:
        answer = f"“{clip(stage['answer'], SHOWN_CHARS)}”" if stage["answer"] else "no answer leads"
        told.append(f"{stage['name']} ({count_noun(stage['calls'], 'call')}): {answer}")
    return f"Answer after each stage: {'; '.join(told)}."


def vote_headline(verdict: PanelVerdict) -> str:
    """Return one line that states the winning answer and its share of the votes."""
    votes = verdict["outcome"]["tally"].values()
    decision = clip(verdict["decision"], SHOWN_CHARS)
    return f"{decision} ({max(votes):g} of {round(sum(votes), 2):g})"


def _short(said: str) -> str:
    if len(said) <= SHOWN_CHARS:
        return said
    # A hash distinguishes long answers with the same beginning.
    return f"{said[:SHOWN_CHARS]}… ({hashlib.sha256(said.encode()).hexdigest()[:6]})"
