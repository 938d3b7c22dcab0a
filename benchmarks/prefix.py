"""How much of the prompts a provider's prefix cache pays for, measured at a server on loopback.

    python -m benchmarks.prefix [--turns 300] [--debaters 6] [--quick]

A prompt token counts as cached where it lies in a prefix that is identical, byte for byte, to one of an
earlier request. Prices: a cached token 0.1, any other 1.25 of the uncached price, for it is written to the
cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from moot.graph.api import open_debates
from moot.nodes.calls import WireMessage
from moot.nodes.models.adapters import to_langchain
from moot.nodes.models.offline import OfflineModel
from moot.nodes.text.tokens import counter
from moot.state.config import DebateConfig
from tests.support.openai_server import Act, OpenAIServer

SHARE_TARGET, PRICE_TARGET = 0.80, 0.33
READ, WRITE = 0.1, 1.25
TOPIC = "Should a city of a million people make its public transport free of charge within five years?"
STANCES = ("for it", "against it", "for the poor first", "against any subsidy", "for a trial", "undecided")


@dataclass(frozen=True)
class Cached:
    """What a cache saw of one request."""

    tokens: int
    cached: int
    speech: str
    """Words of the answer, for judging whether the debate was a real one."""


def speak(request: dict[str, Any], number: int) -> Act:
    """Answer as the offline model would, from the request alone, three times over: models say more."""
    messages = to_langchain(cast(list[WireMessage], request["messages"]))
    said = [
        OfflineModel().respond(messages, seed=3 * number + part, hints={"topic": TOPIC}) for part in range(3)
    ]
    return Act(text=" ".join(message.text for message in said))


def bodies(turns: int, debaters: int, memory: dict[str, Any] | None = None) -> list[bytes]:
    """Run a debate against a server on loopback and return its requests, as they came in."""
    with OpenAIServer(speak) as server, tempfile.TemporaryDirectory() as folder:
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


def prompts(requests: Sequence[bytes]) -> list[list[bytes]]:
    """Return the messages of each request, each as its bytes in the body."""
    return [[json.dumps(message).encode() for message in json.loads(body)["messages"]] for body in requests]


def cached_shares(requests: Sequence[bytes]) -> Iterator[Cached]:
    """Yield what a cache that forgets nothing saw of each request."""
    count = counter()
    seen: dict[bytes, Any] = {}
    for messages in prompts(requests):
        sizes = [count(message.decode()) for message in messages]
        node, cached = seen, 0
        for message, size in zip(messages, sizes, strict=True):
            if message not in node:
                common = max((_common(message, other) for other in node), default=0)
                cached += count(message[:common].decode("utf-8", "ignore"))
                break
            node, cached = node[message], cached + size
        node = seen
        for message in messages:
            node = node.setdefault(message, {})
        yield Cached(sum(sizes), cached, messages[-1].decode())


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def share_and_price(found: Sequence[Cached]) -> tuple[float, float]:
    """Return the cached share of all prompt tokens, and the price in terms of the uncached one."""
    share = sum(each.cached for each in found) / sum(each.tokens for each in found)
    return share, READ * share + WRITE * (1 - share)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print one block."""
    parser = argparse.ArgumentParser(description="Share of prompt tokens that a prefix cache pays for.")
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--debaters", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="60 turns")
    given = parser.parse_args(arguments)
    turns = min(given.turns, 60) if given.quick else given.turns
    print(f"prefix: {given.debaters} debaters, {turns} turns, requests as a server on loopback got them")
    for layout in ("shared", "per-speaker"):
        found = list(cached_shares(bodies(turns, given.debaters, {"layout": layout})))
        share, price = share_and_price(found)
        targets = f"   (targets ≥ {SHARE_TARGET:.0%}, ≤ {PRICE_TARGET})" if layout == "shared" else ""
        mean = sum(each.tokens for each in found) / len(found)
        print(
            f"  {layout:<12} {share:6.1%} of tokens in a cached prefix, price × {price:.3f}, "
            f"mean prompt {mean:,.0f}{targets}"
        )


if __name__ == "__main__":
    main()
