"""Final answers of debaters: reading, comparing, collecting and counting them."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, Field

from moot.calls.effects import errors_update
from moot.calls.model_calls import CallGenerator, Hints, ModelCall, Reply
from moot.config import DebateConfig
from moot.judging.panel import as_decision
from moot.judging.response_check import failed_verdict
from moot.prompts.request import between, make_call, model_params, narrow_schema, one_of, prompt_budget
from moot.prompts.structured_calls import structured_data
from moot.prompts.templates import load_prompt_template
from moot.protocols.long_form_prompt import long_form_blocks
from moot.protocols.prompt_context import PromptContext, PromptSource, assemble_prompt
from moot.state import verdict as verdict_types
from moot.state.conversation import ConversationState, Turn
from moot.state.entries import Entry, JsonObject, traits_of
from moot.text.answers import answer_key, option_of, stated_answer, stated_option
from moot.text.plain_text import break_template_tokens, clip, count_noun, quoted

ANSWER_WORDS = 12
"""Maximum number of words in an answer, as stated in the instruction to debaters. Longer answers are not
compared with others."""
_CONFIDENCE = re.compile(
    r"^[\s>*_#-]*confidence[\s*_]*:[\s*_]*(\d{1,3}(?:\.\d+)?)\b[^\n]*$", re.IGNORECASE | re.MULTILINE
)


def answer_as_written(text: str) -> str:
    """Return the answer that a text states, or the whole text if it states none."""
    return stated_answer(text) or " ".join(text.split())


def parse_confidence(text: str) -> float | None:
    """Return the number in a text's last `Confidence:` line, or `None` if there is no such line."""
    matches: list[str] = _CONFIDENCE.findall(text)
    return min(100.0, float(matches[-1])) if matches else None


def read_answer(text: str, options: Sequence[str], *, allow_full_text: bool = False) -> str:
    """Return the answer in a message, matched to an option if the question has options.

    Without options, any answer is returned. `allow_full_text` uses the whole text if it states no answer.

    Returns:
        `""` if the message states no answer, or if its answer is none of the options.
    """
    if options:
        return stated_option(text, options) or (option_of(text, options) if allow_full_text else "")
    return stated_answer(text) or (" ".join(text.split()) if allow_full_text else "")


def comparable_answer(text: str, options: Sequence[str]) -> str:
    """Return an answer for comparisons. `""`: missing, none of the options, or too long."""
    answer = read_answer(text, options)
    form = answer if options else answer_key(answer)
    return form if len(form.split()) <= ANSWER_WORDS or options else ""


def answer_form(config: DebateConfig) -> str:
    """Return the part of an instruction that tells a debater how to write the answer."""
    if config.options:
        options = quoted(map(break_template_tokens, config.options))
        return f"exactly one of {options}, or “{verdict_types.UNDECIDED}” if you cannot choose"
    return f"your answer in at most {ANSWER_WORDS} words, without reasons"


def with_answer_line(instruction: str, config: DebateConfig) -> str:
    """Add a request for an answer line to an instruction if necessary.

    The line is necessary if the debate uses answer lines. Conditions in `stop` read the line. A vote reads
    the answer line of a person, who gives no structured answer.
    """
    votes = config.decide in ("vote", "weighted-vote")
    if not config.stop and not (votes and any(debater.is_human for debater in config.debaters)):
        return instruction
    form = answer_form(config)
    return f'{instruction}\n\nEnd your message with one line: "Answer: " and {form}.'


class CurrentAnswer(NamedTuple):
    """Latest and previous answer of one debater in normalised form."""

    latest: str
    before: str | None
    """Answer in the debater's previous message, or `None` if there is no previous message."""


