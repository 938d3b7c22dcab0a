"""Base class of both checkpointers that reports damaged checkpoints when it reads them."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from moot.state.langgraph_internals import sort_checkpoints_after
from moot.storage.sqlite import reading


class CheckedSaver(BaseCheckpointSaver[str]):
    """Base class for checkpointers, which raises an error if a checkpoint that it reads is damaged.

    A subclass names this class before the class that reads the database.
    """

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint of `config`, or the latest one. A damaged one is a `StorageError`."""
        with reading("a checkpoint of the debate"):
            checkpoint_tuple = _checked(await super().aget_tuple(config))
            if checkpoint_tuple is not None:
                sort_checkpoints_after(checkpoint_tuple.checkpoint["id"])
        return checkpoint_tuple

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, object] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, newest first. A damaged one is a `StorageError`."""
        iterator = super().alist(config, filter=dict(filter or {}), before=before, limit=limit)
        checkpoint_tuples = cast(AsyncGenerator[CheckpointTuple], iterator)
        async with aclosing(checkpoint_tuples):
            while True:
                with reading("a checkpoint of the debate"):
                    checkpoint_tuple = _checked(await anext(checkpoint_tuples, None))
                if checkpoint_tuple is None:
                    return
                yield checkpoint_tuple


def _checked(checkpoint_tuple: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return a checkpoint from the database. Parts of other types than expected raise `TypeError`."""
    if checkpoint_tuple is None:
        return None
    typed_values: Sequence[tuple[object, type]] = (
        (checkpoint_tuple.checkpoint, dict),
        (checkpoint_tuple.metadata, dict),
        (checkpoint_tuple.config["configurable"]["checkpoint_id"], str),
        (checkpoint_tuple.checkpoint["id"], str),
    )
    for value, kind in typed_values:
        if not isinstance(value, kind):
            raise TypeError(f"{type(value).__name__} instead of {kind.__name__}")
    return checkpoint_tuple
