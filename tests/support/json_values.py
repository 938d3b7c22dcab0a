"""Arbitrary JSON values, and their insertion at any path of a valid value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
JsonPath = tuple[Any, ...]
"""Keys and indices from the root to a value."""


def json_paths(value: Any, path: JsonPath = ()) -> list[JsonPath]:
    """Return the paths of all values in a value, beginning with the root."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, item in items for inner in json_paths(item, (*path, key)))]


def replace_values(value: Any, replacements: Iterable[tuple[JsonPath, Any]]) -> Any:
    """Put each value at its path and return the whole. Skip paths that a replacement has removed."""
    for path, new in replacements:
        target = value
        try:
            for step in path[:-1]:
                target = target[step]
            target[path[-1]] = new
        except (KeyError, IndexError, TypeError):
            continue
    return value
