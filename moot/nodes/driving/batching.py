"""Runs several generators of model calls side by side, their batches merged into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from moot.nodes.calls import Flow, ModelCall, Reply

T = TypeVar("T")


def side_by_side(flows: Sequence[Flow[T]]) -> Flow[list[T]]:
    """Yield the next batches of all flows as one batch, until every flow has returned.

    Returns:
        The flows' results, in their order. What is asked at the same time is decided by the flows alone, so
        a run that is repeated with the same replies asks the same again.
    """
    results: dict[int, T] = {}
    asked: dict[int, Sequence[ModelCall]] = {}
    for index, flow in enumerate(flows):
        _advance(index, flow, None, asked, results)
    while asked:
        batches = list(asked.items())
        replies = iter((yield [call for _, batch in batches for call in batch]))
        for index, batch in batches:
            _advance(index, flows[index], [next(replies) for _ in batch], asked, results)
    return [results[index] for index in range(len(flows))]


def _advance(
    index: int,
    flow: Flow[T],
    replies: list[Reply] | None,
    asked: dict[int, Sequence[ModelCall]],
    results: dict[int, T],
) -> None:
    try:
        asked[index] = next(flow) if replies is None else flow.send(replies)
    except StopIteration as end:
        results[index] = end.value
        asked.pop(index, None)
