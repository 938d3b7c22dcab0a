"""Failures of model calls: classification, waits before a retry, and advice."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from moot.calls.model_calls import Reply
from moot.config import DebateConfig
from moot.config.model_settings import ModelSettings
from moot.debates.proposed_debaters import propose_debaters
from moot.models.endpoints import advice, other_model
from moot.models.failures import Backoff, Failure, failure_of, retry_after
from moot.state.errors import ModelError
from tests.support.fakes import FakeModel

NOW = datetime(2025, 1, 1, tzinfo=UTC)


class StatusError(Exception):
    """Error with the attributes of the SDK's errors."""

    def __init__(self, status: int, code: str | None = None) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.body = {"message": "as the provider says", "code": code}


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, False) for status in (400, 401, 403, 404, 422)),
        *((status, True) for status in (408, 409, 425, 429, 500, 502, 503, 529)),
    ],
)
def test_http_status_decides_whether_to_retry(status: int, retryable: bool) -> None:
    failure = failure_of(StatusError(status), timeout_s=1)
    assert (failure.status, failure.retryable) == (status, retryable)
    assert failure.text == f"HTTP {status}: as the provider says"


def test_exhausted_quota_is_not_retried() -> None:
    assert not failure_of(StatusError(429, "insufficient_quota"), timeout_s=1).retryable


@pytest.mark.parametrize(
    ("error", "retryable", "words"),
    [
        (TimeoutError(), True, "no answer within 9 s"),
        (ConnectionResetError("reset"), True, "connection failed: reset"),
        (ValueError({"message": "busy", "code": 503}), True, "HTTP 503: busy"),
        (KeyError("choices"), True, "unusable answer (KeyError)"),
        (RuntimeError("a bug"), False, "a bug"),
        (ModelError("given up", status=418, retryable=True), True, "given up"),
        (Failure("as it is", retryable=True), True, "as it is"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_failures_are_classified(error: Exception, retryable: bool, words: str) -> None:
    failure = failure_of(error, timeout_s=9)
    assert failure.retryable is retryable
    assert words in failure.text


def test_long_error_is_shortened_to_one_line() -> None:
    text = failure_of(RuntimeError("x\n" * 10_000), timeout_s=1).text
    assert len(text) < 400
    assert "\n" not in text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Wed, 01 Jan 2025 00:01:00 GMT"}, 60.0),
        ({"retry-after": "Wed, 01 Jan 2020 00:01:00 GMT"}, 0.0),
        ({"retry-after": "3", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_header_is_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_waits_grow_within_bounds(failures: int, dice: float) -> None:
    backoff = Backoff(random_value=lambda: dice)
    wait = backoff.wait_s(failures)
    assert 0.25 <= wait <= backoff.max_wait_s
    assert wait <= backoff.wait_s(failures + 1)


@given(st.floats(0, 300), st.floats(0, 1))
def test_requested_wait_is_never_shortened(requested_s: float, dice: float) -> None:
    assert requested_s <= Backoff(random_value=lambda: dice).wait_s(1, requested_s) <= requested_s + 0.5


@pytest.mark.parametrize(
    ("status", "settings", "named"),
    [
        (401, {}, ("OPENAI_API_KEY", "OPENAI_BASE_URL")),
        (403, {"api_key_env": "ROUTER_KEY", "base_url": "http://r"}, ("ROUTER_KEY", "base_url")),
        (404, {}, ("model's name", "`Debate.reconfigure`", "OPENAI_BASE_URL")),
    ],
)
def test_permanent_failure_comes_with_advice(
    status: int, settings: dict[str, str], named: tuple[str, ...]
) -> None:
    text = advice(Failure("no", status=status), ModelSettings(**settings), "http://there", "m")
    assert all(word in text for word in named)
    assert advice(Failure("later", status=503), ModelSettings(), "http://there", "m") == ""


def test_failed_proposal_does_not_advise_to_resume() -> None:
    failed = FakeModel(lambda call: Reply(error=f"m: HTTP 404 (check the name; {other_model()})"))
    with pytest.raises(ModelError, match="check the name; choose another model with --model NAME") as raised:
        propose_debaters("Trams?", DebateConfig(model="m"), failed.environment())
    assert "resume" not in str(raised.value)
