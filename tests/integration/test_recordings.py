"""Recorded sample debates: the graph replays them up to their verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap

import pytest

from moot import DebateConfig, open_debates
from moot.claims.ledger_from_events import ledger_of
from moot.models.offline import recording_config, recordings
from moot.state.errors import ConfigError, InputError
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer

HAND_LABELS = Path(__file__).parents[1] / "data" / "hand-readings.json"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


@pytest.mark.parametrize("name", recordings())
def test_a_recording_is_replayed_to_its_verdict(name: str, tmp_path: Path) -> None:
    settings = recording_config(name)
    topic = settings.pop("topic")
    with open_debates(str(tmp_path / "debates.sqlite")) as debates:
        document = debates.start(topic, DebateConfig(**settings)).run()
    verdict, transcript = document["verdict"], document["transcript"]
    assert document["status"] == "done"
    assert (verdict["status"], verdict["error"]) == ("ok", "")
    debaters, criteria = document["config"]["debaters"], {each["id"] for each in verdict["criteria"]}
    if document["config"]["protocol"] == "council":  # a solution is scored, not its authors
        assert verdict["scores"] == {}
        recorded = {"functional_completeness", "performance_scalability", "requirements_fulfillment"}
        assert {each["criterion"] for each in verdict["by_criterion"]} == recorded < criteria
    else:
        assert verdict["scores"].keys() == {debater["id"] for debater in debaters}
        assert all(scores.keys() == criteria for scores in verdict["scores"].values())
    assert not verdict["dropped_citations"]
    assert verdict["winner"]
    assert not document["errors"]
    assert all(entry["model"] == f"recorded:{name}" for entry in transcript if entry["kind"] == "speech")


@pytest.mark.parametrize("name", ["free-transport", "rate-limiter"])
def test_claims_and_statuses_match_the_hand_labels(name: str, tmp_path: Path) -> None:
    labelled_claims = json.loads(HAND_LABELS.read_text(encoding="utf-8"))[name]
    settings = recording_config(name)
    with open_debates(str(tmp_path / "debates.sqlite")) as debates:
        debate = debates.start(settings.pop("topic"), DebateConfig(**settings))
        debate.run()
        ledger = ledger_of(debate.state().values)
    labels = {each["text"]: each for each in labelled_claims}
    claims = {key: ledger.claims[key]["text"] for key in ledger.timelines}
    statuses = [labels.get(text, {}).get("status") == ledger.status(key) for key, text in claims.items()]
    sides = [
        labels.get(text, {}).get("sides", {}).get(debater, "").partition(" ")[0] == event["kind"]
        for key, text in claims.items()
        for debater, event in ledger.stances(key).items()
    ]
    assert labels.keys() == set(claims.values())
    assert sum(statuses) >= 0.9 * len(statuses)
    assert sum(sides) >= 0.95 * len(sides)


def test_a_call_without_a_recorded_reply_leaves_the_debate_unchanged(tmp_path: Path) -> None:
    settings = recording_config("monolith")
    with open_debates(str(tmp_path / "debates.sqlite")) as debates:
        debate = debates.start(settings.pop("topic"), DebateConfig(**settings))
        ended = debate.run()
        with pytest.raises(InputError, match=r"no more recorded turns: .*`Debate.reconfigure`"):
            debate.run(turns=1)
        assert debate.document()["verdict"] == ended["verdict"]
        assert debate.document()["transcript"] == ended["transcript"]


def test_the_error_for_an_unknown_recording_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="choose one of free-transport, monolith, rate-limiter"):
        recording_config("tabs")


def test_the_demo_stores_its_debate_and_writes_a_report(moot: Moot) -> None:
    first = moot("demo", "--fast")
    assert first.code == 0, first.err
    assert "[turn 10/10] Ben Okafor (closing)" in first.err
    assert "recorded with a capable model; facts unchecked" in first.err
    assert "Argued best: Ben Okafor (74). This is not the decision." in first.out
    assert "wins" not in first.out
    assert "extend it" not in first.err  # no more turns are recorded
    assert "hiring was frozen" in (moot.folder / "monolith.html").read_text()
    again = moot("demo", "monolith", "--fast", "--json")
    assert again.json["name"] == "monolith-2"
    assert again.json["verdict"]["winner"] == "ben-okafor"
    nowhere = moot("demo", "tabs")
    assert nowhere.code == 2
    assert "choose one of free-transport, monolith, rate-limiter" in nowhere.err


def test_the_readme_matches_the_output_of_the_demo(moot: Moot) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    _, _, after = readme.partition("```console\n$ moot demo\n")
    shown, _, _ = after.partition("```")
    ran = moot("demo")
    printed, at = " ".join(f"{ran.err}\n{ran.out}".split()), 0
    for part in filter(None, (" ".join(part.split()) for part in shown.split("…"))):
        found = printed.find(part, at)
        assert found >= 0, f"not printed, or not in this order: {part!r}"
        at = found + len(part)


@pytest.mark.parametrize("name", ["monolith", "rate-limiter", "free-transport"])
def test_the_demo_ends_with_a_screen_of_the_answer_and_four_commands(name: str, moot: Moot) -> None:
    ran = moot("demo", name)
    assert ran.code == 0, ran.err
    messages = [line for line in ran.err.splitlines() if line.endswith("…")]
    others = [line for line in [*ran.err.splitlines(), *ran.out.splitlines()] if line not in messages]
    assert len([line for each in others for line in wrap(each, 80) or [""]]) <= 2 * 24 + 1
    assert len(messages) > 9
    assert ran.out.index("Turning points:") < ran.out.index("Decision: ") < ran.out.index("First step: ")
    answer = ran.out.splitlines()[ran.out.splitlines().index("") + 1 :]
    assert len(answer) + 4 < 24  # the screen also shows the four commands and the shell's prompt
    report, ask, other, own = [line for line in ran.err.splitlines() if line.startswith("  ")]
    assert f"report {name} --open" in report
    assert f"ask {name} " in ask
    assert "fork monolith --without m000005" in other if name == "monolith" else f"judge {name}" in other
    assert "setup" in own
    assert (moot.folder / f"{name}.html").exists()


@pytest.mark.slow
def test_a_fork_without_an_interjection_never_mentions_it(moot: Moot) -> None:
    assert moot("demo").code == 0
    with OpenAIServer() as server:
        at = server.base_url
        ran = moot(
            "fork", "monolith", "--without", "m000005", "--model", "m", "--run", "--json", OPENAI_BASE_URL=at
        )
        assert ran.code == 0, ran.err
        assert "dropped the interjection m000005: A fact you did not have: hiring was frozen" in ran.err
        assert ran.json["name"] == "monolith-fork"
        assert "hiring was frozen" not in json.dumps(ran.json["transcript"])
        assert "hiring was frozen" not in json.dumps(server.chats)
        assert [each["id"] for each in ran.json["transcript"][:5]] == [f"m{n:06}" for n in range(5)]
        early = moot(
            "fork", "monolith", "--after", "m000003", "--model", "m", "--run", "--json", OPENAI_BASE_URL=at
        )
        assert "dropped the interjection m000005" in early.err
        assert "hiring was frozen" not in json.dumps(early.json["transcript"])
    whole = moot("fork", "monolith", "--id", "whole")
    rows = {row["name"]: row for row in moot("list", "--json").json}
    assert (rows["whole"]["question"], rows["whole"]["decision"]) == (rows["monolith"]["question"], "")
    assert "dropped" not in whole.err
    refused = moot("fork", "monolith", "--without", "m000003")
    assert (refused.code, "its interjections are m000005" in refused.err) == (2, True)
    both = moot("fork", "monolith", "--without", "m000005", "--after", "m000003")
    assert (both.code, "remove --after" in both.err) == (2, True)


def test_a_recording_cannot_reply_in_a_fork(moot: Moot) -> None:
    assert moot("demo").code == 0
    refused = moot("fork", "monolith", "--without", "m000005", "--run")
    assert (refused.code, "cannot reply in a fork of that debate" in refused.err) == (2, True)
    assert [row["name"] for row in moot("list", "--json").json] == ["monolith"]
    assert moot("fork", "monolith", "--without", "m000005").code == 0
    again = moot("resume", "monolith-fork")
    assert (again.code, "continue with your own model" in again.err) == (2, True)


def test_the_configured_model_answers_about_samples_and_runs_forks(moot: Moot) -> None:
    assert moot("demo").code == 0
    with OpenAIServer() as server:
        at = server.base_url
        asked = moot("ask", "monolith", "What does search show?", OPENAI_BASE_URL=at, MOOT_MODEL="mine")
        assert asked.code == 0, asked.err
        assert "No model is configured" not in asked.out
        words = ("fork", "monolith", "--without", "m000005", "--run", "--json")
        forked = moot(*words, OPENAI_BASE_URL=at, MOOT_MODEL="mine")
        assert forked.code == 0, forked.err
        assert {chat["model"] for chat in server.chats} == {"mine"}
    assert "hiring was frozen" not in json.dumps(forked.json["transcript"])


def test_a_fork_without_one_interjection_keeps_the_others(tmp_path: Path) -> None:
    interjections = [
        {"after": 1, "text": "First fact."},
        {"after": 2, "text": "Second fact."},
        {"after": 3, "text": "Third."},
    ]
    config = DebateConfig(turns=4, judge={"enabled": False}, interjections=interjections)
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Why?", config)
        debate.run()
        first = next(
            each["id"] for each in debate.document()["transcript"] if each["content"] == "First fact."
        )
        fork = debate.fork(without=first)
        document = fork.run()
    order = [each["content"] for each in document["transcript"] if each["kind"] in ("interjection", "speech")]
    assert [text for text in order if text in ("First fact.", "Second fact.", "Third.")] == [
        "Second fact.",
        "Third.",
    ]
    assert (order.index("Second fact."), order.index("Third.")) == (2, 4)


@pytest.mark.slow
def test_a_model_continues_a_recorded_debate(moot: Moot) -> None:
    assert moot("demo", "--fast").code == 0
    with OpenAIServer() as server:
        for command in (
            ("resume", "monolith", "--turns", "1", "--model", "m"),
            ("fork", "monolith", "--after", "m000004", "--id", "other", "--model", "m", "--run"),
            ("ask", "monolith", "What does search show?", "--model", "m"),
            ("judge", "monolith", "--model", "m", "--dry-run"),
            ("report", "other", "--format", "brief", "-o", "-"),
        ):
            ran = moot(*command, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="none")
            assert ran.code == 0, (command, ran.err)
        assert {chat["model"] for chat in server.chats} == {"m"}
    assert "facts not checked" in ran.out  # the first turns are still recorded ones
