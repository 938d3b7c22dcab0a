"""From a debate's state to its document."""

from typing import Any, cast

from moot.graph.documents.board import board_document
from moot.graph.documents.document import FORMAT, CarriedState, DebateDocument, Usage
from moot.nodes.protocols.stand_in import forecast
from moot.state.catalogue import DebateRow
from moot.state.config import DebateConfig
from moot.state.conversation import OVER, SCHEMA_VERSION, ConversationState, StateValues
from moot.state.earlier_builds import up_to_date
from moot.state.entries import JsonObject
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
        "planned": _planned(config, topic),
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


def _planned(config: JsonObject, topic: str) -> JsonObject:
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