def current_answers(state: ConversationState, config: DebateConfig) -> Mapping[str, CurrentAnswer]:
    """Return each debater's two latest answers since the last message from a person.

    Crux rooms and critiques are about other questions. Placeholders of the offline model are no answers.
    """
    people = len(config.debaters)
    recent = state.get("full_transcript", [])[-2 * people * (people + 4) :]
    answers: dict[str, list[str]] = {}
    for entry in reversed(recent):
        if traits_of(entry).user_input == "interjection":
            break
        if entry["speaker"] in config.names() and states_answer(entry):
            debater_answers = answers.setdefault(entry["speaker"], [])
            if len(debater_answers) < 2:
                debater_answers.append(comparable_answer(entry["content"], config.options))
    return {
        debater: CurrentAnswer(debater_answers[0], debater_answers[1] if len(debater_answers) > 1 else None)
        for debater, debater_answers in answers.items()
    }


def states_answer(entry: Entry) -> bool:
    """Return True if a message is about the main question, unlike those of crux rooms and critiques."""
    argued = traits_of(entry).argues and not entry.get("placeholder")
    return argued and not entry["room"] and entry["kind"] != "critique"


def stop_reason(state: ConversationState, config: DebateConfig) -> str:
    """Return the reason to stop the debate, or `""` if no `stop` condition is met.

    A debate does not stop before it has read all planned interjections. If a debate that stopped here is
    continued, it goes on until the next message.
    """
    if not config.stop or (state.get("step") or {}).get("kind") == "close":
        return ""
    if state.get("planned_interjections_used", 0) < len(config.interjections):
        return ""
    answers = current_answers(state, config)
    latest = [answers[debater].latest for debater in config.names() if debater in answers]
    if len(latest) < max(2, len(config.debaters)) or not all(latest):
        return ""
    if "agreement" in config.stop and len(set(latest)) == 1:
        return f"agreement: all {len(latest)} debaters answer “{latest[0]}”"
    if "stable" in config.stop and all(each.latest == each.before for each in answers.values()):
        answers_text = "; ".join(
            f"{config.names()[debater]}: “{each.latest}”" for debater, each in answers.items()
        )
        return f"stable: no answer changed for a round ({answers_text})"
    return ""


ASK = load_prompt_template("final_answer", "form", home=__package__)

SHOWN_CHARS = 100
"""Maximum length of a displayed answer, in characters. Longer answers are shortened."""
QUESTION_CHARS = 160
"""Maximum length of the question in a verdict, in characters."""
UNSTATED = 50.0
"""Confidence, from 0 to 100, that is assumed if an answer states none. Weighted votes use it."""


class FinalAnswerReply(BaseModel):
    """A debater's reply to the request for a final answer."""

    reasoning: str = Field("", description="Decisive reasons for your answer, in at most 80 words.")
    answer: str = Field(description="The answer, in as few words as possible.")
    confidence: float | None = Field(
        None, description="How sure you are that the answer is right, from 0 to 100."
    )


def final_answers(debate: PromptSource, debaters: Sequence[str]) -> CallGenerator[JsonObject]:
    """Ask all debaters for their final answers at the same time.

    A person's answer is read from the answer line of that person's last message. A failed call leaves out one
    answer and is recorded as an error.
    """
    state, config = debate.state, debate.config
    calls = {
        debater: _call(debate, debater, index)
        for index, debater in enumerate(debaters)
        if not config.has_person(debater)
    }
    replies = dict(zip(calls, (yield list(calls.values())) if calls else [], strict=True))
    answers = [
        _by_model(debater, calls[debater], replies[debater], config)
        if debater in calls
        else _by_person(state, config, debater)
        for debater in debaters
    ]
    turns = state.get("turn_count", 0)
    error_texts = [
        f"no final answer of {config.names()[each['debater']]}: {each['error']}" for each in answers
    ]
    errors = [text for text, each in zip(error_texts, answers, strict=True) if each["error"]]
    return {
        "final_answers": [{**each, "turns": turns} for each in answers],
        **errors_update(state, "judge", errors),
    }


