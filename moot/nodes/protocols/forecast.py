"""What a debate will take, before it runs: calls, tokens and the critical path.

A forecast counts calls exactly where the configuration decides them; where the debate decides, it says how
many there are at least and at most. Token figures are estimates: *expected* goes by the words asked for,
*most* by the budgets. Tools, retries, and answers that are asked for again with more room, come on top.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moot.nodes.calls import Purpose
from moot.state.entries import JsonObject


@dataclass(frozen=True)
class Tokens:
    """Tokens of one call."""

    expected: float
    most: int


@dataclass(frozen=True)
class Batch:
    """Calls that are made at the same time, and how many times in a row that happens."""

    purpose: Purpose
    phase: str
    calls: int
    """Calls in one batch."""
    prompt: Tokens
    """Of one call, the mean over all times."""
    reply: Tokens
    times: int
    """As planned."""
    times_at_least: int
    """Times that are certain."""
    times_at_most: int
    """Times that there can be."""

    @property
    def all_calls(self) -> int:
        """Calls over all planned times."""
        return self.calls * self.times


class Forecast:
    """What a run will take."""

    def __init__(self, batches: Sequence[Batch], concurrency: int, turns: int | None) -> None:
        self.batches, self.concurrency = batches, concurrency
        """Batches, in the order of their first time, follow each other; the calls of one overlap."""
        self.turns = turns
        """Utterances in all, at most, people's included; `None` where the debate itself decides."""
        self.calls = sum(batch.all_calls for batch in batches)
        """Model calls in all, as planned."""
        self.calls_at_least = sum(batch.calls * batch.times_at_least for batch in batches)
        """Model calls that are certain."""
        self.calls_at_most = sum(batch.calls * batch.times_at_most for batch in batches)
        """Model calls that there can be, whatever is said."""
        in_a_row = [(-(-batch.calls // concurrency), batch) for batch in batches]
        self.critical_path = sum(calls * batch.times for calls, batch in in_a_row)
        """Calls that must follow one another, as planned."""
        self.critical_path_at_most = sum(calls * batch.times_at_most for calls, batch in in_a_row)
        """Calls that may have to follow one another."""

    def calls_by_purpose(self) -> dict[str, int]:
        """Return the planned calls by what they are made for."""
        counted: dict[str, int] = {}
        for batch in self.batches:
            if batch.all_calls:
                counted[batch.purpose] = counted.get(batch.purpose, 0) + batch.all_calls
        return counted

    def seconds(self, latency_s: float) -> float:
        """Return how long the run takes where every call takes `latency_s`, our own work not counted."""
        return self.critical_path * latency_s

    def to_json(self) -> JsonObject:
        """Return the forecast as JSON types; keys that `usage` has too mean the same there.

        Tokens at most are those of all calls that there can be, each at its budget.
        """
        most = [(batch, batch.calls * batch.times_at_most) for batch in self.batches]
        return {
            "calls": self.calls,
            "calls_at_least": self.calls_at_least,
            "calls_at_most": self.calls_at_most,
            "prompt_tokens": round(sum(each.prompt.expected * each.all_calls for each in self.batches)),
            "prompt_tokens_at_most": sum(batch.prompt.most * calls for batch, calls in most),
            "completion_tokens": round(sum(each.reply.expected * each.all_calls for each in self.batches)),
            "completion_tokens_at_most": sum(batch.reply.most * calls for batch, calls in most),
            "critical_path_calls": self.critical_path,
            "critical_path_calls_at_most": self.critical_path_at_most,
            "concurrency": self.concurrency,
            "calls_by_purpose": self.calls_by_purpose(),
            "batches": [
                {
                    "purpose": batch.purpose,
                    "phase": batch.phase,
                    "calls": batch.calls,
                    "times": batch.times,
                    "times_at_least": batch.times_at_least,
                    "times_at_most": batch.times_at_most,
                    "prompt_tokens": round(batch.prompt.expected),
                    "completion_tokens": round(batch.reply.expected),
                }
                for batch in self.batches
            ],
        }
