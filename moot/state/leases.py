"""One writer a debate: a row in the debate's own database that every transaction of a run checks.

A run takes the row and its number, the epoch, goes up by one. Whoever writes a checkpoint or a row of Moot's
says by which lease, and the transaction is refused once another run has taken the debate. So a run that stood
still past its lease, cut off or stopped, harms nothing when it wakes. A holder that died on this machine is
known by its process at once, and in this process what it could not give back; of another machine's nothing is
known until its lease expires.
"""

from __future__ import annotations

import shlex
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from langchain_core.runnables import RunnableConfig

from moot.state.errors import DebateBusy, StorageError
from moot.state.processes import NOBODY, ProcessIdentity, this_process
from moot.state.sql import DebateTable, Permit, Row, Sql

LEASE_S = 30.0
"""Seconds after which a holder that gave no sign of life may be replaced: three signs that failed."""
RENEW_S = LEASE_S / 3
"""Seconds between two signs of life."""

_ours: set[str] = set()
"""Tokens of this process's runs: one that could not be given back, on a full disk say, is held by nobody."""

_KEY = "__moot_lease"  # LangGraph writes no key that begins like this into a checkpoint's metadata


@dataclass(frozen=True, eq=False)
class Lease:
    """A run's right to write a debate."""

    debate: str
    place: str
    """LangGraph's checkpoint namespace: `""`, or where the debate is part of another graph."""
    epoch: int
    """Counts the runs that ever held it, from 1."""
    token: str
    """The run's own, random."""


def lease_in(config: RunnableConfig) -> Lease | None:
    """Return the lease that a run's config carries, `None` where it is another debate's or there is none."""
    given = config.get("configurable", {})
    lease = given.get(_KEY)
    mine = isinstance(lease, Lease) and lease.debate == str(given.get("thread_id"))
    return lease if mine else None


def with_lease(config: RunnableConfig, lease: Lease) -> RunnableConfig:
    """Return a run's config that carries a lease."""
    return {**config, "configurable": {**config.get("configurable", {}), _KEY: lease}}


@dataclass(frozen=True)
class _Held:
    epoch: int = 0
    token: str = ""
    holder: ProcessIdentity = NOBODY
    expired: bool = False

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        for epoch, token, holder, expired in rows:
            return cls(epoch, token, ProcessIdentity.from_text(holder), bool(expired))
        return cls()

    @property
    def live(self) -> bool:
        left = self.holder == this_process() and self.token not in _ours
        return bool(self.token) and not (self.expired or left or self.holder.is_dead())


