"""The floor given to people who debate: what they are asked, and what they said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any

from nodes.driver import Ask, Effect
from nodes.people.questions import Question, match_answers, question_payload
from state.config import DebateConfig
from state.conversation import ConversationState, Floor

PASSES = "(passes)"
"""What the transcript shows of a person who says nothing."""


def hear_people(
    state: ConversationState, config: DebateConfig, floors: Sequence[Floor]
) -> Generator[Effect, Any, list[str]]:
    """Ask the people whose floors these are, all in one interrupt, and return their words in floor order."""
    if not floors:
        return []
    questions = _questions(state, config, floors)
    given = yield Ask(question_payload("turn", state["step"]["round"], questions))
    said = match_answers(questions, given)
    return [said[question["id"]] or PASSES for question in questions]


def _questions(state: ConversationState, config: DebateConfig, floors: Sequence[Floor]) -> list[Question]:
    taken = Counter(
        receipt["speaker"] for receipt in state.get("receipts") or [] if config.has_person(receipt["speaker"])
    )
    questions: list[Question] = []
    for floor in floors:
        speaker = config.debater(floor["speaker"])
        taken[speaker.id] += 1
        targets = ", ".join(config.names().get(target, target) for target in floor["targets"])
        asked = floor["instruction"] or state["step"]["phase"]
        questions.append(
            {
                "id": f"{speaker.id}.{taken[speaker.id]}",
                "debater": speaker.id,
                "name": speaker.name,
                "question": f"{asked} (Answering {targets}.)" if targets else asked,
            }
        )
    return questions
