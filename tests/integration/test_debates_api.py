"""The `Debates` API: start, run, stop, resume, fork and delete debates from Python."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.calls.effects import Reply
from moot.documents import DebateDocument
from moot.graph.routing import Route
from moot.state.errors import ConfigError, DebateBusy, DebateExists, DebateNotFound, InputError
from moot.storage.catalogue import new_debate_id
from moot.storage.checkpoints import MootSqliteSaver, open_saver
from tests.support.fakes import FakeModel, answer
from tests.support.transcripts import message_texts

TOPIC = "Should cities ban private cars from their centres?"
THREE_TURNS = DebateConfig(turns=3, seed=1, openings="sequential")
CHOOSING_S = 0.03


def taking_time(choose: Callable[[Any, Any], str]) -> Callable[[Any, Any], str]:
    def chosen(route: Any, state: Any) -> str:
        time.sleep(CHOOSING_S)
        return choose(route, state)

    return chosen


def test_a_debate_runs_from_start_to_document(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="cars")
        assert debates.get("cars").row.status == "paused"  # nobody runs it yet
        document = debate.run()
        assert document["format"] == "moot.debate/1"
        assert (document["status"], document["name"]) == ("done", "cars")
        assert document["verdict"]["status"] == "ok"
        assert [row.turns for row in debates.rows()] == [3]
        assert debate.is_over()


def test_events_tell_a_debate_word_by_word(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        events = list(debate.stream())
        transcript = debate.document()["transcript"]
    words = {entry["id"]: "" for entry in transcript[1:]}
    for event in events:
        if event["event"] == "token":
            words[event["id"]] += event["text"]
    assert words == {entry["id"]: entry["content"] for entry in transcript[1:]}
    assert [event["entry"] for event in events if event["event"] == "entry"] == transcript[1:]
    assert events[-1] == {"event": "end", "status": "done", "reason": "all 3 turns are taken"}


def test_a_stream_closed_early_is_resumed_to_the_same_end_and_pays_no_call_twice(tmp_path: Path) -> None:
    config = DebateConfig(turns=4, openings="sequential")
    whole, stopped = FakeModel(), FakeModel()
    with open_debates(str(tmp_path / "whole.sqlite"), environment=whole.environment()) as debates:
        uninterrupted = debates.start(TOPIC, config).run()
    database = str(tmp_path / "stopped.sqlite")
    with open_debates(database, environment=stopped.environment()) as debates:
        debate = debates.start(TOPIC, config, name="stopped")
        events = debate.stream()
        next(event for event in events if event["event"] == "entry" and event["entry"]["seq"] == 2)
        events.close()  # type: ignore[attr-defined]  # a generator
        assert debates.get("stopped").row.status == "paused"
    with open_debates(database, environment=stopped.environment()) as debates:
        document = debates.get("stopped").run()
    assert message_texts(document) == message_texts(uninterrupted)
    assert len(stopped.calls) == len(whole.calls)


def test_no_step_is_taken_and_paid_before_whoever_reads_comes_back_for_more(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        entries = (e["entry"] for e in debates.start(TOPIC, THREE_TURNS).stream() if e["event"] == "entry")
        for turn, entry in enumerate(entries, 1):
            time.sleep(0.1)  # in which all three could be taken
            assert (entry["seq"], len(model.calls)) == (turn, turn)


def test_a_stop_at_any_event_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    config = DebateConfig(turns=3, openings="sequential", memory={"keep_recent": 2, "summarize_every": 1})
    whole = FakeModel()
    with open_debates(str(tmp_path / "whole.sqlite"), environment=whole.environment()) as debates:
        debate = debates.start(TOPIC, config)
        events = sum(1 for _ in debate.stream())
        uninterrupted = debate.document()
    database = str(tmp_path / "stopped.sqlite")
    for stop in range(events):
        model = FakeModel()
        with open_debates(database, environment=model.environment()) as debates:
            stream = debates.start(TOPIC, config, name=f"stopped-{stop}").stream()
            for _ in range(stop + 1):
                next(stream)
            stream.close()  # type: ignore[attr-defined]  # a generator
        with open_debates(database, environment=model.environment()) as debates:
            document = debates.get(f"stopped-{stop}").run()
        assert document["status"] == "done", stop
        assert message_texts(document) == message_texts(uninterrupted), stop
        assert len(model.calls) == len(whole.calls), stop


def test_a_stop_while_the_next_node_is_chosen_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Route, "invoke", taking_time(Route.invoke))
    database = str(tmp_path / "moot.sqlite")
    for stop in range(9):
        with open_debates(database) as debates:
            stream = debates.start(TOPIC, THREE_TURNS, name=f"stopped-{stop}").stream(tokens=False)
            for _ in range(stop + 1):
                next(stream)
            time.sleep(CHOOSING_S)  # the node is over by now, and what follows it is being chosen
            stream.close()  # type: ignore[attr-defined]  # a generator
        with open_debates(database) as debates:
            assert debates.get(f"stopped-{stop}").run()["status"] == "done", stop


class Died(BaseException):
    """Stands for a kill."""


def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Let the checkpointer die instead of writing a checkpoint, when a node's writes are in already."""
    written, aput = count(), MootSqliteSaver.aput

    async def dies(self: MootSqliteSaver, *arguments: Any) -> Any:
        if next(written) == at:
            raise Died
        return await aput(self, *arguments)

    monkeypatch.setattr(MootSqliteSaver, "aput", dies)


