"""Many concurrent debates: `moot batch`."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig

from moot import DebateConfig, open_debates
from moot.api import PlannedDebate, run_many
from moot.calls.effects import ModelCall, Reply
from moot.cli.commands.batch import read_batch
from moot.models.registry import Models
from moot.state.errors import ConfigError
from tests.support.fakes import FakeModel, answer
from tests.support.patience import LONG_TIMEOUT_S

CONFIG = DebateConfig(turns=2, openings="sequential")


@dataclass
class _Slow(FakeModel):
    least: int = 0
    """Speeches that wait for one another."""
    most: int = 0
    """Speeches at a time, the most there were."""
    now: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        speeches = int(bool(call.stream_as))  # a judge's two orders are asked for at the same time
        self.now += speeches
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.05)
        if self.most >= self.least:
            self.enough.set()
        await asyncio.wait_for(self.enough.wait(), LONG_TIMEOUT_S)
        self.now -= speeches
        return await super().complete(call, models, config=config)


def _planned(number: int) -> list[PlannedDebate]:
    return [PlannedDebate(f"d{n}", f"Topic {n}?", CONFIG) for n in range(number)]


def test_a_second_run_goes_on_with_what_failed_and_leaves_the_rest(tmp_path: Path) -> None:
    fails = True

    def reply(call: ModelCall) -> Reply:
        if fails and "Topic 1?" in str(call.messages):
            return Reply(error="no credit")
        return answer(call)

    model = FakeModel(reply)
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        ended = dict((each.id, error) for each, error in run_many(debates, _planned(3), 2))
        assert [name for name, error in ended.items() if error] == ["d1"]
        assert "no credit" in ended["d1"]
        fails, paid = False, len(model.calls)
        assert {error for _, error in run_many(debates, _planned(3), 2)} == {""}
        assert {row.name: row.status for row in debates.rows()} == dict.fromkeys(("d0", "d1", "d2"), "done")
        assert all("Topic 1?" in str(call.messages) for call in model.calls[paid:])


def test_so_many_run_at_a_time_and_who_stops_early_pauses_them(tmp_path: Path) -> None:
    model = _Slow(least=3)
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        ended = run_many(debates, _planned(12), 9)
        next(ended)
        ended.close()  # type: ignore[attr-defined]  # a generator
        assert 3 <= model.most <= 9
        assert {row.status for row in debates.rows()} <= {"done", "paused", "running"}
        assert not any(debates.get(row.id).is_running() for row in debates.rows())
        assert {error for _, error in run_many(debates, _planned(12), 9)} == {""}
    assert max(Counter(call.digest for call in model.calls if call.stream_as).values()) == 1


def test_two_batches_on_one_file_pay_for_nothing_twice(tmp_path: Path) -> None:
    model = _Slow()
    errors: list[str] = []

    def run() -> None:
        with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
            errors.extend(error for _, error in run_many(debates, _planned(4), 2))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [error for error in errors if error and "in use" not in error] == []
    with open_debates(str(tmp_path / "m.sqlite")) as debates:
        assert [row.status for row in debates.rows()] == ["done"] * 4
    assert max(Counter(call.digest for call in model.calls if call.stream_as).values()) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("topics.txt", "Cars?\n\n# a remark\nTrains?\nCars?\n"),
        ("topics.jsonl", '"Cars?"\n{"topic": "Trains?"}\n'),
        ("topics.yaml", "- Cars?\n- topic: Trains?\n"),
    ],
)
def test_a_file_says_what_is_argued_whatever_its_form(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    planned = read_batch(path, {"turns": 7})
    assert [(each.topic, each.config.total_turns()) for each in planned] == [("Cars?", 7), ("Trains?", 7)]
    assert [each.id for each in read_batch(path, {"turns": 7})] == [each.id for each in planned]
    assert {each.id for each in read_batch(path, {"turns": 8})}.isdisjoint(each.id for each in planned)


def test_a_line_has_an_id_and_settings_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"topic": "Cars?", "id": "cars", "turns": 3, "judge": {"enabled": false}}\n')
    (only,) = read_batch(path, {"turns": 7, "judge": {"swap": False}})
    assert (only.id, only.config.turns) == ("cars", 3)
    assert (only.config.judge.enabled, only.config.judge.swap) == (False, False)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("b.jsonl", '{"topic": "T", "trns": 3}', "b.jsonl, line 1: .*trns"),
        ("b.jsonl", "{", "cannot read"),
        ("b.jsonl", "[1]", "neither a topic nor a configuration"),
        ("b.yaml", "topic: T", "must contain a list"),
        ("b.yaml", "- turns: 3", "item 1: the topic is missing"),
        ("b.txt", "\n", "is empty"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_batch(tmp_path / name, {})
