"""`moot eval run`, `report` and `list` as subprocesses, with a local server that gives scripted answers."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from moot import open_debates
from moot.config.config_files import make_config
from moot.state.entries import tokens_of
from tests.support.moot_command import CommandResult, Moot
from tests.support.openai_answers import Json, ServerReply, requested_schema
from tests.support.openai_server import OpenAIServer
from tests.support.schema_answers import fill_schema
from tests.support.scripted_answers import (
    CHOICES,
    DEBATE_YAML,
    DEFAULT_SCRIPT,
    LETTERS,
    Script,
    jsonl,
    question_rows,
)

ARMS = ("--arm", "single", "--arm", "vote@5", "--arm", "debate.yaml", "--arm", "vote@tokens")


WEIGHTED_VOTE = "protocol: vote\nvote: {answers: 3}\ndecide: weighted-vote\n"


CALLS = 6
"""Model calls of the debate: the question, three turns, and the judge in two orders. All are equally long."""


HEAVY_TIMEOUT_S = 6_000.0
"""Time limit in seconds for 1,000 items, which make 18,000 calls."""


def evaluate(moot: Moot, server: OpenAIServer, *words: object) -> CommandResult:
    variables: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "MOOT_MODEL": "m"}
    return moot("eval", *words, timeout_s=HEAVY_TIMEOUT_S, **variables)


def ok(result: CommandResult) -> CommandResult:
    assert result.code == 0, result.err
    return result


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    (tmp_path / "set.jsonl").write_text(jsonl(question_rows(12)))
    (tmp_path / "debate.yaml").write_text(DEBATE_YAML)
    return Moot(tmp_path)


def test_an_answer_in_no_known_form_is_read_by_a_call(moot: Moot) -> None:
    def reply(asked: Json, number: int) -> ServerReply | None:
        schema = requested_schema(asked)
        if schema is None:
            text = "I compared the colours, and nothing speaks against the one that is named first."
            return ServerReply(text=text)
        return ServerReply(text=json.dumps(fill_schema(schema, {"answer": "A"})))

    (moot.folder / "set.jsonl").write_text(jsonl(question_rows(4)))
    with OpenAIServer(reply) as server:
        run = ok(evaluate(moot, server, "run", "set.jsonl", "--arm", "single", "--json", "-q"))
        call_count = len(server.requests)
        ok(evaluate(moot, server, "run", "set.jsonl", "--arm", "single", "--json", "-q"))
        assert len(server.requests) == call_count == 8
        schema = requested_schema(server.chats[-1]) or {}
        enum = schema["properties"]["answer"]["enum"]
    (row,) = run.json["arms"]
    assert (row["correct"], row["unreadable"]) == (1, 0)  # the right answers are A, B, C, D
    assert enum == ["A", "B", "C", "D", "none of them"]
    assert "4 answers in no known form: read by a model call." in run.json["notes"]


def expected_rows(script: Script, items: int) -> dict[str, int]:
    """Return the number of correct answers of each arm, computed from the script."""
    gold = [LETTERS[item % 4] for item in range(items)]
    first = {
        item: Counter(script.letter(who, item, 1) for who in ("ann", "bo", "cy")).most_common(1)[0][0]
        for item in range(items)
    }
    answers = {
        "single": [script.letter("m", item, 1) for item in range(items)],
        "vote@5": [script.vote("m", item, 5) for item in range(items)],
        "vote@tokens": [script.vote("m", item, CALLS) for item in range(items)],
        "debate.yaml": [script.letter("judge", item, 1) for item in range(items)],
        "first-answers": [first[item] for item in range(items)],
    }
    return {arm: sum(a == b for a, b in zip(letters, gold, strict=True)) for arm, letters in answers.items()}


@pytest.mark.parametrize(
    "items",
    [
        5,
        pytest.param(40, marks=pytest.mark.slow),
        pytest.param(1_000, marks=[pytest.mark.heavy, pytest.mark.timeout(HEAVY_TIMEOUT_S)]),
    ],
)
def test_report_matches_the_script_and_a_second_run_makes_no_calls(moot: Moot, items: int) -> None:
    (moot.folder / "set.jsonl").write_text(jsonl(question_rows(items)))
    with OpenAIServer(DEFAULT_SCRIPT.reply) as server:
        run = ok(evaluate(moot, server, "run", "set.jsonl", *ARMS, "--arm", "first-answers", "--json", "-q"))
        call_count = len(server.requests)
        again = ok(
            evaluate(moot, server, "run", "set.jsonl", *ARMS, "--arm", "first-answers", "--json", "-q")
        )
        assert len(server.requests) == call_count
    rows = {row["arm"]: row for row in run.json["arms"]}
    assert {arm: row["correct"] for arm, row in rows.items()} == expected_rows(DEFAULT_SCRIPT, items)
    assert {arm: row["items"] for arm, row in rows.items()} == dict.fromkeys(rows, items)
    assert rows["vote@5"]["accuracy"] == rows["vote@5"]["correct"] / items
    assert {arm: row["calls"] for arm, row in rows.items()} == {
        "single": items,
        "vote@5": 5 * items,
        "debate.yaml": items * CALLS,
        "vote@tokens": items * CALLS,
        "first-answers": 3 * items,
    }
    assert rows["single"]["tokens"] == items * 110
    assert call_count == items * (1 + 5 + 2 * CALLS)
    assert again.json["arms"] == run.json["arms"]
    assert {row["group"] for row in run.json["groups"]} == {"even", "odd"}
    assert run.json["baseline"] == "vote@tokens"
    assert len(run.json["vote_curve"]) == CALLS
    page = ok(moot("eval", "report", "set", "--html"))
    assert "wrote set.html" in page.err
    html = (moot.folder / "set.html").read_text()
    assert "<svg" in html
    assert "http" not in html.replace("http-equiv", "")
    text = ok(moot("eval", "report", "set", "--md")).out
    assert f"| single | {items} | {rows['single']['correct']} |" in text
    assert ok(moot("eval", "list", "--json")).json[0]["answers"] == 4 * items


@pytest.mark.slow
@pytest.mark.parametrize(
    "config", [f"{DEBATE_YAML}decide: weighted-vote\n", WEIGHTED_VOTE], ids=["debate", "vote"]
)
def test_measured_calibration_is_valid_for_a_weighted_vote(moot: Moot, config: str) -> None:
    (moot.folder / "weighted.yaml").write_text(config)
    with OpenAIServer(DEFAULT_SCRIPT.reply) as server:
        run = ok(evaluate(moot, server, "run", "set.jsonl", "--arm", "weighted.yaml", "--json", "-q"))
    models = [("ann", 1), ("bo", 1), ("cy", 1)] if config != WEIGHTED_VOTE else [("m", n) for n in (1, 2, 3)]
    right: dict[str, list[bool]] = {}
    for model, seed in models:
        right.setdefault(model, []).extend(DEFAULT_SCRIPT.is_right(model, item, seed) for item in range(12))
    measured = {
        model: [[80, round(100 * (sum(outcomes) + 1) / (len(outcomes) + 2), 1)]]
        for model, outcomes in right.items()
    }
    calibration = run.json["calibration"]
    assert {row["model"]: row["pairs"] for row in calibration} == measured
    assert [row["answers"] for row in calibration] == [[len(outcomes)] for outcomes in right.values()]
    calibrated = make_config({"calibration": measured, "decide": "weighted-vote"})
    assert calibrated.calibrated(models[0][0], 80) == measured[models[0][0]][0][1]
    assert "setting calibration" in ok(moot("eval", "report", "set", "--md")).out


def test_expected_answers_reach_no_prompt(moot: Moot) -> None:
    rows: list[Json] = [
        {"id": "a", "question": "Item 1: number?", "answer": 271828459},
        {"id": "b", "question": "Item 2: which?", "choices": ["x1", "x2"], "answer": "B"},
        {"id": "c", "question": "Item 3: word?", "answer": "canaryword", "reference": "canaryreference"},
        {"id": "d", "question": "Item 4: list?", "answer": ["canaryone", "canarytwo"]},
    ]
    (moot.folder / "gold.jsonl").write_text(jsonl(rows))
    with OpenAIServer(DEFAULT_SCRIPT.reply) as server:
        ok(evaluate(moot, server, "run", "gold.jsonl", *ARMS, "--seeds", "2", "-q"))
        sent = b"".join(request.body for request in server.requests)
        named = [request.json for request in server.requests]
    assert b"canary" not in sent
    assert b"271828459" not in sent
    assert not any('"answer": "B"' in json.dumps(each) for each in named)


def test_reference_answers_reach_only_the_grader(moot: Moot) -> None:
    rows = [{"id": f"f{n}", "question": f"Explain {n}.", "reference": f"canary {n}"} for n in range(4)]
    (moot.folder / "free.jsonl").write_text(jsonl(rows))

    def answers(request: Json, number: int) -> ServerReply | None:
        schema = requested_schema(request)
        if schema and "grade" in schema["properties"]:
            grade = "correct" if "Explain 1" in json.dumps(request["messages"]) else "partly correct"
            return ServerReply(text=json.dumps({"reasoning": "It agrees.", "grade": grade}))
        return None

    with OpenAIServer(answers) as server:
        words = ("run", "free.jsonl", "--arm", "single", "--arm", "debate.yaml", "--json", "-q")
        report = ok(evaluate(moot, server, *words)).json
        seen = ["reasoning" in json.dumps(chat.get("response_format", {})) for chat in server.chats]
        with_canary = [chat for chat in server.chats if "canary" in json.dumps(chat["messages"])]
        assert len(with_canary) == 8
        assert all("grade" in json.dumps(chat["response_format"]) for chat in with_canary)
        assert any(seen)
        call_count = len(server.requests)
        ok(evaluate(moot, server, *words))
        assert len(server.requests) == call_count
    assert [row["correct"] for row in report["arms"]] == [2.5, 2.5]
    assert report["arms"][1]["difference"]["test"] == "paired permutation"


def test_answers_without_reference_are_compared_blind_in_both_orders(moot: Moot) -> None:
    rows = [{"id": f"o{n}", "question": f"Discuss {n}."} for n in range(3)]
    (moot.folder / "open.jsonl").write_text(jsonl(rows))

    def answers(request: Json, number: int) -> ServerReply | None:
        schema, text = requested_schema(request), json.dumps(request["messages"])
        if schema is None:
            return ServerReply(text=f"{'Gold' if request['model'] == 'ann' else 'Tin'} is my answer.")
        sides = schema["properties"]["winner"]["enum"]
        order = sorted(("Gold is my answer", "Tin is my answer"), key=text.find)
        better = sides[order.index("Gold is my answer")]
        return ServerReply(text=json.dumps(fill_schema(schema, {"winner": better, "confidence": 70})))

    (moot.folder / "ann.yaml").write_text("{protocol: single, model: ann}")
    with OpenAIServer(answers) as server:
        words = ("run", "open.jsonl", "--arm", "ann.yaml", "--arm", "single", "--json", "-q")
        refused = moot("eval", *words, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
        assert server.requests == []
        report = ok(evaluate(moot, server, *words)).json
        judged = [chat for chat in server.chats if chat.get("response_format")]
        assert not any(name in json.dumps(judged) for name in ("ann.yaml", "candidate"))
    assert refused.code == 2
    assert "no judge model is set" in refused.err
    assert len(judged) == 6
    (preference,) = report["preferences"]
    assert (preference["first"], preference["share"]) == ("ann.yaml", 1.0)
    assert not preference["shown"]  # three items are too few
    assert "no preference is shown" in report["headline"][0]


def test_pairs_compare_a_judge_with_people_and_count_order_flips(moot: Moot) -> None:
    rows = [
        {"id": f"p{n}", "input": f"Task {n}.", "a": f"Good {n}", "b": f"Bad {n}", "better": "a"}
        for n in range(6)
    ]
    (moot.folder / "pairs.jsonl").write_text(jsonl(rows))
    recorded = [{"id": f"p{n}", "winners": ["a", "b"] if n == 0 else ["a", "a"]} for n in range(6)]
    (moot.folder / "elsewhere.jsonl").write_text(jsonl(recorded))
    (moot.folder / "judge.yaml").write_text("{model: m}")

    def answers(request: Json, number: int) -> ServerReply | None:
        schema, text = requested_schema(request), json.dumps(request["messages"])
        assert schema is not None
        sides = schema["properties"]["winner"]["enum"]
        good_first = text.find("Good") < text.find("Bad")
        first = good_first or "Task 5" in text  # on the last item, it always prefers the first answer
        return ServerReply(
            text=json.dumps(fill_schema(schema, {"winner": sides[0 if first else 1], "confidence": 90}))
        )

    with OpenAIServer(answers) as server:
        words = ("--arm", "judge:judge.yaml", "--arm", "recorded:elsewhere.jsonl", "--json", "-q")
        report = ok(evaluate(moot, server, "run", "pairs.jsonl", *words)).json
        assert len(server.chats) == 12
    judge, elsewhere = report["arms"]
    assert (judge["correct"], judge["flips"], judge["order_agreement"]) == (5.5, 1, 5 / 6)
    assert judge["accuracy_by_order"] == [1.0, 5 / 6]
    assert elsewhere["correct_in_both"] == 5
    assert elsewhere["calls"] == 0


@pytest.mark.slow
def test_lineups_are_compared_in_both_orders_and_rated(moot: Moot) -> None:
    (moot.folder / "topics.jsonl").write_text(
        jsonl([{"id": f"t{n}", "topic": f"Topic {n}?"} for n in range(3)])
    )
    for name in ("bold", "meek"):
        (moot.folder / f"{name}.yaml").write_text(
            f"{{turns: 2, model: {name}, judge: {{model: judge}}, debaters: [{{name: {name.title()}}}]}}"
        )

    def answers(request: Json, number: int) -> ServerReply | None:
        schema, text = requested_schema(request), json.dumps(request["messages"])
        if schema is None:
            return ServerReply(text=f"I am {request['model']} here.")
        sides = schema["properties"]["winner"]["enum"]
        bold = next(side for side in sides if re.search(rf"{side}\b.{{0,40}}I am bold", text))
        return ServerReply(text=json.dumps(fill_schema(schema, {"winner": bold, "confidence": 90})))

    with OpenAIServer(answers) as server:
        words = ("run", "topics.jsonl", "--arm", "bold.yaml", "--arm", "meek.yaml", "--json", "-q")
        report = moot("eval", *words, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k").json
    bold, meek = report["arms"]
    assert (bold["won"], bold["met"]) == (6, 6)
    assert bold["rating"] > meek["rating"]
    assert bold["rating_low"] <= bold["rating"] <= bold["rating_high"]
    assert report["preferences"][0]["items"] == 3


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", '{"id": "1", "question": "Q?", "answr": "1"}', "a.jsonl:1: answr"),
        (
            "a.jsonl",
            '{"id": "1", "question": "Q?", "answer": "1"}\n{"id": "1", "question": "R?", "answer": "1"}',
            "a.jsonl:2: the id '1'",
        ),
        (
            "a.jsonl",
            '{"id": "1", "question": "Q?", "answer": "1"}\n{"id": "2", "question": "Q?"}',
            "a.jsonl:2: the item has neither",
        ),
        ("a.jsonl", '{"id": "1", "input": "Q?", "a": "x", "b": "y"}', "a.jsonl:1: better"),
        ("a.jsonl", '{"id": "1", "question": "Q?", "answer": " *"}', "a.jsonl:1: `answer` is empty"),
        (
            "a.jsonl",
            '{"id": "1", "question": "Q?", "answer": ["a", ""]}',
            "a.jsonl:1: `answer` must be a list",
        ),
        ("a.jsonl", '{"id": "1", "question": "Q?", "answer": NaN}', "a.jsonl:1: `answer` is not a finite"),
        ("a.jsonl", '{"id": "1", "question": "Q?"}', "neither `answer` nor `reference`"),
        ("a.jsonl", "", "has no items: write"),
        ("a.jsonl", "[1]", "a.jsonl:1: expected a JSON object"),
        ("a.csv", "id,question,answer\n1,Q?", "a.csv:2: the row has 2 cells"),
        ("a.csv", "id,question,question\n", "a.csv:1: the header has empty or repeated column names"),
        ("a.txt", "Q?", "must end in .jsonl, .csv or .json"),
        (
            "a.jsonl",
            '{"id": "1", "question": "Q?", "choices": ["x", "y"], "answer": "z"}',
            "a.jsonl:1: answer 'z' is not one of the choices",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_invalid_items_are_refused_with_their_line_before_any_call(
    moot: Moot, name: str, content: str, says: str
) -> None:
    (moot.folder / name).write_text(content)
    with OpenAIServer() as server:
        refused = evaluate(moot, server, "run", name, "--arm", "single")
        assert server.requests == []
    assert refused.code == 2
    assert says in " ".join(refused.err.split())


def test_changed_items_or_arms_are_refused_under_the_same_name(moot: Moot) -> None:
    (moot.folder / "set.jsonl").write_text(jsonl(question_rows(2)))
    with OpenAIServer(DEFAULT_SCRIPT.reply) as server:
        ok(evaluate(moot, server, "run", "set.jsonl", "--arm", "debate.yaml", "-q"))
        (moot.folder / "debate.yaml").write_text(DEBATE_YAML.replace("turns: 3", "turns: 4"))
        arm = evaluate(moot, server, "run", "set.jsonl", "--arm", "debate.yaml")
        (moot.folder / "set.jsonl").write_text(jsonl(question_rows(3)))
        items = evaluate(moot, server, "run", "set.jsonl", "--arm", "single")
    assert (arm.code, items.code) == (2, 2)
    assert "another --name" in arm.err
    assert "items differ" in items.err


COUNCIL = """
protocol: council
rounds: 2
debaters: [{name: Ann, model: ann}, {name: Bo, model: bo}, {name: Cy, model: cy}]
judge: {model: judge}
"""


@pytest.mark.slow
def test_later_run_runs_and_reports_only_the_named_arms(moot: Moot) -> None:
    (moot.folder / "council.yaml").write_text(COUNCIL)
    (moot.folder / "set.jsonl").write_text(jsonl(question_rows(4)))
    run = ("run", "set.jsonl", "--json", "-q")
    with OpenAIServer(DEFAULT_SCRIPT.reply) as server:
        first = ok(evaluate(moot, server, *run, "--arm", "debate.yaml", "--arm", "vote@tokens")).json
        call_count = len(server.requests)
        fewer = ok(evaluate(moot, server, *run, "--arm", "single", "--seeds", "2"))
        assert len(server.requests) == call_count + 4, "the second seed of `single`"
        more = ok(evaluate(moot, server, *run, "--arm", "council.yaml", "--arm", "vote@tokens")).json
        call_count = len(server.requests)
        again = ok(evaluate(moot, server, *run, "--arm", "vote@tokens", "--arm", "debate.yaml")).json
        counted = ok(evaluate(moot, server, *run, "--arm", "first-answers:debate.yaml")).json
        assert len(server.requests) == call_count
        whole = ok(evaluate(moot, server, "report", "set", "--json")).json
    assert [row["arm"] for row in fewer.json["arms"]] == ["single"]
    assert fewer.json["run"]["left_out"] == ["debate.yaml", "vote@tokens"]
    assert "left out, because this call did not ask for it: debate.yaml, vote@tokens" in fewer.err
    samples = {row["arm"]: row["samples"] for row in more["arms"]}
    assert samples["vote@tokens"] > CALLS, "as many as the council costs"
    assert more["run"]["left_out"] == ["debate.yaml", "seed 2"]
    assert again["arms"] == first["arms"]
    assert [row["arm"] for row in counted["arms"]] == ["debate.yaml", "first-answers:debate.yaml"]
    assert [row["arm"] for row in whole["arms"]] == [
        "debate.yaml",
        "vote@tokens",
        "single",
        "council.yaml",
        "first-answers:debate.yaml",
    ]


@pytest.mark.slow
def test_token_limit_covers_the_evaluation_and_can_be_raised(moot: Moot) -> None:
    words = ("run", "set.jsonl", "--arm", "single", "--arm", "vote@5", "--concurrency", "2", "--json", "-q")
    with OpenAIServer(DEFAULT_SCRIPT.reply, latency=0.01) as server:
        stopped = evaluate(moot, server, *words, "--max-tokens", "3000")
        call_count = len(server.requests)
        still = evaluate(moot, server, *words, "--max-tokens", "3000")
        assert len(server.requests) == call_count
        done = ok(evaluate(moot, server, *words, "--max-tokens", "100000"))
        assert len(server.requests) == 12 + 60
    assert (stopped.code, still.code) == (3, 3)
    assert "3,000 tokens is reached" in stopped.err
    assert 3000 <= stopped.json["run"]["tokens"] < 3000 + 2 * 5 * 110  # two votes of five calls were running
    assert len(stopped.json["run"]["missing"]) == 24 - sum(row["answers"] for row in stopped.json["arms"])
    assert {row["arm"]: row["correct"] for row in done.json["arms"]} == {
        arm: right for arm, right in expected_rows(DEFAULT_SCRIPT, 12).items() if arm in ("single", "vote@5")
    }


def test_cost_limit_requires_prices(moot: Moot) -> None:
    with OpenAIServer(DEFAULT_SCRIPT.reply) as server:
        refused = evaluate(moot, server, "run", "set.jsonl", "--arm", "single", "--max-cost", "1")
        assert server.requests == []
        (moot.folder / "prices.yaml").write_text(
            "models: {m: {input_usd_per_million: 1000, output_usd_per_million: 0}}"
        )
        words = (
            "run",
            "set.jsonl",
            "--arm",
            "single",
            "-c",
            "prices.yaml",
            "--concurrency",
            "1",
            "--json",
            "-q",
        )
        stopped = evaluate(moot, server, *words, "--max-cost", "0.35")
    assert refused.code == 2
    assert "need prices" in refused.err
    assert stopped.json["run"]["cost_usd"] == pytest.approx(0.4)


def test_csv_columns_are_read_by_name(moot: Moot) -> None:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["group", "answer", "question", "choices", "id"])
    for row in question_rows(4):
        writer.writerow([row["group"], row["answer"], row["question"], json.dumps(CHOICES), row["id"]])
    (moot.folder / "set.csv").write_text(out.getvalue())
    with OpenAIServer(DEFAULT_SCRIPT.reply) as server:
        report = ok(evaluate(moot, server, "run", "set.csv", "--arm", "single", "--json", "-q")).json
        assert "group" not in json.dumps(server.chats[0]["messages"]).casefold()
    assert report["arms"][0]["correct"] == sum(DEFAULT_SCRIPT.is_right("m", item, 1) for item in range(4))


@pytest.mark.slow
def test_ctrl_c_saves_the_answers_and_exits_with_130(moot: Moot) -> None:
    with OpenAIServer(DEFAULT_SCRIPT.reply, latency=0.05) as server:
        variables: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "MOOT_MODEL": "m"}
        with moot.start("eval", "run", "set.jsonl", *ARMS, **variables) as process:
            assert server.arrived.wait(60)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "run the same command again" in err
        ok(evaluate(moot, server, "run", "set.jsonl", *ARMS, "-q"))


def run_and_kill(moot: Moot, server: OpenAIServer, words: tuple[str, ...], kills: int, max_s: float) -> None:
    """Start a run `kills` times, and kill it each time after at most `max_s` seconds."""
    random_moment = random.Random(7)
    variables: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "MOOT_MODEL": "m"}
    for _ in range(kills):
        call_count = len(server.requests)
        with moot.start("eval", *words, **variables) as process:
            until = time.monotonic() + 30
            while len(server.requests) == call_count and process.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            try:
                process.wait(timeout=random_moment.uniform(0, max_s))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def completed_calls(moot: Moot) -> int:
    """Return the number of completed calls: the replies in the journals of all debates."""
    with open_debates(str(moot.db)) as debates:
        return sum(len(debates.records.journal.replies(row.id)) for row in debates.rows())


@pytest.mark.parametrize(
    ("items", "kills"),
    [
        pytest.param(8, 3, marks=pytest.mark.slow),
        pytest.param(200, 20, marks=[pytest.mark.heavy, pytest.mark.timeout(HEAVY_TIMEOUT_S)]),
    ],
    ids=["small", "20 kills"],
)
def test_kills_change_no_result_and_repeat_no_completed_call(moot: Moot, items: int, kills: int) -> None:
    (moot.folder / "set.jsonl").write_text(jsonl(question_rows(items)))
    words = ("run", "set.jsonl", *ARMS, "--concurrency", "4", "-q")
    with OpenAIServer(DEFAULT_SCRIPT.reply, latency=0.005) as server:
        run_and_kill(moot, server, words, kills, 0.02 * items + 0.5)
        report = ok(evaluate(moot, server, *words, "--json")).json
        call_count = len(server.requests)
    expected = expected_rows(DEFAULT_SCRIPT, items)
    assert {row["arm"]: row["correct"] for row in report["arms"]} == {
        row["arm"]: expected[row["arm"]] for row in report["arms"]
    }
    assert {row["items"] for row in report["arms"]} == {items}
    completed = completed_calls(moot)
    assert completed == items * (1 + 5 + 2 * CALLS)
    # Calls in progress at a kill are repeated: at most eight in each of four debates.
    assert call_count - completed <= kills * 4 * 8


@pytest.mark.slow
def test_kills_lose_no_usage_of_an_evaluation_with_a_token_limit(moot: Moot) -> None:
    items, cap = 12, 20_000
    (moot.folder / "set.jsonl").write_text(jsonl(question_rows(items)))
    words = ("run", "set.jsonl", *ARMS, "--concurrency", "4", "-q")
    with OpenAIServer(DEFAULT_SCRIPT.reply, latency=0.005) as server:
        run_and_kill(moot, server, (*words, "--max-tokens", str(cap)), kills=8, max_s=0.4)
        evaluate(moot, server, *words, "--max-tokens", str(cap))
        with open_debates(str(moot.db)) as debates:
            budgets, stored = debates.records.budgets, [row.id for row in debates.rows()]
            name = budgets.group_of(stored[0])
            assert {*stored} <= {*budgets.debates(name)}
            spent = budgets.get(name)
            usages = [
                reply.usage for each in stored for reply in debates.records.journal.replies(each).values()
            ]
        largest = max(map(tokens_of, usages))
        assert sum(map(tokens_of, usages)) <= spent.tokens
        assert cap <= spent.tokens <= cap + 4 * 8 * largest, "at most the calls under way pass the cap"
        ok(evaluate(moot, server, *words, "--max-tokens", "10000000"))
    assert completed_calls(moot) == items * (1 + 5 + 2 * CALLS)