@pytest.mark.parametrize("more", [None, 2])
def test_a_death_between_a_nodes_writes_and_their_checkpoint_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int | None
) -> None:
    with open_debates(str(tmp_path / "whole.sqlite")) as debates:
        uninterrupted = message_texts(debates.start(TOPIC, THREE_TURNS).run())
    for at in range(20):
        with open_debates(str(tmp_path / "killed.sqlite")) as debates, monkeypatch.context() as patch:
            debate = debates.start(TOPIC, THREE_TURNS, name=f"killed-{at}")
            dying(patch, at)
            with suppress(Died):
                debate.run()
                break
            assert not debate.is_over(), at
        with open_debates(str(tmp_path / "killed.sqlite")) as debates:
            document = debates.get(f"killed-{at}").run(turns=more)
            assert document["status"] == "done", at
            assert document["verdict"]["status"] == "ok", at
            assert len(document["transcript"]) == len(uninterrupted) + (more or 0), at
            if more is None:
                assert message_texts(document) == uninterrupted, at
    assert at > 9


@pytest.mark.parametrize("at", [0, 1])
def test_a_debate_whose_maker_was_killed_was_never_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    database = str(tmp_path / "moot.sqlite")
    with open_debates(database) as debates, monkeypatch.context() as patch:
        dying(patch, at)
        patch.setattr("moot.debates.lifecycle.delete_debate", lambda made: None)  # killed, it tidies nothing
        with pytest.raises(Died):
            debates.start(TOPIC, THREE_TURNS, name="unborn")
        assert [row.status for row in debates.records.catalogue.rows()] == ["new"]
    with open_debates(database) as debates:
        assert debates.rows() == []
        with pytest.raises(DebateNotFound):
            debates.get("unborn")
        assert debates.start(TOPIC, THREE_TURNS, name="unborn").run()["status"] == "done"


def test_a_debate_that_is_created_again_after_a_kill_still_shares_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, known = str(tmp_path / "moot.sqlite"), new_debate_id("unborn")
    with open_debates(database) as debates, monkeypatch.context() as patch:
        debates.records.budgets.add("evaluation", [known])
        dying(patch, 1)
        patch.setattr("moot.debates.lifecycle.delete_debate", lambda made: None)
        with pytest.raises(Died):
            debates.start(TOPIC, THREE_TURNS, name="unborn")
    with open_debates(database) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="unborn")
        assert debates.records.budgets.debates("evaluation") == [debate.id] == [known]
        debate.delete()
        assert debates.records.budgets.debates("evaluation") == []


def test_a_run_that_ended_before_its_reader_stopped_is_done(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="over")
        events = debate.stream()
        next(event for event in events if event["event"] == "end")
        while not debate.is_over():
            pass
        events.close()  # type: ignore[attr-defined]  # a generator
        assert debates.get("over").row.status == "done"


def test_a_resume_may_give_more_turns_and_another_verdict(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        first = debate.run()
        second = debate.run(turns=2)
    assert message_texts(second)[:4] == message_texts(first)
    assert len(second["transcript"]) == 6
    assert second["status"] == "done"
    assert second["verdict"]["status"] == "ok"
    assert len(second["verdicts"]) > len(first["verdicts"])


@pytest.mark.parametrize("protocol", ["dialogue", "single", "vote"])
def test_more_turns_are_refused_before_any_call_where_the_protocol_takes_none(
    protocol: str, tmp_path: Path
) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig.model_validate({"protocol": protocol}))
        document, made = debate.run(), len(model.calls)
        assert not debate.can_go_on()
        with pytest.raises(InputError, match="allows no more turns"):
            debate.run(turns=2)
        assert debate.document()["verdict"] == document["verdict"]
        assert debate.row.status == "done"
    assert len(model.calls) == made


def test_more_turns_past_a_limit_are_refused_before_anything_is_paid(tmp_path: Path) -> None:
    model = FakeModel()
    config = DebateConfig.model_validate({"turns": 9, "limits": {"total_tokens": 300}})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, config)
        document = debate.run()
        paid = len(model.calls)
        assert document["status"] == "limit"
        assert not debate.can_go_on()
        with pytest.raises(InputError, match=r"limits\.total_tokens of 300 is reached.*--reconfigure"):
            debate.run(turns=2)
        assert len(model.calls) == paid
        assert debate.document()["verdict"] == document["verdict"]
        debate.reconfigure(DebateConfig.model_validate({"turns": 9, "limits": {"total_tokens": 10**6}}))
        assert len(debate.run(turns=2)["transcript"]) > len(document["transcript"])


