"""Cache of function results by argument identity."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T", bound=Callable[..., object])


def memoize_by_identity(maxsize: int = 64) -> Callable[[T], T]:
    """Return a decorator that caches a function's results by the identity of its arguments.

    The arguments must never change. Integers are compared by value. Hashing or comparing a configuration or
    an entry would take longer than most of the functions that use this decorator.
    """

    def remembering(function: T) -> T:
        known: dict[tuple[int | str, ...], tuple[tuple[object, ...], object]] = {}

        def look_up(*arguments: object) -> object:
            key = tuple([str(each) if each.__class__ is int else id(each) for each in arguments])
            found = known.get(key)
            if found is None:
                if len(known) >= maxsize:
                    known.clear()
                found = known[key] = arguments, function(*arguments)  # keeps the arguments' ids in use
            return found[1]

        return wraps(function)(look_up)  # type: ignore[return-value]  # the wrapper has the same signature

    return remembering
