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
from moot.calls.model_calls import Reply
from moot.documents import DebateDocument
from moot.graph.routing import Route
from moot.state.errors import ConfigError, DebateBusy, DebateExists, DebateNotFound, InputError
from moot.storage.catalogue import new_debate_id
from moot.storage.checkpoints import MootSqliteSaver, open_saver
from tests.support.fakes import FakeModel, fake_reply
from tests.support.transcripts import message_texts

TOPIC = "Should cities ban private cars from their centres?"
THREE_TURNS = DebateConfig(turns=3, seed=1, openings="sequential")
ROUTING_DELAY_S = 0.03


def with_delay(choose: Callable[[Any, Any], str]) -> Callable[[Any, Any], str]:
    def delayed(route: Any, state: Any) -> str:
        time.sleep(ROUTING_DELAY_S)
        return choose(route, state)

    return delayed


def test_debate_runs_and_returns_its_document(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="cars")
        assert debates.get("cars").row.status == "paused"  # not running yet
        document = debate.run()
        assert document["format"] == "moot.debate/1"
        assert (document["status"], document["name"]) == ("done", "cars")
        assert document["verdict"]["status"] == "ok"
        assert [row.turns for row in debates.rows()] == [3]
        assert debate.is_over()


def test_events_stream_the_transcript_token_by_token(tmp_path: Path) -> None:
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
    end = {"event": "end", "status": "done", "reason": "all 3 turns are taken", "answer": ""}
    assert events[-1] == end  # the offline model gives no answer


def test_resume_after_a_closed_stream_repeats_no_call(tmp_path: Path) -> None:
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


def test_stream_runs_no_step_before_the_consumer_asks_for_it(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        entries = (e["entry"] for e in debates.start(TOPIC, THREE_TURNS).stream() if e["event"] == "entry")
        for turn, entry in enumerate(entries, 1):
            time.sleep(0.1)  # long enough for all three turns
            assert (entry["seq"], len(model.calls)) == (turn, turn)


def test_stop_at_any_event_loses_and_repeats_nothing(tmp_path: Path) -> None:
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


def test_debate_finishes_after_a_stop_during_routing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Route, "invoke", with_delay(Route.invoke))
    database = str(tmp_path / "moot.sqlite")
    for stop in range(9):
        with open_debates(database) as debates:
            stream = debates.start(TOPIC, THREE_TURNS, name=f"stopped-{stop}").stream(tokens=False)
            for _ in range(stop + 1):
                next(stream)
            time.sleep(ROUTING_DELAY_S)  # the node has ended, and the next one is being chosen
            stream.close()  # type: ignore[attr-defined]  # a generator
        with open_debates(database) as debates:
            assert debates.get(f"stopped-{stop}").run()["status"] == "done", stop


class Killed(BaseException):
    """Simulates a kill of the process."""


def kill_at_checkpoint(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Raise `Killed` instead of writing checkpoint number `at`. The node's writes are already stored."""
    written, aput = count(), MootSqliteSaver.aput

    async def aput_or_die(self: MootSqliteSaver, *arguments: Any) -> Any:
        if next(written) == at:
            raise Killed
        return await aput(self, *arguments)

    monkeypatch.setattr(MootSqliteSaver, "aput", aput_or_die)


@pytest.mark.parametrize("more", [None, 2])
def test_kill_between_a_nodes_writes_and_checkpoint_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int | None
) -> None:
    with open_debates(str(tmp_path / "whole.sqlite")) as debates:
        uninterrupted = message_texts(debates.start(TOPIC, THREE_TURNS).run())
    for at in range(20):
        with open_debates(str(tmp_path / "killed.sqlite")) as debates, monkeypatch.context() as patch:
            debate = debates.start(TOPIC, THREE_TURNS, name=f"killed-{at}")
            kill_at_checkpoint(patch, at)
            with suppress(Killed):
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
def test_debate_killed_during_creation_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    database = str(tmp_path / "moot.sqlite")
    with open_debates(database) as debates, monkeypatch.context() as patch:
        kill_at_checkpoint(patch, at)
        # A killed process cleans up nothing.
        patch.setattr("moot.debates.lifecycle.delete_debate", lambda made: None)
        with pytest.raises(Killed):
            debates.start(TOPIC, THREE_TURNS, name="unborn")
        assert [row.status for row in debates.records.catalogue.rows()] == ["new"]
    with open_debates(database) as debates:
        assert debates.rows() == []
        with pytest.raises(DebateNotFound):
            debates.get("unborn")
        assert debates.start(TOPIC, THREE_TURNS, name="unborn").run()["status"] == "done"


def test_debate_created_again_after_a_kill_keeps_its_shared_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, known = str(tmp_path / "moot.sqlite"), new_debate_id("unborn")
    with open_debates(database) as debates, monkeypatch.context() as patch:
        debates.records.budgets.add("evaluation", [known])
        kill_at_checkpoint(patch, 1)
        patch.setattr("moot.debates.lifecycle.delete_debate", lambda made: None)
        with pytest.raises(Killed):
            debates.start(TOPIC, THREE_TURNS, name="unborn")
    with open_debates(database) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="unborn")
        assert debates.records.budgets.debates("evaluation") == [debate.id] == [known]
        debate.delete()
        assert debates.records.budgets.debates("evaluation") == []


