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
from moot.cli.commands.doctor import inspect_database
from moot.config.model_settings import ModelSettings
from moot.models.registry import Models
from moot.plugins.evals.planned_debates import PlannedDebate, run_many
from moot.storage import rate_limiter as rate_limiter_module
from moot.storage.rate_limiter import OPEN_AFTER_FAILURES
from moot.storage.records import Records, open_records
from moot.storage.sqlite import SqliteSql
from tests.support.model_bench import CALL, ModelBench
from tests.support.openai_server import OpenAIServer, ServerReply

ENDPOINT = "https://api.example m"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[tuple[Records, Records]]:
    """Yield two connections to one database, as two processes have them."""
    both = tuple(open_records(str(tmp_path / "m.sqlite")) for _ in range(2))
    yield both[0], both[1]
    for each in both:
        each.close()


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of the database, and read its rows each time."""
    monkeypatch.setattr(SqliteSql, "clock", "1000.0")
    monkeypatch.setattr(rate_limiter_module, "CACHE_S", 0.0)


@pytest.mark.usefixtures("stopped_clock")
@pytest.mark.parametrize("waits", [(20.0, 5.0), (5.0, 20.0)])
def test_longest_wait_applies_to_all_processes(
    processes: tuple[Records, Records], waits: tuple[float, float]
) -> None:
    limiters = [each.rate_limiter for each in processes]
    assert [each.wait_s(ENDPOINT) for each in limiters] == [0.0, 0.0]
    for limiter, seconds in zip(limiters, waits, strict=True):
        limiter.record_wait(ENDPOINT, seconds)
    assert [each.wait_s(ENDPOINT) for each in limiters] == pytest.approx([20.0, 20.0], abs=0.5)
    assert [each.wait_s("elsewhere") for each in limiters] == [0.0, 0.0]


def test_one_process_probes_after_an_outage_and_success_reopens(
    processes: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter_module, "CACHE_S", 0.0)
    first, second = (each.rate_limiter for each in processes)
    for number in range(OPEN_AFTER_FAILURES):
        assert not second.circuit_is_open(ENDPOINT)
        (first, second)[number % 2].record_failure(ENDPOINT)
    assert second.circuit_is_open(ENDPOINT)
    assert 0 < first.wait_s(ENDPOINT) <= 1
    processes[0].sql.execute("UPDATE moot_endpoints SET until = 1")
    assert second.wait_s(ENDPOINT) == 0.0  # this process may probe
    assert first.wait_s(ENDPOINT) > 1
    assert second.wait_s(ENDPOINT) > 1, "also for others of the same process"
    second.record_failure(ENDPOINT)
    second.record_success(ENDPOINT)
    assert (first.wait_s(ENDPOINT), first.circuit_is_open(ENDPOINT)) == (0.0, False)
    second.record_failure(ENDPOINT)
    assert not first.circuit_is_open(ENDPOINT), "failures are counted anew"


def test_a_new_process_tries_a_paused_endpoint_once(processes: tuple[Records, Records]) -> None:
    old, new = (each.rate_limiter for each in processes)
    for _ in range(OPEN_AFTER_FAILURES + 6):
        old.record_failure(ENDPOINT)
    assert (new.wait_s(ENDPOINT), old.wait_s(ENDPOINT) > 30) == (0.0, True)
    new.record_failure(ENDPOINT)
    assert new.wait_s(ENDPOINT) > 30


def test_waits_are_capped_and_impossible_times_are_ignored(
    processes: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter_module, "CACHE_S", 0.0)
    first, second = (each.rate_limiter for each in processes)
    first.record_wait(ENDPOINT, 50_000.0)
    assert second.wait_s(ENDPOINT, 60.0) <= 60
    assert first.wait_s(ENDPOINT) <= 60, "the cap counts for all"
    processes[0].sql.execute(
        "UPDATE moot_endpoints SET until = 4e9, requests = 4e9, tokens = 4e9, failures = 9"
    )
    assert not second.circuit_is_open(ENDPOINT), "a time in 2096"
    assert first.reserve_s(ENDPOINT, ModelSettings(requests_per_minute=60, tokens_per_minute=60), 1) == 0


def test_one_call_probes_during_a_long_wait_and_success_ends_it(
    processes: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter_module, "CACHE_S", 0.0)
    first, second = (each.rate_limiter for each in processes)
    first.record_wait(ENDPOINT, 3000.0)
    assert min(first.wait_s(ENDPOINT), second.wait_s(ENDPOINT)) > 2900, "not at once"
    processes[0].sql.execute("UPDATE moot_endpoints SET until = 1 WHERE endpoint LIKE 'probe %'")
    assert second.wait_s(ENDPOINT) == 0
    assert first.wait_s(ENDPOINT) > 2900, "one alone"
    second.record_wait(ENDPOINT, 3000.0)
    second.record_success(ENDPOINT)
    assert first.wait_s(ENDPOINT) > 2900, "the probe was refused too"
    processes[0].sql.execute("UPDATE moot_endpoints SET until = 1 WHERE endpoint LIKE 'probe %'")
    assert first.wait_s(ENDPOINT) == 0
    first.record_success(ENDPOINT)
    assert second.wait_s(ENDPOINT) == 0


def test_very_long_retry_after_is_capped(
    processes: tuple[Records, Records],
) -> None:
    retry_after = iter(["99999999", "Fri, 31 Dec 2100 23:59:59 GMT"])
    with OpenAIServer(
        lambda *_: ServerReply(status=429, headers={"retry-after": next(retry_after)})
    ) as server:
        here = f"{server.base_url} test-model"
        for limiter in (each.rate_limiter for each in processes):
            context = ModelBench(server, max_wait_s=900)
            context.models = replace(context.models, rate_limiter=limiter)
            (reply,) = context.ask(CALL)
            assert reply.status == 429
            assert 890 < limiter.wait_s(here) <= 900
            limiter.reset(here)


def test_doctor_names_a_closed_endpoint_and_its_repair_opens_it(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "m.sqlite")) as debates:
        limiter = debates.records.rate_limiter
        limiter.record_wait("https://busy.example m", 20.0)
        limiter.record_wait(ENDPOINT, 3000.0)
        (closed,) = [each for each in inspect_database(debates) if not each.ok]
        assert closed.what == ENDPOINT
        assert closed.repair is not None
        closed.repair()
        assert limiter.wait_s(ENDPOINT) == 0
        assert all(each.ok for each in inspect_database(debates))


@pytest.mark.usefixtures("stopped_clock")
@pytest.mark.usefixtures("stopped_clock")
def test_request_and_token_rates_are_shared_by_all_processes(processes: tuple[Records, Records]) -> None:
    rates = ModelSettings(requests_per_minute=60, tokens_per_minute=6000)
    waits = [(processes[number % 2]).rate_limiter.reserve_s(ENDPOINT, rates, 50) for number in range(6)]
    long, after = (
        processes[1].rate_limiter.reserve_s(ENDPOINT, rates, 1000),
        processes[0].rate_limiter.reserve_s(ENDPOINT, rates, 50),
    )
    print(waits, long, after)
    assert waits == [0, 0, 1, 2, 3, 4]
    assert long == 5
    assert after == 12, "those took 13 s of tokens"
    assert processes[0].rate_limiter.reserve_s(ENDPOINT, ModelSettings(), 10**9) == 0.0


def test_concurrency_slots_are_shared_by_all_processes(processes: tuple[Records, Records]) -> None:
    first, second = (each.rate_limiter for each in processes)
    taken = [first.acquire_slot(ENDPOINT, 2), second.acquire_slot(ENDPOINT, 2)]
    assert all(taken)
    assert first.acquire_slot(ENDPOINT, 2) is None
    assert taken[1] is not None
    second.release_slot(taken[1])
    assert first.acquire_slot(ENDPOINT, 2) is not None


@pytest.mark.slow
def test_no_debate_calls_an_endpoint_during_its_retry_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Event()

    def plan(request: Any, number: int) -> ServerReply:
        if refused.is_set():
            return ServerReply()
        refused.set()
        return ServerReply(status=429, headers={"retry-after": "3"})

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
    refusal = next(request for request in server.requests if request.status == 429)
    early = [at for at in arrived if refusal.ended + 1 < at < refusal.ended + 3]
    assert not early
    assert len(arrived) == 4 * 2 + 1


def test_fallback_model_is_called_if_the_endpoint_is_closed(
    processes: tuple[Records, Records],
) -> None:
    with OpenAIServer() as server:
        context = ModelBench(server)
        for _ in range(OPEN_AFTER_FAILURES):
            processes[0].rate_limiter.record_failure(f"{server.base_url} test-model")
        context.models = replace(context.models, rate_limiter=processes[1].rate_limiter)
        (reply,) = context.ask(replace(CALL, fallbacks=("spare-model",)))
        assert (reply.model, reply.error) == ("spare-model", "")
        assert [chat["model"] for chat in server.chats] == ["spare-model"]


def test_endpoint_key_has_the_base_url_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    from moot.models.endpoints import rate_limiter_key

    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret1@api.example/v1")
    models = Models(settings={"m": ModelSettings()})
    assert rate_limiter_key(models, "m") == "https://me:***@api.example/v1 m"
