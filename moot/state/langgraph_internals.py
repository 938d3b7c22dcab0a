"""What Moot uses of LangGraph and LangChain beyond what they document, each once, with its reason.

Nothing says that these names will stay; `tests/unit/test_langgraph_internals.py` tells which one changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.outputs import ChatGenerationChunk
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint

TRIED = {"langgraph": "1.2.22", "langchain-core": "1.7.2"}
"""Versions with which these were seen to work."""


def checkpointer_in(config: RunnableConfig) -> BaseCheckpointSaver[str] | None:
    """Return the checkpointer of the run that a node is in: its runtime names the thread alone."""
    saver: BaseCheckpointSaver[str] | None = config.get("configurable", {}).get("__pregel_checkpointer")
    return saver


def runs_next(checkpoint: Checkpoint, node: str) -> bool:
    """Return whether a node runs after a checkpoint: a snapshot's `next` rebuilds every channel to say so."""
    return f"branch:to:{node}" in checkpoint["channel_values"]


def is_nested(checkpoint_ns: str) -> bool:
    """Return whether a node's graph is part of another one, by the checkpoint namespace of the node's run."""
    return "|" in checkpoint_ns


def message_events(
    chunks: AsyncIterator[ChatGenerationChunk], message_id: str | None
) -> AsyncIterator[object]:
    """Return chunks as the events of LangGraph's stream protocol, v3, under a message's own id.

    LangChain names the message after the run, unless a chat model makes the events itself.
    """
    from langchain_core.language_models._compat_bridge import achunks_to_events

    return achunks_to_events(chunks, message_id=message_id)
