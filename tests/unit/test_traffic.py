"""What one call learns of an endpoint, all who use the database know."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.graph.many import PlannedDebate, run_many
from moot.nodes.models.registry import Models
from moot.state import traffic as traffic_module
from moot.state.config.model_settings import ModelSettings
from moot.state.records import Records, open_records
from moot.state.traffic import OPEN_AFTER
from tests.support.model_bench import CALL, Bench
from tests.support.openai_server import Act, OpenAIServer

HERE = "https://api.example m"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Records, Records]]:
    both = tuple(open_records(str(tmp_path / "m.sqlite")) for _ in range(2))
    yield both[0], both[1]
    for each in both:
        each.close()


def test_a_wait_that_one_was_told_all_keep_to_whatever_comes_after(
    two: tuple[Records, Records],
) -> None:
    first, second = (each.traffic for each in two)
    assert (first.wait_s(HERE), second.wait_s("elsewhere")) == (0.0, 0.0)
    first.note_wait(HERE, 20.0)
    first.note_wait(HERE, 5.0)
    assert 19 < first.wait_s(HERE) <= 20
    assert 19 < second.wait_s(HERE) <= 20
    assert second.wait_s("elsewhere") == 0.0


def test_after_an_outage_one_asks_first_and_its_answer_lets_all(
    two: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic_module, "FRESH_S", 0.0)
    first, second = (each.traffic for each in two)
    for number in range(OPEN_AFTER):
        assert not second.is_out(HERE)
        (first, second)[number % 2].note_failure(HERE)
    assert second.is_out(HERE)
    assert 0 < first.wait_s(HERE) <= 1
    two[0].sql.execute("UPDATE moot_endpoints SET until = 1")
    assert second.wait_s(HERE) == 0.0  # it asks
    assert first.wait_s(HERE) > 1
    assert second.wait_s(HERE) > 1, "also for others of the same process"
    second.note_failure(HERE)
    second.note_answer(HERE)
    assert (first.wait_s(HERE), first.is_out(HERE)) == (0.0, False)
    second.note_failure(HERE)
    assert not first.is_out(HERE), "failures are counted anew"


def test_turns_come_at_the_rates_of_all_together(two: tuple[Records, Records]) -> None:
    rates = ModelSettings(requests_per_minute=60, tokens_per_minute=6000)
    began = time.monotonic()
    waits = [(two[number % 2]).traffic.turn_s(HERE, rates, 50) for number in range(6)]
    long, after = two[1].traffic.turn_s(HERE, rates, 1000), two[0].traffic.turn_s(HERE, rates, 50)
    took = 0.5 + time.monotonic() - began
    assert waits == pytest.approx([max(0, number - 1) for number in range(6)], abs=took)
    assert long == pytest.approx(5, abs=took)
    assert after == pytest.approx(12, abs=took), "those took 13 s of tokens"
    assert two[0].traffic.turn_s(HERE, ModelSettings(), 10**9) == 0.0


def test_slots_are_as_many_as_configured_in_all(two: tuple[Records, Records]) -> None:
    first, second = (each.traffic for each in two)
    taken = [first.slot(HERE, 2), second.slot(HERE, 2)]
    assert all(taken)
    assert first.slot(HERE, 2) is None
    assert taken[1] is not None
    second.free(taken[1])
    assert first.slot(HERE, 2) is not None


def test_debates_of_one_database_ask_no_endpoint_that_told_one_of_them_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Event()

    def plan(asked: Any, number: int) -> Act:
        if refused.is_set():
            return Act()
        refused.set()
        return Act(status=429, headers={"retry-after": "3"})

    config = DebateConfig.model_validate(
        {"model": "m", "turns": 2, "judge": {"enabled": False}, "models": {"m": {"concurrency": 2}}}
    )
    with OpenAIServer(plan, latency=0.05) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")

        def run(name: str) -> None:
            with open_debates(str(tmp_path / "m.sqlite")) as debates:
                planned = [PlannedDebate(f"{name}{number}", "Trams?", config) for number in range(2)]
                assert {error for _, error in run_many(debates, planned, 2)} == {""}

        first = threading.Thread(target=run, args=("a",))
        first.start()
        refused.wait(20)
        time.sleep(0.3)
        run("b")
        first.join()
        arrived = sorted(request.started for request in server.requests)
        assert server.peak <= 2
    told = next(request for request in server.requests if request.status == 429)
    early = [at for at in arrived if told.ended + 1 < at < told.ended + 3]
    assert not early
    assert len(arrived) == 4 * 2 + 1


def test_who_has_another_model_waits_for_none_that_is_out_of_order(
    two: tuple[Records, Records],
) -> None:
    with OpenAIServer() as server:
        bench = Bench(server)
        for _ in range(OPEN_AFTER):
            two[0].traffic.note_failure(f"{server.base_url} test-model")
        bench.models = replace(bench.models, traffic=two[1].traffic)
        (reply,) = bench.ask(replace(CALL, fallbacks=("spare-model",)))
        assert (reply.model, reply.error) == ("spare-model", "")
        assert [chat["model"] for chat in server.chats] == ["spare-model"]


def test_rates_bind_a_model_to_its_place() -> None:
    from moot.nodes.models.endpoints import endpoint_of

    models = Models(settings={"m": ModelSettings(base_url="https://me:secret1@api.example/v1")})
    assert endpoint_of(models, "m") == "https://me:***@api.example/v1 m"
