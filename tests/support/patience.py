"""Waiting in tests, with limits that hold on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG_TIMEOUT_S = 300.0
"""After so long it will not happen any more; nothing is said by how long it took."""


def until(condition: Callable[[], object], seconds: float = LONG_TIMEOUT_S, *, every_s: float = 0.02) -> bool:
    """Ask again until it holds, and return whether it does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True
