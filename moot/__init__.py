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
    from moot.api import (
        BlackboardConfig,
        Budget,
        ClarificationsConfig,
        CruxEvent,
        Debate,
        DebateConfig,
        DebateDocument,
        DebaterConfig,
        Debates,
        EndEvent,
        EntryEvent,
        Environment,
        Event,
        JudgeConfig,
        LimitsConfig,
        McpServerConfig,
        MemoryConfig,
        ModelSettings,
        PanelJudge,
        PerspectiveConfig,
        PlannedInterjection,
        ReferenceDocument,
        RetrievalConfig,
        RetryEvent,
        StepEvent,
        StoreFailedEvent,
        SummaryEvent,
        TokenEvent,
        VerdictEvent,
        aopen_debates,
        build_graph,
        open_debates,
    )
    from moot.config.section import ProtocolSpecTable
    from moot.embedding import debate_node, debate_tool

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
    "debate_node",
    "debate_tool",
    "open_debates",
]


def _protocols() -> "ProtocolSpecTable":
    from moot.protocols import registry

    return registry


use_protocols(_protocols)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    module = "embedding" if name in {"debate_node", "debate_tool"} else "api"
    return getattr(import_module(f"moot.{module}"), name)
