"""The live page under half requests, slow questions, many listeners and deletions, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from moot import DebateConfig
from moot.models.offline import ScriptedModel
from moot.plugins.web import debate_host, http_connections
from moot.plugins.web.debate_host import MAX_CALLS_AT_ONCE, DebateHost
from moot.state.errors import InputError
from tests.support.live_page import PausedModel, open_with_models, serve_in_thread
from tests.support.waiting import LONG_TIMEOUT_S, wait_until

HALF = b"GET /moot/api/debates HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
CONFIG = DebateConfig(model="mine", turns=1, judge={"enabled": False})


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serve_in_thread(tmp_path / "d.sqlite", CONFIG, mine=ScriptedModel(lambda _: "One.")) as page:
        yield page


def client_of(address: str) -> httpx.Client:
    return httpx.Client(base_url=address, trust_env=False, timeout=LONG_TIMEOUT_S)


def connect(address: str, sent: bytes = b"") -> socket.socket:
    url = urlsplit(address)
    connection = socket.create_connection((url.hostname or "", url.port or 0))
    connection.sendall(sent)
    return connection


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while data := connection.recv(65536):
            assert data
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def connections(address: str, number: int, sent: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(address, sent)) for _ in range(number)]


def test_the_oldest_of_many_half_requests_are_dropped(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "MAX_UNFINISHED", 8)
    with connections(address, 20, HALF) as half:
        assert wait_until(lambda: sum(map(is_closed, half)) == 12)
        assert [is_closed(each) for each in half] == [True] * 12 + [False] * 8
        with client_of(address) as page:
            assert page.get("/api/debates").status_code == 200


def test_whole_requests_are_not_counted_with_half_ones(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "MAX_UNFINISHED", 2)
    with client_of(address) as page, ExitStack() as stack:
        started = page.post("/api/debates", json={"question": "Tabs?"}).json()["id"]
        events = f"GET /moot/api/debates/{started}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        monkeypatch.setattr(debate_host.DebateHost, "running", lambda *_: True)  # keeps streams open
        listeners = [stack.enter_context(connect(address, events)) for _ in range(5)]
        assert wait_until(lambda: all(each.recv(10, socket.MSG_PEEK) for each in listeners))
        half = [stack.enter_context(connect(address, HALF)) for _ in range(6)]
        assert wait_until(lambda: sum(map(is_closed, half)) == 4)
        assert not any(map(is_closed, listeners))


def test_many_listeners_may_connect_at_the_same_moment(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "MAX_UNFINISHED", 2)
    monkeypatch.setattr(debate_host.DebateHost, "running", lambda *_: True)  # keeps streams open

    async def listen(events: bytes) -> int:
        streams = await asyncio.gather(
            *(asyncio.open_connection(*urlsplit(address).netloc.split(":")) for _ in range(50))
        )
        for _, writer in streams:
            writer.write(events)
        lines = await asyncio.gather(*(reader.readline() for reader, _ in streams))
        for _, writer in streams:
            writer.close()
        return lines.count(b"HTTP/1.1 200 OK\r\n")

    with client_of(address) as page:
        started = page.post("/api/debates", json={"question": "Tabs?"}).json()["id"]
        events = f"GET /moot/api/debates/{started}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        assert asyncio.run(listen(events.encode())) == 50


def test_silent_connections_leave_files_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = 2 * http_connections.RESERVED_FILES + 10
    monkeypatch.setattr(http_connections, "_raise_open_files", lambda: files)
    with serve_in_thread(tmp_path / "d.sqlite", CONFIG) as address, connections(address, 30, b"") as silent:
        assert wait_until(lambda: sum(map(is_closed, silent)) == 20)
        assert not any(map(is_closed, silent[20:]))
        with client_of(address) as page:
            assert page.get("/api/debates").status_code == 200


CASES: dict[str, list[bytes]] = {
    "nothing": [],
    "half of the headers": [HALF],
    "one byte after another": [HALF, *(b"x" for _ in range(40))],
    "half of a second request": [HALF + b"x\r\n\r\n", HALF],
    "second request byte after byte": [HALF + b"x\r\n\r\n", HALF, *(b"x" for _ in range(40))],
    "body that nobody reads": [
        b"GET /moot/api/debates HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n",
        *(b"x" for _ in range(40)),
    ],
}


@pytest.mark.parametrize("packets", CASES.values(), ids=CASES)
def test_connection_without_a_whole_request_ends(
    packets: list[bytes], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "HEADERS_S", 0.5)
    with connect(address) as connection:
        for packet in packets:
            with suppress(OSError):  # closed in the meantime
                connection.setblocking(True)
                connection.sendall(packet)
            time.sleep(0.05)  # the interval of the client
        assert wait_until(lambda: is_closed(connection))


@pytest.mark.parametrize(("content_type", "status"), [("text/csv", 415), ("application/octet-stream", 413)])
def test_refused_upload_is_read_to_its_end(address: str, content_type: str, status: int) -> None:
    """A proxy reports status 502 if the server closes a connection on which the proxy still sends."""
    size = 6_000_000
    head = f"POST /moot/api/imports/a.csv HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n"
    with connect(address, f"{head}Content-Type: {content_type}\r\n\r\n".encode()) as connection:
        connection.settimeout(LONG_TIMEOUT_S)
        for _ in range(6):
            connection.sendall(b"x" * (size // 6))
            time.sleep(0.05)  # the server answers in the meantime
        assert connection.recv(65536).startswith(f"HTTP/1.1 {status}".encode())
        connection.sendall(HALF + b"x\r\n\r\n")
        connection.recv(1)  # the connection is still open


def test_body_that_is_never_finished_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.plugins.web.auth_middleware.BODY_S", 0.2)
    head = b"POST /moot/api/debates HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n"
    with connect(address, head + b"Content-Type: application/json\r\n\r\n{") as connection:
        connection.settimeout(LONG_TIMEOUT_S)
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")


def is_done(page: httpx.Client, debate: str) -> bool:
    return bool(page.get(f"/api/debates/{debate}").json()["status"] == "done")


def test_reads_do_not_wait_for_slow_questions(tmp_path: Path) -> None:
    model = PausedModel(script=lambda _: "One.", words=0, pauses_at="QUESTION")
    with (
        serve_in_thread(tmp_path / "d.sqlite", CONFIG, mine=model) as address,
        client_of(address) as page,
        ThreadPoolExecutor(32) as visitors,
    ):
        ids = [page.post("/api/debates", json={"question": f"Tabs {n}?"}).json()["id"] for n in range(5)]
        for each in ids:
            assert wait_until(partial(is_done, page, each))
        # The model's answers are not in the form of an answer, which ends the questions with status 400.
        asked = {"question": "QUESTION: what was said?"}
        waiting = [
            visitors.submit(page.post, f"/api/debates/{each}/ask", json=asked)
            for each in ids
            for _ in range(4)
        ]
        assert wait_until(lambda: sum(each.done() for each in waiting) == len(waiting) - MAX_CALLS_AT_ONCE)
        refused = [each.result() for each in waiting if each.done()]
        assert all((each.status_code, "try again later" in each.text) == (400, True) for each in refused)
        for path in ("/api/debates", f"/api/debates/{ids[0]}", f"/api/debates/{ids[0]}/entries"):
            started = time.monotonic()
            assert page.get(path).status_code == 200
            assert time.monotonic() - started < 5
        model.go.set()
        assert sum("try again later" in each.result().text for each in waiting) == len(refused)


def test_calls_of_all_clients_are_limited(tmp_path: Path) -> None:
    async def call_too_often() -> list[BaseException | bool]:
        with open_with_models(tmp_path / "d.sqlite") as debates:
            threads, go = DebateHost(debates, CONFIG).threads, threading.Event()
            tasks = [
                asyncio.create_task(threads.call_models(go.wait, 20)) for _ in range(MAX_CALLS_AT_ONCE + 3)
            ]
            assert await asyncio.wait_for(threads.read(len, ""), LONG_TIMEOUT_S) == 0
            go.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(call_too_often())
    assert results[:MAX_CALLS_AT_ONCE] == [True] * MAX_CALLS_AT_ONCE
    assert all(isinstance(each, InputError) for each in results[MAX_CALLS_AT_ONCE:])


def rows_of(folder: Path, debate: str) -> dict[str, int]:
    """Return how many rows of a debate each table holds, without the tables that hold none."""
    with open_with_models(folder / "d.sqlite") as debates:
        sql, counts = debates.records.sql, {}
        for (table,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            columns = {str(row[1]) for row in sql.execute(f"PRAGMA table_info({table})")}
            for key in columns & {"debate", "thread_id", "id"}:
                ((count,),) = sql.execute(f"SELECT count(*) FROM {table} WHERE {key} = ?", (debate,))  # noqa: S608
                counts[f"{table}.{key}"] = int(str(count))
        return {table: count for table, count in counts.items() if count}


def test_debate_is_deleted_under_an_open_stream(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with client_of(address) as page, caplog.at_level(logging.WARNING):
        debate = page.post("/api/debates", json={"question": "Tabs?"}).json()["id"]
        assert wait_until(lambda: page.get(f"/api/debates/{debate}").json()["status"] == "done")
        monkeypatch.setattr(debate_host.DebateHost, "running", lambda *_: True)  # keeps the stream open
        with page.stream("GET", f"/api/debates/{debate}/events") as events:
            lines = events.iter_lines()
            assert next(lines).startswith("data: ")
            assert page.post(f"/api/debates/{debate}/delete", json={}).status_code == 200
            assert "idle" not in "".join(lines)
        assert page.get(f"/api/debates/{debate}/events").status_code == 404
    assert not [record for record in caplog.records if record.exc_info]
    assert rows_of(tmp_path, debate) == {}


@pytest.mark.parametrize("delay_s", [0, 0.005, 0.02, 0.05, 0.1], ids=str)
def test_a_deletion_that_races_a_run_leaves_nothing(tmp_path: Path, address: str, delay_s: float) -> None:
    with client_of(address) as page, ThreadPoolExecutor(2) as threads:
        debate = page.post("/api/debates", json={"question": "Tabs?"}).json()["id"]
        time.sleep(delay_s)
        run = threads.submit(page.post, f"/api/debates/{debate}/run", json={"turns": 2})

        def delete() -> int:
            return page.post(f"/api/debates/{debate}/delete", json={}).status_code

        assert wait_until(lambda: delete() == 200)
        run.result()
        assert wait_until(lambda: page.get(f"/api/debates/{debate}").status_code == 404)
    assert rows_of(tmp_path, debate) == {}
