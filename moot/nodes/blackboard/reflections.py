"""Reflections: insights about the debate itself, made when enough has happened.

Enough is 3·new disagreements + 4·concessions + 5·shifts of position past a threshold: the trigger of Park et
al. (2023), *Generative Agents*, section 4.2, with epistemic events in the place of summed importance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from moot.nodes.blackboard.bounds import SOURCES, noted
from moot.nodes.blackboard.by_model import debater_lines, known_debater, shown_entries, structured_call
from moot.nodes.blackboard.by_rule import speaker_of
from moot.nodes.blackboard.digest import render_blackboard
from moot.nodes.blackboard.update import progress_of
from moot.nodes.calls import ModelCall
from moot.nodes.prompts.library import load_prompt
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.blackboard import Reflection
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import seq_of
from moot.state.progress import BoardProgress

REFLECT = load_prompt("reflect", "topic", "debaters", "board")

WEIGHTS = {"disagreements": 3, "concessions": 4, "shifts": 5}
CONTENT = 280
"""Characters of a reflection."""
MOST = 3
"""Reflections of one pass."""
_FRAME = 500


class ReflectionFinding(BaseModel):
    """One insight."""

    content: str
    kind: Literal["pattern", "shift", "convergence", "escalation"]
    about: list[str] = Field(description="Ids of the debaters concerned.")
    message_ids: list[str]
    importance: int = Field(ge=1, le=10, description="1 to 10.")


class Reflections(BaseModel):
    """What somebody outside sees."""

    reasoning: str
    reflections: list[ReflectionFinding]


def score(progress: BoardProgress) -> int:
    """Return how much has happened since the last reflection."""
    return sum(weight * progress[event] for event, weight in WEIGHTS.items())  # type: ignore[literal-required]  # its keys


def reflection_due(state: ConversationState) -> bool:
    """Return whether enough has happened."""
    threshold = state["config"].get("blackboard", {}).get("reflect_at", 15)
    return score(progress_of(state)) > int(threshold)


def reflection_call(
    state: ConversationState, config: DebateConfig, count: TokenCounter, *, floor: int
) -> ModelCall:
    """Return the call that asks a model for insights."""
    room = max(200, config.memory.budget.total - _FRAME)
    names, transcript = config.names(), state["full_transcript"]
    ids = progress_of(state)["message_ids"]
    entries = [transcript[seq] for seq in map(seq_of, ids) if seq is not None and seq < len(transcript)]
    board = render_blackboard(state, "", max_tokens=room // 3, count=count, names=names)
    system = REFLECT.render(
        topic=cut_middle(state["topic"], room // 6, count), debaters=debater_lines(config), board=board
    )
    said = shown_entries(entries, names, room // 3, count)
    return structured_call("reflect", config, system, said, Reflections, count, floor=floor)


def reflections_by_model(
    state: ConversationState, config: DebateConfig, data: Mapping[str, Any]
) -> list[Reflection]:
    """Return a model's insights, checked: who does not exist and what was never said is dropped."""
    names, said = config.names(), len(state["full_transcript"])
    made: list[Reflection] = []
    for found in data["reflections"][:MOST]:
        about = [who for name in found["about"] if (who := known_debater(name, names))]
        cited = [key.strip("[] ") for key in found["message_ids"]]
        real = [key for key in cited if (seq := seq_of(key)) is not None and seq < said]
        content = noted(found["content"], CONTENT)
        if content:
            insight = _reflection(state, len(made), content, found["kind"], about, real, found["importance"])
            made.append(insight)
    return made


def reflections_by_rule(state: ConversationState, config: DebateConfig) -> list[Reflection]:
    """Return one insight from the counts: what happened most, between whom."""
    progress, names = progress_of(state), config.names()
    kinds: dict[str, Literal["escalation", "convergence", "shift"]] = {
        "disagreements": "escalation",
        "concessions": "convergence",
        "shifts": "shift",
    }
    event = max(WEIGHTS, key=lambda name: (WEIGHTS[name] * progress[name], name))  # type: ignore[literal-required]  # its keys
    about = [speaker_of(key, state["full_transcript"]) for key in progress["message_ids"]]
    about = [who for who in dict.fromkeys(about) if who in names]
    counts = ", ".join(f"{progress[name]} {_WORDS[name]}" for name in WEIGHTS if progress[name])  # type: ignore[literal-required]  # its keys
    who = ", ".join(names[name] for name in about)
    content = noted(f"{_VERDICTS[kinds[event]]} ({counts} since the last look): {who}", CONTENT)
    importance = min(10, 4 + score(progress) // 10)
    return [_reflection(state, 0, content, kinds[event], about, progress["message_ids"], importance)]


_WORDS = {"disagreements": "new disagreements", "concessions": "concessions", "shifts": "changes of mind"}
_VERDICTS = {
    "escalation": "Disagreement grows",
    "convergence": "Positions come closer",
    "shift": "Positions have moved",
}


def _reflection(
    state: ConversationState,
    number: int,
    content: str,
    kind: Any,
    about: Sequence[str],
    message_ids: Sequence[str],
    importance: int,
) -> Reflection:
    return {
        "id": f"r{len(state.get('reflections') or []) + number + 1:04d}",
        "content": content,
        "kind": kind,
        "about": list(about),
        "message_ids": list(message_ids)[:SOURCES],
        "round": int(state.get("round", 0)),
        "importance": importance,
    }


COUNTS_SET_BACK: BoardProgress = {"disagreements": 0, "concessions": 0, "shifts": 0, "message_ids": []}
"""What a reflection leaves of the events that led to it."""