def test_debate_is_done_if_its_stream_is_closed_after_the_end(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="over")
        events = debate.stream()
        next(event for event in events if event["event"] == "end")
        while not debate.is_over():
            pass
        events.close()  # type: ignore[attr-defined]  # a generator
        assert debates.get("over").row.status == "done"


def test_run_with_more_turns_continues_and_judges_again(tmp_path: Path) -> None:
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
def test_more_turns_are_refused_if_the_protocol_allows_none(protocol: str, tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig.model_validate({"protocol": protocol}))
        document, calls = debate.run(), len(model.calls)
        assert not debate.can_go_on()
        with pytest.raises(InputError, match="allows no more turns"):
            debate.run(turns=2)
        assert debate.document()["verdict"] == document["verdict"]
        assert debate.row.status == "done"
    assert len(model.calls) == calls


def test_more_turns_past_a_limit_are_refused_before_any_call(tmp_path: Path) -> None:
    model = FakeModel()
    config = DebateConfig.model_validate({"turns": 9, "limits": {"total_tokens": 300}})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, config)
        document = debate.run()
        calls = len(model.calls)
        assert document["status"] == "limit"
        assert not debate.can_go_on()
        with pytest.raises(InputError, match=r"limits\.total_tokens of 300 is reached.*`Debate.reconfigure`"):
            debate.run(turns=2)
        assert len(model.calls) == calls
        assert debate.document()["verdict"] == document["verdict"]
        debate.reconfigure(DebateConfig.model_validate({"turns": 9, "limits": {"total_tokens": 10**6}}))
        assert len(debate.run(turns=2)["transcript"]) > len(document["transcript"])


def test_running_a_finished_debate_changes_nothing(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        first, calls = debate.run(), len(model.calls)
        assert debate.run() == first
    assert len(model.calls) == calls


def test_fork_keeps_earlier_messages_and_leaves_its_source_unchanged(tmp_path: Path) -> None:
    model = FakeModel(
        lambda call: fake_reply(call) if call.schema else Reply(text=f"take {len(model.calls)}")
    )
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


def test_fork_may_run_longer_than_its_source(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.run()
        forked = source.fork().run(turns=1)
    assert len(forked["transcript"]) == 5


def test_fork_reads_messages_from_its_own_inbox(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.say("What about winter?")
        source.run()
        fork = source.fork()
        fork.say("And summer?")
        kinds = [(entry["kind"], entry["content"]) for entry in fork.run(turns=1)["transcript"]]
    assert ("interjection", "What about winter?") in kinds
    assert ("interjection", "And summer?") in kinds


def test_copied_thread_reads_messages_from_its_own_inbox(tmp_path: Path) -> None:
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
        contents = [entry["content"] for entry in debates.get(target).run(turns=1)["transcript"]]
        assert "And summer?" in contents
        assert contents.count("What about winter?") == 1
        assert len(source.document()["transcript"]) == 5


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        pytest.param(9, "message m000009 does not end a debater's turn", id="unknown message"),
        pytest.param(0, "message m000000 does not end a debater's turn", id="topic"),
        pytest.param(3, "message m000003 does not end a debater's turn", id="interjection"),
        pytest.param(1, "message m000001 is followed by other turns of the same step", id="inside a step"),
    ],
)
def test_fork_after_an_entry_that_ends_no_step_is_refused(after: int, reason: str, tmp_path: Path) -> None:
    planned = [{"after": 2, "text": "What about winter?"}]
    config = DebateConfig(turns=3, openings="independent", interjections=planned)
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, config)
        kinds = [entry["kind"] for entry in debate.run()["transcript"]]
        assert kinds == ["topic", "speech", "speech", "interjection", "speech"]
        with pytest.raises(InputError, match=reason):
            debate.fork(after=after)
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
def test_invalid_debate_is_refused_and_not_stored(
    topic: str, config: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        with pytest.raises(error):
            debates.start(topic, DebateConfig(**config))
        assert debates.rows() == []


def test_start_refuses_a_taken_name(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debates.start(TOPIC, THREE_TURNS, name="cars")
        with pytest.raises(DebateExists, match="if_exists"):
            debates.start("Another topic", THREE_TURNS, name="cars")
        assert [row.topic for row in debates.rows()] == [TOPIC]


def test_the_api_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def cell() -> DebateDocument:
        with open_debates(str(tmp_path / "moot.sqlite")) as debates:
            return debates.start(TOPIC, THREE_TURNS).run()

    assert asyncio.run(cell())["status"] == "done"


SECOND_PROCESS = """
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
            [sys.executable, "-c", SECOND_PROCESS, database], capture_output=True, text=True, check=True
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
