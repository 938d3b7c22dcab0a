"""A real HTTP server on loopback that speaks OpenAI's chat completions, and fails to order.

In a test: `with OpenAIServer([Act(status=429)]) as server: … server.base_url … server.requests`. As a
process of its own, for tests that kill the client:
`python -m tests.support.openai_server --latency 0.2 --record FILE`,
which prints its base URL and serves until it is terminated.

Answers depend on the request's model, messages, schema and tools alone, so a debate that was resumed gets the
same words as one that was not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pkgutil
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.loopback import LoopbackServer
from tests.support.openai_answers import Act, Json, completion, embeddings, events, reply_text

__all__ = ["Act", "OpenAIServer", "Recorded"]

Plan = Sequence[Act] | Mapping[str, Sequence[Act]] | Callable[[Json, int], Act | None]
"""Acts in the order of requests, the same for each model, or a function of the request and its number."""


@dataclass
class Recorded:
    """One request, as it came in."""

    number: int
    """From 0, in order of arrival."""
    path: str
    body: bytes
    headers: dict[str, str]
    started: float
    """Seconds of the wall clock."""
    ended: float = 0.0
    status: int = 200
    concurrent: int = 1
    """Requests in work when this one came in, itself included."""
    said: str = ""
    """The answer's text, or the arguments of the tools that it calls; without such an answer, nothing."""
    delivered: bool = True
    """Whether the answer could be written to the end."""

    @property
    def json(self) -> Json:
        """The request's body."""
        return json.loads(self.body) if self.body else {}

    def line(self) -> str:
        """The request as one line of the record file."""
        fields = {**self.__dict__, "body": self.json, "digest": hashlib.sha256(self.body).hexdigest()}
        del fields["headers"]
        return json.dumps(fields) + "\n"


class OpenAIServer(LoopbackServer):
    """The server; a context manager that serves from threads of its own."""

    def __init__(
        self, plan: Plan = (), *, latency: float = 0.0, port: int = 0, record: Path | None = None
    ) -> None:
        self.latency, self.record = latency, record
        self.requests: list[Recorded] = []
        self.peak = 0
        """Most requests in work at the same time."""
        self.arrived = threading.Event()
        """Set once a request has come in."""
        self._plan = plan
        self._asked: dict[str, int] = {}
        self._running = 0
        http = _Http(("127.0.0.1", port), _Handler)
        http.owner = self
        super().__init__(http)

    @property
    def base_url(self) -> str:
        """What goes into `OPENAI_BASE_URL`."""
        return f"{super().base_url}/v1"

    @property
    def chats(self) -> list[Json]:
        """Bodies of the chat requests, in order of arrival."""
        return [item.json for item in self.requests if item.path.endswith("/chat/completions")]

    def serve_forever(self) -> None:
        """Serve in this thread until the process ends."""
        self._http.serve_forever()

    def act(self, request: Json) -> Act:
        """Take the next act of the plan."""
        with self._lock:
            key = str(request.get("model")) if isinstance(self._plan, Mapping) else ""
            number = self._asked.get(key, 0)
            self._asked[key] = number + 1
        if callable(self._plan):
            return self._plan(request, number) or Act()
        acts = self._plan.get(key, ()) if isinstance(self._plan, Mapping) else self._plan
        return acts[number] if number < len(acts) else Act()

    def begin(self, path: str, body: bytes, headers: dict[str, str]) -> Recorded:
        """Record that a request has come in."""
        with self._lock:
            self._running += 1
            self.peak = max(self.peak, self._running)
            request = Recorded(len(self.requests), path, body, headers, time.time(), concurrent=self._running)
            self.requests.append(request)
        self.arrived.set()
        return request

    def end(self, request: Recorded) -> None:
        """Record that a request is done."""
        with self._lock:
            self._running -= 1
            request.ended = time.time()
            if self.record is not None:
                with self.record.open("a", encoding="utf-8") as file:
                    file.write(request.line())


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    owner: OpenAIServer


class _Reset(Exception):
    """The plan says to drop the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": "test-model", "object": "model"}]})

    def do_POST(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # whoever asked was killed before it had asked
            self.close_connection = True
            return
        request = owner.begin(self.path, body, {key.lower(): value for key, value in self.headers.items()})
        try:
            self._answer(request, owner)
        except _Reset:
            request.delivered = False
            # A linger of zero seconds turns the close into a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        except OSError:
            request.delivered = False
            self.close_connection = True
        finally:
            owner.end(request)

    def _answer(self, request: Recorded, owner: OpenAIServer) -> None:
        asked = request.json
        act = owner.act(asked)
        request.status = act.status
        latency = owner.latency if act.latency is None else act.latency
        if latency:
            time.sleep(latency)
        if act.reset_after == 0:
            raise _Reset
        if act.status != 200:
            error = {"message": act.message, "type": "error", "code": act.code}
            self._json(act.status, {"error": error}, act.headers)
        elif act.body is not None:
            self._json(200, act.body, act.headers)
        elif self.path.endswith("/embeddings"):
            self._json(200, embeddings(asked))
        else:
            request.said = reply_text(completion(asked, act))
            if asked.get("stream") and not act.whole:
                self._stream(asked, act)
            else:
                self._json(200, completion(asked, act), act.headers)

    def _json(self, status: int, body: Json | str, headers: Mapping[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, asked: Json, act: Act) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(map(json.dumps, events(asked, act)) if act.sent is None else act.sent):
            if act.reset_after is not None and number >= act.reset_after:
                raise _Reset
            time.sleep(act.gap)
            self._chunk(f"data: {event}\n\n")
        if act.sent is None:
            self._chunk("data: [DONE]\n\n")
        if act.unfinished:
            self._chunk(f"data: {act.unfinished}")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def main() -> None:
    """Serve as a process of its own."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server for tests, on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds a call")
    parser.add_argument("--record", type=Path, help="file that gets one JSON line a request")
    parser.add_argument("--plan", type=Path, help="JSON file: a list of acts, or one a model")
    parser.add_argument("--plan-function", metavar="MODULE:NAME", help="the plan, as a function")
    options = parser.parse_args()
    plan = _read_plan(options.plan) if options.plan else ()
    if options.plan_function:
        plan = pkgutil.resolve_name(options.plan_function)
    server = OpenAIServer(plan, latency=options.latency, port=options.port, record=options.record)
    print(server.base_url, flush=True)
    server.serve_forever()


def _read_plan(path: Path) -> Plan:
    data = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(data, list):
        return [Act(**act) for act in data]
    return {model: [Act(**act) for act in acts] for model, acts in data.items()}


if __name__ == "__main__":
    main()
