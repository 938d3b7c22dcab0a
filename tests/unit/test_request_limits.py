"""Limits of requests: size, time, settings and concurrent reads."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message

from moot import people
from moot.config import DebateConfig
from moot.config.participants import MAX_REQUESTED_DEBATERS, MAX_REQUESTED_JUDGES, NAME_CHARS
from moot.config.stages import requested_config
from moot.embedding import MAX_QUESTION_CHARS, MAX_REQUESTED_NAME
from moot.models import attempt
from moot.people import MAX_MESSAGE_CHARS
from moot.plugins.evals.statistics import MAX_COMPARED
from moot.plugins.importing.read_context import MAX_UNPACKED_BYTES, read_upload
from moot.plugins.web import auth_middleware, http_connections, page_routes, page_uploads
from moot.plugins.web.auth_middleware import AuthMiddleware, RedactedJson, body_of
from moot.plugins.web.debate_host import MAX_CALLS_AT_ONCE, DebateReader
from moot.state.errors import ConfigError
from moot.storage.catalogue import MAX_NAME

TRUST = Path(__file__).parents[2] / "docs" / "trust.md"
LIMITS = {
    "body of any request": auth_middleware.MAX_REQUEST_BYTES,
    "body of a request of the live page, except uploads": auth_middleware.MAX_BYTES,
    "time for a body to arrive at the live page": int(auth_middleware.BODY_S),
    "time for the headers of a request to arrive at `moot serve` and `moot mcp`": int(
        http_connections.HEADERS_S
    ),
    "connections to them with unfinished headers, of which the oldest is dropped first": (
        http_connections.MAX_UNFINISHED
    ),
    "questions, judgements, proposals and imports of a server's clients at the same time": MAX_CALLS_AT_ONCE,
    "question of a debate that the live page or an agent starts": MAX_QUESTION_CHARS,
    "debaters in a request": MAX_REQUESTED_DEBATERS,
    "judges on the panel of a request": MAX_REQUESTED_JUDGES,
    "background documents in a request of the live page": page_routes.MAX_DOCUMENTS,
    "interjection, question about a debate": MAX_MESSAGE_CHARS,
    "a person's reply, which is cut at the limit": people.MAX_REPLY_CHARS,
    "name of a debater": NAME_CHARS,
    "name of a model or a protocol in a request of the live page or an agent": MAX_REQUESTED_NAME,
    "name of a debate": MAX_NAME,
    "debates that are compared": MAX_COMPARED,
    "uploaded document": page_uploads.MAX_UPLOAD_BYTES,
    "unpacked Word or Excel file": MAX_UNPACKED_BYTES,
    "reply of a model, which is cut at the limit and marked": attempt.MAX_REPLY_CHARS,
}


@pytest.mark.parametrize(("what", "limit"), LIMITS.items(), ids=LIMITS)
def test_documented_limit_is_the_enforced_one(what: str, limit: int) -> None:
    assert re.search(rf"\| {re.escape(what)} \| {limit:,} ", TRUST.read_text())


class Body(BaseModel):
    x: int = 0


def _request(receive: Any) -> Request:
    headers = [(b"content-type", b"application/json")]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


async def _never() -> Message:
    await asyncio.sleep(60)
    raise AssertionError


async def _disconnect() -> Message:
    return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("receive", "status"), [(_never, 408), (_disconnect, 400)], ids=["too slow", "disconnected client"]
)
def test_body_that_does_not_arrive_is_rejected(
    receive: Any, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth_middleware, "BODY_S", 0.01)
    with pytest.raises(HTTPException) as error:
        asyncio.run(body_of(_request(receive), Body))
    assert error.value.status_code == status


@pytest.mark.parametrize("size", [90, 101])
@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
def test_app_behind_the_middleware_reads_no_more_than_the_limit(
    size: int, chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth_middleware, "MAX_REQUEST_BYTES", 100)

    async def read(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    app = AuthMiddleware(Starlette(routes=[Route("/", read, methods=["POST"])]))
    client = TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5))
    body = b"x" * size
    answer = client.post("/", content=iter([body[:50], body[50:]]) if chunked else body)
    assert (answer.status_code, answer.text) == (
        (200, "90") if size == 90 else (413, "the body has more than 100 bytes")
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [(7, "settings: 7"), ({"debaters": [{"name": f"d{n}"} for n in range(51)]}, "at most 50")],
    ids=["not an object", "too many debaters"],
)
def test_request_with_impossible_settings_is_rejected(settings: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        requested_config(DebateConfig(), settings)


def test_concurrent_followers_of_a_debate_share_one_read() -> None:
    reads: list[object] = []

    class Counting(DebateReader):
        def version(self, debate: Any) -> Any:
            return ("v",)

        def overview(self, debate: Any) -> Any:
            reads.append(debate)
            return {}

    async def follow() -> None:
        reader, debate = Counting(cast(Any, None)), cast(Any, SimpleNamespace(id="d"))
        overviews = await asyncio.gather(*(reader.changed_overview(debate, None) for _ in range(20)))
        assert overviews == [(("v",), {})] * 20
        assert await reader.changed_overview(debate, ("v",)) is None

    asyncio.run(follow())
    assert len(reads) == 1


@pytest.mark.parametrize("name", ["\x00.html", "é" * 190 + ".html"], ids=["NUL", "long"])
def test_document_with_an_impossible_file_name_is_converted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(command: list[str], cwd: str, **_: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, 0, Path(cwd, command[-1]).read_bytes(), b"")

    monkeypatch.setattr("moot.plugins.importing.read_context.subprocess.run", convert)
    assert read_upload(name, b"Trams.") == "Trams."


def test_numbers_that_are_not_finite_are_sent_as_null() -> None:
    body = RedactedJson({"rows": [{"cost_usd": float("inf"), "tokens": 3}, {"cost_usd": float("nan")}]}).body
    assert json.loads(bytes(body), parse_constant=pytest.fail) == {
        "rows": [{"cost_usd": None, "tokens": 3}, {"cost_usd": None}]
    }
