"""Moot: language models argue, a judge decides, every step is checkpointed.

The names here are imported when they are first used, because LangGraph takes a second and a half to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moot.state.home import protocols_are_in

if TYPE_CHECKING:
    from moot.graph.api import Debates, open_debates
    from moot.graph.continuation import Event
    from moot.graph.debate import build_graph
    from moot.graph.stored_debate import Debate
    from moot.state.config import DebateConfig

__all__ = ["Debate", "DebateConfig", "Debates", "Event", "build_graph", "open_debates"]

protocols_are_in("moot.nodes.protocols.protocol_table")
_HOMES = {
    "Debate": "moot.graph.stored_debate",
    "DebateConfig": "moot.state.config",
    "Debates": "moot.graph.api",
    "Event": "moot.graph.continuation",
    "build_graph": "moot.graph.debate",
    "open_debates": "moot.graph.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
