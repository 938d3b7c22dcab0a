"""Servers that are down, load a model, or keep failing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot import ConfigError
from moot.config.model_settings import ModelSettings
from moot.models.model_call import LOADING_S
from moot.models.registry import Models
from moot.storage.rate_limiter import OPEN_AFTER_FAILURES, RateLimiter
from moot.storage.records import open_records
from tests.support.model_bench import CALL, ModelBench
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply

BOOM = ServerReply(status=500, message="boom")
LOADING = ServerReply(status=503, message="Loading model")


class Outage(ModelBench):
    """Models of one process, with a rate limiter and a clock that only sleeping moves."""

    def __init__(self, server: OpenAIServer, limiter: RateLimiter | None = None) -> None:
        super().__init__(server)
        backoff = replace(self.models.backoff, clock=lambda: sum(self.waits))
        self.models = replace(self.models, backoff=backoff, rate_limiter=limiter)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "d.sqlite")


@pytest.fixture
def limiter(database: str) -> Iterator[RateLimiter]:
    with closing(open_records(database)) as records:
        yield records.rate_limiter


def test_a_second_run_tries_a_failing_endpoint_once_and_names_the_pause(
    limiter: RateLimiter, database: str
) -> None:
    with OpenAIServer([BOOM] * 9) as server, closing(open_records(database)) as new:
        for _ in range(OPEN_AFTER_FAILURES + 6):
            limiter.record_failure(key_of(server))
        bench = Outage(server, new.rate_limiter)
        (reply,) = bench.ask(CALL)
    assert len(server.chats) == 1
    assert sum(bench.waits) < 2
    assert "HTTP 500: boom; paused after repeated failures" in reply.error


def key_of(server: OpenAIServer) -> str:
    return f"{server.base_url} test-model"


@pytest.mark.parametrize(("purpose", "is_open"), [("turn", True), ("summary", False), ("extract", False)])
def test_only_failures_of_debaters_close_an_endpoint(
    monkeypatch: pytest.MonkeyPatch, purpose: Any, is_open: bool, limiter: RateLimiter
) -> None:
    monkeypatch.setattr("moot.storage.rate_limiter.MAX_OPEN_S", 1.0)
    with OpenAIServer([BOOM] * 30) as server:
        Outage(server, limiter).ask(*[replace(CALL, purpose=purpose)] * 3)
        assert limiter.circuit_is_open(key_of(server)) == is_open


def test_a_server_that_loads_its_model_is_given_time(caplog: pytest.LogCaptureFixture) -> None:
    with OpenAIServer([LOADING] * 9) as server:
        bench = Outage(server)
        (reply,) = bench.ask(CALL)
    assert (reply.ok, reply.attempts, sum(bench.waits) > 40) == (True, 10, True)
    assert "the server is loading the model, retry 1 in 5" in caplog.text


def test_a_server_that_never_loads_its_model_fails_after_two_minutes() -> None:
    with OpenAIServer(lambda *_: LOADING) as server:
        bench = Outage(server)
        (reply,) = bench.ask(CALL)
    assert "HTTP 503: Loading model" in reply.error
    assert LOADING_S - 10 < sum(bench.waits) <= LOADING_S


def test_doctor_names_the_address_of_a_server_that_is_down(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        url = server.base_url
    variables: Any = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
    done = Moot(tmp_path)("doctor", "--models", "--model", "m", "--yes", "--json", **variables)
    assert done.code == 1
    assert f"nothing answers at {url}: is it running?" in {row["what"]: row["says"] for row in done.json}["m"]


def test_a_missing_key_is_an_error_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTHER_KEY", raising=False)
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1", api_key_env="OTHER_KEY")
    with pytest.raises(ConfigError, match="'m' has no API key: set OTHER_KEY"):
        Models({"m": settings}).check(["m"])
