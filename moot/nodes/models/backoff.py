"""How long to wait before asking a model again."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from moot.state.uncancelled import rest


@dataclass(frozen=True)
class Backoff:
    """Exponential waits with jitter; the sleep and the dice are injected, so tests do not wait."""

    first_s: float = 0.5
    """Wait after the first failure, seconds, before jitter."""
    longest_s: float = 30.0
    """No wait of our own is longer, seconds."""
    patience_s: float = 300.0
    """A provider that asks for a longer wait than this, seconds, is given up instead."""
    sleep: Callable[[float], Awaitable[None]] = rest
    dice: Callable[[], float] = random.random

    def wait_s(self, failures: int, asked_s: float | None = None) -> float:
        """Return the seconds to wait after so many failures in a row.

        What the provider asks for is kept to, with a little jitter so that many callers do not return at
        the same moment; else half to all of the exponential step.
        """
        if asked_s is not None:
            return asked_s + self.dice() * min(0.1 * asked_s, self.first_s)
        step = min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 30))
        return step * (0.5 + 0.5 * self.dice())
