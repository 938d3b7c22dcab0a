"""Tells a process from every other one, on this machine and elsewhere, and whether it is dead."""

from __future__ import annotations

import json
import os
import platform
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

_STATE, _STARTED = 0, 19
"""Fields of Linux's `/proc/PID/stat` after the command's name."""


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of all that ever were."""

    machine: str
    """Host's name, boot and space of process ids: two that share these can see each other."""
    pid: int
    started: str
    """When, in the machine's own unit, `""` where that is not told: process ids are given again."""

    @property
    def name(self) -> str:
        """How it is called before people."""
        here = self.machine == this_process().machine
        return f"process {self.pid}" + ("" if here else f" on {self.machine.partition('/')[0]}")

    def is_dead(self) -> bool:
        """Return whether it is known here that it is dead; of another machine's nothing is known."""
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

    def to_text(self) -> str:
        """Return it as a table keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> ProcessIdentity:
        """Return what `to_text` made a text of."""
        return cls(**json.loads(text))


NOBODY = ProcessIdentity("", 0, "")


def this_process() -> ProcessIdentity:
    """Return the process that asks."""
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
    """Return what Linux tells of a process, `[]` elsewhere."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []
