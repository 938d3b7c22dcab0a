"""Many concurrent debates: `run_many` and the files of `moot batch`."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig

from moot import DebateConfig, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.models.registry import Models
from moot.plugins.evals.batch_command import read_batch
from moot.plugins.evals.planned_debates import PlannedDebate, run_many
from moot.state.errors import ConfigError
from tests.support.fakes import FakeModel, fake_reply
from tests.support.waiting import LONG_TIMEOUT_S

CONFIG = DebateConfig(turns=2, openings="sequential")


@dataclass
class _SlowModel(FakeModel):
    min_parallel: int = 0
    """Number of turn calls that must run in parallel before one of them returns."""
    max_parallel: int = 0
    """Largest number of parallel turn calls so far."""
    running: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        turn_calls = int(bool(call.stream_as))  # the judge's two parallel calls do not count
        self.running += turn_calls
        self.max_parallel = max(self.max_parallel, self.running)
        await asyncio.sleep(0.05)
        if self.max_parallel >= self.min_parallel:
            self.enough.set()
        await asyncio.wait_for(self.enough.wait(), LONG_TIMEOUT_S)
        self.running -= turn_calls
        return await super().complete(call, models, config=config)


def _planned(number: int) -> list[PlannedDebate]:
    return [PlannedDebate(f"d{n}", f"Topic {n}?", CONFIG) for n in range(number)]


def test_second_run_resumes_only_the_failed_debates(tmp_path: Path) -> None:
    fails = True

    def reply(call: ModelCall) -> Reply:
        if fails and "Topic 1?" in str(call.messages):
            return Reply(error="no credit")
        return fake_reply(call)

    model = FakeModel(reply)
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        ended = dict((each.id, error) for each, error in run_many(debates, _planned(3), 2))
        assert [name for name, error in ended.items() if error] == ["d1"]
        assert "no credit" in ended["d1"]
        fails, earlier = False, len(model.calls)
        assert {error for _, error in run_many(debates, _planned(3), 2)} == {""}
        assert {row.name: row.status for row in debates.rows()} == dict.fromkeys(("d0", "d1", "d2"), "done")
        assert all("Topic 1?" in str(call.messages) for call in model.calls[earlier:])


def test_run_many_respects_the_concurrency_limit_and_pauses_on_close(tmp_path: Path) -> None:
    model = _SlowModel(min_parallel=3)
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        ended = run_many(debates, _planned(12), 9)
        next(ended)
        ended.close()  # type: ignore[attr-defined]  # a generator
        assert 3 <= model.max_parallel <= 9
        assert {row.status for row in debates.rows()} <= {"done", "paused", "running"}
        assert not any(debates.get(row.id).is_running() for row in debates.rows())
        assert {error for _, error in run_many(debates, _planned(12), 9)} == {""}
    assert max(Counter(call.digest for call in model.calls if call.stream_as).values()) == 1


def test_two_batches_on_one_database_repeat_no_call(tmp_path: Path) -> None:
    model = _SlowModel()
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
def test_batch_file_gives_the_same_topics_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    planned = read_batch(path, {"model": "offline", "turns": 7})
    assert [(each.topic, each.config.total_turns()) for each in planned] == [("Cars?", 7), ("Trains?", 7)]
    assert [each.id for each in read_batch(path, {"model": "offline", "turns": 7})] == [
        each.id for each in planned
    ]
    assert {each.id for each in read_batch(path, {"model": "offline", "turns": 8})}.isdisjoint(
        each.id for each in planned
    )


def test_batch_line_sets_its_own_id_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"topic": "Cars?", "id": "cars", "turns": 3, "judge": {"enabled": false}}\n')
    (only,) = read_batch(path, {"model": "offline", "turns": 7, "judge": {"swap": False}})
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
def test_invalid_batch_file_is_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_batch(tmp_path / name, {})
