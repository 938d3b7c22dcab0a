"""Debates between LLM debaters, decided by a judge and checkpointed at every step.

The names that need LangGraph are imported on first use, because importing LangGraph takes 1.5 seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from moot.state.errors import (
    BudgetReached,
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
from moot.state.settings import use_protocols

if TYPE_CHECKING:
    from moot.api import Debate, Debates, Event, aopen_debates, checkpointer, open_debates
    from moot.config import DebateConfig, DebaterConfig, JudgeConfig, LimitsConfig, PanelJudge
    from moot.config.memory_config import (
        BlackboardConfig,
        Budget,
        MemoryConfig,
        PerspectiveConfig,
        RetrievalConfig,
    )
    from moot.config.model_settings import McpServerConfig, ModelSettings
    from moot.config.participants import ClarificationsConfig, PlannedInterjection, ReferenceDocument
    from moot.config.section import ProtocolSpecTable
    from moot.debates.events import (
        CruxEvent,
        EndEvent,
        EntryEvent,
        RetryEvent,
        StepEvent,
        StoreFailedEvent,
        SummaryEvent,
        TokenEvent,
        VerdictEvent,
    )
    from moot.documents import DebateDocument
    from moot.embedding import debate_node, debate_tool
    from moot.graph.debate import build_graph
    from moot.runtime.environment import Environment

__version__ = "0.1.0"

__all__ = [
    "BlackboardConfig",
    "Budget",
    "BudgetReached",
    "ClarificationsConfig",
    "ConfigError",
    "CruxEvent",
    "Debate",
    "DebateBusy",
    "DebateConfig",
    "DebateDocument",
    "DebateExists",
    "DebateNotFound",
    "DebatePaused",
    "DebaterConfig",
    "Debates",
    "EndEvent",
    "EntryEvent",
    "Environment",
    "Event",
    "InputError",
    "JudgeConfig",
    "JudgeFailed",
    "LimitsConfig",
    "McpServerConfig",
    "MemoryConfig",
    "ModelError",
    "ModelSettings",
    "MootError",
    "PanelJudge",
    "PerspectiveConfig",
    "PlannedInterjection",
    "ReferenceDocument",
    "RetrievalConfig",
    "RetryEvent",
    "RunError",
    "StepEvent",
    "StorageError",
    "StoreFailedEvent",
    "SummaryEvent",
    "TokenEvent",
    "UserError",
    "VerdictEvent",
    "WaitingForPerson",
    "__version__",
    "aopen_debates",
    "build_graph",
    "checkpointer",
    "debate_node",
    "debate_tool",
    "open_debates",
]


def _protocols() -> "ProtocolSpecTable":
    from moot.protocols import registry

    return registry


use_protocols(_protocols)


_HOMES = (
    *("api", "config", "config.memory_config", "config.model_settings", "config.participants"),
    *("debates.events", "documents", "embedding", "graph.debate", "runtime.environment"),
)
"""Modules that define the names, in `moot`."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    members = (getattr(import_module(f"moot.{home}"), name, None) for home in _HOMES)
    return next(member for member in members if member is not None)
