"""Waiting for conditions in tests, with limits that suit a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG_TIMEOUT_S = 300.0
"""Limit after which a test gives up. It is not a bound on performance."""


def wait_until(
    condition: Callable[[], object], seconds: float = LONG_TIMEOUT_S, *, every_s: float = 0.02
) -> bool:
    """Wait until a condition holds, and return False if the time runs out."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True
