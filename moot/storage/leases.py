"""Leases, which ensure that at most one run writes to a debate at a time.

A run takes the debate's row in the database and increases its epoch. Every transaction of the run checks the
lease and is refused once another run has taken the debate. A run that was suspended past the end of its lease
can therefore do no harm. A holder on this machine is judged by its process: one that died is replaced at
once, one that runs never, whatever the clock says. A holder that is suspended or on another machine is
replaced after its lease expires.
"""

import json
import os
import platform
import shlex
import sys
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from langchain_core.runnables import RunnableConfig

from moot.state.errors import DebateBusy, DebateNotFound, StorageError
from moot.storage.sqlite import DebateTable, Permit, Row, Sql, Value

_STATE = 0
"""Index of the process state in the list that `_stat` returns."""
_STARTED = 19
"""Index of the process's start time in the list that `_stat` returns."""


@dataclass(frozen=True)
class ProcessIdentity:
    """Identifier of a process that stays unique even if the process id is reused."""

    machine: str
    """Name of the machine on which the process runs. It consists of the host name, boot id and process-id
    namespace. Processes with equal values can see each other."""
    pid: int
    started: str
    """Start time of the process, in a unit that depends on the machine, or `""` if unknown. The start time
    distinguishes processes with a reused id."""

    @property
    def name(self) -> str:
        """Return the name of the process for error messages, such as `process 123`."""
        here = self.machine == this_process().machine
        return f"process {self.pid}" + ("" if here else f" on {self.machine.partition('/')[0]}")

    def is_dead(self) -> bool:
        """Return True if the process has definitely ended. If its state is unknown, return False."""
        if self.machine != this_process().machine or sys.platform == "win32":
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        stat = _stat(self.pid)
        return bool(stat) and (stat[_STATE] in "ZX" or stat[_STARTED] != self.started)

    def is_alive(self) -> bool:
        """Return True if the process certainly runs on this machine. A suspended process does not run."""
        if self.machine != this_process().machine:
            return False
        stat = _stat(self.pid)
        return bool(stat) and stat[_STATE] not in "ZXTt" and stat[_STARTED] == self.started

    def to_text(self) -> str:
        """Return the process identity as JSON text for the database."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> "ProcessIdentity":
        """Parse a process identity from stored text, or return `NOBODY` if the text is damaged."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError, RecursionError):
            return NOBODY  # the lease ends when it expires


NOBODY = ProcessIdentity("", 0, "")


def this_process() -> ProcessIdentity:
    """Return the identity of the current process."""
    return _identity(os.getpid())


@lru_cache(maxsize=1)
def _identity(pid: int) -> ProcessIdentity:
    boot = space = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/pid")
    stat = _stat(pid)
    return ProcessIdentity(f"{platform.node()}/{boot}/{space}", pid, stat[_STARTED] if stat else "")