class Leases(DebateTable):
    """Leases by debate and place; a row stays when it is given back, so that epochs go on."""

    name = "moot_leases"
    columns = """
        debate TEXT NOT NULL, place TEXT NOT NULL, epoch BIGINT NOT NULL, token TEXT NOT NULL,
        holder TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL, PRIMARY KEY (debate, place)"""

    def __init__(self, sql: Sql, name_of: Callable[[str], str]) -> None:
        super().__init__(sql)
        self._name_of = name_of
        held = f"SELECT epoch, token, holder, expires < {sql.clock} FROM moot_leases"  # noqa: S608  # constants of ours
        self._of_debate = f"{held} WHERE debate = ?"
        self._of_place = f"{self._of_debate} AND place = ?"
        self._live: weakref.WeakSet[Lease] = weakref.WeakSet()  # a run that was forgotten is not renewed
        self._guard = threading.Lock()
        self._renewing: threading.Thread | None = None
        self._closed = threading.Event()

    def take(self, debate: str, place: str = "") -> Lease:
        """Take a debate.

        Raises:
            DebateBusy: somebody, in this process or another, has it.
        """
        token, holder = uuid.uuid4().hex, this_process().to_text()
        _ours.add(token)
        try:
            while (held := _Held.of(self._sql.execute(self._of_place, (debate, place)))).token != token:
                if held.live:
                    raise _busy(self._name_of(debate), held.holder)
                self._sql.execute(  # of several at once one finds the epoch that it has read
                    "INSERT INTO moot_leases (debate, place, epoch, token, holder, expires) "  # noqa: S608  # constants of ours
                    f"VALUES (?, ?, ?, ?, ?, {self._sql.clock} + ?) ON CONFLICT (debate, place) DO UPDATE "
                    "SET epoch = excluded.epoch, token = excluded.token, holder = excluded.holder, "
                    "expires = excluded.expires WHERE moot_leases.epoch = ?",
                    (debate, place, held.epoch + 1, token, holder, LEASE_S, held.epoch),
                )
            lease = Lease(debate, place, held.epoch, token)
            with self._guard:
                self._live.add(lease)
                if self._renewing is None:
                    self._renewing = threading.Thread(target=self._renew, name="moot-leases", daemon=True)
                    self._renewing.start()
            return lease
        except BaseException:
            _ours.discard(token)
            raise

    def give_back(self, lease: Lease) -> None:
        """Give a debate back; where that cannot be written, other processes wait for the lease to expire."""
        self._live.discard(lease)
        _ours.discard(lease.token)
        with suppress(StorageError):
            self._sql.execute(
                "UPDATE moot_leases SET token = '' WHERE debate = ? AND place = ? AND token = ?",
                (lease.debate, lease.place, lease.token),
            )

    @contextmanager
    def holding(self, debate: str, place: str = "") -> Iterator[Lease]:
        """Hold a debate for the length of a `with` block.

        Raises:
            DebateBusy: somebody, in this process or another, has it.
        """
        lease = self.take(debate, place)
        try:
            yield lease
        finally:
            self.give_back(lease)

    def is_held(self, debate: str) -> bool:
        """Return whether anybody, this process or another, holds a debate at this moment."""
        if self._sql.read_only:
            return False
        return any(_Held.of([row]).live for row in self._sql.execute(self._of_debate, (debate,)))

    def permit(self, lease: Lease) -> Permit:
        """Return the permit of a run, which may write while its lease is held."""

        def allows(rows: Sequence[Row]) -> bool:
            held = _Held.of(rows)
            return (held.token, held.epoch) == (lease.token, lease.epoch)

        def refusal(rows: Sequence[Row]) -> DebateBusy:
            held, name = _Held.of(rows), self._name_of(lease.debate)
            by = f"taken over by {held.holder.name}" if held.epoch else "deleted"
            return DebateBusy(
                f"debate {name!r} was {by} while this run stood still, which writes nothing more",
                pid=held.holder.pid or None,
            )

        return Permit((self._of_place, (lease.debate, lease.place)), allows, refusal)

    def permit_in(self, config: RunnableConfig) -> Permit:
        """Return the permit by a run's config; without a lease, to write while nobody holds the debate."""
        lease = lease_in(config)
        if lease is not None:
            return self.permit(lease)
        given = config["configurable"]
        debate, place = str(given["thread_id"]), given.get("checkpoint_ns", "")

        def allows(rows: Sequence[Row]) -> bool:
            return not _Held.of(rows).live

        def refusal(rows: Sequence[Row]) -> DebateBusy:
            return _busy(self._name_of(debate), _Held.of(rows).holder)

        return Permit((self._of_place, (debate, place)), allows, refusal)

    def close(self) -> None:
        """Renew nothing any more."""
        self._closed.set()

    def _renew(self) -> None:
        while not self._closed.wait(RENEW_S):
            with self._guard:
                live = list(self._live)
                if not live:
                    self._renewing = None
                    return
            for lease in live:
                with suppress(StorageError):  # whoever writes next is told
                    self._sql.execute(
                        f"UPDATE moot_leases SET expires = {self._sql.clock} + ? "  # noqa: S608  # constants of ours
                        "WHERE debate = ? AND place = ? AND token = ?",
                        (LEASE_S, lease.debate, lease.place, lease.token),
                    )


def _busy(name: str, holder: ProcessIdentity) -> DebateBusy:
    stop = shlex.join(["moot", "pause", name])
    return DebateBusy(
        f"debate {name!r} is in use by {holder.name}: wait for it, or stop it with `{stop}`", pid=holder.pid
    )
