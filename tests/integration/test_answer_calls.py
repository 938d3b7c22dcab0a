"""Model calls that read or compare answers, with a scripted server."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.config.config_files import make_config
from moot.debates import dry_run
from moot.documents import DebateDocument
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import LONG_TIMEOUT_S
from tests.support.warm_process import WarmProcess

TOPIC = "What does the licence cost?"
PROSE = (
    "The list price rose last year, the discount did not. I weighed both letters of the vendor, and after "
    "the rebate I arrive at {}, which the second letter confirms."
)
"""Message that gives an answer in no form that a rule reads."""
JUDGEMENT = {"reasoning": "weighed", "decision": "", "winner": "synthesis", "confidence": 60, "scores": []}
VOTERS: Mapping[str, Any] = {"vote": {"vote": {"answers": 2}}, "escalate": {}}
Plan = Callable[[Any, int], ServerReply]


def kind_of(asked: Any) -> str:
    system = asked["messages"][0]["content"]
    if system.startswith("You read which answer"):
        return "read"
    if system.startswith("You compare short answers"):
        return "compare"
    return "structured" if asked.get("response_format") or asked.get("tools") else "turn"


def plan(
    texts: list[str],
    *,
    read: Callable[[str], str] = lambda text: "",
    groups: list[list[int]] | None = None,
    by_seed: bool = True,
) -> Plan:
    """Return replies: messages by seed or in order, then answers found in them, and equal answers."""
    turns = iter(texts)

    def reply(asked: Any, _: int) -> ServerReply:
        match kind_of(asked):
            case "read":
                data: Mapping[str, Any] = {"answer": read(asked["messages"][-1]["content"])}
            case "compare":
                data = {"reasoning": "r", "groups": groups or []}
            case "structured":
                data = JUDGEMENT
            case _:
                return ServerReply(text=texts[asked["seed"] - 1] if by_seed else next(turns))
        return ServerReply(text=json.dumps(data))

    return reply


def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Plan, **config: Any
) -> tuple[DebateDocument, Counter[str], list[Any]]:
    settings = {"model": "m", "seed": 1, "blackboard": {"extraction": "off"}, **config}
    with OpenAIServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with open_debates(str(tmp_path / "d.sqlite")) as debates:
            document = debates.start(TOPIC, make_config(settings)).run()
        return document, Counter(map(kind_of, server.chats)), server.chats


def amount_in(text: str) -> str:
    return text.partition("arrive at ")[2].partition(", which")[0]


def test_vote_reads_answers_in_prose_by_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [PROSE.format("1,125 EUR"), PROSE.format("€1125"), "Answer: 900 EUR"]
    reply = plan(texts, read=amount_in)
    document, calls, _ = run(tmp_path, monkeypatch, reply, protocol="vote", vote={"answers": 3})
    assert calls == {"turn": 3, "read": 2}
    assert document["verdict"]["outcome"]["tally"] == {"1125 eur": 2, "900 eur": 1}
    assert "A model call read the answer of Voter from the message." in document["verdict"]["notes"]
    assert [each.get("answer") for each in document["transcript"][1:]] == ["1,125 EUR", "€1125", None]
    assert document["usage"]["calls"] == 5


def test_an_answer_that_the_message_does_not_say_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [PROSE.format("1,125 EUR")] * 2 + ["Answer: 900 EUR"]
    reply = plan(texts, read=lambda text: "25 EUR")  # a part of a number is no answer either
    document, calls, _ = run(tmp_path, monkeypatch, reply, protocol="vote", vote={"answers": 3})
    assert calls["read"] == 2
    assert not any("answer" in each for each in document["transcript"])


@pytest.mark.parametrize(("found", "tally"), [("Merge", {"merge": 2}), ("none of them", {"hold": 1})])
def test_options_are_read_as_a_choice_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str, tally: Mapping[str, int]
) -> None:
    texts = [PROSE.format("a yes to the change"), "Answer: hold", PROSE.format("a yes as well")]
    reply = plan(texts, read=lambda text: found)
    settings: dict[str, Any] = {"protocol": "vote", "vote": {"answers": 3}, "options": ["Merge", "Hold"]}
    document, calls, chats = run(tmp_path, monkeypatch, reply, **settings)
    assert calls["read"] == 2
    assert {**document["verdict"]["outcome"]["tally"], **tally} == document["verdict"]["outcome"]["tally"]
    asked = next(each for each in chats if kind_of(each) == "read")
    assert '"none of them"' in json.dumps(asked["response_format"])


def test_empty_and_passed_turns_are_never_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(asked: Any, number: int) -> ServerReply:
        if kind_of(asked) != "turn":
            return plan([])(asked, number)
        text, reason = [("Answer: 4", "stop"), ("", "content_filter"), ("", "stop")][asked["seed"] % 3]
        return ServerReply(text=text, finish_reason=reason)

    document, calls, _ = run(tmp_path, monkeypatch, reply, protocol="vote", vote={"answers": 3})
    assert calls["read"] == 0
    assert document["verdict"]["decision"] == "4"


def test_stop_reads_answers_by_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = plan([PROSE.format("1125 EUR")] * 12, read=amount_in, by_seed=False)
    document, calls, _ = run(tmp_path, monkeypatch, reply, turns=12, stop="agreement")
    assert calls["turn"] == 2
    assert calls["read"] == 2
    assert document["ended_because"] == "agreement: all 2 debaters answer “1125 eur”"


def test_stop_reads_nothing_while_known_answers_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debaters = [{"name": "Ada"}, {"name": "Ben"}, {"name": "Cem"}]
    texts = ["Answer: 4", "Answer: 5", PROSE.format("4"), "Answer: 4", "Answer: 4", "Answer: 4"]
    settings: dict[str, Any] = {"turns": 9, "debaters": debaters, "openings": "sequential"}
    reply = plan(texts, read=amount_in, by_seed=False)
    document, calls, _ = run(tmp_path, monkeypatch, reply, stop="agreement", **settings)
    assert calls["read"] == 0
    assert document["ended_because"].startswith("agreement: all 3")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1125 euros", "EUR 1,125 net"),
        ("1,125 EUR", "1.125 EUR"),
        ("about one and a half", "1.5"),
        ("Yes, from October", "yes"),
    ],
)
def test_escalate_stops_if_two_answers_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    reply = plan([f"Answer: {first}", f"Answer: {second}"], groups=[[1, 2]])
    document, calls, chats = run(tmp_path, monkeypatch, reply, protocol="escalate")
    assert calls == {"turn": 2, "compare": 1}
    assert document["ended_because"].startswith("the first two answers agree")
    assert document["verdict"]["decision"] == first
    assert any("says the same as" in note for note in document["verdict"]["notes"])
    asked = chats[-1]["messages"][-1]["content"]
    assert f"1. {first}" in asked
    assert f"2. {second}" in asked


@pytest.mark.parametrize("texts", [["Answer: EUR 1.125", "Answer: €1.125"], ["Answer: x", "Answer: X."]])
def test_equal_answers_need_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str]
) -> None:
    _, calls, _ = run(tmp_path, monkeypatch, plan(texts), protocol="escalate")
    assert calls == {"turn": 2}


def test_different_numbers_and_letters_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"Answer: {answer} EUR" for answer in (4, 5, 4, 5, 6)]
    _, calls, _ = run(tmp_path, monkeypatch, plan(texts), protocol="escalate", escalate={"rounds": 0})
    assert calls["compare"] == 0


def test_equal_answers_of_escalate_are_compared_at_each_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"Answer: {answer}" for answer in ("yes", "no", "aye", "never", "sure")]
    seen: list[str] = []

    script = plan(texts)

    def reply(asked: Any, number: int) -> ServerReply:
        if kind_of(asked) == "compare":
            seen.append(asked["messages"][-1]["content"])
            equal = [[1, 3, 5], [2, 4]] if "aye" in seen[-1] else []
            return ServerReply(text=json.dumps({"reasoning": "r", "groups": equal}))
        return script(asked, number)

    document, calls, _ = run(tmp_path, monkeypatch, reply, protocol="escalate")
    assert calls == {"turn": 5, "compare": 2}
    assert document["verdict"]["decision"] == "yes"
    assert document["verdict"]["outcome"]["tally"] == {"yes": 3, "no": 2}


def test_vote_compares_answers_only_without_a_majority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (answers, compared) in enumerate(
        [(["Rome", "Rome", "Milan"], 0), (["Rome", "Roma", "Milan"], 1)]
    ):
        (tmp_path / str(number)).mkdir()
        reply = plan([f"Answer: {answer}" for answer in answers], groups=[[1, 2]])
        document, calls, _ = run(
            tmp_path / str(number), monkeypatch, reply, protocol="vote", vote={"answers": 3}
        )
        assert calls["compare"] == compared
        assert document["verdict"]["decision"] == "Rome"
        assert document["verdict"]["confidence"] == 67


def test_final_answers_that_say_the_same_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["Rome", "Roma"])

    def reply(asked: Any, number: int) -> ServerReply:
        if kind_of(asked) == "structured":
            return ServerReply(text=json.dumps({"reasoning": "", "answer": next(answers), "confidence": 80}))
        return plan(["I think."], groups=[[1, 2]])(asked, number)

    document, calls, _ = run(tmp_path, monkeypatch, reply, turns=2, decide="vote")
    assert calls["compare"] == 1
    assert list(document["verdict"]["outcome"]["tally"].values()) == [2]


def test_a_failed_comparison_leaves_the_answers_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = plan(["Answer: Rome", "Answer: Roma"])

    def reply(asked: Any, number: int) -> ServerReply:
        return ServerReply(status=400, message="no") if kind_of(asked) == "compare" else script(asked, number)

    document, _, _ = run(tmp_path, monkeypatch, reply, protocol="vote", vote={"answers": 2})
    assert document["verdict"]["judge"] == "judge"
    assert any(error["error"].startswith("answers were not compared") for error in document["errors"])


@pytest.mark.parametrize(
    ("settings", "reads", "most"),
    [
        ({"protocol": "vote", "vote": {"answers": 3}}, 3, 3 + 3 + 1 + 1),
        ({"turns": 6, "stop": ["agreement", "stable"]}, 6, None),
    ],
)
def test_plan_counts_the_calls_about_answers(settings: dict[str, Any], reads: int, most: int | None) -> None:
    config = make_config({"model": "m", "blackboard": {"extraction": "off"}, **settings})
    estimate = dry_run.estimate(config)
    assert estimate is not None
    rows = [each for each in estimate.batches if each.phase == "read answers"]
    assert sum(each.times_at_most * each.calls for each in rows) == reads
    assert most is None or estimate.calls_at_most == most
    assert all(each.times_at_least == 0 for each in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "killed_at"),
    [("vote", "read"), ("vote", "compare"), ("escalate", "read"), ("escalate", "compare")],
)
def test_a_debate_killed_at_the_calls_about_answers_repeats_no_finished_call(
    tmp_path: Path, protocol: str, killed_at: str
) -> None:
    texts = [PROSE.format(f"price {letter}") for letter in "abcde"]
    script, held = plan(texts, read=amount_in, groups=[[1, 2]]), {killed_at}

    def reply(asked: Any, number: int) -> ServerReply:
        if (kind := kind_of(asked)) in held:
            held.discard(kind)
            return ServerReply(text="{}", latency=60)
        return script(asked, number)

    settings = {"model": "m", "seed": 1, "protocol": protocol, **VOTERS[protocol]}
    (tmp_path / "c.json").write_text(json.dumps(settings))
    with OpenAIServer(reply) as server:
        variables = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "PYTHONHASHSEED": "0"}
        environment = {**os.environ, **variables, "MOOT_DB": str(tmp_path / "d.sqlite")}
        command = ("run", TOPIC, "-c", "c.json", "--id", "x")
        with WarmProcess(command, folder=tmp_path, environment=environment) as process:
            while held and process.poll() is None:
                time.sleep(0.02)
            time.sleep(0.5)  # the other calls of the batch end and are journaled
            assert process.poll() is None, process.errors()
            process.kill()
        with WarmProcess(("resume", "x"), folder=tmp_path, environment=environment) as process:
            _, errors = process.communicate(timeout=LONG_TIMEOUT_S)
            assert process.returncode == 0, errors
        bodies = Counter(each.body for each in server.requests if each.path.endswith("/chat/completions"))
        repeated = [kind_of(json.loads(body)) for body, times in bodies.items() if times > 1]
        calls = Counter(map(kind_of, server.chats))
        assert repeated == [killed_at]
        assert (calls["turn"], calls["read"], calls["compare"]) == (
            2,
            2 + (killed_at == "read"),
            1 + (killed_at == "compare"),
        )
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        document = debates.get("x").document()
    assert document["verdict"]["outcome"]["tally"] == {"price a": 2}
