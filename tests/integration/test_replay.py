"""Replays of stored debates from their journals."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot import DebateConfig, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.runtime.environment import Environment
from moot.state.errors import ModelError, WaitingForPerson
from tests.support.fakes import NOW, FakeModel, fake_reply
from tests.support.moot_command import Moot


def test_a_debate_is_replayed_from_its_journal_without_a_model(tmp_path: Path) -> None:
    path = str(tmp_path / "moot.sqlite")
    with open_debates(path, environment=FakeModel().environment()) as debates:
        original = debates.start("T", DebateConfig(turns=5), name="original").run()
        fork = debates.get("original").fork(after=3, name="fork").run()

    def unreachable(call: ModelCall) -> Reply:
        raise AssertionError("a replay asks no model")

    silent = FakeModel(unreachable)
    with open_debates(path, environment=silent.environment()) as debates:
        replayed = debates.replay("original", name="again").run()
        replayed_fork = debates.replay("fork").run()
    assert replayed["transcript"] == original["transcript"]
    assert replayed["verdict"] == original["verdict"]
    assert replayed_fork["transcript"] == fork["transcript"]


def test_replay_fails_if_the_journal_has_no_reply(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "m.sqlite"), environment=FakeModel(fake_reply).environment()) as debates:
        debates.start("T", DebateConfig(turns=2), name="short").run()
        debates.records.journal.delete(debates.get("short").id)
        with pytest.raises(ModelError, match="the journal has no reply"):
            debates.replay("short").run()


def test_replay_option_repeats_the_messages_of_a_debate(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    first = moot("run", "T?", "--turns", 2, "--id", "one", "--model", "offline", "--json", "--quiet").json
    again = moot("run", "--replay", "one", "--id", "two", "--json", "--quiet").json
    contents = [[entry["content"] for entry in document["transcript"]] for document in (first, again)]
    assert contents[0] == contents[1]


def test_extended_debate_is_replayed_without_an_api_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "moot.sqlite")
    config = DebateConfig(turns=2, model="gpt-4o-mini", limits={"cost_usd": 1})
    with open_debates(path, environment=FakeModel().environment()) as debates:
        debates.start("T", config, name="original").run()
        debates.get("original").run(turns=2)
        original = debates.get("original").run(turns=1)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with open_debates(path, environment=Environment(clock=lambda: NOW)) as debates:
        replayed = debates.replay("original").run()
    assert len(original["transcript"]) >= 5
    assert replayed["transcript"] == original["transcript"]
    assert replayed["verdict"] == original["verdict"]


def test_a_fork_of_a_seeded_debate_differs_and_is_reproducible(tmp_path: Path) -> None:
    contents: list[list[str]] = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        path = str(tmp_path / folder / "moot.sqlite")
        with open_debates(path, environment=FakeModel().environment()) as debates:
            original = debates.start("Tabs or spaces?", DebateConfig(turns=4, seed=1), name="original")
            documents = [original.run()]
            for name in ("first", "second"):
                documents.append(original.fork(after=2, name=name).run())
            documents.append(debates.replay("first").run())
        contents += [[entry["content"] for entry in document["transcript"]] for document in documents]
    assert contents[:4] == contents[4:]
    assert contents[0][:3] == contents[1][:3] == contents[2][:3]
    assert len({contents[number][3] for number in range(3)}) == 3
    assert contents[3] == contents[1]


def test_a_clarified_debate_is_replayed_with_its_answers(tmp_path: Path) -> None:
    def reply(call: ModelCall) -> Reply:
        question = Reply(text="", data={"questions": ["Which year?"]})
        return question if call.purpose == "clarify" else fake_reply(call)

    config = DebateConfig(turns=2, clarifications={"enabled": True})
    with open_debates(str(tmp_path / "m.sqlite"), environment=FakeModel(reply).environment()) as debates:
        original = debates.start("T", config, name="original")
        with pytest.raises(WaitingForPerson):
            original.run()
        document = original.run(answer={original.state().values["config"]["debaters"][0]["id"]: ["2031"]})
        replayed = debates.replay("original").run()
    contents = [[each["content"] for each in read["transcript"]] for read in (document, replayed)]
    assert contents[0] == contents[1]
    assert "2031" in contents[1]
