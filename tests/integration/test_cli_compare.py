"""`moot compare` as a process, and the rendering of its comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moot.plugins.evals.statistics import compare_debates, render_comparison
from moot.prompts.templates import prompt_parts
from tests.support.moot_command import Moot
from tests.support.openai_answers import Json, ServerReply
from tests.support.openai_server import OpenAIServer
from tests.support.report_documents import VERDICT, debate_document

TOPIC = "Should we adopt a monorepo?"


def test_compare_prints_json_and_markdown_and_writes_html(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    for name, protocol in (("long", "round-robin"), ("short", "single")):
        assert moot("run", TOPIC, "--protocol", protocol, "--id", name, "--quiet").code == 0
    compared = moot("compare", "long", "short", "--json").json
    assert [row["protocol"] for row in compared["debates"]] == ["round-robin", "single"]
    assert compared["same_question"]
    assert compared["same_winner"] is None
    output = moot("compare", "long", "short").out
    assert "| Protocol | round-robin | single |" in output
    assert compared["debates"][1]["final_answer"][:40] in output
    assert moot("compare", "long", "short", "-o", "c.html").code == 0
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<table>" in page
    assert f'<h1 dir="auto">{TOPIC}</h1>' in page
    assert moot("compare", "long").code == 2


def test_compare_only_quotes_points_that_one_debate_makes(tmp_path: Path) -> None:
    moot = Moot(tmp_path)

    def answers(request: Json, number: int) -> ServerReply:
        if "Number in the heading of the answer" in json.dumps(request):
            points = [("1", "the case rests on"), ("2", "nobody said this")]
            return ServerReply(
                text=json.dumps({"points": [{"point": "It.", "answer": a, "quote": q} for a, q in points]})
            )
        return ServerReply()

    with OpenAIServer(answers) as server:
        url = server.base_url
        for name in ("d", "e"):
            words = ("--protocol", "single", "--id", name, "--model", "test-model", "-q")
            run = moot("run", TOPIC, *words, OPENAI_BASE_URL=url)
            assert run.code == 0, run.err
        done = moot("compare", "d", "e", "--only", "--json", OPENAI_BASE_URL=url)
        assert done.code == 0, done.err
    assert [each["quote"] for each in done.json["only"]] == ["the case rests on"]
    _, *answer_messages = server.chats[-1]["messages"]
    parts = [list(prompt_parts(message["content"])) for message in answer_messages]
    assert [[part.title for part in each if part.fence] for each in parts] == [["Answer 1:"], ["Answer 2:"]]


def test_comparison_compares_winners_and_escapes_markup() -> None:
    ada = debate_document(protocol="round-robin", verdict=VERDICT)
    grace = {**ada, "verdict": {**VERDICT, "winner": "grace"}, "name": "<b>x|y"}
    assert compare_debates([ada, ada])["same_winner"] is True
    compared = compare_debates([ada, grace])
    assert compared["same_winner"] is False
    text = render_comparison(compared)
    assert "Different winners." in text
    assert "<b>" not in text
    assert "x\\|y" in text


def test_comparison_heading_is_the_question_of_a_long_topic() -> None:
    topic = f"We have one monolith.\n{'It is large. ' * 20}Should we split it?"
    judged = debate_document(topic=topic, protocol="round-robin", verdict=VERDICT)
    text = render_comparison(compare_debates([judged, judged]))
    assert text.startswith("# Should we split it?\n\n> We have one monolith.\n> It is large.")


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (False, False)])
def test_a_missing_answer_is_neither_the_same_nor_another(first: bool, second: bool) -> None:
    judged = debate_document(protocol="round-robin", verdict=VERDICT)
    unjudged = {**judged, "verdict": None, "solution": ""}
    compared = compare_debates([judged if is_judged else unjudged for is_judged in (first, second)])
    assert (compared["same_winner"], compared["same_answer"]) == (None, None)
    text = render_comparison(compared)
    assert not [words for words in ("same winner", "ifferent winner", "same answer") if words in text.lower()]
    assert ("| Ada Okafor wins |" in text, text.count("Not judged")) == (
        first or second,
        2 - first - second,
    )
