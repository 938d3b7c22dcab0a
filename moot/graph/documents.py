"""The `moot.debate/1` document: one debate as JSON, for programs, reports and exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.state.catalogue import DebateRow
from moot.state.config import DebateConfig
from moot.state.conversation import SCHEMA_VERSION
from moot.state.earlier_builds import up_to_date

FORMAT = "moot.debate/1"
CARRIED = (
    "rolling_summary",
    "perspective_summaries",
    "judge_summary",
    "protocol_state",
    "crux_rooms",
    "board_progress",
    "clarifications",
    "step",
    "round",
)
"""Channels that a document carries as they are, so that the debate can be gone on with elsewhere."""


def make_document(row: DebateRow, state: Mapping[str, Any], *, status: str | None = None) -> dict[str, Any]:
    """Return a debate's document from its catalogue row and its state's values."""
    state = up_to_date(state)
    config = dict(state.get("config") or {})
    return {
        "format": FORMAT,
        "id": row.id,
        "name": row.name,
        "topic": state.get("topic", ""),
        "status": status or row.status,
        "ended_because": _ended_because(state),
        "protocol": config.get("protocol", row.protocol),
        "config": config,
        "transcript": list(state.get("full_transcript") or []),
        "summaries": list(state.get("summary_versions") or []),
        "receipts": list(state.get("receipts") or []),
        "blackboard": {
            "ledger": state.get("ledger") or {},
            "claims": list((state.get("claims") or {}).values()),
            "rounds": list(state.get("round_records") or []),
            "reflections": list(state.get("reflections") or []),
            "cards": list((state.get("crux_cards") or {}).values()),
        },
        "verdicts": list(state.get("verdicts") or []),
        "verdict": state.get("verdict") or None,
        "agreement": _agreement(state.get("verdict") or {}),
        "solution": state.get("solution") or "",
        "convergence": list(state.get("convergence") or []),
        "usage": _usage(state.get("usage") or {}),
        "planned": _planned(config, state),
        "errors": list(state.get("errors") or []),
        "prompt_sources": state.get("prompt_sources") or {},
        "state": {key: state[key] for key in CARRIED if state.get(key)},
        "parent": row.parent,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "schema_version": SCHEMA_VERSION,
    }


def _ended_because(state: Mapping[str, Any]) -> str:
    """Return why a debate is over: the reason stays in its last step until it is gone on with."""
    if state.get("status") not in ("done", "limit"):
        return ""
    ended = (state.get("step") or {}).get("ended_by") or {"reason": ""}
    return str(ended["reason"])


def _planned(config: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the run was forecast to take, `{}` where that cannot be said."""
    if not config:
        return {}
    from moot.nodes.protocols.protocol_table import protocol_named

    frozen = DebateConfig.model_validate({**config, "topic": state.get("topic") or None})
    forecast = protocol_named(frozen.protocol).forecast(frozen)
    return forecast.to_json() if forecast else {}


def _agreement(verdict: Mapping[str, Any]) -> dict[str, Any]:
    return dict(verdict.get("agreement") or {})


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    counts = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    return {
        **{key: int(usage.get(key, 0)) for key in counts},
        "cost_usd": round(float(usage.get("cost_usd", 0.0)), 6),
        "elapsed_s": round(float(usage.get("elapsed_s", 0.0)), 3),
    }
