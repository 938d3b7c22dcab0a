"""Rate limits of endpoints, shared by all processes that use the database.

A wait that a provider requests applies to all callers. After several consecutive failures the circuit of an
endpoint opens: nobody calls it for a while, then one call probes it, and a success lets all calls through.
Configured rates follow the generic cell rate algorithm (ITU-T I.371): a row holds the time of the next call,
and one statement advances it and returns the time to wait, for any number of processes. pyrate-limiter would
store a row for each call, over connections of its own, and aiolimiter works within one process.

Requested waits are capped. Times too far ahead come from a wrong clock and are dropped.
During a long wait one call in five minutes probes the endpoint, and `moot doctor --repair` ends it.
"""

import random
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from moot.config.model_settings import MAX_WAIT_S, ModelSettings
from moot.state.entries import EntryUsage, tokens_of
from moot.state.errors import DebateBusy, StorageError
from moot.storage.leases import SLOT_PREFIX, Lease, Leases
from moot.storage.sqlite import DebateTable, Row, Sql, reading, stored_number, stored_text

OPEN_AFTER_FAILURES = 5
"""Number of consecutive failures after which an endpoint's circuit breaker opens."""
MAX_OPEN_S = 60.0
"""Maximum number of seconds that an endpoint's circuit breaker stays open. The time starts at 1 second and
doubles."""
PROBE_S = 5.0
"""Number of seconds that other callers wait while one caller makes a trial call."""
LONG_WAIT_S = 300.0
"""Interval in seconds between trial calls to an endpoint during a long wait. A wait that exceeds this
interval is long."""
LATEST_S = 86_400.0
"""Maximum plausible number of seconds until an endpoint's next call. Later times are ignored."""
CACHE_S = 1.0
"""Number of seconds for which the state of an endpoint is cached. Waits set by other processes take effect
after this delay."""
BURST_S = 1.0
"""Maximum number of seconds by which a call may start too early for the rate limit."""
_PROBE_PREFIX = "probe "
"""Key prefix of the database rows for trial calls. A row has the time of an endpoint's next trial call."""

_RESERVE = f"""
INSERT INTO moot_endpoints VALUES (?, 0, 0, CLOCK + ?, CLOCK + ?) ON CONFLICT (endpoint) DO UPDATE SET
requests = CASE WHEN moot_endpoints.requests BETWEEN CLOCK AND CLOCK + {LATEST_S}
    THEN moot_endpoints.requests ELSE CLOCK END + ?,
tokens = CASE WHEN moot_endpoints.tokens BETWEEN CLOCK AND CLOCK + {LATEST_S}
    THEN moot_endpoints.tokens ELSE CLOCK END + ?
RETURNING requests - CLOCK, tokens - CLOCK"""  # noqa: S608  # constants of ours
_SET_WAIT = """
INSERT INTO moot_endpoints VALUES (?, CLOCK + ?, 0, 0, 0) ON CONFLICT (endpoint) DO UPDATE SET
until = CASE WHEN moot_endpoints.until > excluded.until THEN moot_endpoints.until ELSE excluded.until END"""
_CAP_WAIT = f"""
UPDATE moot_endpoints SET until = CASE WHEN until > CLOCK + {LATEST_S} THEN 0 ELSE CLOCK + ? END
WHERE endpoint = ? AND until > CLOCK + ? RETURNING until - CLOCK"""  # noqa: S608  # constants of ours
_COUNT_FAILURE = """
INSERT INTO moot_endpoints VALUES (?, 0, 1, 0, 0) ON CONFLICT (endpoint) DO UPDATE SET
failures = moot_endpoints.failures + 1 RETURNING failures"""
_RESET = """
UPDATE moot_endpoints SET until = CASE WHEN failures < ? THEN until ELSE 0 END, failures = 0
WHERE endpoint = ?"""
_PROBE = "UPDATE moot_endpoints SET until = CLOCK + ? WHERE endpoint = ? AND until <= CLOCK RETURNING 1"
_STATE = "SELECT until - CLOCK, failures FROM moot_endpoints WHERE endpoint = ?"
_ENDPOINT_WAITS = (
    "SELECT endpoint, until - CLOCK FROM moot_endpoints WHERE until > CLOCK + ? ORDER BY endpoint"
)


