"""UI messages for chats: the verdict and the debaters' positions, as data for components of the client.

A client such as LangGraph's React SDK shows a UI message with its own component of the same name, beside the
chat message that the UI message belongs to.
"""

from collections.abc import Mapping
from typing import Literal

from moot.claims.ledger_from_events import ledger_of
from moot.config.debate_config import frozen_config
from moot.judging.verdict_fields import shown
from moot.state.conversation import StateValues, UIMessage
from moot.state.entries import JsonObject
from moot.state.verdict import PanelVerdict


def result_ui_messages(values: StateValues, headline: str, message_id: str) -> list[UIMessage]:
    """Return the UI messages `verdict` and `positions` for the result of a debate."""
    props = {"verdict": _verdict_props(values, headline), "positions": _position_props(values)}
    return [_ui_message(name, data, message_id) for name, data in props.items()]


def _ui_message(name: str, props: JsonObject, message_id: str) -> UIMessage:
    kind: Literal["ui"] = "ui"
    metadata = {"message_id": message_id, "merge": False}
    return {"type": kind, "id": f"{message_id}-{name}", "name": name, "props": props, "metadata": metadata}


def _verdict_props(values: StateValues, headline: str) -> JsonObject:
    """Return the props of the verdict's UI message. `fields` are in the order of display."""
    verdict: PanelVerdict | None = values.get("verdict") or None
    end_reason = (values.get("step") or {}).get("end_reason", {}).get("reason", "")
    props: JsonObject = {
        "question": values.get("topic", ""),
        "status": verdict["status"] if verdict else "none",
        "headline": headline,
        "decision": "",
        "winner": "",
        "confidence": None,
        "reasoning": "",
        "placeholder": False,
        "error": "",
        "end_reason": end_reason,
        "fields": [],
    }
    if verdict is None:
        return props
    fields = shown(verdict, frozen_config(values).names(), headline=headline)
    return {
        **props,
        "decision": verdict.get("decision", ""),
        "winner": verdict["winner"],
        "confidence": verdict.get("confidence"),
        "reasoning": verdict["reasoning"],
        "placeholder": bool(verdict.get("placeholder")),
        "error": verdict["error"],
        "fields": [
            {
                "name": field.name,
                "label": field.label,
                "lines": [{"text": line.text, "citations": list(line.citations)} for line in field.lines],
                "percent": field.percent,
            }
            for field in fields
        ],
    }


def _position_props(values: StateValues) -> JsonObject:
    """Return the props of the UI message that shows each debater's stance and changes of position."""
    verdict: Mapping[str, object] = values.get("verdict") or {}
    final, moved = verdict.get("final_position"), verdict.get("moved")
    final_positions: Mapping[str, str] = final if isinstance(final, Mapping) else {}
    moves = moved if isinstance(moved, list) else []
    ledger = ledger_of(values)
    debaters = []
    for debater in frozen_config(values).debaters:
        stance = ledger.stance(debater.id)
        debaters.append(
            {
                "id": debater.id,
                "name": debater.name,
                "role": debater.role,
                "stance": debater.stance,
                "position": final_positions.get(debater.id, ""),
                "quote": stance["quote"] if stance else "",
                "citation": stance["message_id"] if stance else "",
                "moved": [
                    {key: move[key] for key in ("before", "after", "stated_in", "caused_by")}
                    for move in moves
                    if move["debater"] == debater.id
                ],
            }
        )
    return {"debaters": debaters}
