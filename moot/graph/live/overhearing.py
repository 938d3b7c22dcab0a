"""Words of debates that LangGraph's server runs for other clients, for whoever looks at them on the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.constants import TAG_NOSTREAM
from typing_extensions import override

from moot.graph.debate_host import DebateHost
from moot.state.entries import seq_of

T = TypeVar("T")


class Overhearing(AsyncCallbackHandler):
    """Has a host hear speeches as they are streamed in the runs that have this among their callbacks.

    By its `tap_` methods LangChain knows it as one for whom models are to stream. Runs may be in threads
    other than the host's: this is made in that.
    """

    def __init__(self, host: DebateHost) -> None:
        """Listen for a host."""
        self._host, self._loop = host, asyncio.get_running_loop()
        self._runs: dict[UUID, tuple[str, str]] = {}
        """Debate, and the entry that is being said, of each call under way."""

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[T]) -> AsyncIterator[T]:
        """Leave it as it is."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Iterator[T]) -> Iterator[T]:
        """Leave it as it is."""
        return output

    @override
    async def on_chat_model_start(self, *_: object, run_id: UUID, **told: object) -> None:
        tags, metadata = told.get("tags"), told.get("metadata")
        heard = not (isinstance(tags, list) and TAG_NOSTREAM in tags)
        if heard and isinstance(metadata, dict) and metadata.get("thread_id"):
            self._runs[run_id] = (str(metadata["thread_id"]), "")

    @override
    async def on_llm_new_token(self, *_: object, run_id: UUID, **told: object) -> None:
        message = getattr(told.get("chunk"), "message", None)
        if run_id in self._runs and message and message.text and seq_of(message.id or "") is not None:
            debate = self._runs[run_id][0]
            self._runs[run_id] = (debate, message.id)
            event = {"event": "token", "id": message.id, "speaker": message.name, "text": message.text}
            self._loop.call_soon_threadsafe(self._host.hear, debate, event)

    @override
    async def on_llm_end(self, *_: object, run_id: UUID, **told: object) -> None:
        if said := self._runs.pop(run_id, None):
            self._loop.call_soon_threadsafe(self._host.forget_speech, *said)

    @override
    async def on_llm_error(self, *_: object, run_id: UUID, **told: object) -> None:
        await self.on_llm_end(run_id=run_id)
