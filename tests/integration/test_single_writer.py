"""Two concurrent runs of one debate in one process: one is refused, and no call is repeated."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig

from moot import DebateConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.models.registry import Models
from moot.state.errors import DebateBusy
from moot.storage.checkpoints import open_saver
from tests.support.fakes import FakeModel, fake_reply


class _SlowModel(FakeModel):
    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        self.calls.append(call)
        await asyncio.sleep(0.05)
        return fake_reply(call)


def _called_once(model: FakeModel) -> bool:
    return set(Counter(call.digest for call in model.calls if call.stream_as).values()) == {1}


def test_only_one_of_two_threads_runs_a_debate(tmp_path: Path) -> None:
    model = _SlowModel()
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Which queue?", DebateConfig(turns=4), name="d")
        outcomes: list[str] = []

        def run() -> None:
            try:
                outcomes.append(debates.get("d").run()["status"])
            except DebateBusy:
                outcomes.append("busy")

        threads = [threading.Thread(target=run) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sorted(outcomes) == ["busy", "done"]
        assert len(debate.document()["transcript"]) == 5
    assert _called_once(model)


def test_one_of_two_graph_runs_on_the_same_thread_id_is_refused(tmp_path: Path) -> None:
    model = _SlowModel()

    async def scenario() -> list[Any]:
        async with open_saver(str(tmp_path / "m.sqlite")) as saver:
            graph = build_graph(saver, environment=model.environment())
            thread: RunnableConfig = {"configurable": {"thread_id": str(uuid.uuid4())}}
            config = DebateConfig(turns=2)
            await graph.ainvoke({"topic": "T?"}, thread, context=config, interrupt_after=["plan"])
            runs = (graph.ainvoke(None, thread, context=config) for _ in range(2))
            return list(await asyncio.gather(*runs, return_exceptions=True))

    outcomes = asyncio.run(scenario())
    assert any(isinstance(outcome, DebateBusy) for outcome in outcomes)
    assert _called_once(model)
