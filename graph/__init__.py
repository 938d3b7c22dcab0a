"""How a debate is wired and used: the graph, the Python API, the command line and reports.

The names here are imported when they are first used, because LangGraph takes a second and a half to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph.api import Debates, open_debates
    from graph.debate import build_graph
    from graph.stored_debate import Debate, Event
    from state.config import DebateConfig

__all__ = ["Debate", "DebateConfig", "Debates", "Event", "build_graph", "open_debates"]

_HOMES = {
    "Debate": "graph.stored_debate",
    "DebateConfig": "state.config",
    "Debates": "graph.api",
    "Event": "graph.stored_debate",
    "build_graph": "graph.debate",
    "open_debates": "graph.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'graph' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