def _stat(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` after the command name, or `[]` without the file."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


LEASE_S = 30.0
"""Number of seconds after which a lease expires unless it is renewed. The time allows for three missed
renewals."""
RENEW_S = LEASE_S / 3
"""Interval in seconds at which a lease is renewed."""

_own_tokens: set[str] = set()
"""Lease tokens of the runs in this process. If releasing a lease failed, for example on a full disk, this
process may acquire the lease again."""

SLOT_PREFIX = "endpoint "
"""Name prefix of the leases that limit the number of concurrent calls to an endpoint."""
_NO_DEBATE = "debate NOT IN (SELECT id FROM moot_debates)"
_MAX_EPOCH = 2**53
"""Upper limit for the sequence number of a lease. A stored epoch that reaches the limit counts as damaged."""
_KEY = "__moot_lease"  # LangGraph writes no checkpoint metadata under keys with this prefix


@dataclass(frozen=True, eq=False)
class Lease:
    """Exclusive right of one run to write to a debate."""

    debate: str
    namespace: str
    """LangGraph checkpoint namespace if the debate runs as a subgraph, otherwise `""`."""
    epoch: int
    """Sequence number of the lease, starting at 1. The number grows each time another run acquires the
    debate."""
    token: str
    """Random token that identifies the run holding the lease."""


def lease_in(config: RunnableConfig) -> Lease | None:
    """Return the lease stored in a run's configuration, or `None` if there is none."""
    configurable = config.get("configurable", {})
    lease = configurable.get(_KEY)
    is_of_debate = isinstance(lease, Lease) and lease.debate == str(configurable.get("thread_id"))
    return lease if is_of_debate else None


def with_lease(config: RunnableConfig, lease: Lease) -> RunnableConfig:
    """Return a copy of a run's configuration with the lease that its writes check."""
    return {**config, "configurable": {**config.get("configurable", {}), _KEY: lease}}


@dataclass(frozen=True)
class _LeaseRow:
    epoch: int = 0
    token: str = ""
    stored_holder: str = ""
    """Process that holds the lease, as unparsed text from the database."""
    expired: bool = False
    stored_epoch: Value = 0
    """Epoch of the lease as the database returned it, even if the value is damaged."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        for epoch, token, holder, expired in rows:
            stored: object = epoch
            if not (isinstance(stored, int) and 0 <= stored < _MAX_EPOCH and isinstance(token, str)):
                # A damaged row holds nothing. The next run replaces it, as it replaces an expired lease.
                return cls(stored_epoch=epoch)
            return cls(stored, token, holder, bool(expired), stored)
        return cls()

    @property
    def holder(self) -> ProcessIdentity:
        return ProcessIdentity.from_text(self.stored_holder)

    @property
    def live(self) -> bool:
        holder = self.holder
        if not self.token:
            return False
        if holder == this_process():
            return self.token in _own_tokens and not self.expired
        # If a clock jumps, leases expire whose holders still renew them.
        return holder.is_alive() or not (self.expired or holder.is_dead())


class Leases(DebateTable):
    """Table of leases by debate and namespace. Released ones keep their rows, so that epochs continue."""

    name = "moot_leases"
    columns = """
        debate TEXT NOT NULL, namespace TEXT NOT NULL, epoch BIGINT NOT NULL, token TEXT NOT NULL,
        holder TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL, PRIMARY KEY (debate, namespace)"""

    def __init__(self, sql: Sql, name_of: Callable[[str], str]) -> None:
        super().__init__(sql)
        self._name_of = name_of
        self._columns = f"SELECT epoch, token, holder, expires + 0 < {sql.clock}"
        self._of_debate = f"{self._columns} FROM moot_leases WHERE debate = ?"
        self._of_namespace = f"{self._of_debate} AND namespace = ?"
        self._live: weakref.WeakSet[Lease] = weakref.WeakSet()  # leases of abandoned runs are not renewed
        self._guard = threading.Lock()
        self._renewing: threading.Thread | None = None
        self._closed = threading.Event()

    def acquire(self, debate: str, namespace: str = "") -> Lease:
        """Acquire the lease with which only this run may write, or raise `DebateBusy`."""
        token, holder = uuid.uuid4().hex, this_process().to_text()
        _own_tokens.add(token)
        try:
            while (
                row := _LeaseRow.of(self._sql.execute(self._of_namespace, (debate, namespace)))
            ).token != token:
                if row.live:
                    raise _busy(self._name_of(debate), row.holder)
                self._sql.execute(  # only one of several writers finds the epoch that it read
                    "INSERT INTO moot_leases (debate, namespace, epoch, token, holder, expires) "  # noqa: S608  # constants of ours
                    f"VALUES (?, ?, ?, ?, ?, {self._sql.clock} + ?) "
                    "ON CONFLICT (debate, namespace) DO UPDATE "
                    "SET epoch = excluded.epoch, token = excluded.token, holder = excluded.holder, "
                    "expires = excluded.expires WHERE moot_leases.epoch = ?",
                    (debate, namespace, row.epoch + 1, token, holder, LEASE_S, row.stored_epoch),
                )
            lease = Lease(debate, namespace, row.epoch, token)
            with self._guard:
                self._live.add(lease)
                if self._renewing is None:
                    self._renewing = threading.Thread(target=self._renew, name="moot-leases", daemon=True)
                    self._renewing.start()
            return lease
        except BaseException:
            _own_tokens.discard(token)
            raise

    def release(self, lease: Lease) -> None:
        """Release a lease so that other runs can acquire it.

        If the database cannot be written, other processes must wait until the lease expires. The row of a
        deleted debate is deleted.
        """
        self._live.discard(lease)
        _own_tokens.discard(lease.token)
        with suppress(StorageError, DebateNotFound):
            self._sql.execute(
                "UPDATE moot_leases SET token = '' WHERE debate = ? AND namespace = ? AND token = ?",
                (lease.debate, lease.namespace, lease.token),
            )
            if not lease.debate.startswith(SLOT_PREFIX):
                self._sql.execute(
                    f"DELETE FROM moot_leases WHERE debate = ? AND token = '' AND {_NO_DEBATE}",  # noqa: S608  # constants of ours
                    (lease.debate,),
                )

    def delete_orphans(self) -> None:
        """Delete the rows of debates that do not exist. A process that was killed may have left them."""
        orphans = self._sql.execute(f"{self._columns}, debate, namespace FROM moot_leases WHERE {_NO_DEBATE}")
        for *columns, debate, namespace in orphans:
            if not (str(debate).startswith(SLOT_PREFIX) or _LeaseRow.of([tuple(columns)]).live):
                self._sql.execute(
                    "DELETE FROM moot_leases WHERE debate = ? AND namespace = ? AND epoch = ? AND token = ?",
                    (debate, namespace, *columns[:2]),
                )

    @contextmanager
    def hold(self, debate: str, namespace: str = "") -> Iterator[Lease]:
        """Hold the lease of a debate during a `with` block, or raise `DebateBusy`."""
        lease = self.acquire(debate, namespace)
        try:
            yield lease
        finally:
            self.release(lease)

    def is_held(self, debate: str) -> bool:
        """Return True if any process currently holds a lease on the debate."""
        if self._sql.read_only:
            return False
        return any(_LeaseRow.of([row]).live for row in self._sql.execute(self._of_debate, (debate,)))

    def permit(self, lease: Lease) -> Permit:
        """Return a permit that allows writing while the run holds the lease."""

        def allows(rows: Sequence[Row]) -> bool:
            row = _LeaseRow.of(rows)
            return (row.token, row.epoch) == (lease.token, lease.epoch)

        def refusal(rows: Sequence[Row]) -> DebateBusy:
            row, name = _LeaseRow.of(rows), self._name_of(lease.debate)
            cause = f"taken over by {row.holder.name}" if row.epoch else "deleted"
            return DebateBusy(
                f"debate {name!r} was {cause} while this run was suspended, so this run stops writing",
                pid=row.holder.pid or None,
            )

        return Permit((self._of_namespace, (lease.debate, lease.namespace)), allows, refusal)

    def permit_in(self, config: RunnableConfig) -> Permit:
        """Return a run's permit. Without a lease it may write while no other run has one."""
        lease = lease_in(config)
        if lease is not None:
            return self.permit(lease)
        configurable = config["configurable"]
        debate, namespace = str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")

        def allows(rows: Sequence[Row]) -> bool:
            return not _LeaseRow.of(rows).live

        def refusal(rows: Sequence[Row]) -> DebateBusy:
            return _busy(self._name_of(debate), _LeaseRow.of(rows).holder)

        return Permit((self._of_namespace, (debate, namespace)), allows, refusal)

    def close(self) -> None:
        """Stop renewing the leases of this process."""
        self._closed.set()

    def _renew(self) -> None:
        while not self._closed.wait(RENEW_S):
            with self._guard:
                live = list(self._live)
                if not live:
                    self._renewing = None
                    return
            for lease in live:
                with suppress(StorageError, DebateNotFound):  # the next write of the run reports the error
                    self._sql.execute(
                        f"UPDATE moot_leases SET expires = {self._sql.clock} + ? "  # noqa: S608  # constants of ours
                        "WHERE debate = ? AND namespace = ? AND token = ?",
                        (LEASE_S, lease.debate, lease.namespace, lease.token),
                    )


def _busy(name: str, holder: ProcessIdentity) -> DebateBusy:
    stop = shlex.join(["moot", "pause", name])
    return DebateBusy(
        f"debate {name!r} is in use by {holder.name}: wait for it, or stop it with `{stop}`", pid=holder.pid
    )
