"""`moot compare`, as a process."""

from __future__ import annotations

import json
from pathlib import Path

from moot.graph.compare import OnlyPoint, compare_debates, render_comparison, with_only
from tests.support.moot_command import Moot
from tests.support.openai_answers import Act, Json
from tests.support.openai_server import OpenAIServer
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


def test_a_debate_is_set_beside_a_vote_of_as_many_tokens_and_what_only_one_saw_is_quoted(
    tmp_path: Path,
) -> None:
    moot = Moot(tmp_path)

    def answers(asked: Json, number: int) -> Act:
        if "Number of the answer" in json.dumps(asked):
            points = [("1", "the case rests on"), ("2", "nobody said this")]
            return Act(
                text=json.dumps({"points": [{"point": "It.", "answer": a, "quote": q} for a, q in points]})
            )
        return Act()

    with OpenAIServer(answers) as server:
        url = server.base_url
        run = moot(
            "run",
            TOPIC,
            "--protocol",
            "council",
            "--id",
            "d",
            "--model",
            "test-model",
            "-q",
            OPENAI_BASE_URL=url,
        )
        assert run.code == 0, run.err
        done = moot(
            "compare", "d", "--with", "single", "--with", "vote", "--only", "--json", OPENAI_BASE_URL=url
        )
        assert done.code == 0, done.err
        again = moot("compare", "d", "--with", "vote", OPENAI_BASE_URL=url)
    debate, single, vote = done.json["debates"]
    assert done.json["worth"].startswith("d took ")
    assert single["tokens"] < vote["tokens"]
    assert 0.5 < vote["tokens"] / debate["tokens"] < 2
    assert (debate["name"], single["name"], vote["name"]) == ("d", "d-single", "d-vote")
    assert all(each["quote"] == "the case rests on" for each in done.json["only"])
    assert again.err == ""


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


def test_a_long_question_is_no_heading_and_an_answer_that_is_not_there_is_no_other_one() -> None:
    topic = f"We have one monolith.\n{'It is large. ' * 20}Should we split it?"
    judged = debate(topic=topic, protocol="round-robin", verdict=VERDICT)
    unjudged = {**judged, "verdict": None, "solution": ""}
    unjudged["usage"] = {"prompt_tokens": 7, "completion_tokens": 0}
    compared = compare_debates([judged, unjudged])
    text = render_comparison(compared)
    assert text.startswith("# We have one monolith.\n\n> We have one monolith.\n> It is large.")
    assert compared["worth"] == ""


def test_what_the_dearest_brought_for_its_tokens_is_said() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 0, "cost_usd": 0.0, "elapsed_s": 1.0, "calls": 1}
    cheap = {**debate(protocol="round-robin", verdict=VERDICT), "name": "cheap", "usage": usage}
    dear = {**cheap, "name": "dear", "usage": {**usage, "prompt_tokens": 450}}
    same = compare_debates([dear, cheap])
    assert same["worth"].startswith("No: dear took 4.5 times the tokens of cheap")
    assert "**Was it worth its tokens?** No: dear" in render_comparison(same)
    verdict = {**VERDICT, "solution_markdown": "Else.", "reasoning": "Else.", "winner": "grace"}
    other = compare_debates([dear, {**cheap, "verdict": verdict, "solution": "Else."}])
    assert "came to another winner" in other["worth"]
    point: OnlyPoint = {"debate": "dear", "point": "It.", "quote": "it"}
    assert with_only(other, [point])["worth"].endswith("it alone saw 1 point, the other alone 0.")
