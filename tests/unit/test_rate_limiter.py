"""Rate limits of an endpoint are shared by all processes that use the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.api import PlannedDebate, run_many
from moot.cli.commands.doctor import inspect_database
from moot.models.registry import Models
from moot.state.config.model_settings import ModelSettings
from moot.storage import rate_limiter as rate_limiter_module
from moot.storage.rate_limiter import OPEN_AFTER_FAILURES
from moot.storage.records import Records, open_records
from tests.support.model_bench import CALL, ModelBench
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
    first, second = (each.rate_limiter for each in two)
    assert (first.wait_s(HERE), second.wait_s("elsewhere")) == (0.0, 0.0)
    first.record_wait(HERE, 20.0)
    first.record_wait(HERE, 5.0)
    assert 19 < first.wait_s(HERE) <= 20
    assert 19 < second.wait_s(HERE) <= 20
    assert second.wait_s("elsewhere") == 0.0


def test_after_an_outage_one_asks_first_and_its_answer_lets_all(
    two: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter_module, "CACHE_S", 0.0)
    first, second = (each.rate_limiter for each in two)
    for number in range(OPEN_AFTER_FAILURES):
        assert not second.circuit_is_open(HERE)
        (first, second)[number % 2].record_failure(HERE)
    assert second.circuit_is_open(HERE)
    assert 0 < first.wait_s(HERE) <= 1
    two[0].sql.execute("UPDATE moot_endpoints SET until = 1")
    assert second.wait_s(HERE) == 0.0  # it asks
    assert first.wait_s(HERE) > 1
    assert second.wait_s(HERE) > 1, "also for others of the same process"
    second.record_failure(HERE)
    second.record_success(HERE)
    assert (first.wait_s(HERE), first.circuit_is_open(HERE)) == (0.0, False)
    second.record_failure(HERE)
    assert not first.circuit_is_open(HERE), "failures are counted anew"


def test_no_wait_is_longer_than_the_cap_and_a_time_that_a_wrong_clock_stored_is_dropped(
    two: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter_module, "CACHE_S", 0.0)
    first, second = (each.rate_limiter for each in two)
    first.record_wait(HERE, 50_000.0)
    assert second.wait_s(HERE, 60.0) <= 60
    assert first.wait_s(HERE) <= 60, "the cap counts for all"
    two[0].sql.execute("UPDATE moot_endpoints SET until = 4e9, requests = 4e9, tokens = 4e9, failures = 9")
    assert not second.circuit_is_open(HERE), "a time in 2096"
    assert first.reserve_s(HERE, ModelSettings(requests_per_minute=60, tokens_per_minute=60), 1) == 0


def test_one_call_probes_an_endpoint_during_a_long_wait_and_its_reply_ends_the_wait(
    two: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter_module, "CACHE_S", 0.0)
    first, second = (each.rate_limiter for each in two)
    first.record_wait(HERE, 3000.0)
    assert min(first.wait_s(HERE), second.wait_s(HERE)) > 2900, "not at once"
    two[0].sql.execute("UPDATE moot_endpoints SET until = 1 WHERE endpoint LIKE 'probe %'")
    assert second.wait_s(HERE) == 0
    assert first.wait_s(HERE) > 2900, "one alone"
    second.record_wait(HERE, 3000.0)
    second.record_success(HERE)
    assert first.wait_s(HERE) > 2900, "the probe was refused too"
    two[0].sql.execute("UPDATE moot_endpoints SET until = 1 WHERE endpoint LIKE 'probe %'")
    assert first.wait_s(HERE) == 0
    first.record_success(HERE)
    assert second.wait_s(HERE) == 0


def test_a_provider_that_asks_for_years_closes_its_endpoint_for_the_cap_at_most(
    two: tuple[Records, Records],
) -> None:
    asked = iter(["99999999", "Fri, 31 Dec 2100 23:59:59 GMT"])
    with OpenAIServer(lambda *_: Act(status=429, headers={"retry-after": next(asked)})) as server:
        here = f"{server.base_url} test-model"
        for limiter in (each.rate_limiter for each in two):
            context = ModelBench(server, max_wait_s=900)
            context.models = replace(context.models, rate_limiter=limiter)
            (reply,) = context.ask(CALL)
            assert reply.status == 429
            assert 890 < limiter.wait_s(here) <= 900
            limiter.reset(here)


def test_the_check_up_names_a_closed_endpoint_and_its_repair_opens_it(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "m.sqlite")) as debates:
        limiter = debates.records.rate_limiter
        limiter.record_wait("https://busy.example m", 20.0)
        limiter.record_wait(HERE, 3000.0)
        (closed,) = [each for each in inspect_database(debates) if not each.ok]
        assert closed.what == HERE
        assert closed.repair is not None
        closed.repair()
        assert limiter.wait_s(HERE) == 0
        assert all(each.ok for each in inspect_database(debates))


def test_turns_come_at_the_rates_of_all_together(two: tuple[Records, Records]) -> None:
    rates = ModelSettings(requests_per_minute=60, tokens_per_minute=6000)
    began = time.monotonic()
    waits = [(two[number % 2]).rate_limiter.reserve_s(HERE, rates, 50) for number in range(6)]
    long, after = (
        two[1].rate_limiter.reserve_s(HERE, rates, 1000),
        two[0].rate_limiter.reserve_s(HERE, rates, 50),
    )
    took = 0.5 + time.monotonic() - began
    assert waits == pytest.approx([max(0, number - 1) for number in range(6)], abs=took)
    assert long == pytest.approx(5, abs=took)
    assert after == pytest.approx(12, abs=took), "those took 13 s of tokens"
    assert two[0].rate_limiter.reserve_s(HERE, ModelSettings(), 10**9) == 0.0


def test_slots_are_as_many_as_configured_in_all(two: tuple[Records, Records]) -> None:
    first, second = (each.rate_limiter for each in two)
    taken = [first.acquire_slot(HERE, 2), second.acquire_slot(HERE, 2)]
    assert all(taken)
    assert first.acquire_slot(HERE, 2) is None
    assert taken[1] is not None
    second.release_slot(taken[1])
    assert first.acquire_slot(HERE, 2) is not None


@pytest.mark.slow
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
        context = ModelBench(server)
        for _ in range(OPEN_AFTER_FAILURES):
            two[0].rate_limiter.record_failure(f"{server.base_url} test-model")
        context.models = replace(context.models, rate_limiter=two[1].rate_limiter)
        (reply,) = context.ask(replace(CALL, fallbacks=("spare-model",)))
        assert (reply.model, reply.error) == ("spare-model", "")
        assert [chat["model"] for chat in server.chats] == ["spare-model"]


def test_rates_bind_a_model_to_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from moot.models.endpoints import endpoint_of

    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret1@api.example/v1")
    models = Models(settings={"m": ModelSettings()})
    assert endpoint_of(models, "m") == "https://me:***@api.example/v1 m"
