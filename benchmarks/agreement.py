"""Measure how the setting `agreement_intensity` changes how soon debaters agree and how often they are right.

    python -m benchmarks.agreement [--debates 1000] [--quick] [--json]

The protocol's own code plans the turns, writes the instructions and ends the debates; only the debaters are
scripted. A debater concedes with the probability in `CONCESSION_PROBABILITIES` for its instruction. It then
takes over the answer of another debater who differs. The curve shows the effect if models obey the
instructions to this degree. It does not show to which degree a real model obeys them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.protocols.registry import next_step
from moot.protocols.schedule import AGREEMENT_INSTRUCTIONS, End
from moot.state.conversation import ConversationState
from moot.state.entries import make_entry

INTENSITIES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""One value within the range of each instruction."""
CONCESSION_PROBABILITIES = (0.05, 0.15, 0.3, 0.5, 0.8)
"""Probability that a scripted debater concedes in a turn, by instruction."""
RIGHT, WRONG = "right", ("wrong one", "wrong two")
FIRST_RIGHT_PROBABILITY = 0.6
"""Probability that a debater's first answer is right."""
DEBATERS, ROUNDS = 3, 6


@dataclass(frozen=True)
class Point:
    """One point of the curve."""

    intensity: float
    agreed: float
    """Percent of the debates that end because all answers are equal."""
    turns: float
    """Mean number of turns."""
    right: float
    """Percent of the debates in which a vote of the last answers is right. A tie is wrong."""
    first_right: float
    """Percent of the debates in which a vote of the first answers is right."""


def measure(intensity: float, debates: int) -> Point:
    """Return the point of the curve for one value of `agreement_intensity`."""
    config = make_config(
        {
            "debaters": [{"name": f"Debater {number}"} for number in range(1, DEBATERS + 1)],
            "rounds": ROUNDS,
            "stop": "agreement",
            "agreement_intensity": intensity,
            "model": "scripted",
        }
    )
    dice = random.Random(f"agreement {intensity}")
    ends = [_debate(config, dice) for _ in range(debates)]
    return Point(
        intensity,
        agreed=100 * sum(len(set(last.values())) == 1 for _, last, _ in ends) / debates,
        turns=sum(turns for *_, turns in ends) / debates,
        right=100 * sum(_majority(last) == RIGHT for _, last, _ in ends) / debates,
        first_right=100 * sum(_majority(first) == RIGHT for first, *_ in ends) / debates,
    )


def _debate(config: DebateConfig, dice: random.Random) -> tuple[Mapping[str, str], Mapping[str, str], int]:
    """Run one debate, and return the first answers, the last answers and the number of turns."""
    transcript = [make_entry(0, "user", "topic", "Which is right?")]
    state = cast(
        ConversationState, {"topic": "Which is right?", "full_transcript": transcript, "turn_count": 0}
    )
    first: dict[str, str] = {}
    answers: dict[str, str] = {}
    while not isinstance(step := next_step(state, config), End):
        if not isinstance(step, dict):
            raise TypeError("this protocol asks no model")
        for turn in step["turns"]:
            who = turn["speaker"]
            answer = _answer(turn["instruction"], who, answers if step["phase"] != "opening" else {}, dice)
            first.setdefault(who, answer)
            text = f"I hold this.\nAnswer: {answer}"
            transcript.append(make_entry(len(transcript), who, "speech", text, phase=step["phase"]))
            answers = {**answers, who: answer}
        state["turn_count"] += len(step["turns"])
        state["step"] = step
    return first, answers, state["turn_count"]


def _answer(instruction: str, who: str, answers: Mapping[str, str], dice: random.Random) -> str:
    """Return the debater's next answer, which depends on the instruction and on the others' answers."""
    if who not in answers:
        return RIGHT if dice.random() < FIRST_RIGHT_PROBABILITY else dice.choice(WRONG)
    shown = next(place for place, (_, text) in enumerate(AGREEMENT_INSTRUCTIONS) if text in instruction)
    others = [answer for other, answer in answers.items() if other != who and answer != answers[who]]
    return dice.choice(others) if others and dice.random() < CONCESSION_PROBABILITIES[shown] else answers[who]


def _majority(answers: Mapping[str, str]) -> str:
    ranked = Counter(answers.values()).most_common(2)
    return "" if len(ranked) > 1 and ranked[0][1] == ranked[1][1] else ranked[0][0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the curve and print one line for each intensity."""
    parser = argparse.ArgumentParser(description="Measure `agreement_intensity`.")
    parser.add_argument("--debates", type=int, default=1_000, help="debates for each intensity")
    parser.add_argument("--quick", action="store_true", help="run 200 debates for each intensity")
    parser.add_argument("--json", action="store_true", help="print the curve as JSON")
    options = parser.parse_args(arguments)
    points = [measure(intensity, 200 if options.quick else options.debates) for intensity in INTENSITIES]
    if options.json:
        print(json.dumps([asdict(each) for each in points], indent=2))
        return
    for each in points:
        bar = "#" * round(each.agreed / 4)
        print(
            f"intensity {each.intensity:.1f}  agreed {each.agreed:5.1f} % {bar:25}  turns {each.turns:4.1f}  "
            f"right {each.right:4.1f} % (first answers {each.first_right:4.1f} %)"
        )


if __name__ == "__main__":
    main()
