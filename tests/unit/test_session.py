"""A session writes into a debate without moving it, whatever was to run next."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot import DebateConfig, open_debates
from moot.graph.debate import NODES, graph
from moot.graph.session import before_node
from tests.support.fakes import FakeModel

EDGES = {(edge.source, edge.target) for edge in graph.get_graph().edges}
CONFIG = DebateConfig.model_validate(
    {"turns": 4, "seed": 1, "memory": {"keep_recent": 2, "summarize_every": 1}}
)


@pytest.mark.parametrize("node", [name for name in NODES if name != "open"])
def test_the_node_before_another_is_the_graphs_own(node: str) -> None:
    assert (before_node(graph, node), node) in EDGES


def test_an_update_leaves_what_runs_next(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        session = debates.start("Does an update move a debate?", CONFIG, name="d").session
        seen = set()
        while following := session.caught_up().next:
            session.update({"solution": "Written."}, following)
            assert session.state().next == following
            seen |= set(following)
            session.advance(interrupt_after=following)
        assert {"plan", "turn", "record", "trim", "summarize", "judge", "close"} <= seen
