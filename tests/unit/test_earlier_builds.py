"""What earlier builds stored and exported is read, shown and gone on with as today's."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console, Group

from moot.graph.cli.screen import showing
from moot.graph.debate import DebateGraph, build_graph
from moot.graph.documents import make_document
from moot.graph.importing.adopting import document_values
from moot.graph.lifetime import imported_row
from moot.nodes.driving.environment import Environment
from moot.state.conversation import SCHEMA_VERSION
from moot.state.earlier_builds import up_to_date
from tests.support.personas import STATEMENTS, Personas, personas

FIXTURES = Path(__file__).parents[1] / "fixtures"
THREAD: Any = {"configurable": {"thread_id": "2b0c5c1e-6f0b-4b0e-9a5e-3d8f9e1f7a10"}}
DISPUTES = {"respond": (("Ada Quay", "Bob", STATEMENTS[0]),), "reply": (("Bob", "Cyd", STATEMENTS[1]),)}


def _as_stored_before(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state's values as the build before schema version 2 laid them out."""
    last = {"|".join(sorted(room["between"])): room["round"] for room in values["crux_rooms"].values()}
    kept = {key: room for key, room in values["crux_rooms"].items() if not room["closed"]}
    step = {key: values["step"][key] for key in ("no", "kind", "phase", "round", "floors")}
    moved = ("crux_rooms", "clarifications", "convergence")
    drawer = {
        **values["protocol_state"],
        "aspect": values["step"]["aspect"],
        "last_words": values["step"].get("last_words", False),
        "rooms": {
            key: {name: value for name, value in room.items() if name != "round"}
            for key, room in kept.items()
        },
        "crux": {"opened": len(values["crux_rooms"]), "last": last},
    }
    return {
        **{key: value for key, value in values.items() if key not in moved and value not in ({}, [], "")},
        "step": {**step, "reason": ""},
        "protocol_state": drawer,
        "schema_version": 1,
    }


@pytest.mark.parametrize("name", ["council-rate-limiter", "dialogue-free-transport"])
def test_an_export_of_the_build_before_imports_and_shows_as_it_was(name: str) -> None:
    document = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    values = document_values(document, Environment())
    again = make_document(imported_row(values, None, "", document), values)
    differing = {key for key in document if again.get(key) != document[key]} - {"questions", "planned"}
    assert differing == {"state", "schema_version", "blackboard"}
    # What was noted without quotations is read anew; what was made of it stays.
    kept = ("reflections", "cards")
    assert all(document["blackboard"][key] == again["blackboard"][key] for key in kept)  # type: ignore[literal-required]  # two of its keys
    for part in (showing.overview, showing.transcript, showing.summaries):
        assert _printed(part(again)) == _printed(part(document))


def _printed(parts: showing.Parts) -> str:
    written = io.StringIO()
    Console(file=written, width=100).print(Group(*parts))
    return written.getvalue()


@pytest.mark.parametrize("phase", ["respond", "crux-exchange", "take", "closing"])
def test_a_dialogue_stored_by_the_build_before_goes_on_as_if_nothing_had_happened(phase: str) -> None:
    config = personas(3)
    whole = _graph()
    whole.invoke({"topic": "Freight?"}, THREAD, context=config)
    history = list(whole.get_state_history(THREAD))
    stopped = next(
        each
        for each in history
        if each.next == ("plan",) and each.values.get("step", {}).get("phase") == phase
    )
    moved = _graph()
    moved.update_state(THREAD, _as_stored_before(stopped.values), "trim")
    moved.invoke(None, THREAD)
    wanted, found = (graph.get_state(THREAD).values for graph in (whole, moved))
    told = ("content", "speaker", "phase", "room", "targets", "round")
    assert [{key: entry[key] for key in told} for entry in found["full_transcript"]] == [
        {key: entry[key] for key in told} for entry in wanted["full_transcript"]
    ]
    for channel in ("minutes", "crux_cards", "status", "turn_count"):
        assert found[channel] == wanted[channel]


def _graph() -> DebateGraph:
    return build_graph(InMemorySaver(), environment=Personas(DISPUTES).environment())


def test_what_was_written_since_wins_over_the_drawer() -> None:
    room = {"id": "room-01", "claim": "c1", "between": ["ada", "bob"], "closed": False}
    drawer = {
        "rooms": {"room-01": room},
        "crux": {"opened": 1, "last": {"ada|bob": 3}},
        "convergence": {"1": {"agreement": 0.5, "in_dispute": []}},
        "clarifications": {"rounds": 1, "settled": False},
    }
    stored: dict[str, Any] = {"protocol_state": drawer, "schema_version": 1, "step": {"no": 3, "reason": ""}}
    read = up_to_date(stored)
    assert read["crux_rooms"] == {"room-01": {**room, "round": 3}}
    assert read["convergence"] == [{"round": 1, "agreement": 0.5, "in_dispute": []}]
    since = {**stored, "crux_rooms": {"room-01": {**room, "closed": True}}}
    later = up_to_date(since)
    assert later["crux_rooms"]["room-01"]["closed"]
    assert up_to_date(later) == later


@pytest.mark.parametrize(
    ("reason", "ended_by"),
    [
        ("all 3 turns are taken", {"by": "protocol", "what": "", "reason": "all 3 turns are taken"}),
        (
            "limit: limits.cost_usd of 2 is reached",
            {"by": "limit", "what": "limits.cost_usd", "reason": "limits.cost_usd of 2 is reached"},
        ),
    ],
)
def test_why_a_debate_ended_is_read_from_the_words_it_was_kept_in(
    reason: str, ended_by: dict[str, str]
) -> None:
    step = {"no": 3, "kind": "close", "reason": reason}
    stored: dict[str, Any] = {"schema_version": 1, "step": step}
    assert up_to_date(stored)["step"]["ended_by"] == ended_by


def test_a_state_of_today_is_not_touched() -> None:
    state = {"schema_version": SCHEMA_VERSION, "protocol_state": {"board": "the protocol's own"}}
    assert up_to_date(state) is state
