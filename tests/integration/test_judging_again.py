"""Judging a stored debate again: what is kept, what is replaced, and which verdicts belong together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.api import Debates, open_debates
from state.config_files import make_config

TOPIC = "Should freight leave the harbour?"
BROUGHT = "# What the dialogue brought"


@pytest.fixture
def debates(tmp_path: Path) -> Iterator[Debates]:
    with open_debates(str(tmp_path / "moot.sqlite")) as opened:
        yield opened


def test_what_a_dialogue_brought_outlives_a_judge_who_writes_a_solution(debates: Debates) -> None:
    config = make_config(
        {"protocol": "dialogue", "seed": 1, "dialogue": {"aspects": ["cost"], "minirounds": 1}}
    )
    document = debates.start(TOPIC, config).run()
    brought = document["solution"][document["solution"].index(BROUGHT) :]
    debate = debates.get(document["id"])
    written = debate.judge(panel=2).verdict["solution_markdown"]
    assert written.strip()
    assert debate.document()["solution"] == f"{written}\n\n{brought}"
