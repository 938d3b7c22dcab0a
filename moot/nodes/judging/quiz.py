"""A judge put to the test: which of two answers is right, told from a debate that people judged too.

The judge reads what the experts said and never the story, as the people did (Michael et al. 2023). Names are
labels, each session is judged in both orders of the answers, and its probability is the mean of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from pydantic import BaseModel, Field

from moot.nodes.calls import Flow, Hints, ModelCall
from moot.nodes.judging.calibration import Session
from moot.nodes.prompts.fitting import Block, fit
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import with_pieces
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.config import DebateConfig

QUIZ = load_prompt("quiz", "question", "first", "second", "setting")

LETTERS = ("A", "B")
EVEN = 50
"""Probability of either answer where nobody judged."""


class QuizAnswer(BaseModel):
    """What a judge may say. The reasoning comes first."""

    reasoning: str = Field(description="What each side established and what was not answered.")
    probability_a: float = Field(
        json_schema_extra={"minimum": 0, "maximum": 100},
        description="Probability that answer A is the right one, 0 to 100.",
    )


@dataclass(frozen=True)
class QuizResult:
    """What came of putting a judge to the test."""

    distributions: Mapping[str, tuple[float, float]]
    """Session to the probability of each of its answers."""
    flipped: int
    """Sessions whose likelier answer changed with the order."""
    both: int
    """Sessions judged in both orders."""
    failed: Mapping[str, str]
    """Sessions without an answer, and why."""


def sit_quiz(
    sessions: Sequence[Session], config: DebateConfig, count: TokenCounter, *, swap: bool = True
) -> Flow[QuizResult]:
    """Judge every session, all at the same time."""
    orders = (False, True) if swap else (False,)
    asked = [(session, swapped) for session in sessions for swapped in orders]
    replies = yield [_call(session, config, count, swapped) for session, swapped in asked]
    given: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    for (session, swapped), reply in zip(asked, replies, strict=True):
        said = float(reply.data["probability_a"]) if reply.ok and reply.data else float("nan")
        if not isfinite(said):
            failed[session.name] = reply.error or "the judge gave no probability"
            continue
        p = min(max(said, 0.0), 100.0) / 100
        given.setdefault(session.name, []).append(1 - p if swapped else p)
    pairs = [ps for ps in given.values() if len(ps) == 2]
    means = {name: sum(ps) / len(ps) for name, ps in given.items()}
    return QuizResult(
        distributions={name: (p, 1 - p) for name, p in means.items()},
        flipped=sum((first > 0.5) != (second > 0.5) for first, second in pairs),
        both=len(pairs),
        failed={name: why for name, why in failed.items() if name not in given},
    )


def _call(session: Session, config: DebateConfig, count: TokenCounter, swapped: bool) -> ModelCall:
    budget = config.memory.budget.total
    letters = LETTERS[::-1] if swapped else LETTERS
    first, second = session.answers[::-1] if swapped else session.answers
    side = session.speeches[0].side if session.speeches else 0
    setting = (
        "Two experts who have read the text argue, Expert A for answer A and Expert B for answer B."
        if session.debate
        else f"One expert who has read the text argues for answer {letters[side]}; the expert was told to, "
        "whether or not it is right."
    )
    text = QUIZ.render(
        question=cut_middle(session.question, budget // 8, count),
        first=cut_middle(first, budget // 8, count),
        second=cut_middle(second, budget // 8, count),
        setting=setting,
    )
    frame = Block("system", {"role": "system", "content": text}, label="question")
    pieces = [
        Block(
            "messages",
            {"role": "user", "content": f"Expert {letters[speech.side]}:\n{speech.text}"},
            label=f"speech {number}",
        )
        for number, speech in enumerate(session.speeches)
    ]
    last = Block("tail", {"role": "user", "content": "Which answer is right?"}, label="question")
    view = fit(with_pieces([frame], pieces, last, budget, count), budget, count)
    hints: Hints = {"topic": session.question, "fields": {"probability_a": EVEN}}
    return make_call(voice_of(config, config.judge), "judge", view, schema=QuizAnswer, hints=hints)
