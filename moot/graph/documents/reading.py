"""Reading a document that comes from outside: whole, or refused; or, for a report, as far as it goes.

Its configuration, which another version of Moot may have written, reports and imports read in part alone.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NotRequired, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict, is_typeddict

from moot.graph.documents.document import DebateDocument
from moot.state.config.config_mistakes import mistakes_in
from moot.state.conversation import SCHEMA_VERSION
from moot.state.entries import EntryKind, entry_id
from moot.state.errors import InputError

_T = TypeVar("_T")
_ZEROS: Mapping[Any, object] = {str: "", int: 0, float: 0.0, bool: False, EntryKind: "speech"}
"""What stands for a missing text, number, flag or kind of entry; for other literals their first value."""
_GROWN = ("blackboard", "verdicts", "verdict", "agreement", "state")
"""Parts whose records have got more fields over time: what an older one lacks is filled in."""


def whole_document(given: Mapping[str, object]) -> DebateDocument:
    """Return a `moot.debate/1` document that a debate can be made of again.

    Raises:
        InputError: it is none, or not whole; the message names the key.
    """
    kinds, _ = _fields(DebateDocument)
    grown = {key: fill_in(kinds[key], given[key]) for key in _GROWN if key in given}
    # What is checked is handed on, not what the check makes of it: keys keep their order, numbers their form.
    document = cast(DebateDocument, {**given, **grown})
    try:
        _adapter(DebateDocument).validate_python(document, strict=True)
    except ValidationError as error:
        wrong, *others = mistakes_in(error)
        more = f" ({len(others)} more)" if others else ""
        raise InputError(
            f"not a whole moot.debate/1 document: {wrong}{more}; "
            "without its `format` key, what was said can be imported alone"
        ) from error
    if document["schema_version"] > SCHEMA_VERSION:
        version = document["schema_version"]
        raise InputError(f"schema_version {version} is newer than this Moot reads: update Moot")
    for seq, entry in enumerate(document["transcript"]):
        if entry["seq"] != seq or entry["id"] != entry_id(seq):
            raise InputError(f"transcript.{seq}: has seq {entry['seq']} and id {entry['id']!r}, not {seq}")
    carried = document.get("state", {})
    current = [carried.get("rolling_summary"), carried.get("judge_summary")]
    for summary in (*current, *carried.get("perspective_summaries", {}).values()):
        if summary and not -1 <= summary["covers_through_seq"] < len(document["transcript"]):
            raise InputError(f"state: a summary has covers_through_seq {summary['covers_through_seq']}")
    return document


def as_far_as_it_goes(kind: type[_T], given: object) -> _T:
    """Return what `given` holds of a typed dict: what has another type is left out, what lacks is empty."""
    value = fill_in(kind, given if isinstance(given, dict) else {})
    adapter = _adapter(cast(Any, kind))
    while True:
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            places = [_real_place(value, each["loc"]) for each in error.errors(include_url=False)]
            # From behind, so that the numbers of a list's items hold while others are taken out of it.
            for place in reversed(dict.fromkeys(places)):
                holder = value
                for step in place[:-1]:
                    holder = holder[step]
                if place:
                    del holder[place[-1]]
            value = fill_in(kind, value)
        else:
            return cast(_T, value)


def _real_place(value: Any, place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return a place as far as it can be followed: what a union's alternatives add to it leads nowhere."""
    for depth, step in enumerate(place):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return place[:depth]
    return place


def fill_in(kind: Any, value: Any) -> Any:
    """Return a copy of `value` in which what its type requires is there; `{}` for a record is none."""
    if is_typeddict(kind) and isinstance(value, dict):
        fields, needed = _fields(kind)
        have = {key: item for key, item in value.items() if item != {} or key not in fields or key in needed}
        filled = {key: fill_in(fields[key], item) if key in fields else item for key, item in have.items()}
        return {**filled, **{key: _zero(fields[key]) for key in needed if key not in filled}}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [fill_in(inner[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: fill_in(inner[1], item) for key, item in value.items()}
    if type(None) in inner:
        return None if value in (None, {}) else fill_in(inner[0], value)
    return value


def _zero(kind: Any) -> object:
    if kind in _ZEROS:
        return _ZEROS[kind]
    if is_typeddict(kind):
        return fill_in(kind, {})
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    return None if type(None) in get_args(kind) else get_origin(kind)()


@cache
def _fields(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the types of a typed dict's keys, and the keys that must be there."""
    hints = get_type_hints(kind, include_extras=True)
    # Postponed annotations hide `NotRequired` from `__required_keys__`.
    optional = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    types = {key: get_args(hint)[0] if key in optional else hint for key, hint in hints.items()}
    return types, kind.__required_keys__ - optional


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class ShownDebater(TypedDict):
    """A debater, as configured."""

    id: str
    name: str
    role: str
    stance: str


class ShownSeat(TypedDict, total=False):
    """A judge's seat, or what counts for every seat."""

    rubric: object
    """A rubric, or the name of one that ships with Moot."""


class ShownBench(ShownSeat, total=False):
    """How a debate is judged."""

    panel: list[ShownSeat]


class Termination(TypedDict, total=False):
    """When a council ends."""

    threshold: float


class ShownConfig(TypedDict):
    """The parts of a configuration that reports and imports need."""

    debaters: list[ShownDebater]
    judge: ShownBench
    termination: Termination


def shown_config(document: DebateDocument) -> ShownConfig:
    """Return what is read of a document's configuration, as far as it goes."""
    return as_far_as_it_goes(ShownConfig, document["config"])
