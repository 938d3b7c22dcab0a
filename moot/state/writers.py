"""One writer a debate: a hold that the kernel or the server takes back when its process dies."""

import os
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from moot.state.errors import DebateBusy
from moot.state.sql import Sql


class Held(Exception):
    """Another process has the hold.

    Attributes:
        pid: the holder's process id, `None` where it could not be read.
    """

    def __init__(self, pid: int | None) -> None:
        super().__init__(pid)
        self.pid = pid


class WriterLock(Protocol):
    """Grants the right to write a debate to one process at a time."""

    def acquire(self, debate: str) -> None:
        """Take the hold.

        Raises:
            Held: another process has it.
        """
        ...

    def release(self, debate: str) -> None:
        """Give the hold back."""
        ...


class NoLock:
    """For databases that one process alone can see."""

    def acquire(self, debate: str) -> None:
        """Grant it."""

    def release(self, debate: str) -> None:
        """Do nothing."""


class FileWriterLock:
    """A kernel file lock a debate, in a folder beside the SQLite file; gone with its process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, FileLock] = {}

    def acquire(self, debate: str) -> None:
        """Take the kernel's lock and note our process id for whoever is refused."""
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._folder / f"{debate}.lock", thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise Held(self._holder(debate)) from None
        self._locks[debate] = lock
        self._pid_file(debate).write_text(str(os.getpid()))

    def release(self, debate: str) -> None:
        """Release the kernel's lock; its file goes with the note."""
        lock = self._locks.pop(debate)
        self._pid_file(debate).unlink(missing_ok=True)
        lock.release()

    def _pid_file(self, debate: str) -> Path:
        return self._folder / f"{debate}.pid"

    def _holder(self, debate: str) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._pid_file(debate).read_text())
        return None


class PostgresWriterLock:
    """A session-level advisory lock, gone with its connection."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def acquire(self, debate: str) -> None:
        """Try for the lock and name the holder's backend where it is taken."""
        if not self._sql.execute("SELECT pg_try_advisory_lock(hashtextextended(?, 0))", (debate,))[0][0]:
            raise Held(None)

    def release(self, debate: str) -> None:
        """Unlock."""
        self._sql.execute("SELECT pg_advisory_unlock(hashtextextended(?, 0))", (debate,))


class Writers:
    """Counts this process's holds on each debate, so that nested ones share one lock."""

    def __init__(self, lock: WriterLock, name_of: Callable[[str], str]) -> None:
        self._lock = lock
        self._name_of = name_of
        self._holds: dict[str, int] = {}
        self._by_nodes: set[str] = set()
        """Debates that a node alone holds, whose run nobody holds: no other run's node may join it."""
        self._guard = threading.Lock()

    @contextmanager
    def writing(self, debate: str, *, alone: bool = False) -> Iterator[None]:
        """Hold a debate for the length of a `with` block; `alone` joins no hold of this process.

        Raises:
            DebateBusy: another process holds it.
        """
        self.acquire(debate, alone=alone)
        try:
            yield
        finally:
            self.release(debate)

    def acquire(self, debate: str, *, alone: bool = False, node: bool = False) -> None:
        """Hold a debate; see `writing`. `node` says that a node takes it, for itself."""
        try:
            self._acquire(debate, alone=alone or node)
            if node:
                self._by_nodes.add(debate)
        except Held as held:
            raise _busy(self._name_of(debate), held.pid) from None

    def _acquire(self, debate: str, *, alone: bool = False) -> None:
        with self._guard:
            if alone and self._holds.get(debate):
                raise Held(os.getpid())
            if not self._holds.get(debate):
                self._lock.acquire(debate)
            self._holds[debate] = self._holds.get(debate, 0) + 1

    def again(self, debate: str) -> bool:
        """Hold a debate once more where this process holds it for a whole run; return whether it does."""
        with self._guard:
            held = bool(self._holds.get(debate)) and debate not in self._by_nodes
            if held:
                self._holds[debate] += 1
            return held

    def release(self, debate: str) -> None:
        """Give one hold back."""
        with self._guard:
            self._holds[debate] -= 1
            if not self._holds[debate]:
                del self._holds[debate]
                self._by_nodes.discard(debate)
                self._lock.release(debate)

    def is_held(self, debate: str) -> bool:
        """Return whether anybody, this process or another, holds a debate at this moment."""
        with self._guard:
            if self._holds.get(debate):
                return True
            try:
                self._lock.acquire(debate)
            except Held:
                return True
            self._lock.release(debate)
            return False


def _busy(name: str, pid: int | None) -> DebateBusy:
    holder = f"process {pid}" if pid else "another process"
    stop = shlex.join(["moot", "pause", name])
    return DebateBusy(
        f"debate {name!r} is in use by {holder}: wait for it, or stop it with `{stop}`", pid=pid
    )
