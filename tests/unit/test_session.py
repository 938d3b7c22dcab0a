"""Updates of a debate's state do not change its next step, and states are loaded once."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START

from moot import DebateConfig, open_debates
from moot.graph.debate import NODES, build_graph, graph
from moot.graph.runnable import DebateGraph
from tests.support.fakes import FakeModel

EDGES = {(edge.source, edge.target) for edge in graph.get_graph().edges}
CONFIG = DebateConfig.model_validate(
    {
        "turns": 4,
        "seed": 1,
        "memory": {"keep_recent": 2, "summarize_every": 1},
        "blackboard": {"extraction": "llm", "model": "m"},
    }
)


@pytest.mark.parametrize("node", [name for name in NODES if name != "open"])
def test_node_before_returns_a_predecessor_in_the_graph(node: str) -> None:
    assert (graph.node_before(node), node) in EDGES


def test_drawing_has_all_nodes_and_each_transition_of_a_run() -> None:
    drawn = graph.get_graph().draw_mermaid()
    assert set(re.findall(r"^\t(\w+)\(", drawn, re.M)) == {START, *NODES, END}
    assert all(f"\t{name}({name}<hr/><small><em>description = " in drawn for name in NODES)
    one: Any = build_graph(environment=FakeModel().environment())
    parts = one.stream({"topic": "Is it drawn?"}, context=CONFIG, stream_mode="updates")
    ran = [START, *(node for part in parts for node in part), END]
    assert len({*ran}) >= 9
    assert {*pairwise(ran)} <= EDGES


def test_update_does_not_change_the_next_node(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        session = debates.start("Does an update move a debate?", CONFIG, name="d").session
        seen = set()
        while following := session.caught_up().next:
            session.update({"solution": "Written."})
            assert session.state().next == following
            seen |= set(following)
            session.advance(interrupt_after=following)
        assert {"plan", "turn", "extract", "trim", "summarize", "judge", "close"} <= seen


def test_state_is_loaded_once_per_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    load = DebateGraph.aget_state

    async def counted(self: DebateGraph, config: RunnableConfig, **options: Any) -> Any:
        loads.append(config)
        return await load(self, config, **options)

    monkeypatch.setattr(DebateGraph, "aget_state", counted)
    url, environment = str(tmp_path / "d.sqlite"), FakeModel().environment()
    with open_debates(url, environment=environment) as here, open_debates(url) as elsewhere:
        debate = here.start("Does a state stay?", CONFIG, name="d")
        debate.run()
        loads.clear()
        before, config = debate.document(), debate.config()
        debate.state().values.clear()
        assert (debate.is_over(), debate.config(), debate.document()) == (True, config, before)
        assert len(loads) <= 1
        elsewhere.get("d").pin("m000001")
        assert debate.state().values["pinned"] == ["m000001"]
        loads.clear()
        debate.run(turns=1)
        assert len(loads) <= 2
