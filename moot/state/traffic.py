"""What is known of endpoints, shared by all who use a database: waits that they ask for, outages, turns.

A wait that one call was told, all keep to. After some failures in a row, whoever's they were, nobody asks for
a while, then one alone, and everybody once that one was answered. Configured rates are kept by the time at
which an endpoint's next turn comes (the generic cell rate algorithm, ITU-T I.371): who asks moves it on and
waits for what it was, in one statement, for any number of processes. The buckets of pyrate-limiter would keep
a row a call, over connections of their own, and those of aiolimiter are one process's.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress

from moot.state.config.model_settings import ModelSettings
from moot.state.errors import DebateBusy, StorageError
from moot.state.leases import Lease, Leases
from moot.state.sql import DebateTable, Row, Sql

OPEN_AFTER = 5
"""Failures in a row after which an endpoint counts as out of order: one call's attempts, by default."""
LONGEST_S = 60.0
"""Longest time for which nobody asks it then, seconds; it begins with 1 and doubles."""
PROBE_S = 5.0
"""So long the others wait for who asks first."""
FRESH_S = 1.0
"""How long what was read counts, seconds: others' waits are known that late at most."""
BURST_S = 1.0
"""So far ahead of their time turns are given, seconds: what begins at once need not wait in line."""
SLOT = "endpoint "
"""Begins what an endpoint's slots are called among the leases."""

_TURN = """
INSERT INTO moot_endpoints VALUES (?, 0, 0, CLOCK + ?, CLOCK + ?) ON CONFLICT (endpoint) DO UPDATE SET
requests = CASE WHEN moot_endpoints.requests > CLOCK THEN moot_endpoints.requests ELSE CLOCK END + ?,
tokens = CASE WHEN moot_endpoints.tokens > CLOCK THEN moot_endpoints.tokens ELSE CLOCK END + ?
RETURNING requests - CLOCK, tokens - CLOCK"""
_TOLD = """
INSERT INTO moot_endpoints VALUES (?, CLOCK + ?, 0, 0, 0) ON CONFLICT (endpoint) DO UPDATE SET
until = CASE WHEN moot_endpoints.until > excluded.until THEN moot_endpoints.until ELSE excluded.until END"""
_FAILED = """
INSERT INTO moot_endpoints VALUES (?, 0, 1, 0, 0) ON CONFLICT (endpoint) DO UPDATE SET
failures = moot_endpoints.failures + 1 RETURNING failures"""
_ANSWERED = """
UPDATE moot_endpoints SET until = CASE WHEN failures < ? THEN until ELSE 0 END, failures = 0
WHERE endpoint = ?"""
_PROBE = "UPDATE moot_endpoints SET until = CLOCK + ? WHERE endpoint = ? AND until <= CLOCK RETURNING 1"
_STANDS = "SELECT until - CLOCK, failures FROM moot_endpoints WHERE endpoint = ?"


class Traffic(DebateTable):
    """Endpoints, with when they may be asked again, by the database's clock."""

    name = "moot_endpoints"
    columns = """
        endpoint TEXT PRIMARY KEY, until DOUBLE PRECISION NOT NULL, failures BIGINT NOT NULL,
        requests DOUBLE PRECISION NOT NULL, tokens DOUBLE PRECISION NOT NULL"""
    debate = "endpoint"

    def __init__(self, sql: Sql, leases: Leases) -> None:
        super().__init__(sql)
        self._leases = leases
        self._read: dict[str, tuple[float, float, int]] = {}
        self._failing: set[str] = set()

    def wait_s(self, endpoint: str) -> float:
        """Return for how long nobody may ask an endpoint, seconds; after an outage one is told 0 first."""
        now = time.monotonic()
        read, until, failures = self._read.get(endpoint, (-FRESH_S, 0.0, 0))
        if now - read >= FRESH_S or (failures >= OPEN_AFTER and until <= now):
            left, failures = self._standing(endpoint)
            if failures >= OPEN_AFTER and left <= 0 and not self._run(_PROBE, (PROBE_S, endpoint)):
                left = PROBE_S  # somebody else asks
            if failures:
                self._failing.add(endpoint)
            until = now + left
            self._read[endpoint] = (now, until, failures)
        return max(0.0, until - now)

    def turn_s(self, endpoint: str, rates: ModelSettings, tokens: int) -> float:
        """Take a turn of so many tokens at an endpoint's rates; return how long to wait for it, seconds."""
        costs = (
            60 / rates.requests_per_minute if rates.requests_per_minute else 0.0,
            60 * tokens / rates.tokens_per_minute if rates.tokens_per_minute else 0.0,
        )
        rows = self._run(_TURN, (endpoint, *costs, *costs)) if any(costs) else []
        if not rows:
            return 0.0
        return max(0.0, *(float(left) - cost - BURST_S for left, cost in zip(rows[0], costs, strict=True)))

    def note_wait(self, endpoint: str, wait_s: float) -> None:
        """Keep that an endpoint asks to be left alone."""
        self._run(_TOLD, (endpoint, wait_s))
        self._read.pop(endpoint, None)

    def note_failure(self, endpoint: str) -> None:
        """Keep that an endpoint did not answer."""
        self._failing.add(endpoint)
        rows = self._run(_FAILED, (endpoint,))
        if rows and rows[0][0] >= OPEN_AFTER:
            self.note_wait(endpoint, min(LONGEST_S, 2.0 ** min(rows[0][0] - OPEN_AFTER, 10)))

    def note_answer(self, endpoint: str) -> None:
        """Keep that an endpoint answered, where it had failed."""
        if endpoint in self._failing:
            self._failing.discard(endpoint)
            self._run(_ANSWERED, (OPEN_AFTER, endpoint))
            self._read.pop(endpoint, None)

    def is_out(self, endpoint: str) -> bool:
        """Return whether an endpoint is out of order, so that others than it are asked."""
        left, failures = self._standing(endpoint)
        return failures >= OPEN_AFTER and left > 0

    def slot(self, endpoint: str, slots: int) -> Lease | None:
        """Take one of an endpoint's slots, `None` where none is free.

        They are leases: what a process held that died is free at once, or when its lease expires.
        """
        for number in random.sample(range(slots), slots):
            with suppress(DebateBusy):
                return self._leases.take(SLOT + endpoint, str(number))
        return None

    def free(self, slot: Lease) -> None:
        """Give a slot back."""
        self._leases.give_back(slot)

    def _standing(self, endpoint: str) -> tuple[float, int]:
        for left, failures in self._run(_STANDS, (endpoint,)):
            return float(left), int(failures)
        return 0.0, 0

    def _run(self, statement: str, parameters: Sequence[str | float]) -> list[Row]:
        """Run a statement; what cannot be kept here costs a retry, no debate."""
        with suppress(StorageError):
            return self._sql.execute(statement.replace("CLOCK", self._sql.clock), parameters)
        return []
