"""Async versions of the Python API, resuming by name, the decision in events, and advice for each caller."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moot import (
    DebateConfig,
    DebateExists,
    DebateNotFound,
    InputError,
    aopen_debates,
    build_graph,
    checkpointer,
    open_debates,
)
from moot.calls.model_calls import Reply
from moot.state.errors import Caller, advice_for
from tests.support.fakes import JUDGE_REPLY, FakeModel

SHORT = DebateConfig(turns=2)


def test_async_versions_start_ask_judge_fork_and_delete(tmp_path: Path) -> None:
    async def main() -> tuple[str, bool, list[str]]:
        database = str(tmp_path / "moot.sqlite")
        async with aopen_debates(database) as debates:
            debate = await debates.astart("Trams?", SHORT, name="trams")
            await debate.arun()
            answer = await debate.aask("Who spoke first?")
            judgement = await debate.ajudge(dry_run=True)
            fork = await debate.afork(name="fork")
            names = [row.name for row in debates.rows()]
            await fork.adelete()
            return answer.text, judgement.failed, [*names, *(row.name for row in debates.rows())]

    text, failed, names = asyncio.run(main())
    assert text
    assert not failed
    assert sorted(names) == ["fork", "trams", "trams"]


def test_start_returns_the_stored_debate_of_a_taken_name_on_request(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        first = debates.start("Trams?", SHORT, name="trams")
        assert debates.start("Cars?", name="trams", if_exists="resume").id == first.id
        assert first.config().turns == 2
        with pytest.raises(DebateExists):
            debates.start("Cars?", name="trams")


def test_checkpointer_opens_a_database_for_an_own_graph(tmp_path: Path) -> None:
    database = str(tmp_path / "d.sqlite")
    with open_debates(database) as debates:
        debate = debates.start("Trams?", SHORT)
        transcript = debate.run()["transcript"]

    async def main() -> Any:
        place: Any = {"configurable": {"thread_id": debate.id}}
        async with checkpointer(database) as saver:
            graph = build_graph(saver)
            stored = (await graph.aget_state(place)).values["full_transcript"]
            await graph.ainvoke({"messages": [("user", "Go on: and buses?")]}, place)
            return stored

    assert asyncio.run(main()) == transcript
    with open_debates(database) as debates:
        assert len(debates.get(debate.id).document()["transcript"]) > len(transcript) + 1


def test_events_carry_the_decision() -> None:
    verdict = {**JUDGE_REPLY, "decision": "Build the tram."}
    model = FakeModel(lambda call: Reply(data=verdict) if call.schema else Reply(text="I say yes."))
    with open_debates(":memory:", environment=model.environment()) as debates:
        debate = debates.start("Trams?", SHORT)
        events = {event["event"]: event for event in debate.stream()}
    decision: Any = events["verdict"]
    end: Any = events["end"]
    assert (decision["decision"], end["answer"]) == ("Build the tram.", "Build the tram.")


ADVICE: dict[Caller, str] = {
    "python": "call `Debates.rows`",
    "command": "run `moot list`",
    "agent": "read the resource moot://debates",
}


@pytest.mark.parametrize(("caller", "named"), [("command", "--topic"), ("python", "`topic`")])
def test_errors_name_an_option_as_the_caller_does(caller: Caller, named: str) -> None:
    raises = pytest.raises(InputError, match=f"add one with {named}$")
    with open_debates(":memory:") as debates, advice_for(caller), raises:
        debates.import_transcript("Ada: Yes.\nBen: No.\n")


@pytest.mark.parametrize("caller", ADVICE)
def test_errors_advise_what_the_caller_can_do(caller: Caller) -> None:
    raises = pytest.raises(DebateNotFound, match=ADVICE[caller])
    with open_debates(":memory:") as debates, advice_for(caller), raises:
        debates.get("trams")