def test_running_a_finished_debate_changes_nothing(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        first, paid = debate.run(), len(model.calls)
        assert debate.run() == first
    assert len(model.calls) == paid


def test_a_fork_keeps_the_beginning_and_leaves_its_source_alone(tmp_path: Path) -> None:
    model = FakeModel(lambda asked: answer(asked) if asked.schema else Reply(text=f"take {len(model.calls)}"))
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        source = debates.start(TOPIC, THREE_TURNS, name="source")
        original = source.run()
        forked = debates.get("source").fork(after=2, name="fork").run()
        assert source.document() == original
        assert debates.get("fork").row.parent == source.id
    assert message_texts(forked)[:3] == message_texts(original)[:3]
    assert message_texts(forked)[3] != message_texts(original)[3]
    assert len(forked["transcript"]) == 4
    assert forked["verdict"]["status"] == "ok"


def test_a_fork_may_go_on_longer_than_its_source(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.run()
        forked = source.fork().run(turns=1)
    assert len(forked["transcript"]) == 5


def test_a_fork_hears_what_is_said_from_its_own_floor(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.say("What about winter?")
        source.run()
        fork = source.fork()
        fork.say("And summer?")
        kinds = [(entry["kind"], entry["content"]) for entry in fork.run(turns=1)["transcript"]]
    assert ("interjection", "What about winter?") in kinds
    assert ("interjection", "And summer?") in kinds


def test_a_copied_thread_hears_what_is_said_from_its_own_floor(tmp_path: Path) -> None:
    target = "cf4f6d0e-6be1-4a7c-b9d6-3d4a7c6a8f01"

    async def copy(database: str, source: str) -> None:
        async with open_saver(database) as saver:
            await saver.acopy_thread(source, target)

    database = str(tmp_path / "moot.sqlite")
    with open_debates(database) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.say("What about winter?")
        source.run()
        asyncio.run(copy(database, source.id))
        debates.get(target).say("And summer?")
        said_there = [entry["content"] for entry in debates.get(target).run(turns=1)["transcript"]]
        assert "And summer?" in said_there
        assert said_there.count("What about winter?") == 1
        assert len(source.document()["transcript"]) == 5


def test_a_fork_after_an_entry_that_ended_no_step_is_refused(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        debate.run()
        with pytest.raises(InputError, match="message m000009"):
            debate.fork(after=9)
        assert len(debates.rows()) == 1


def test_a_deleted_debate_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="cars")
        debate.run()
        debate.delete()
        with pytest.raises(DebateNotFound, match="cars"):
            debates.get("cars")
        assert debates.records.journal.replies(debate.id) == {}
        assert debates.start(TOPIC, THREE_TURNS, name="cars").document()["transcript"][1:] == []


@pytest.mark.parametrize(
    ("topic", "config", "error"),
    [
        pytest.param("  ", {}, InputError, id="empty topic"),
        pytest.param(TOPIC, {"protocol": "parliament"}, ConfigError, id="unknown protocol"),
        pytest.param(TOPIC, {"judge": {"rubric": "beauty"}}, ConfigError, id="unknown rubric"),
    ],
)
def test_what_cannot_run_is_refused_and_nothing_is_written(
    topic: str, config: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        with pytest.raises(error):
            debates.start(topic, DebateConfig(**config))
        assert debates.rows() == []


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debates.start(TOPIC, THREE_TURNS, name="cars")
        with pytest.raises(DebateExists, match="moot resume cars"):
            debates.start("Another topic", THREE_TURNS, name="cars")
        assert [row.topic for row in debates.rows()] == [TOPIC]


def test_the_api_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def cell() -> DebateDocument:
        with open_debates(str(tmp_path / "moot.sqlite")) as debates:
            return debates.start(TOPIC, THREE_TURNS).run()

    assert asyncio.run(cell())["status"] == "done"


SECOND = """
import sys
from moot import open_debates
from moot.state.errors import DebateBusy
with open_debates(sys.argv[1]) as debates:
    try:
        debates.get("busy").run()
    except DebateBusy as error:
        print(error.pid)
"""


def test_a_second_process_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")
    with open_debates(database) as debates:
        events = debates.start(TOPIC, THREE_TURNS, name="busy").stream()
        next(events)
        second = subprocess.run(
            [sys.executable, "-c", SECOND, database], capture_output=True, text=True, check=True
        )
        assert second.stdout.split() == [str(os.getpid())]
        last = list(events)[-1]
        assert last["event"] == "end"
        assert last["status"] == "done"
    with open_debates(database) as debates:
        assert debates.get("busy").run()["status"] == "done"


def test_a_debate_in_use_is_not_deleted(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        with debates.records.leases.hold(debate.id), pytest.raises(DebateBusy):
            debate.delete()
        assert len(debates.rows()) == 1