class RateLimiter(DebateTable):
    """Rate limiter and circuit breaker, shared by all processes that use the database."""

    name = "moot_endpoints"
    columns = """
        endpoint TEXT PRIMARY KEY, until DOUBLE PRECISION NOT NULL, failures BIGINT NOT NULL,
        requests DOUBLE PRECISION NOT NULL, tokens DOUBLE PRECISION NOT NULL"""
    debate = "endpoint"

    def __init__(self, sql: Sql, leases: Leases) -> None:
        super().__init__(sql)
        self._leases = leases
        self._cached: dict[str, tuple[float, float, int]] = {}
        self._failing: set[str] = set()
        self._probing: set[str] = set()
        self._called: set[str] = set()

    def wait_s(self, endpoint: str, max_wait_s: float = MAX_WAIT_S) -> float:
        """Return how many seconds to wait before calling an endpoint, or 0 for no wait."""
        now = time.monotonic()
        read, until, failures = self._cached.get(endpoint, (-CACHE_S, 0.0, 0))
        if now - read >= CACHE_S or (failures >= OPEN_AFTER_FAILURES and until <= now):
            left, failures = self._state(endpoint, max_wait_s)
            if failures >= OPEN_AFTER_FAILURES and left <= 0 and not self._run(_PROBE, (PROBE_S, endpoint)):
                left = PROBE_S  # another caller tries the endpoint
            if failures >= OPEN_AFTER_FAILURES and endpoint not in self._called:
                left = 0.0  # each process tries the endpoint once itself: it may be back
            if left > LONG_WAIT_S and self._run(_PROBE, (LONG_WAIT_S, _PROBE_PREFIX + endpoint)):
                self._probing.add(endpoint)
                return 0.0
            if failures:
                self._failing.add(endpoint)
            until = now + left
            self._cached[endpoint] = (now, until, failures)
            self._called.add(endpoint)
        return max(0.0, until - now)

    def reserve_s(self, endpoint: str, rates: ModelSettings, tokens: int) -> float:
        """Reserve capacity for a call, and return how many seconds to wait."""
        costs = (
            60 / rates.requests_per_minute if rates.requests_per_minute else 0.0,
            60 * tokens / rates.tokens_per_minute if rates.tokens_per_minute else 0.0,
        )
        rows = self._run(_RESERVE, (endpoint, *costs, *costs)) if any(costs) else []
        if not rows:
            return 0.0
        return max(0.0, *(float(left) - cost - BURST_S for left, cost in zip(rows[0], costs, strict=True)))

    def record_wait(self, endpoint: str, wait_s: float) -> None:
        """Record that every process must wait `wait_s` seconds before calling an endpoint."""
        self._probing.discard(endpoint)
        self._run(_SET_WAIT, (endpoint, wait_s))
        if wait_s > LONG_WAIT_S:
            self._run(_SET_WAIT, (_PROBE_PREFIX + endpoint, LONG_WAIT_S))
        self._cached.pop(endpoint, None)

    def record_failure(self, endpoint: str) -> None:
        """Count a failure of an endpoint, and open its circuit breaker after several failures."""
        self._failing.add(endpoint)
        self._called.add(endpoint)
        rows = self._run(_COUNT_FAILURE, (endpoint,))
        if rows and rows[0][0] >= OPEN_AFTER_FAILURES:
            self.record_wait(endpoint, min(MAX_OPEN_S, 2.0 ** min(rows[0][0] - OPEN_AFTER_FAILURES, 10)))

    def record_success(self, endpoint: str) -> None:
        """Reset an endpoint's count of failures, and end its wait."""
        if endpoint in self._failing | self._probing:
            self._run(_RESET, (0 if endpoint in self._probing else OPEN_AFTER_FAILURES, endpoint))
            self._failing.discard(endpoint)
            self._probing.discard(endpoint)
            self._cached.pop(endpoint, None)

    def circuit_is_open(self, endpoint: str, max_wait_s: float = MAX_WAIT_S) -> bool:
        """Return True if repeated failures suspend an endpoint, so that fallbacks are used."""
        left, failures = self._state(endpoint, max_wait_s)
        return failures >= OPEN_AFTER_FAILURES and left > 0

    def endpoint_waits(self, longer_than_s: float) -> dict[str, float]:
        """Return the remaining seconds above `longer_than_s` of endpoints that must wait."""
        rows = self._run(_ENDPOINT_WAITS, (longer_than_s,))
        waits = {stored_text(name): float(stored_number(left)) for name, left in rows}
        return {name: left for name, left in waits.items() if not name.startswith(_PROBE_PREFIX)}

    def reset(self, endpoint: str) -> None:
        """Delete an endpoint's stored waiting times, failures and reservations."""
        self.delete(endpoint)
        self._cached.pop(endpoint, None)

    def acquire_slot(self, endpoint: str, slots: int) -> Lease | None:
        """Acquire a slot for one concurrent call to an endpoint, or return `None` if no slot is free.

        Slots are leases. The slots of a process that died become free at once, or when its lease expires.
        """
        for number in random.sample(range(slots), slots):
            with suppress(DebateBusy):
                return self._leases.acquire(SLOT_PREFIX + endpoint, str(number))
        return None

    def release_slot(self, slot: Lease) -> None:
        """Release a slot that was acquired for a concurrent call."""
        self._leases.release(slot)

    def _state(self, endpoint: str, max_wait_s: float) -> tuple[float, int]:
        """Return an endpoint's remaining wait in seconds and its number of consecutive failures."""
        for left, failures in self._run(_STATE, (endpoint,)):
            left, failures = stored_number(left), stored_number(failures)
            if left > max_wait_s:
                capped = self._run(_CAP_WAIT, (max_wait_s, endpoint, max_wait_s))
                left = min(max_wait_s, *(row[0] for row in capped)) if capped else max_wait_s
            return float(left), int(failures)
        return 0.0, 0

    def _run(self, statement: str, parameters: Sequence[str | float]) -> list[Row]:
        """Execute an SQL statement and return its rows, or return no rows if the database fails."""
        with suppress(StorageError):
            return self._sql.execute(statement.replace("CLOCK", self._sql.clock), parameters)
        return []


