"""Fields of a structured answer whose schema says what may stand there, while reading them stays lenient.

A model that keeps to its schema gives a usable answer. Of one that does not, whoever reads it drops or counts
a wrong value, or brings it within its bounds, and the rest of the answer counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, create_model

Model = TypeVar("Model", bound=BaseModel)

MOST_IDS = 250
"""Ids that are enumerated; OpenAI's strict mode takes 1,000 values in a schema."""
_MESSAGE_ID = r"^m[0-9]{6,9}$"


def one_of(values: Iterable[str]) -> Any:
    """Return the type of a text that is one of these; another is dropped by itself alone."""
    return Annotated[str, Field(json_schema_extra={"enum": list(values) or [""]})]


def cited(ids: Sequence[str]) -> Any:
    """Return the type of a list of message ids: of these; of their form alone where they are many or none."""
    if 0 < len(ids) <= MOST_IDS:
        return list[one_of(ids)]  # type: ignore[misc]  # made for the debate
    return list[Annotated[str, Field(json_schema_extra={"pattern": _MESSAGE_ID})]]


def between(low: float, high: float, number: type[float] = float) -> Any:
    """Return the type of a number within bounds; another is brought within them by whoever reads it."""
    return Annotated[number, Field(json_schema_extra={"minimum": low, "maximum": high})]


def many(item: Any, least: int = 0, most: int = 100) -> Any:
    """Return the type of a list of so many items; what is beyond that is not read."""
    return Annotated[list[item], Field(json_schema_extra={"minItems": least, "maxItems": most})]


def narrowed(model: type[Model], types: Mapping[str, Any], name: str = "") -> type[Model]:
    """Return a schema with other types of some fields; their descriptions and defaults stay."""
    fields: dict[str, Any] = {}
    for key, kind in types.items():
        known = model.model_fields[key]
        default = ... if known.is_required() else known.default
        fields[key] = (Annotated[kind, Field(description=known.description)], default)
    return create_model(name or model.__name__, __base__=model, __doc__=model.__doc__, **fields)
