"""Vote: independent answers at the same time, and the answer that most of them give.

Self-consistency: Wang et al. 2023, *Self-Consistency Improves Chain of Thought Reasoning in Language Models*.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from moot.nodes.judging.opinion_check import failed_verdict
from moot.nodes.judging.opinions import JudgeBrief
from moot.nodes.judging.panel import as_decision
from moot.nodes.protocols.baselines.single import PHASE, Alone, answers_since
from moot.nodes.protocols.protocol import End, make_floor, make_step
from moot.nodes.text.plain import all_done, clip
from moot.state.config import DebateConfig, ProtocolSettings
from moot.state.conversation import ConversationState, Floor, Step
from moot.state.entries import Entry, kind_of
from moot.state.verdict import TIE, Decision, Outcome, Verdict

WANTED = (
    "In `solution_markdown` write the answer that they bear out best, with its reason; where most of them "
    "agree, depart from that only for a reason you name. "
    'The winner is "synthesis", unless one answer should be given as it stands. The confidence is how sure '
    "you are of the solution. Put what was asked for and the solution lacks into `unmet_requirements`."
)

COUNT = "count"
"""Who a verdict is by that nobody judged."""

SHOWN_CHARS = 100
"""An answer without an `Answer:` line is a whole text; the count shows its beginning."""

_LAST_LINE = re.compile(r"^[\s>*_#-]*answer[\s*_]*:[\s*_]*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_EDGES = " \t\r\n.,;:!?\"'`*_()[]{}“”‘’«»"


class VoteConfig(ProtocolSettings):
    """How the `vote` baseline votes."""

    key = "vote"

    answers: int = Field(5, ge=2, le=256)
    """Independent answers, all at the same time; debaters take turns where there are several."""
    by: Literal["answer", "judge"] = "answer"
    """`answer` counts equal answers, without a call; `judge` lets the judge choose among them."""


class Vote(Alone):
    """As many answers as `vote.answers` says; `vote.by` says who counts them."""

    name = "vote"
    settings = VoteConfig
    ending = 'End with one line: "Answer: " and your final answer in as few words as possible.'
    debaters = ({"id": "voter", "name": "Voter"},)
    brief = JudgeBrief(wanted=WANTED, solution=True, rubric="answers", swap=False, heard=False)
    bounded_by = ("vote.answers",)
    result = "Answer"

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Give all floors at once, and again when a person has spoken up since."""
        answers, speakers = VoteConfig.of(config).answers, list(config.names())
        if answers_since(state["full_transcript"]):
            return End(all_done(answers, "answer", "given"))
        floors = [make_floor(speakers[index % len(speakers)]) for index in range(answers)]
        return make_step(PHASE, state.get("round", 0) + 1, floors)

    def stand_in(
        self, state: ConversationState, config: DebateConfig, floor: Floor, error: str
    ) -> str | None:
        """Count without an answer that failed."""
        return "One answer is missing: its call failed."

    def ruling(self, state: ConversationState, config: DebateConfig) -> Decision | None:
        """The count, where answers are counted; its confidence is the share of answers that agree."""
        if VoteConfig.of(config).by != "answer":
            return None
        count = _Count(state)
        given = sum(map(len, count.by_answer.values()))
        if not given:
            return as_decision(failed_verdict(COUNT, "no answer was given"))
        tally = {_short(said): float(len(entries)) for said, entries in count.by_answer.items()}
        lines = [f"- {said}: {int(votes)} of {given}" for said, votes in tally.items()]
        winner = count.first["speaker"] if count.first else TIE
        share = 100 * max(tally.values()) / given
        speakers = {entry["speaker"] for entries in count.by_answer.values() for entry in entries}
        verdict: Verdict = {
            **failed_verdict(COUNT, "", order=sorted(speakers)),
            "status": "ok",
            "winner": winner,
            "reasoning": "\n".join(["Equal answers, counted:", *lines]),
            "confidence": float(round(share)) if count.first else None,
            "solution_markdown": count.first["content"] if count.first else "",
        }
        outcome = Outcome(
            rule="majority",
            winner=winner,
            tally=tally,
            tied=[_short(said) for said in count.tied],
            mean_scores={},
            dissent=[],
            judges=given,
        )
        return as_decision(verdict, outcome)

    def headline(self, verdict: Decision, names: Mapping[str, str]) -> str:
        """The answer itself, with how many gave it."""
        outcome, given = verdict.get("outcome"), verdict["solution_markdown"]
        if verdict["judge"] != COUNT or outcome is None:
            return clip(_answer_as_written(given), SHOWN_CHARS) if given else super().headline(verdict, names)
        votes, of = max(outcome["tally"].values()), outcome["judges"]
        if verdict["winner"] != TIE:
            return f"{clip(_answer_as_written(given), SHOWN_CHARS)} ({votes:g} of {of})"
        return f"none has the most votes: {', '.join(outcome['tied'])} ({votes:g} of {of} each)"

    def answer(self, state: ConversationState) -> str:
        """The first of the answers that agree with most others; `""` for a tie."""
        count = _Count(state)
        return count.first["content"] if count.first else ""


class _Count:
    """How the answers fall together."""

    def __init__(self, state: ConversationState) -> None:
        self.by_answer: dict[str, list[Entry]] = {}
        """Entries by normalised answer, in the order of their first appearance."""
        for entry in answers_since(state["full_transcript"]):
            if kind_of(entry).argues:
                self.by_answer.setdefault(final_answer(entry["content"]), []).append(entry)
        most = max(map(len, self.by_answer.values()), default=0)
        leading = [said for said, entries in self.by_answer.items() if len(entries) == most]
        self.tied = sorted(leading) if len(leading) > 1 else []
        """The answers that share the first place, where there are several."""
        self.first = self.by_answer[leading[0]][0] if len(leading) == 1 else None
        """The first entry of the answer that won, `None` for a tie or no answer."""


def final_answer(text: str) -> str:
    """Return the answer that a text ends with, normalised: its last `Answer:` line, else all of it.

    Case, markup, punctuation at the edges, and width of characters do not tell answers apart; nor does the
    grouping of digits.
    """
    plain = unicodedata.normalize("NFKC", _answer_as_written(text)).casefold()
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", plain)
    return " ".join(plain.split()).strip(_EDGES)


def _answer_as_written(text: str) -> str:
    """Return the answer that a text ends with, as it is written: its last `Answer:` line, else all of it."""
    marked: list[str] = _LAST_LINE.findall(text)
    return marked[-1] if marked else " ".join(text.split())


def _short(said: str) -> str:
    if len(said) <= SHOWN_CHARS:
        return said
    # Long answers that begin alike are still different answers.
    return f"{said[:SHOWN_CHARS]}… ({hashlib.sha256(said.encode()).hexdigest()[:6]})"
