"""Measure the share of prompt tokens that a provider's prefix cache can reuse, at a local server.

    python -m benchmarks.prefix [--turns 300] [--debaters 6] [--quick]

A prompt token counts as cached if it lies in a prefix that is identical, byte for byte, to a prefix of an
earlier request. A cached token costs 0.1 of the uncached price, any other token 1.25, because it is written
to the cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from benchmarks.varied_messages import message_text
from moot.api import open_debates
from moot.calls.model_calls import WireMessage
from moot.config import DebateConfig
from moot.models.adapters import to_langchain
from moot.text.tokens import counter
from tests.support.openai_server import OpenAIServer, ServerReply

SHARE_TARGET, PRICE_TARGET = 0.80, 0.30
CACHED_PRICE, UNCACHED_PRICE = 0.1, 1.25
TOPIC = "Should a city of a million people make its public transport free of charge within five years?"
STANCES = ("for it", "against it", "for the poor first", "against any subsidy", "for a trial", "undecided")


@dataclass(frozen=True)
class CachedPrefix:
    """Cached and uncached tokens of one request."""

    tokens: int
    cached: int
    reply: str
    """Text of the reply, to check that the debate was real."""


def generate_reply(request: dict[str, Any], number: int) -> ServerReply:
    """Return a reply of three joined texts, about as long as a model's message."""
    messages = to_langchain(cast(list[WireMessage], request["messages"]))
    return ServerReply(text=" ".join(message_text(messages, seed=3 * number + part) for part in range(3)))


def request_bodies(turns: int, debaters: int, memory: dict[str, Any] | None = None) -> list[bytes]:
    """Run a debate against a local server and return its request bodies in order."""
    with OpenAIServer(generate_reply) as server, tempfile.TemporaryDirectory() as folder:
        config = DebateConfig.model_validate(
            {
                "turns": turns,
                "model": "test-model",
                "models": {"test-model": {"base_url": server.base_url}},
                "judge": {"enabled": False},
                "debaters": [
                    {"name": f"Debater {number}", "stance": STANCES[number % len(STANCES)]}
                    for number in range(1, debaters + 1)
                ],
                "memory": memory or {},
            }
        )
        with open_debates(str(Path(folder) / "d.sqlite")) as debates:
            debates.start(TOPIC, config).run()
        return [request.body for request in server.requests if request.path.endswith("/chat/completions")]


def message_bytes(requests: Sequence[bytes]) -> list[list[bytes]]:
    """Return the messages of each request as bytes."""
    return [[json.dumps(message).encode() for message in json.loads(body)["messages"]] for body in requests]


def cached_shares(requests: Sequence[bytes]) -> Iterator[CachedPrefix]:
    """Yield the cached share of each request for a cache that never evicts."""
    count = counter()
    seen: dict[bytes, Any] = {}
    for messages in message_bytes(requests):
        sizes = [count(message.decode()) for message in messages]
        node, cached = seen, 0
        for message, size in zip(messages, sizes, strict=True):
            if message not in node:
                common = max((_common_length(message, other) for other in node), default=0)
                cached += count(message[:common].decode("utf-8", "ignore"))
                break
            node, cached = node[message], cached + size
        node = seen
        for message in messages:
            node = node.setdefault(message, {})
        yield CachedPrefix(sum(sizes), cached, messages[-1].decode())


def _common_length(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def share_and_price(requests: Sequence[CachedPrefix]) -> tuple[float, float]:
    """Return the cached share of all prompt tokens, and the price relative to the uncached one."""
    share = sum(each.cached for each in requests) / sum(each.tokens for each in requests)
    return share, CACHED_PRICE * share + UNCACHED_PRICE * (1 - share)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description="Share of prompt tokens in a cached prefix.")
    parser.add_argument("--turns", type=int, default=300, help="turns of each debate")
    parser.add_argument("--debaters", type=int, default=6, help="debaters of each debate")
    parser.add_argument("--quick", action="store_true", help="run at most 60 turns")
    options = parser.parse_args(arguments)
    turns = min(options.turns, 60) if options.quick else options.turns
    print(f"prefix: {options.debaters} debaters, {turns} turns, requests measured at a local server")
    for layout, targets in (
        ("shared", f"   (targets ≥ {SHARE_TARGET:.0%}, ≤ {PRICE_TARGET})"),
        ("per-speaker", ""),
    ):
        found = list(cached_shares(request_bodies(turns, options.debaters, {"layout": layout})))
        share, price = share_and_price(found)
        mean = sum(each.tokens for each in found) / len(found)
        print(
            f"  {layout:<12} {share:.1%} of tokens in a cached prefix, price × {price:.3f}, "
            f"mean prompt {mean:,.0f}{targets}"
        )


if __name__ == "__main__":
    main()
