"""Completion of partial typed dicts, so that a test states only the keys that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from moot.state.entries import EntryKind

_ZEROS: Mapping[Any, object] = {str: "", int: 0, float: 0.0, bool: False, EntryKind: "speech"}
"""Default value for a missing key, by the type that its value must have. A missing value of any other
`Literal` type defaults to the first allowed value."""


def completed(kind: Any, value: Any) -> Any:
    """Return a copy of `value`, a part of a typed dict, with zeros for missing required keys."""
    if is_typeddict(kind) and isinstance(value, dict):
        fields, required_keys = _fields(kind)
        present_items = {
            key: item
            for key, item in value.items()
            if item != {} or key not in fields or key in required_keys or get_origin(fields[key]) is dict
        }
        filled = {
            key: completed(fields[key], item) if key in fields else item
            for key, item in present_items.items()
        }
        return {**filled, **{key: _zero(fields[key]) for key in required_keys if key not in filled}}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [completed(inner[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: completed(inner[1], item) for key, item in value.items()}
    if type(None) in inner:
        return None if value in (None, {}) else completed(inner[0], value)
    return value


def _zero(kind: Any) -> object:
    if kind in _ZEROS:
        return _ZEROS[kind]
    if is_typeddict(kind):
        return completed(kind, {})
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    return None if type(None) in get_args(kind) else get_origin(kind)()


@cache
def _fields(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the value types and the required keys of a typed dict.

    The types are keyed by the dict's keys.
    """
    hints = get_type_hints(kind, include_extras=True)
    # Postponed annotations hide `NotRequired` from `__required_keys__`.
    optional = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    types = {key: get_args(hint)[0] if key in optional else hint for key, hint in hints.items()}
    value_types = {
        key: get_args(hint)[0] if get_origin(hint) is Annotated else hint for key, hint in types.items()
    }
    return value_types, kind.__required_keys__ - optional
