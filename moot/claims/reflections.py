"""Reflections, which are a model's observations about the course of the debate.

The score is 3 · new disagreements + 4 · concessions + 5 · changes of mind. A threshold on a score triggers
reflections in Park et al. (2023), *Generative Agents*, section 4.2, which sums the importance of memories.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from moot.calls.model_calls import ModelCall
from moot.claims.blackboard import render_blackboard
from moot.claims.claim_extraction import BackgroundTexts, no_background
from moot.claims.claim_status import Ledger
from moot.claims.ledger_from_events import ledger_of
from moot.claims.ledger_rendering import board_text, current_reflections
from moot.claims.round_records import debater_lines, move_lines, round_records
from moot.prompts import structured_calls
from moot.prompts.debate_context import DebateContext
from moot.prompts.request import citation_type, many, narrow_schema, one_of
from moot.prompts.templates import fenced, fenced_section, load_prompt_template
from moot.state.claim_events import MAIN_QUESTION, Reflection, ReflectionKind, StanceEvent
from moot.state.conversation import ConversationState
from moot.state.entries import cited_id, entries_of, memoize_by_identity, round_of, seq_of
from moot.text.tokens import truncate_middle

REFLECT = load_prompt_template("reflect", "topic", "debaters", "board", "earlier")
REFLECT_EARLIER = load_prompt_template("reflect_earlier", "insights")

DISAGREEMENT = 3
"""Score of each new dispute. A reflection is due if the total score of recent activity is high enough."""
CONCESSION = 4
"""Score of each new concession."""
SHIFT = 5
"""Score of each new change of mind."""
RECORD_HEADING = "# What moved recently, and what each debater said in these rounds"
MAX_REFLECTION_SOURCES = 4
"""Maximum number of source messages that one reflection cites."""
MAX_CONTENT_CHARS = 280
"""Maximum length of a reflection, in characters."""
MAX_REFLECTIONS = 3
"""Maximum number of reflections that Moot keeps from one model reply."""
REFLECTION_BOARD_TOKENS = 300
"""Maximum number of tokens for the claim ledger in a reflection prompt. The records of the rounds show
concessions, changes of mind and evidence. In a recorded dialogue, the rest took up to 300 tokens."""
RECORD_TOKENS = 400
"""Maximum number of tokens for the records of the rounds with recent activity. What moved comes first."""
EARLIER_TOKENS = 800
"""Maximum number of tokens for the earlier reflections in a reflection prompt."""
EARLIER_REFLECTIONS = 8
"""Maximum number of earlier reflections that a reflection prompt lists."""
_FRAME = 570  # tokens: the templates take 233, the schema 172, the rest is for headings and fences


class ReflectionFinding(BaseModel):
    """Reflection written by a model."""

    content: str
    kind: ReflectionKind
    about: list[str]
    """Ids of the debaters that the reflection is about."""
    message_ids: list[str]
    importance: int = Field(ge=1, le=10)


class Reflections(BaseModel):
    """Reflections that a model wrote about a debate."""

    reasoning: str
    reflections: list[ReflectionFinding]


class LaterReflections(Reflections):
    """Reflections by a model that has read earlier reflections on the same debate."""

    contradicted: list[str] = []


class RecentActivity(NamedTuple):
    """Disputes, concessions and changes of mind since the last reflection."""

    disputes: list[str]
    """Ids of the claims that became disputed since the last reflection. The dispute may have been settled
    since."""
    concessions: list[StanceEvent]
    shifts: list[StanceEvent]

    @property
    def score(self) -> int:
        """Return the weighted total of disputes, concessions and changes of mind."""
        movement_score = CONCESSION * len(self.concessions) + SHIFT * len(self.shifts)
        return DISAGREEMENT * len(self.disputes) + movement_score

    def message_ids(self, ledger: Ledger) -> list[str]:
        """Return at most `MAX_REFLECTION_SOURCES` ids of the newest messages with such events."""
        dispute_ids = [event["message_id"] for key in self.disputes for event in ledger.stances(key).values()]
        change_ids = [event["message_id"] for event in (*self.concessions, *self.shifts)]
        return sorted({*dispute_ids, *change_ids}, key=lambda key: seq_of(key) or 0)[-MAX_REFLECTION_SOURCES:]


@memoize_by_identity(8)
def recent_activity(ledger: Ledger) -> RecentActivity:
    """Return the disputes, concessions and changes of mind since the last reflection."""
    new_ids = {
        claim_event["id"] for claim_event in ledger.claim_events.get("event", ())[ledger.reflected_events :]
    }
    if not new_ids:
        return RecentActivity([], [], [])
    # A dispute counts from its start, even if it was settled before the threshold was reached.
    disputes = [key for key in ledger.claims if new_ids & {*ledger.timeline(key).dispute_starts}]
    shifts = [change.event for change in ledger.changes if change.event["id"] in new_ids]
    shift_ids = {event["id"] for event in shifts}
    concessions = [event for event in ledger.concessions() if event["id"] in new_ids - shift_ids]
    return RecentActivity(disputes, concessions, shifts)


def reflection_due(state: ConversationState) -> bool:
    """Return True if recent activity scores above `blackboard.reflection_threshold`."""
    threshold = state["config"].get("blackboard", {}).get("reflection_threshold", 15)
    return recent_activity(ledger_of(state)).score > int(threshold)


def reflection_call(
    debate: DebateContext, *, call_index: int, background: BackgroundTexts = no_background
) -> ModelCall:
    """Return the model call that asks for reflections on recent activity, given the background."""
    state, config, count, names = debate.state, debate.config, debate.count, debate.names
    remaining = max(200, config.memory.budget.total - _FRAME)
    ledger = ledger_of(state)
    transcript = state["full_transcript"]
    entries = structured_calls.add_person_messages(
        entries_of(recent_activity(ledger).message_ids(ledger), transcript), transcript
    )
    board = render_blackboard(
        state, "", max_tokens=min(REFLECTION_BOARD_TOKENS, remaining // 3), count=count, names=names
    )
    record = fenced(_record_text(debate, min(RECORD_TOKENS, remaining // 6)), config.fence, RECORD_HEADING)
    earlier = _earlier_reflections(state)
    insights = "\n".join(f"- {each['id']}: {each['content']}" for each in earlier)
    insights = fenced(truncate_middle(insights, min(EARLIER_TOKENS, remaining // 6), count), config.fence)
    system = REFLECT.render(
        topic=fenced(truncate_middle(state["topic"], remaining // 6, count), config.fence),
        debaters=structured_calls.debater_lines(config),
        board=f"{fenced_section(board, config.fence)}\n\n{record}",
        earlier=f"\n\n{REFLECT_EARLIER.render(insights=insights)}" if earlier else "",
    )
    prompt_texts = structured_calls.shown_entries(entries, config, remaining // 3, count)
    background_texts = background("\n".join(entry["content"] for entry in entries), remaining // 3)
    entry_ids = [entry["id"] for entry in entries]
    debaters_type = list[one_of(names)]  # type: ignore[valid-type,misc]  # this class is built for the debate
    finding_type = narrow_schema(
        ReflectionFinding, {"about": debaters_type, "message_ids": citation_type(entry_ids)}
    )
    fields = {"reflections": many(finding_type, 0, MAX_REFLECTIONS)}
    schema: type[Reflections] = narrow_schema(Reflections, fields)
    if earlier:
        contradicted_type = many(one_of(each["id"] for each in earlier), 0, EARLIER_REFLECTIONS)
        schema = narrow_schema(LaterReflections, {**fields, "contradicted": contradicted_type}, "Reflections")
    return structured_calls.structured_call(
        "reflect",
        config,
        system,
        [*background_texts, *prompt_texts],
        schema,
        count,
        memory_kind="reflections",
        call_index=call_index,
        about=entries,
    )


def _record_text(debate: DebateContext, max_tokens: int) -> str:
    """Return what moved in the rounds with recent activity, then the records of these rounds."""
    ledger, names, transcript = ledger_of(debate.state), debate.names, debate.state["full_transcript"]
    activity = recent_activity(ledger)
    events = [*activity.concessions, *activity.shifts]
    disputes = {*activity.disputes}
    numbers = {round_of(event["message_id"], transcript) for event in events}
    records = [
        each
        for each in round_records(ledger, transcript)
        if each["round"] in numbers or disputes & {*each["new_disputes"]}
    ]
    moves = [line for record in records for line in move_lines(record, ledger, names)]
    texts = [
        f"round {record['round']}, {names[debater]}: {text}"
        for record in records
        for debater, text in debater_lines(record, ledger, names).items()
    ]
    lines: list[str] = []
    for line in (*moves[::-1], *texts[::-1]):  # the newest first
        if debate.count("\n".join([*lines, f"- {line}"])) <= max_tokens:
            lines.append(f"- {line}")
    return "\n".join(lines)


def _earlier_reflections(state: ConversationState) -> list[Reflection]:
    return current_reflections(state)[-EARLIER_REFLECTIONS:]


def contradicted_reflections(state: ConversationState, contradicted: Sequence[str]) -> list[str]:
    """Return those ids in a model's reply that are earlier reflections it contradicts."""
    return [each["id"] for each in _earlier_reflections(state) if each["id"] in contradicted]


