"""Local HTTP server with OpenAI's chat completions and embeddings. It can fail on request.

In a test: `with OpenAIServer([ServerReply(status=429)]) as server: … server.base_url … server.requests`.

Tests that kill the client run it in its own process:
`python -m tests.support.openai_server --latency 0.2 --record FILE`
This prints the base URL and serves until it is terminated.

A reply depends only on the request's model, messages, schema and tools. So a resumed debate gets the same
replies as an uninterrupted one.
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
from tests.support.openai_answers import (
    Json,
    ServerReply,
    completion_body,
    embeddings_body,
    reply_text,
    stream_events,
)

__all__ = ["OpenAIServer", "RecordedRequest", "ServerReply"]

Plan = Sequence[ServerReply] | Mapping[str, Sequence[ServerReply]] | Callable[[Json, int], ServerReply | None]
"""Replies in the order of the requests; such replies by model; or a function of a request and its number."""


@dataclass
class RecordedRequest:
    """One received request."""

    number: int
    """Number in order of arrival, from 0."""
    path: str
    body: bytes
    headers: dict[str, str]
    started: float
    """Time of arrival, in seconds of the wall clock."""
    ended: float = 0.0
    status: int = 200
    concurrent: int = 1
    """Number of requests in progress at arrival, including this one."""
    reply_text: str = ""
    """Text of the reply, or the arguments of its tool calls. Empty if the reply is an error."""
    delivered: bool = True
    """True if the reply was written completely."""

    @property
    def json(self) -> Json:
        """Body of the request."""
        return json.loads(self.body) if self.body else {}

    def line(self) -> str:
        """Return the request as one line of the record file."""
        fields = {**self.__dict__, "body": self.json, "digest": hashlib.sha256(self.body).hexdigest()}
        del fields["headers"]
        return json.dumps(fields) + "\n"


class OpenAIServer(LoopbackServer):
    """The server, as a context manager. It serves from its own threads."""

    def __init__(
        self, plan: Plan = (), *, latency: float = 0.0, port: int = 0, record: Path | None = None
    ) -> None:
        self.latency, self.record = latency, record
        self.requests: list[RecordedRequest] = []
        self.authorizations: set[str] = set()
        """Values of the header `authorization` of all requests, also of those that list the models."""
        self.peak = 0
        """Highest number of concurrent requests."""
        self.arrived = threading.Event()
        """Set when the first request has arrived."""
        self._plan = plan
        self._asked: dict[str, int] = {}
        self._running = 0
        http = _Http(("127.0.0.1", port), _Handler)
        http.owner = self
        super().__init__(http)

    @property
    def base_url(self) -> str:
        """Value for `OPENAI_BASE_URL`."""
        return f"{super().base_url}/v1"

    @property
    def chats(self) -> list[Json]:
        """Bodies of the chat requests, in order of arrival."""
        return [item.json for item in self.requests if item.path.endswith("/chat/completions")]

    def serve_forever(self) -> None:
        """Serve from this thread until the process ends."""
        self._http.serve_forever()

    def next_reply(self, request: Json) -> ServerReply:
        """Return the next reply of the plan."""
        with self._lock:
            key = str(request.get("model")) if isinstance(self._plan, Mapping) else ""
            number = self._asked.get(key, 0)
            self._asked[key] = number + 1
        if callable(self._plan):
            return self._plan(request, number) or ServerReply()
        replies = self._plan.get(key, ()) if isinstance(self._plan, Mapping) else self._plan
        return replies[number] if number < len(replies) else ServerReply()

    def begin(self, path: str, body: bytes, headers: dict[str, str]) -> RecordedRequest:
        """Record the arrival of a request."""
        with self._lock:
            self._running += 1
            self.peak = max(self.peak, self._running)
            request = RecordedRequest(
                len(self.requests), path, body, headers, time.time(), concurrent=self._running
            )
            self.requests.append(request)
        self.arrived.set()
        return request

    def end(self, request: RecordedRequest) -> None:
        """Record the end of a request."""
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
    """The plan resets the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        self.server.owner.authorizations.add(self.headers.get("authorization", ""))
        self._json(200, {"object": "list", "data": [{"id": "test-model", "object": "model"}]})

    def do_POST(self) -> None:
        owner = self.server.owner
        owner.authorizations.add(self.headers.get("authorization", ""))
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed while it sent the request
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

    def _answer(self, request: RecordedRequest, owner: OpenAIServer) -> None:
        asked = request.json
        reply = owner.next_reply(asked)
        request.status = reply.status
        latency = owner.latency if reply.latency is None else reply.latency
        if latency:
            time.sleep(latency)
        if reply.reset_after == 0:
            raise _Reset
        if reply.status != 200:
            error = {"message": reply.message, "type": "error", "code": reply.code}
            self._json(reply.status, {"error": error}, reply.headers)
        elif reply.body is not None:
            self._json(200, reply.body, reply.headers)
        elif self.path.endswith("/embeddings"):
            self._json(200, embeddings_body(asked))
        else:
            request.reply_text = reply_text(completion_body(asked, reply))
            if asked.get("stream") and not reply.whole:
                self._stream(asked, reply)
            else:
                self._json(200, completion_body(asked, reply), reply.headers)

    def _json(self, status: int, body: Json | str, headers: Mapping[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, asked: Json, reply: ServerReply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(
            map(json.dumps, stream_events(asked, reply)) if reply.raw_events is None else reply.raw_events
        ):
            if reply.reset_after is not None and number >= reply.reset_after:
                raise _Reset
            time.sleep(reply.gap)
            self._chunk(f"data: {event}\n\n")
        if reply.raw_events is None:
            self._chunk("data: [DONE]\n\n")
        if reply.unfinished:
            self._chunk(f"data: {reply.unfinished}")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def main() -> None:
    """Serve until the process ends."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server for tests, on loopback.")
    parser.add_argument("--port", type=int, default=0, help="port; 0 means any free port")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds for each call")
    parser.add_argument("--record", type=Path, help="file to which each request is written as a JSON line")
    parser.add_argument("--plan", type=Path, help="JSON file: a list of replies, or such lists by model")
    parser.add_argument(
        "--plan-function", metavar="MODULE:NAME", help="function that returns the reply to a request"
    )
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
        return [ServerReply(**fields) for fields in data]
    return {model: [ServerReply(**fields) for fields in replies] for model, replies in data.items()}


if __name__ == "__main__":
    main()
