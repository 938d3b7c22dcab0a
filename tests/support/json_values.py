"""Arbitrary JSON values, and their insertion at any place of a valid value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
Place = tuple[Any, ...]
"""Keys and indices, from the outside in."""


def places(value: Any, path: Place = ()) -> list[Place]:
    """Return every place in a value, its own first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def with_value_at(value: Any, bad_value: Iterable[tuple[Place, Any]]) -> Any:
    """Put each value at its place and return the whole; what was there may be bad_value already."""
    for place, new in bad_value:
        target = value
        try:
            for step in place[:-1]:
                target = target[step]
            target[place[-1]] = new
        except (KeyError, IndexError, TypeError):
            continue
    return value