def _call(debate: PromptSource, debater: str, index: int) -> ModelCall:
    config = debate.config
    types: dict[str, object] = {"confidence": between(0, 100)}
    if config.options:
        types["answer"] = one_of([*config.options, verdict_types.UNDECIDED])
    schema = narrow_schema(FinalAnswerReply, types)
    total = prompt_budget(config.memory.budget.total, schema, debate.count)
    instruction = ASK.render(form=answer_form(config))
    turn: Turn = {"speaker": debater, "targets": [], "instruction": instruction, "room": ""}
    context = PromptContext(debate, turn, total)
    prompt = assemble_prompt(context, long_form_blocks(context), context.query, is_cached=True)
    params = model_params(config, config.debater(debater))
    hints: Hints = {"phase": "decide", "speaker": debate.names[debater]}
    return make_call(params, "decide", prompt, schema=schema, call_index=index, hints=hints)


def _by_model(debater: str, call: ModelCall, reply: Reply, config: DebateConfig) -> verdict_types.FinalAnswer:
    reply_data = structured_data(call.schema, reply) if call.schema else None
    answer = " ".join(str((reply_data or {}).get("answer", "")).split())
    if config.options and answer:
        answer = option_of(answer, config.options) or verdict_types.UNDECIDED
    confidence = (reply_data or {}).get("confidence")
    return verdict_types.FinalAnswer(
        debater=debater,
        answer=answer,
        confidence=None if confidence is None else min(100.0, max(0.0, float(confidence))),
        reasoning=(reply_data or {}).get("reasoning", ""),
        model=reply.model,
        placeholder=reply.placeholder,
        error="" if answer else reply.error or "the reply has no answer",
        turns=0,
    )


