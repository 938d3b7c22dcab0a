"""Final answers of debaters: reading, comparing, collecting and counting them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moot.config import DebateConfig
from moot.judging.panel import as_decision
from moot.judging.response_check import failed_verdict
from moot.state import verdict as verdict_types
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, is_passed, traits_of
from moot.text import answers as answer_text
from moot.text.plain_text import break_template_tokens, clip, count_noun, quoted


def answer_as_written(text: str) -> str:
    """Return the answer that a text states, or the whole text if it states none."""
    return answer_text.stated_answer(text) or " ".join(text.split())


def entry_answer(entry: Entry, config: DebateConfig, *, in_vote: bool = False) -> str:
    """Return the answer of a message, as a model call read it or as its text states it.

    For comparisons, it is in normalised form, and `""` if it is missing, none of the options, or too long. In
    a vote, it is as written, and a message of at most `ANSWER_WORDS` words may be an answer as a whole.
    """
    text, options = " ".join(entry["content"].split()), config.options
    answer = entry.get("answer") or answer_text.stated_option(entry["content"], options)
    if in_vote and not answer:
        answer = answer_text.option_of(text, options) if options else text
        return answer if options or len(text.split()) <= answer_text.ANSWER_WORDS else ""
    if in_vote or options:
        return answer
    return answer_text.answer_key(answer) if len(answer.split()) <= answer_text.ANSWER_WORDS else ""


def answer_form(config: DebateConfig) -> str:
    """Return the part of an instruction that tells a debater how to write the answer."""
    if config.options:
        options = quoted(map(break_template_tokens, config.options))
        return f"exactly one of {options}, or “{verdict_types.UNDECIDED}” if you cannot choose"
    return f"your answer in at most {answer_text.ANSWER_WORDS} words, without reasons"


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
                debater_answers.append(entry_answer(entry, config))
    return {
        debater: CurrentAnswer(debater_answers[0], debater_answers[1] if len(debater_answers) > 1 else None)
        for debater, debater_answers in answers.items()
    }


def states_answer(entry: Entry) -> bool:
    """Return True for a debater's message on the main question, unlike those of crux rooms and critiques."""
    argued = traits_of(entry).argues and not entry.get("placeholder") and not is_passed(entry)
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


SHOWN_ANSWER_CHARS = 100
"""Maximum length of a displayed answer, in characters. Longer answers are shortened."""
VOTE_QUESTION_CHARS = 160
"""Maximum length of the question in a verdict, in characters."""
UNSTATED = 50.0
"""Confidence, from 0 to 100, that is assumed if an answer states none. Weighted votes use it."""


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
    by_call: bool = False
    """True if a model call read the answer from the author's message."""
    counts_as: str = ""
    """Normalised form of another answer that says the same, according to a model call."""
    placeholder: bool = False
    """True if the offline model wrote the answer. Such an answer is not counted."""
    content: str = ""
    """Whole message that states the answer. It is `""` if the answer was collected after the discussion."""

    @property
    def form(self) -> str:
        """Normalised form of the answer, used to compare ballots."""
        return self.counts_as or answer_text.answer_key(self.answer)


def ballots_of_answers(answers: Sequence[verdict_types.FinalAnswer]) -> list[AnswerBallot]:
    """Return one ballot per final answer, skipping empty and undecided answers."""
    return [
        AnswerBallot(
            each["debater"],
            each["answer"],
            each["confidence"],
            each["model"],
            each.get("by_call", False),
            each.get("counts_as", ""),
            each["placeholder"],
        )
        for each in answers
        if each["answer"] and each["answer"] != verdict_types.UNDECIDED
    ]


def ballots_of_entries(entries: Sequence[Entry], config: DebateConfig) -> list[AnswerBallot]:
    """Return a ballot for each message with an answer, which must be an option if there are any."""
    ballots = []
    for entry in entries:
        text = entry["content"]
        if not traits_of(entry).argues or is_passed(entry):
            continue
        # A long text without an answer is its own answer, which no other answer equals.
        whole_text = "" if config.options else " ".join(text.split())
        if answer := entry_answer(entry, config, in_vote=True) or whole_text:
            ballots.append(
                AnswerBallot(
                    entry["speaker"],
                    answer,
                    answer_text.parse_confidence(text),
                    entry["model"],
                    "answer" in entry,
                    entry.get("counts_as", ""),
                    bool(entry.get("placeholder")),
                    text,
                )
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

    def notes(self) -> list[str]:
        """Return sentences that say which answers model calls read, or counted as equal to others."""
        names = self.config.names()
        read = dict.fromkeys(names.get(each.debater, each.debater) for each in self.counted if each.by_call)
        equal = {_short(each.answer): _short(each.counts_as) for each in self.counted if each.counts_as}
        authors = [f"A model call read the answer of {', '.join(read)} from the message."] if read else []
        return authors + [
            f"A model call found that “{answer}” says the same as “{form}”." for answer, form in equal.items()
        ]

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
            "question": clip(" ".join(topic.split()), VOTE_QUESTION_CHARS),
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
        answer = f"“{clip(stage['answer'], SHOWN_ANSWER_CHARS)}”" if stage["answer"] else "no answer leads"
        stage_texts.append(f"{stage['name']} ({count_noun(stage['calls'], 'call')}): {answer}")
    return f"Answer after each stage: {'; '.join(stage_texts)}."


def vote_headline(verdict: verdict_types.PanelVerdict) -> str:
    """Return one line that states the winning answer and its share of the votes."""
    votes = verdict["outcome"]["tally"].values()
    decision = clip(verdict["decision"], SHOWN_ANSWER_CHARS)
    return f"{decision} ({max(votes):g} of {round(sum(votes), 2):g})"


def _short(answer: str) -> str:
    if len(answer) <= SHOWN_ANSWER_CHARS:
        return answer
    # A hash distinguishes long answers with the same beginning.
    return f"{answer[:SHOWN_ANSWER_CHARS]}… ({hashlib.sha256(answer.encode()).hexdigest()[:6]})"
