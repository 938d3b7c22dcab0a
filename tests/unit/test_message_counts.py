"""The page, the report and the receipts of answers count the same messages of a debate."""

from __future__ import annotations

import re
from pathlib import Path

from moot.api import DebateConfig, open_debates
from moot.plugins.web.debate_host import DebateHost, DebateReader
from moot.reports import render_html
from moot.state.entries import message_count

TRANSCRIPT = [
    {"speaker": "user", "content": "Trams cost 3 million.", "kind": "context"},
    {"speaker": "advocate", "content": "search: fares", "kind": "tool_call"},
    {"speaker": "tools", "content": "The fare is 2.", "kind": "tool_result"},
    {"speaker": "advocate", "content": "Trams are quiet."},
    {"speaker": "advocate", "content": "Who pays?", "kind": "question"},
    {"speaker": "user", "content": "The city.", "kind": "answer"},
    {"speaker": "moderator", "content": "Mind the budget.", "kind": "interjection"},
    {"speaker": "moot", "content": "No reply.", "kind": "notice"},
]
"""Entries of which four are messages: a speech, a question, its answer and an interjection."""


def test_page_report_and_answer_count_the_same_messages(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Trams?", DebateConfig(turns=2), transcript=TRANSCRIPT)
        document = debate.run()
        added = document["transcript"][len(TRANSCRIPT) + 1 :]
        assert {entry["kind"] for entry in added} == {"speech"}
        assert added
        messages = 4 + len(added)
        assert message_count(document["transcript"]) == messages
        overview = DebateReader(DebateHost(debates, DebateConfig())).overview(debate)
        receipt = debate.ask("Who pays for the trams?").receipt
    assert overview["messages"] == messages
    assert receipt["messages_read"] + receipt["messages_left_out"] == messages
    page = render_html(document)
    assert re.search(rf"Messages\W[^0-9]*\b{messages}\b", re.sub(r"<[^>]+>", " ", page))
    blocks = [int(number) for number in re.findall(r"(\d+) messages? · m0", page)]
    assert sum(blocks) == messages