@dataclass(frozen=True)
class SharedBudget:
    """Token and cost limits of a group of debates, and the amounts used so far."""

    max_tokens: int | None = None
    """Maximum number of tokens, or `None` for no limit."""
    max_cost: float | None = None
    """Maximum cost in US dollars, or `None` for no limit."""
    tokens: int = 0
    cost: float = 0.0

    @property
    def reached(self) -> str:
        """Description of the limit that the budget has reached, or `""` if it has reached none."""
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            return f"the limit of {self.max_tokens:,} tokens is reached: {self.tokens:,} are used"
        if self.max_cost is not None and self.cost >= self.max_cost:
            return f"the limit of ${self.max_cost:g} is reached: ${self.cost:.4f} is spent"
        return ""


def _budget_in(rows: Sequence[Row]) -> SharedBudget:
    """Return the budget in the first row, or an unlimited one. A damaged one is a `StorageError`."""
    for row in rows:
        with reading("a shared budget", "restore a backup"):
            if not all(isinstance(value, int | float | None) for value in row):
                raise TypeError("a limit is no number")
            return SharedBudget(*row)
    return SharedBudget()


class Budgets(DebateTable):
    """Table of budgets that groups of debates share.

    Each call checks the budget before it starts, and adds its usage when it ends. A budget can therefore be
    exceeded only by calls that are already running when it is reached.
    """

    name = "moot_budget_debates"
    columns = "debate TEXT PRIMARY KEY, budget TEXT NOT NULL"

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        sql.create(
            "moot_budgets",
            "CREATE TABLE IF NOT EXISTS moot_budgets (name TEXT PRIMARY KEY, max_tokens BIGINT, "
            "max_cost DOUBLE PRECISION, tokens BIGINT NOT NULL, cost DOUBLE PRECISION NOT NULL)",
        )

    def set(self, name: str, budget: SharedBudget) -> None:
        """Store the budget of a group, replacing any earlier limits and usage."""
        self._execute(
            "INSERT INTO moot_budgets (name, max_tokens, max_cost, tokens, cost) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET max_tokens = excluded.max_tokens, "
            "max_cost = excluded.max_cost, tokens = excluded.tokens, cost = excluded.cost",
            (name, budget.max_tokens, budget.max_cost, budget.tokens, budget.cost),
        )

    def get(self, name: str) -> SharedBudget:
        """Return a group's budget, or an unlimited budget if the group has none."""
        rows = self._execute(
            "SELECT max_tokens, max_cost, tokens, cost FROM moot_budgets WHERE name = ?", (name,)
        )
        return _budget_in(rows)

    def add(self, name: str, debates: Iterable[str]) -> None:
        """Assign debates to the group whose budget they share. A debate that already has a group keeps it."""
        for debate in debates:
            self._insert({"debate": debate, "budget": name}, "ON CONFLICT DO NOTHING")

    def debates(self, name: str) -> list[str]:
        """Return the ids of the debates in a group."""
        rows = self._execute("SELECT debate FROM moot_budget_debates WHERE budget = ?", (name,))
        return [row[0] for row in rows]

    def group_of(self, debate: str) -> str:
        """Return the name of a debate's group, or `""` if it has none."""
        rows = self._execute("SELECT budget FROM moot_budget_debates WHERE debate = ?", (debate,))
        return str(rows[0][0]) if rows else ""

    def reached(self, debate: str) -> str:
        """Describe the limit that the debate's group has reached, or return `""` if there is none."""
        rows = self._execute(
            "SELECT max_tokens, max_cost, tokens, cost FROM moot_budgets JOIN moot_budget_debates "
            "ON budget = name WHERE debate = ?",
            (debate,),
        )
        return _budget_in(rows).reached

    def spend(self, debate: str, usage: EntryUsage) -> None:
        """Charge a call's tokens and cost to the budget that the debate shares with its group."""
        self._execute(
            "UPDATE moot_budgets SET tokens = tokens + ?, cost = cost + ? "
            "WHERE name = (SELECT budget FROM moot_budget_debates WHERE debate = ?)",
            (tokens_of(usage), float(usage.get("cost_usd", 0.0)), debate),
        )
