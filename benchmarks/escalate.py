"""Measure how many calls `escalate` saves, and how much accuracy it loses, compared with a vote of five.

    python -m benchmarks.escalate [--items 1000] [--seeds 5] [--quick] [--json]

The protocol's own code plans every stage and counts every vote; only the answers are scripted. The answer to
each question is `a`. In the stream `independent` the answers are independent samples, so two that agree are
usually right. In the stream `copied` the second author copies most answers of the first, so their agreement
says nothing, and `escalate` is as good as one answer. Both streams agree on about 85 % of the questions.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, cast

from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.protocols.escalate import ALL, DEBATE_PHASE, Escalate
from moot.protocols.schedule import End
from moot.protocols.vote import Vote
from moot.state.conversation import ConversationState
from moot.state.entries import make_entry

CALLS_TARGET, LOST_TARGET, FALSE_TARGET = 0.60, 1.0, 5.0
"""Highest share of the vote's calls, percentage points lost, and percent of falsely converged questions."""
RIGHT, WRONG = "a", ("b", "c", "d")
SWITCH_PROBABILITY = 0.3
"""Probability that an author in a debate takes over the answer of another author, chosen at random. So the
debate itself makes no answer more likely to be right (*Debate or Vote*, arXiv 2508.17536)."""
Kind = Literal["independent", "copied"]


@dataclass(frozen=True)
class Result:
    """Figures of one protocol run over one stream."""

    stream: str
    items: int
    agreed: float
    """Percent of the questions on which the first two answers agree."""
    calls_share: float
    """Calls of `escalate` divided by those of a vote of five."""
    accuracy: float
    vote_accuracy: float
    lost: float
    """Percentage points of accuracy that `escalate` loses against the vote."""
    false_converged: float
    """Percent of the questions that ended with two equal wrong answers."""


def scripted_answers(kind: Kind, dice: random.Random) -> list[str]:
    """Return the five answers that the authors of one question give in turn."""
    hard = dice.random() < 0.2
    if kind == "independent":
        right = 0.5 if hard else 0.99
        return [_sample(right, dice) for _ in range(ALL)]
    first = _sample(0.6, dice)
    second = first if dice.random() < 0.73 else _sample(0.6, dice)
    return [first, second, *(_sample(0.85, dice) for _ in range(ALL - 2))]


def _sample(right: float, dice: random.Random) -> str:
    return RIGHT if dice.random() < right else dice.choice(WRONG)


class Question:
    """One question that the protocol answers, with scripted answers in place of models."""

    def __init__(self, number: int, answers: Sequence[str], dice: random.Random) -> None:
        self.protocol, self.config, self.dice = Escalate(), _CONFIG, dice
        self.answers, self.calls = answers, 0
        topic = f"Question {number}?"
        self.state = cast(
            ConversationState,
            {
                "topic": topic,
                "full_transcript": [make_entry(0, "user", "topic", topic)],
                "round": 0,
                "turn_count": 0,
            },
        )

    def run(self) -> str:
        """Answer the question, and return the answer, `""` if the vote is a tie."""
        while not isinstance(step := self.protocol.next_step(self.state, self.config), End):
            answers = {each["speaker"]: self._reply(each["speaker"], step["phase"]) for each in step["turns"]}
            for speaker, answer in answers.items():
                transcript = self.state["full_transcript"]
                entry = make_entry(
                    len(transcript),
                    speaker,
                    "speech",
                    f"Answer: {answer}",
                    phase=step["phase"],
                    round=step["round"],
                )
                transcript.append(entry)
            self.calls += len(answers)
            self.state["round"] = step["round"]
            self.state["turn_count"] += len(answers)
        count = self.protocol.vote(self.state, self.config)
        return count.first.answer if count and count.first else ""

    def _reply(self, speaker: str, phase: str) -> str:
        own = self.answers[list(self.config.names()).index(speaker)]
        if phase != DEBATE_PHASE or self.dice.random() >= SWITCH_PROBABILITY:
            return own
        return self.dice.choice(sorted(set(self.answers) - {own}))


_CONFIG: DebateConfig = make_config({"protocol": "escalate", "model": "scripted"})
_VOTE: DebateConfig = make_config({"protocol": "vote", "model": "scripted"})


def vote_of_five(answers: Sequence[str]) -> str:
    """Return the answer of a vote of five, `""` for a tie."""
    transcript = [make_entry(0, "user", "topic", "Question?")]
    for number, answer in enumerate(answers, 1):
        transcript.append(make_entry(number, "voter", "speech", f"Answer: {answer}", phase="answer"))
    state = cast(ConversationState, {"topic": "Question?", "full_transcript": transcript})
    count = Vote().vote(state, _VOTE)
    return count.first.answer if count and count.first else ""


def measure(kind: Kind, items: int, seed: int) -> Result:
    """Run `escalate` and a vote of five over one stream."""
    dice = random.Random(f"{kind} {seed}")
    calls = right = vote_right = agreed = false = 0
    for number in range(items):
        answers = scripted_answers(kind, dice)
        question = Question(seed * items + number, answers, dice)
        answer = question.run()
        calls += question.calls
        right += answer == RIGHT
        vote_right += vote_of_five(answers) == RIGHT
        agreed += answers[0] == answers[1]
        false += question.calls == 2 and answer != RIGHT
    return Result(
        stream=kind,
        items=items,
        agreed=100 * agreed / items,
        calls_share=calls / (ALL * items),
        accuracy=100 * right / items,
        vote_accuracy=100 * vote_right / items,
        lost=100 * (vote_right - right) / items,
        false_converged=100 * false / items,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both streams and print a line for each seed."""
    parser = argparse.ArgumentParser(description="Measure the protocol `escalate`.")
    parser.add_argument("--items", type=int, default=1_000, help="questions in each stream")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each stream")
    parser.add_argument("--quick", action="store_true", help="run 300 questions with one seed")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args(arguments)
    items, seeds = (300, 1) if options.quick else (options.items, options.seeds)
    kinds: tuple[Kind, ...] = ("independent", "copied")
    results = [measure(kind, items, seed) for kind in kinds for seed in range(seeds)]
    if options.json:
        print(json.dumps([asdict(each) for each in results], indent=2))
        return
    for each in results:
        print(
            f"{each.stream:12} agree {each.agreed:4.1f} %  calls × {each.calls_share:.2f} of vote@5  "
            f"accuracy {each.accuracy:4.1f} (vote {each.vote_accuracy:4.1f}, lost {each.lost:+.1f})  "
            f"false converged {each.false_converged:.1f} %"
        )
    print(
        f"targets: where agreement is informative, calls ≤ × {CALLS_TARGET:.2f} and lost ≤ {LOST_TARGET:g} "
        f"points, false converged ≤ {FALSE_TARGET:g} %"
    )


if __name__ == "__main__":
    main()
