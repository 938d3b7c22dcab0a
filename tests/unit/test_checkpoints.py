"""Checkpoints in SQLite: compression, copies, deletion and errors."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.state.errors import InputError, StorageError
from moot.storage.checkpoints import CompressingSerializer, MootSqliteSaver, make, open_saver
from tests.support.fakes import FakeModel

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_serialized_values_are_loaded_unchanged(value: Any) -> None:
    serializer = CompressingSerializer()
    assert serializer.loads_typed(serializer.dumps_typed(value)) == value


@pytest.mark.parametrize(
    "stored",
    [("x", b""), ("msgpack", b"\xc1"), ("msgpack", "text"), ("zlib+msgpack", b"x"), (None, b"")],
    ids=repr,
)
def test_a_damaged_value_raises_a_storage_error(stored: Any) -> None:
    with pytest.raises(StorageError, match="restore a backup"):
        CompressingSerializer().loads_typed(stored)


def test_large_values_are_compressed_and_plain_ones_still_load() -> None:
    serializer = CompressingSerializer()
    messages = [AIMessage(content="the same words again " * 20, id=f"m{n:06d}") for n in range(50)]
    tag, blob = serializer.dumps_typed(messages)
    plain = JsonPlusSerializer().dumps_typed(messages)
    assert tag == f"zlib+{plain[0]}"
    assert len(blob) < len(plain[1]) / 5
    assert serializer.loads_typed(plain) == messages


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


async def _run_debate(saver: Any, thread: str, **config: Any) -> Any:
    graph = build_graph(saver, environment=FakeModel().environment())
    run_config: Any = {**_config(thread), **config}
    await graph.ainvoke({"topic": "T"}, run_config, context=DebateConfig(turns=2))
    return graph


def test_copying_a_thread_copies_its_state(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_saver(str(tmp_path / "m.sqlite")) as saver:
            assert isinstance(saver, MootSqliteSaver)
            source, target = str(uuid.uuid4()), str(uuid.uuid4())
            graph = await _run_debate(saver, source)
            await saver.acopy_thread(source, target)
            first, second = [(await graph.aget_state(_config(t))).values for t in (source, target)]
            assert first == second

    asyncio.run(scenario())


def test_the_checkpoints_of_a_rolled_back_server_run_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_saver(str(tmp_path / "m.sqlite")) as saver:
            assert isinstance(saver, MootSqliteSaver)
            thread = str(uuid.uuid4())
            graph = await _run_debate(saver, thread, metadata={"run_id": "run-1"})
            await saver.adelete_for_runs(["run-2"])
            assert (await graph.aget_state(_config(thread))).values["status"] == "done"
            await saver.adelete_for_runs(["run-1"])
            assert not (await graph.aget_state(_config(thread))).values.get("status")

    asyncio.run(scenario())


def test_the_servers_checkpointer_uses_the_default_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "server.sqlite"
    monkeypatch.setenv("MOOT_DB", str(path))

    async def scenario() -> None:
        async with make() as saver:
            assert isinstance(saver, MootSqliteSaver)

    asyncio.run(scenario())
    assert path.exists()


def test_an_unopenable_database_raises_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    async def scenario() -> None:
        async with open_saver(str(tmp_path / "folder")):
            pass

    with pytest.raises(InputError, match="folder"):
        asyncio.run(scenario())


def test_a_cancelled_write_leaves_no_open_transaction(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_saver(str(tmp_path / "m.sqlite")) as saver:
            assert isinstance(saver, MootSqliteSaver)
            config: Any = {"configurable": {"thread_id": str(uuid.uuid4()), "checkpoint_ns": ""}}
            for steps in range(40):
                checkpoint: Any = {**empty_checkpoint(), "id": f"{steps:04}"}
                writing = asyncio.ensure_future(saver.aput(config, checkpoint, {}, {}))
                for _ in range(steps):
                    await asyncio.sleep(0)
                writing.cancel()
                await asyncio.wait([writing])
                assert not saver.conn.in_transaction, steps

    asyncio.run(scenario())
