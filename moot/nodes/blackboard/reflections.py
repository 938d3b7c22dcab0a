"""Reflections: insights about the debate itself, made when enough has happened.

Enough is 3·new disagreements + 4·concessions + 5·shifts of position past a threshold: the trigger of Park et
al. (2023), *Generative Agents*, section 4.2, with epistemic events in the place of summed importance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from moot.nodes.blackboard.board_words import board_text
from moot.nodes.blackboard.by_model import debater_lines, known_debater, shown_entries, structured_call
from moot.nodes.blackboard.digest import render_blackboard
from moot.nodes.blackboard.folding import empty_ledger, grow_ledger, ledger_of
from moot.nodes.blackboard.standing import Ledger
from moot.nodes.calls import ModelCall
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.request import citation_type, many, narrow, one_of
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.at_sight import at_sight
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import cited_id, entries_of, seq_of
from moot.state.ledger import MOTION, Event, Reflection, ReflectionKind

REFLECT = load_prompt("reflect", "topic", "debaters", "board")

DISAGREEMENT, CONCESSION, SHIFT = 3, 4, 5
"""How much each counts."""
SOURCES = 4
"""Message ids behind one reflection."""
CONTENT = 280
"""Characters of a reflection."""
MOST = 3
"""Reflections of one pass."""
_FRAME = 500


class ReflectionFinding(BaseModel):
    """One insight."""

    content: str
    kind: ReflectionKind
    about: list[str] = Field(description="Ids of the debaters concerned.")
    message_ids: list[str]
    importance: int = Field(ge=1, le=10, description="1 to 10.")


class Reflections(BaseModel):
    """What somebody outside sees."""

    reasoning: str
    reflections: list[ReflectionFinding]


class News(NamedTuple):
    """What happened since the last look from outside."""

    disputes: list[str]
    """Ids of propositions that came to be disputed."""
    concessions: list[Event]
    shifts: list[Event]

    @property
    def score(self) -> int:
        """How much that is."""
        given = CONCESSION * len(self.concessions) + SHIFT * len(self.shifts)
        return DISAGREEMENT * len(self.disputes) + given

    def message_ids(self, ledger: Ledger) -> list[str]:
        """Return where it happened, the newest."""
        opposed = [event["message_id"] for key in self.disputes for event in ledger.stances(key).values()]
        moved = [event["message_id"] for event in (*self.concessions, *self.shifts)]
        return sorted({*opposed, *moved}, key=lambda key: seq_of(key) or 0)[-SOURCES:]


@at_sight(8)
def news_of(ledger: Ledger) -> News:
    """Return what the ledger's notes brought since the last look from outside."""
    new = {note["id"] for note in ledger.notes.get("event", ())[ledger.seen :]}
    if not new:
        return News([], [], [])
    touched = {event["proposition"] for event in ledger.events if event["id"] in new}
    disputes = []
    for key, proposition in ledger.propositions.items():
        if key in touched and ledger.status(key) == "disputed":
            earlier = [turn.event for turn in ledger.course(key) if turn.event["id"] not in new]
            if grow_ledger(empty_ledger(""), [proposition, *earlier]).status(key) != "disputed":
                disputes.append(key)
    shifts = [change.event for change in ledger.changes if change.event["id"] in new]
    moved = {event["id"] for event in shifts}
    concessions = [event for event in ledger.concessions() if event["id"] in new - moved]
    return News(disputes, concessions, shifts)


def reflection_due(state: ConversationState) -> bool:
    """Return whether enough has happened."""
    threshold = state["config"].get("blackboard", {}).get("reflect_at", 15)
    return news_of(ledger_of(state)).score > int(threshold)


def reflection_call(
    state: ConversationState, config: DebateConfig, count: TokenCounter, *, floor: int
) -> ModelCall:
    """Return the call that asks a model for insights."""
    room = max(200, config.memory.budget.total - _FRAME)
    names = config.names()
    ledger = ledger_of(state)
    entries = entries_of(news_of(ledger).message_ids(ledger), state["full_transcript"])
    board = render_blackboard(state, "", max_tokens=room // 3, count=count, names=names)
    system = REFLECT.render(
        topic=cut_middle(state["topic"], room // 6, count), debaters=debater_lines(config), board=board
    )
    said = shown_entries(entries, names, room // 3, count)
    shown = [entry["id"] for entry in entries]
    finding = narrow(ReflectionFinding, {"about": list[one_of(names)], "message_ids": citation_type(shown)})  # type: ignore[misc]  # made for the debate
    schema = narrow(Reflections, {"reflections": many(finding, 0, MOST)})
    return structured_call(
        "reflect", config, system, said, schema, count, makes="reflections", floor=floor, about=entries
    )


def reflections_by_model(
    state: ConversationState, config: DebateConfig, data: Mapping[str, Any]
) -> list[Reflection]:
    """Return a model's insights, checked: who does not exist and what was never said is dropped."""
    names, said = config.names(), len(state["full_transcript"])
    made: list[Reflection] = []
    for found in data["reflections"][:MOST]:
        about = [who for name in found["about"] if (who := known_debater(name, names))]
        cited = [cited_id(key) for key in found["message_ids"]]
        real = [key for key in cited if (seq := seq_of(key)) is not None and seq < said]
        content = board_text(found["content"], CONTENT)
        if content:
            insight = _reflection(state, len(made), content, found["kind"], about, real, found["importance"])
            made.append(insight)
    return made


def reflections_by_rule(state: ConversationState, config: DebateConfig) -> list[Reflection]:
    """Return one insight by rule: the weightiest that happened, with the words that show it."""
    ledger, names = ledger_of(state), config.names()
    news = news_of(ledger)
    if not news.score:
        return []
    kind: ReflectionKind = "escalation"
    if news.shifts or news.concessions:
        event = [*news.concessions, *news.shifts][-1]
        kind = "shift" if news.shifts else "convergence"
        about = [event["debater"]]
        did = "no longer holds what it held" if news.shifts else "gave way on one point"
        content = f"{names.get(event['debater'], event['debater'])} {did}: “{board_text(event['quote'])}”"
    else:
        key = news.disputes[0]
        yes, no = ledger.course(key).sides
        about = [*yes, *no]
        what = (
            "the topic itself" if key == MOTION else f"this: {board_text(ledger.propositions[key]['text'])}"
        )
        offered = [item for item in ledger.evidence if item["proposition"] == key]
        lack = "" if offered else "; neither has named evidence for it yet"
        content = (
            f"{' and '.join(names.get(who, who) for who in about)} contradict each other on {what}{lack}"
        )
    importance = min(10, 4 + news.score // 10)
    ids = news.message_ids(ledger)
    return [_reflection(state, 0, board_text(content, CONTENT), kind, about, ids, importance)]


def _reflection(
    state: ConversationState,
    number: int,
    content: str,
    kind: ReflectionKind,
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
