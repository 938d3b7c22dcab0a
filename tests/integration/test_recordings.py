"""The sample debates that ship run through the real graph to a verdict, as they were recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moot import DebateConfig, open_debates
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.models.recorded import recording_config, recordings
from moot.state.errors import ConfigError, InputError
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer

READINGS = Path(__file__).parents[1] / "data" / "hand-readings.json"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


@pytest.mark.parametrize("name", recordings())
def test_a_recording_plays_to_its_verdict(name: str, tmp_path: Path) -> None:
    settings = recording_config(name)
    topic = settings.pop("topic")
    with open_debates(str(tmp_path / "debates.sqlite")) as debates:
        document = debates.start(topic, DebateConfig(**settings)).run()
    verdict, said = document["verdict"], document["transcript"]
    assert document["status"] == "done"
    assert (verdict["status"], verdict["error"]) == ("ok", "")
    assert verdict["scores"].keys() == {debater["id"] for debater in document["config"]["debaters"]}
    assert not verdict["dropped_citations"]
    assert verdict["winner"]
    assert not document["errors"]
    assert all(entry["model"] == f"recorded:{name}" for entry in said if entry["kind"] == "speech")


@pytest.mark.parametrize("name", ["free-transport", "rate-limiter"])
def test_the_minutes_stand_as_a_reading_by_hand_has_them(name: str, tmp_path: Path) -> None:
    by_hand = json.loads(READINGS.read_text(encoding="utf-8"))[name]
    settings = recording_config(name)
    with open_debates(str(tmp_path / "debates.sqlite")) as debates:
        debate = debates.start(settings.pop("topic"), DebateConfig(**settings))
        debate.run()
        ledger = ledger_of(debate.state().values)
    read = {each["text"]: each for each in by_hand}
    noted = {key: ledger.propositions[key]["text"] for key in ledger.courses}
    statuses = [read.get(text, {}).get("status") == ledger.status(key) for key, text in noted.items()]
    sides = [
        read.get(text, {}).get("sides", {}).get(who, "").partition(" ")[0] == event["kind"]
        for key, text in noted.items()
        for who, event in ledger.stances(key).items()
    ]
    assert read.keys() == set(noted.values())
    assert sum(statuses) >= 0.9 * len(statuses)
    assert sum(sides) >= 0.95 * len(sides)


def test_what_was_not_recorded_is_refused_and_the_debate_stays(tmp_path: Path) -> None:
    settings = recording_config("monolith")
    with open_debates(str(tmp_path / "debates.sqlite")) as debates:
        debate = debates.start(settings.pop("topic"), DebateConfig(**settings))
        ended = debate.run()
        with pytest.raises(InputError, match=r"no more turns: .* --model"):
            debate.run(turns=1)
        assert debate.document()["verdict"] == ended["verdict"]
        assert debate.document()["transcript"] == ended["transcript"]


def test_a_recording_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match="choose one of free-transport, monolith, rate-limiter"):
        recording_config("tabs")


def test_the_demo_is_labelled_is_kept_and_leaves_its_report(moot: Moot) -> None:
    first = moot("demo", "--fast")
    assert first.code == 0, first.err
    assert "recorded with a capable model; facts unchecked" in first.err
    assert "Ben Okafor wins" in first.out
    assert "extend it" not in first.err  # nobody recorded more turns
    assert "hiring was frozen" in (moot.folder / "monolith.html").read_text()
    again = moot("demo", "monolith", "--fast", "--json")
    assert again.json["name"] == "monolith-2"
    assert again.json["verdict"]["winner"] == "ben-okafor"
    nowhere = moot("demo", "tabs")
    assert nowhere.code == 2
    assert "choose one of free-transport, monolith, rate-limiter" in nowhere.err


def test_the_readme_shows_what_the_demo_prints(moot: Moot) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    _, _, after = readme.partition("```console\n$ moot demo --fast\n")
    shown, _, _ = after.partition("```")
    ran = moot("demo", "--fast")
    printed, at = " ".join(f"{ran.err}\n{ran.out}".split()), 0
    for part in filter(None, (" ".join(part.split()) for part in shown.split("…"))):
        found = printed.find(part, at)
        assert found >= 0, f"not printed, or not in this order: {part!r}"
        at = found + len(part)


def test_a_model_takes_up_what_was_recorded(moot: Moot) -> None:
    assert moot("demo", "--fast").code == 0
    with OpenAIServer() as server:
        for command in (
            ("resume", "monolith", "--turns", "1", "--model", "m"),
            ("fork", "monolith", "--after", "m000004", "--id", "other", "--model", "m", "--run"),
            ("ask", "monolith", "What does search show?", "--model", "m"),
            ("judge", "monolith", "--model", "m", "--dry-run"),
            ("report", "other", "--brief", "--md", "-o", "-"),
        ):
            ran = moot(*command, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="none")
            assert ran.code == 0, (command, ran.err)
        assert {chat["model"] for chat in server.chats} == {"m"}
    assert "facts unchecked" in ran.out  # its beginning is still the recording's