def reflections_by_model(debate: DebateContext, data: Mapping[str, Any]) -> list[Reflection]:
    """Return the reflections in a model's reply. Ids of unknown debaters and messages are removed."""
    state, names = debate.state, debate.names
    entry_count = len(state["full_transcript"])
    reflections: list[Reflection] = []
    for finding in data["reflections"][:MAX_REFLECTIONS]:
        debaters = [
            debater for name in finding["about"] if (debater := structured_calls.match_debater(name, names))
        ]
        cited_ids = [cited_id(key) for key in finding["message_ids"]]
        known_ids = [key for key in cited_ids if (seq := seq_of(key)) is not None and seq < entry_count]
        content = board_text(finding["content"], MAX_CONTENT_CHARS)
        if content:
            insight = _reflection(
                state, len(reflections), content, finding["kind"], debaters, known_ids, finding["importance"]
            )
            reflections.append(insight)
    return reflections


def reflections_by_rule(debate: DebateContext) -> list[Reflection]:
    """Return a reflection on the most important recent activity, written by fixed rules."""
    state, names, ledger = debate.state, debate.names, ledger_of(debate.state)
    news = recent_activity(ledger)
    if not news.score:
        return []
    kind: ReflectionKind = "escalation"
    if news.shifts or news.concessions:
        event = [*news.concessions, *news.shifts][-1]
        kind = "shift" if news.shifts else "convergence"
        debaters = [event["debater"]]
        action = "no longer holds what it held" if news.shifts else "gave way on one point"
        content = f"{names.get(event['debater'], event['debater'])} {action}: “{board_text(event['quote'])}”"
    else:
        key = news.disputes[0]
        debaters = [debater for side in ledger.timeline(key).sides for debater in side]
        subject = (
            "the topic itself" if key == MAIN_QUESTION else f"this: {board_text(ledger.claims[key]['text'])}"
        )
        evidence = [item for item in ledger.evidence if item["claim"] == key]
        evidence_note = "" if evidence else "; neither has named evidence for it yet"
        content = (
            f"{' and '.join(names.get(debater, debater) for debater in debaters)} contradict each other on "
            f"{subject}{evidence_note}"
        )
    importance = min(10, 4 + news.score // 10)
    ids = news.message_ids(ledger)
    return [_reflection(state, 0, board_text(content, MAX_CONTENT_CHARS), kind, debaters, ids, importance)]


def _reflection(
    state: ConversationState,
    number: int,
    content: str,
    kind: ReflectionKind,
    debaters: Sequence[str],
    message_ids: Sequence[str],
    importance: int,
) -> Reflection:
    return {
        "id": f"r{len(state.get('reflections') or []) + number + 1:04d}",
        "content": content,
        "kind": kind,
        "about": list(debaters),
        "message_ids": list(message_ids)[:MAX_REFLECTION_SOURCES],
        "round": int(state.get("round", 0)),
        "importance": importance,
    }
