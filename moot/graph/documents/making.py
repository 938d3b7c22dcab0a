"""From a debate's state to its document."""

from collections.abc import Sequence
from typing import Any, cast

from moot.graph.documents.document import (
    FORMAT,
    Admission,
    Blackboard,
    CarriedState,
    DebateDocument,
    RoundRecord,
    Stance,
    Standing,
    Usage,
)
from moot.nodes.blackboard.board_words import cards_of
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.outcome import stages
from moot.nodes.blackboard.standing import Ledger, leaning
from moot.nodes.protocols.stand_in import forecast
from moot.state.catalogue import DebateRow
from moot.state.config import DebateConfig
from moot.state.conversation import OVER, SCHEMA_VERSION, ConversationState, StateValues
from moot.state.earlier_builds import up_to_date
from moot.state.entries import Entry, JsonObject, round_of
from moot.state.ledger import MOTION, Event
from moot.state.redaction import shown_url


def make_document(row: DebateRow, values: StateValues) -> DebateDocument:
    """Return a debate's document from its catalogue row and its state's values."""
    state = up_to_date(cast(ConversationState, values))
    config, topic, verdict = state.get("config", {}), state.get("topic", ""), state.get("verdict") or None
    # The reason stays in the last step until the debate is gone on with.
    ended = state.get("step", {}).get("ended_by") if state.get("status") in OVER else None
    carried = {
        key: value
        for key, value in state.items()
        if key in CarriedState.__annotations__ and value not in ({}, [], "")
    }
    return {
        "format": FORMAT,
        "id": row.id,
        "name": row.name,
        "topic": topic,
        "status": cast(Any, row.status),  # the catalogue keeps these words alone
        "ended_because": ended["reason"] if ended else "",
        "protocol": config.get("protocol", row.protocol),
        "config": _without_passwords(config),
        "transcript": state.get("full_transcript", []),
        "summaries": state.get("summary_versions", []),
        "receipts": state.get("receipts", []),
        "calls": state.get("calls", []),
        "blackboard": board_document(state),
        "verdicts": state.get("verdicts", []),
        "verdict": verdict,
        "agreement": verdict.get("agreement", {}) if verdict else {},
        "solution": state.get("solution", ""),
        "convergence": state.get("convergence", []),
        "usage": _usage(state.get("usage", {})),
        "planned": _forecast_of(config, topic),
        "errors": state.get("errors", []),
        "prompt_sources": state.get("prompt_sources", {}),
        "state": cast(CarriedState, carried),
        "parent": row.parent,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "schema_version": SCHEMA_VERSION,
    }


def _without_passwords(value: Any) -> Any:
    """Return a configuration, or a part of one, whose addresses have no passwords in them."""
    if isinstance(value, dict):
        return {key: _without_passwords(part) for key, part in value.items()}
    return shown_url(value) if isinstance(value, str) and "://" in value else value


def _forecast_of(config: JsonObject, topic: str) -> JsonObject:
    """Return what the run was forecast to take, `{}` where that cannot be said."""
    if not config:
        return {}
    planned = forecast(DebateConfig.model_validate({**config, "topic": topic.strip() or None}))
    return planned.to_json() if planned else {}


def _usage(usage: dict[str, float]) -> Usage:
    return {
        "calls": int(usage.get("calls", 0)),
        "prompt_tokens": int(usage.get("prompt_tokens", 0)),
        "completion_tokens": int(usage.get("completion_tokens", 0)),
        "cached_tokens": int(usage.get("cached_tokens", 0)),
        "reasoning_tokens": int(usage.get("reasoning_tokens", 0)),
        "cost_usd": round(usage.get("cost_usd", 0.0), 6),
        "elapsed_s": round(usage.get("elapsed_s", 0.0), 3),
    }


def board_document(state: StateValues) -> Blackboard:
    """Return the blackboard of a debate's state."""
    return {
        "minutes": list(state.get("minutes") or []),
        "standing": standing_of(state),
        "reflections": list(state.get("reflections") or []),
        "cards": cards_of(state),
    }


def standing_of(state: StateValues) -> Standing:
    """Return how things stand in a debate's state."""
    ledger, found = ledger_of(state), stages(state)
    cards = {card["claim"]: card["id"] for card in cards_of(state)}
    before = {change.event["id"]: change.before for change in ledger.changes}

    def admission(event: Event) -> Admission:
        former = before.get(event["id"])
        return {
            "event": event["id"],
            "debater": event["debater"],
            "proposition": event["proposition"],
            "core": ledger.is_core(event),
            "message_id": event["message_id"],
            "quote": event["quote"],
            "before": former["quote"] if former else "",
        }

    return {
        "propositions": [
            {
                "id": key,
                "text": ledger.propositions[key]["text"],
                "aspect": ledger.propositions[key]["aspect"],
                "status": ledger.status(key),
                "stage": found[key],
                "stances": _stances(ledger, key),
                "card": cards.get(key, ""),
            }
            for key in ledger.by_salience
        ],
        "concessions": [admission(event) for event in ledger.concessions()],
        "changes": [admission(change.event) for change in ledger.changes],
        "open_challenges": [each["id"] for each in ledger.open_challenges()],
        "open_questions": [each["id"] for each in ledger.open_questions()],
        "rounds": _rounds(ledger, state.get("full_transcript") or []),
        "dropped": dict(ledger.dropped),
    }


def _stances(ledger: Ledger, key: str) -> dict[str, Stance]:
    history: dict[str, list[str]] = {}
    for turn in ledger.course(key):
        history.setdefault(turn.event["debater"], []).append(turn.event["id"])
    return {
        who: {
            "kind": event["kind"],
            "condition": event["condition"],
            "message_id": event["message_id"],
            "quote": event["quote"],
            "history": history[who],
        }
        for who, event in ledger.stances(key).items()
    }


def _rounds(ledger: Ledger, transcript: Sequence[Entry]) -> list[RoundRecord]:
    """Return a record for each round in which anything was noted."""
    records: dict[int, RoundRecord] = {}
    moved = {change.event["id"] for change in ledger.changes} | {e["id"] for e in ledger.concessions()}
    held: dict[str, dict[str, int]] = {}
    disputed: set[str] = set()
    for event in ledger.events:
        round_no = round_of(event["message_id"], transcript)
        empty = RoundRecord(round=round_no, positions={}, new_disputes=[], moved=[])
        record = records.setdefault(round_no, empty)
        if event["proposition"] == MOTION or event["debater"] not in record["positions"]:
            record["positions"][event["debater"]] = event["quote"]
        key = event["proposition"]
        held.setdefault(key, {})[event["debater"]] = leaning(event)
        if key and key not in disputed and {1, -1} <= set(held[key].values()):
            disputed.add(key)
            record["new_disputes"].append(key)
        if event["id"] in moved:
            record["moved"].append(event["id"])
    return [records[number] for number in sorted(records)]
