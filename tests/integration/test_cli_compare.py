"""`moot compare`, as a process."""

from __future__ import annotations

from pathlib import Path

from moot.graph.compare import compare_debates, render_comparison
from tests.support.moot_command import Moot
from tests.support.report_documents import VERDICT, debate

TOPIC = "Should we adopt a monorepo?"


def test_debates_stand_side_by_side_on_screen_as_json_and_as_a_page(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    for name, protocol in (("long", "round-robin"), ("short", "single")):
        assert moot("run", TOPIC, "--protocol", protocol, "--id", name, "--quiet").code == 0
    compared = moot("compare", "long", "short", "--json").json
    assert [row["protocol"] for row in compared["debates"]] == ["round-robin", "single"]
    assert compared["same_question"]
    assert compared["same_winner"] is None
    said = moot("compare", "long", "short").out
    assert "| Protocol | round-robin | single |" in said
    assert compared["debates"][1]["answer"][:40] in said
    assert moot("compare", "long", "short", "-o", "c.html").code == 0
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<table>" in page
    assert f'<h1 dir="auto">{TOPIC}</h1>' in page
    assert moot("compare", "long").code == 2


def test_winners_are_compared_by_name_and_what_was_said_is_no_structure() -> None:
    ada = debate(protocol="round-robin", verdict=VERDICT)
    grace = {**ada, "verdict": {**VERDICT, "winner": "grace"}, "name": "<b>x|y"}
    assert compare_debates([ada, ada])["same_winner"] is True
    compared = compare_debates([ada, grace])
    assert compared["same_winner"] is False
    text = render_comparison(compared)
    assert "Different winners." in text
    assert "<b>" not in text
    assert "x\\|y" in text
