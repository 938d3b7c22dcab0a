"""The floor given to people who debate: what they are shown and asked, and what they said."""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from moot.nodes.effects import Effect
from moot.nodes.people.questions import PersonQuestion, ask_people
from moot.nodes.prompts.fitting import KEEP
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.views.scene import Scene
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState

PASSES = "(passes)"
"""What the transcript shows of a person who says nothing."""


@dataclass(frozen=True)
class HumanFloor:
    """A floor, given to a person."""

    speaker: str
    """Id."""
    asked: str
    """What the person is shown and asked."""


def given_floor(scene: Scene) -> HumanFloor:
    """Return a floor as a person is given it: what every view must show, then what a model is asked to do."""
    protocol = protocol_named(scene.config.protocol)
    shown = [
        block.message["content"]
        for block in protocol.view(scene)
        if block.section in ("topic", "messages") and block.priority == KEEP
    ]
    asked = protocol.instruction(scene) or scene.step["phase"]
    answering = ", ".join(scene.names[target] for target in scene.floor["targets"] if target in scene.names)
    request = f"{asked} (Answering {answering}.)" if answering else asked
    return HumanFloor(scene.floor["speaker"], "\n\n".join([*shown, request]))


def hear_people(state: ConversationState, floors: Sequence[HumanFloor]) -> Generator[Effect, Any, list[str]]:
    """Ask the people whose floors these are, all in one interrupt, and return their words in floor order."""
    if not floors:
        return []
    names = frozen_config(state).names()
    taken = Counter(receipt["speaker"] for receipt in state.get("receipts") or [])
    questions: list[PersonQuestion] = []
    for floor in floors:
        taken[floor.speaker] += 1
        key, name = f"{floor.speaker}.{taken[floor.speaker]}", names[floor.speaker]
        questions.append(PersonQuestion(id=key, debater=floor.speaker, name=name, question=floor.asked))
    said = yield from ask_people("turn", state["step"]["round"], questions)
    return [said[question["id"]] or PASSES for question in questions]
