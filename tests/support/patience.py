"""Waiting in tests: for what must happen however busy the machine is, which may give a tenth of its time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENT_S = 300.0
"""After so long it will not happen any more; nothing is said by how long it took."""


def until(condition: Callable[[], object], seconds: float = PATIENT_S, *, every_s: float = 0.02) -> bool:
    """Ask again until it holds, and return whether it does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True
