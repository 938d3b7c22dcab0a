"""Base class of both checkpointers that reports damaged checkpoints when it reads them."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from moot.state.langgraph_internals import sort_checkpoints_after
from moot.storage.sqlite import reading


class CheckedSaver(BaseCheckpointSaver[str]):
    """Base class of checkpointers that report damaged checkpoints.

    A subclass names it before the class that reads the database.
    """

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint identified by `config`, or the latest checkpoint if `config` has no id.

        Raises:
            StorageError: the checkpoint is damaged.
        """
        with reading("a checkpoint of the debate"):
            found = _checked(await super().aget_tuple(config))
            if found is not None:
                sort_checkpoints_after(found.checkpoint["id"])
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, object] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, newest first.

        Raises:
            StorageError: a checkpoint is damaged.
        """
        stored = super().alist(config, filter=dict(filter or {}), before=before, limit=limit)
        every = cast(AsyncGenerator[CheckpointTuple], stored)
        async with aclosing(every):
            while True:
                with reading("a checkpoint of the debate"):
                    found = _checked(await anext(every, None))
                if found is None:
                    return
                yield found


def _checked(found: CheckpointTuple | None) -> CheckpointTuple | None:
    """Check the types in a checkpoint from the database, and return the checkpoint.

    Raises:
        TypeError: the checkpoint, its metadata or its id has another type.
    """
    if found is None:
        return None
    stored: Sequence[tuple[object, type]] = (
        (found.checkpoint, dict),
        (found.metadata, dict),
        (found.config["configurable"]["checkpoint_id"], str),
        (found.checkpoint["id"], str),
    )
    for value, kind in stored:
        if not isinstance(value, kind):
            raise TypeError(f"{type(value).__name__} instead of {kind.__name__}")
    return found
