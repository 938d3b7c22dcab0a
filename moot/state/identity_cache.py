"""Cache of function results by argument identity."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T", bound=Callable[..., object])


def memoize_by_identity(maxsize: int = 64) -> Callable[[T], T]:
    """Return a decorator that caches a function's results by the identity of its arguments.

    The arguments must never change. Equal numbers may be different objects, so no argument may be a computed
    number. Hashing or comparing a configuration or an entry would take longer than most of the functions that
    use this decorator.
    """

    def remembering(function: T) -> T:
        known: dict[tuple[int, ...], tuple[tuple[object, ...], object]] = {}

        def look_up(*arguments: object) -> object:
            key = tuple(map(id, arguments))
            found = known.get(key)
            if found is None:
                if len(known) >= maxsize:
                    known.clear()
                found = known[key] = arguments, function(*arguments)  # keeps the arguments' ids in use
            return found[1]

        return wraps(function)(look_up)  # type: ignore[return-value]  # the wrapper has the same signature

    return remembering
