"""Malformed requests to every route of the live page are refused and never cause an internal error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.routing import BaseRoute, Mount, Route
from starlette.testclient import TestClient

from moot import DebateConfig
from moot.people import MAX_MESSAGE_CHARS
from moot.plugins.web.page_actions import ACTIONS
from moot.plugins.web.page_routes import page_app
from tests.support.live_page import open_with_models

EXISTING = "fuzzed"
DIGITS = "9" * 5000
ODD = [
    "",
    "0",
    "-1",
    "1e9",
    DIGITS,
    "٣",
    "²",
    "m000001",
    "m" + DIGITS,
    "c000001",
    "c",
    "[::1",
    "\x00",
    "..",
    "../..",
    "%00",
]
WORDS = ["\u202e", "🎉", "a" * 3000, "'; DROP TABLE x", "null", "*", "verdict", "json", "latest", EXISTING]
TEXTS = st.one_of(st.sampled_from([*ODD, *WORDS]), st.text(max_size=12))
NUMBERS = st.sampled_from([-1, 0, 1, 2, 1.5, 10**30, -(10**30), float("inf")])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=4,
)
FIELDS = ["question", "debaters", "turns", "model", "protocol", "text", "speaker", "message", "pinned"]
FIELDS += ["note", "kind", "why", "after", "answers", "name"]
BODIES = st.one_of(
    st.sampled_from([b"null", b"[]", b"", b"{", b"\xff\xfe", b'"x"', f'{{"turns": {DIGITS}}}'.encode()]),
    st.sampled_from([b"[" * 20_000, b'{"a":' * 20_000, b'{"question": "\\ud800"}', b'{"text": "\\u0000"}']),
    st.dictionaries(st.one_of(st.sampled_from(FIELDS), TEXTS), VALUES, max_size=4).map(
        lambda body: json.dumps(body).encode("utf-8", "replace")
    ),
)
ADDRESSES = [
    "127.0.0.1:2025",
    "[::1",
    "[::1]",
    "[",
    "]",
    "a@b:c",
    "127.0.0.1:99999999",
    "",
    "\xff",
    "::",
    "//",
]
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "host": st.sampled_from(ADDRESSES),
        "origin": st.sampled_from([*(f"http://{each}" for each in ADDRESSES), "null", "http://[::1", "x"]),
        "content-type": st.sampled_from(
            ["application/json", "application/json; charset=é", "application/octet-stream", ""]
        ),
        "sec-fetch-site": st.sampled_from(["same-origin", "cross-site", "\xff"]),
        "authorization": st.sampled_from(["Bearer", "Bearer \xff", "Basic x"]),
        "cookie": st.sampled_from(["moot_token=\xff", "=;=;", "a" * 5000]),
        "range": st.sampled_from(
            ["bytes=0-1", "bytes=9-1", "bytes=-0", f"bytes={DIGITS}-", "bytes=a-b", "x"]
        ),
        "if-modified-since": st.sampled_from(["yesterday", "Sat, 99 Foo 99999 00:00:00 GMT"]),
    },
)


def templates(routes: list[BaseRoute], prefix: str = "") -> Iterator[str]:
    """Yield the path of each route."""
    for route in routes:
        if isinstance(route, Mount):
            yield from templates(list(route.routes), prefix + route.path)
            yield f"{prefix}{route.path}/{{file}}"
        elif isinstance(route, Route):
            yield prefix + route.path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path = tmp_path_factory.mktemp("fuzz") / "d.sqlite"
    short: Any = {"model": "offline", "turns": 1, "judge": {"enabled": False}}
    with open_with_models(path) as debates:
        debates.start("Tabs or spaces?", DebateConfig(**short), name=EXISTING).run()
    app = page_app(lambda: open_with_models(path), DebateConfig(**short))
    local = ("127.0.0.1", 5)
    with TestClient(
        app, base_url="http://127.0.0.1:2025", client=local, raise_server_exceptions=False
    ) as client:
        yield client


def requests(page: TestClient) -> st.SearchStrategy[tuple[str, str, dict[str, str], bytes]]:
    """Return requests to every route: method, address, headers and body."""
    paths = sorted(set(templates(list(page.app.routes))))  # type: ignore[attr-defined]  # a Starlette app
    paths += [path.replace("{action}", action) for path in paths for action in ACTIONS if "{action}" in path]
    assert len(paths) > 15

    @st.composite
    def request(draw: st.DrawFn) -> tuple[str, str, dict[str, str], bytes]:
        path = draw(st.sampled_from(paths))
        for name in re.findall(r"{(\w+)", path):
            real = st.sampled_from([EXISTING, EXISTING, "verdict", "json", "1", "live.css"])
            text = quote(draw(st.one_of(real, TEXTS)).encode("utf-8", "replace"), safe="")
            path = path.replace(f"{{{name}}}", text).replace(f"{{{name}:path}}", text)
        keys = st.one_of(st.sampled_from(["q", "status", "from", "to", "id", "debate", "token"]), TEXTS)
        query = draw(st.lists(st.tuples(keys, TEXTS), max_size=3))
        words = "&".join(
            "=".join(quote(each.encode("utf-8", "replace"), safe="") for each in pair) for pair in query
        )
        method = draw(st.sampled_from(["GET", "POST", "GET", "POST", "HEAD", "PUT", "OPTIONS"]))
        return method, f"{path}?{words}", draw(HEADERS), draw(BODIES) if method == "POST" else b""

    return request()


@pytest.mark.parametrize("examples", [400, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_request_to_any_route_causes_an_internal_error(page: TestClient, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(sent=requests(page))
    def check(sent: tuple[str, str, dict[str, str], bytes]) -> None:
        method, address, headers, body = sent
        encoded = {"content-type": "application/json", "host": "127.0.0.1:2025", **headers}
        raw = {name.encode(): value.encode() for name, value in encoded.items()}
        answer = page.request(method, address, headers=raw, content=body, follow_redirects=False)
        assert answer.status_code < 500, (sent, answer.text[:300])

    check()


@pytest.mark.parametrize(
    ("path", "sent", "status", "words"),
    [
        pytest.param("", {"headers": {"host": "[::1"}}, 400, "malformed Host", id="host"),
        pytest.param(
            "", {"headers": {"origin": "http://[::1"}}, 400, "malformed Host or Origin", id="origin"
        ),
        pytest.param(
            f"/{EXISTING}/entries?from={DIGITS}", {}, 400, "at most 9 digits", id="digits in a query"
        ),
        pytest.param(f"/{EXISTING}/prompts/{DIGITS}", {}, 400, "at most 9 digits", id="digits in a path"),
        pytest.param(f"/{DIGITS}", {}, 404, "at most 200 printable characters", id="name"),
        pytest.param(
            f"/{EXISTING}/fork", {"body": f'{{"after": "m{DIGITS}"}}'}, 400, "not the id", id="entry id"
        ),
        pytest.param(
            f"/{EXISTING}/pin", {"body": f'{{"message": "m{DIGITS}"}}'}, 400, "no message", id="pin"
        ),
        pytest.param(
            "",
            {"body": json.dumps({"question": "Q?", "debaters": [{"name": f"d{n}"} for n in range(51)]})},
            400,
            "at most 50 items",
            id="debaters",
        ),
        pytest.param("", {"body": "null"}, 400, "object", id="null"),
        pytest.param("", {"body": '{"question": 7}'}, 400, "question", id="type"),
        pytest.param(
            "", {"body": json.dumps({"question": "x" * 300_001})}, 400, "at most 300000", id="question"
        ),
        pytest.param(
            f"/{EXISTING}/say",
            {"body": json.dumps({"text": "x" * (MAX_MESSAGE_CHARS + 1)})},
            400,
            "at most 100000",
            id="message",
        ),
        pytest.param("", {"body": '{"x": "' + "y" * 1_000_000 + '"}'}, 413, "1,000,000 bytes", id="body"),
    ],
)
def test_refused_requests_are_answered_with_the_reason(
    page: TestClient, path: str, sent: dict[str, Any], status: int, words: str
) -> None:
    headers = {"content-type": "application/json", **sent.get("headers", {})}
    method = "POST" if "body" in sent else "GET"
    answer = page.request(
        method, f"/moot/api/debates{path}", headers=headers, content=sent.get("body", "").encode()
    )
    assert (answer.status_code, words in answer.text) == (status, True), answer.text[:300]
