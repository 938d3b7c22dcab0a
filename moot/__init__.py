"""Moot: language models argue, a judge decides, every step is checkpointed.

What runs debates is imported when it is first used, because LangGraph takes a second and a half to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from moot.state.errors import (
    ConfigError,
    DebateBusy,
    DebateExists,
    DebateNotFound,
    DebatePaused,
    InputError,
    JudgeFailed,
    ModelError,
    MootError,
    RunError,
    StorageError,
    UserError,
    WaitingForPerson,
)
from moot.state.plugins import protocols_are_in

if TYPE_CHECKING:
    from moot.graph.api import (
        Debate,
        DebateConfig,
        Debates,
        Environment,
        Event,
        aopen_debates,
        build_graph,
        open_debates,
    )
    from moot.graph.embedding import debate_node, debate_tool

__all__ = [
    "ConfigError",
    "Debate",
    "DebateBusy",
    "DebateConfig",
    "DebateExists",
    "DebateNotFound",
    "DebatePaused",
    "Debates",
    "Environment",
    "Event",
    "InputError",
    "JudgeFailed",
    "ModelError",
    "MootError",
    "RunError",
    "StorageError",
    "UserError",
    "WaitingForPerson",
    "aopen_debates",
    "build_graph",
    "debate_node",
    "debate_tool",
    "open_debates",
]

protocols_are_in("moot.nodes.protocols.protocol_table")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    module = "embedding" if name in {"debate_node", "debate_tool"} else "api"
    return getattr(import_module(f"moot.graph.{module}"), name)
