"""Results remembered by the very same arguments."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T", bound=Callable[..., object])


def at_sight(kept: int = 64) -> Callable[[T], T]:
    """Remember the last results of a function of objects that nobody changes in place, which it is given.

    A call is known by which objects its arguments are: to hash a configuration or an entry, or to compare it
    with others, takes longer than most of what is asked of it, many times a turn.
    """

    def remembering(function: T) -> T:
        known: dict[tuple[int, ...], tuple[tuple[object, ...], object]] = {}

        def look_up(*arguments: object) -> object:
            key = tuple(map(id, arguments))
            found = known.get(key)
            if found is None:
                if len(known) >= kept:
                    known.clear()
                found = known[key] = arguments, function(*arguments)  # so nothing else gets their ids
            return found[1]

        return wraps(function)(look_up)  # type: ignore[return-value]  # it takes and returns the same

    return remembering
