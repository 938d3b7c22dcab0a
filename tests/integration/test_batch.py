"""`moot batch`: results in input order, stored debates, and a second run that changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.moot_command import Moot


def test_batch_runs_all_topics_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    moot, out = Moot(tmp_path), tmp_path / "out.jsonl"
    (tmp_path / "topics.txt").write_text("Should cars go?\nShould trains stay?\n")
    words = ("batch", "topics.txt", "--turns", 2, "-o", out)
    first = moot(*words)
    assert first.code == 0, first.err
    assert "[2/2]" in first.err
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["topic"], line["status"]) for line in lines] == [
        ("Should cars go?", "done"),
        ("Should trains stay?", "done"),
    ]
    assert {row["name"] for row in moot("list", "--json").json} == {line["debate"] for line in lines}
    before = out.read_text()
    assert moot(*words, "--quiet").code == 0
    assert out.read_text() == before