def _by_person(state: ConversationState, config: DebateConfig, debater: str) -> verdict_types.FinalAnswer:
    own_entries = (each for each in reversed(state["full_transcript"]) if each["speaker"] == debater)
    text = next((each["content"] for each in own_entries if traits_of(each).argues), "")
    answer = read_answer(text, config.options)
    return verdict_types.FinalAnswer(
        debater=debater,
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
    """True if the offline model wrote the answer. Such an answer is not counted."""
    content: str = ""
    """Whole message that states the answer. It is `""` if the answer was collected after the discussion."""

    @property
    def form(self) -> str:
        """Normalised form of the answer, used to compare ballots."""
        return answer_key(self.answer)


def ballots_of_answers(answers: Sequence[verdict_types.FinalAnswer]) -> list[AnswerBallot]:
    """Return one ballot per final answer, skipping empty and undecided answers."""
    return [
        AnswerBallot(each["debater"], each["answer"], each["confidence"], each["model"], each["placeholder"])
        for each in answers
        if each["answer"] and each["answer"] != verdict_types.UNDECIDED
    ]


def ballots_of_entries(entries: Sequence[Entry], config: DebateConfig) -> list[AnswerBallot]:
    """Return a ballot for each message with an answer, which must be an option if there are any."""
    ballots = []
    for entry in entries:
        text = entry["content"]
        answer = read_answer(text, config.options, allow_full_text=True) if traits_of(entry).argues else ""
        if answer:
            placeholder = bool(entry.get("placeholder"))
            confidence = parse_confidence(text)
            ballots.append(
                AnswerBallot(entry["speaker"], answer, confidence, entry["model"], placeholder, text)
            )
    return ballots


class VoteCount:
    """Result of counting the answers in a vote."""

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
        self.most_votes = max(self.votes.values(), default=0.0)
        leading = [form for form, votes in self.votes.items() if abs(votes - self.most_votes) < 1e-9]
        self.tied = sorted(leading) if len(leading) > 1 else []
        """Normalised answers that share first place, else `[]`."""
        winning_form = leading[0] if len(leading) == 1 and self.most_votes > 0 else None
        self.first = next((each for each in self.counted if each.form == winning_form), None)
        """First ballot with the winning answer, `None` for a tie or without ballots."""

    def _weight(self, ballot: AnswerBallot) -> float:
        if not self.weighted:
            return 1.0
        confidence = UNSTATED if ballot.confidence is None else ballot.confidence
        return self.config.calibrated(ballot.model, confidence) / 100

    @property
    def tally(self) -> dict[str, float]:
        """Number of votes for each answer, with long answers shortened for display."""
        return {_short(form): round(votes, 2) for form, votes in self.votes.items()}

    @property
    def majority(self) -> bool:
        """True if one answer has more than half of the votes."""
        return self.first is not None and self.most_votes > self.total / 2

    def tie_text(self) -> str:
        """Return a sentence that explains why the vote has no winning answer."""
        if not self.counted:
            return "No answer could be counted, so the judge decided."
        tied = quoted([_short(form) for form in self.tied])
        votes = f"{self.most_votes:g} of {self.total:g}"
        return f"The vote is a tie between {tied}, with {votes} each: the judge decided."

    def verdict(
        self, topic: str, *, winner: str = verdict_types.SYNTHESIS
    ) -> verdict_types.PanelVerdict | None:
        """Return the verdict for the winning answer, or `None` if there is a tie or no answer.

        Its confidence is the winner's share in percent. If the offline model gave all answers, the verdict is
        a placeholder. `winner` is the id of the debater who wins, by default a synthesis, because several
        gave the answer.
        """
        if self.first is None and (self.counted or not self.ballots):
            return None
        authors = [each.debater for each in self.ballots]
        verdict: verdict_types.Verdict = {
            **failed_verdict(verdict_types.COUNT, "", order=sorted(set(authors))),
            "status": "ok",
            "winner": winner,
            "question": clip(" ".join(topic.split()), QUESTION_CHARS),
        }
        if self.config.options:
            verdict["options"] = list(self.config.options)
        if self.first is None:
            verdict["placeholder"], verdict["winner"] = True, verdict_types.TIE
            return as_decision(verdict)
        heading = (
            "Sum of the confidences behind equal answers" if self.weighted else "Number of equal answers"
        )
        lines = [f"- {answer}: {votes:g} of {round(self.total, 2):g}" for answer, votes in self.tally.items()]
        verdict["reasoning"] = "\n".join([f"{heading}:", *lines])
        verdict["decision"] = self.first.answer
        verdict["confidence"] = float(round(100 * self.most_votes / self.total))
        verdict["solution_markdown"] = self.first.content
        if len(set(authors)) == len(authors) > 1:
            verdict["final_position"] = {each.debater: each.answer for each in self.counted}
        outcome = verdict_types.RuleResult(
            rule="majority",
            winner=verdict["winner"],
            tally=self.tally,
            tied=[],
            mean_scores={},
            dissent=[],
            judges=len(self.counted),
        )
        return as_decision(verdict, outcome)


def stages_text(stages: Sequence[verdict_types.Stage]) -> str:
    """Return one sentence with the answer and the number of calls of each stage."""
    stage_texts = []
    for stage in stages:
        answer = f"“{clip(stage['answer'], SHOWN_CHARS)}”" if stage["answer"] else "no answer leads"
        stage_texts.append(f"{stage['name']} ({count_noun(stage['calls'], 'call')}): {answer}")
    return f"Answer after each stage: {'; '.join(stage_texts)}."


def vote_headline(verdict: verdict_types.PanelVerdict) -> str:
    """Return one line that states the winning answer and its share of the votes."""
    votes = verdict["outcome"]["tally"].values()
    decision = clip(verdict["decision"], SHOWN_CHARS)
    return f"{decision} ({max(votes):g} of {round(sum(votes), 2):g})"


def _short(answer: str) -> str:
    if len(answer) <= SHOWN_CHARS:
        return answer
    # A hash distinguishes long answers with the same beginning.
    return f"{answer[:SHOWN_CHARS]}… ({hashlib.sha256(answer.encode()).hexdigest()[:6]})"
