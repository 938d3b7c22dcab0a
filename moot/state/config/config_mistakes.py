"""What pydantic finds wrong with a configuration, in words that say what to write."""

import difflib
from collections.abc import Iterable, Iterator
from typing import get_args

from pydantic import BaseModel, ValidationError

Loc = tuple[int | str, ...]


def explain(error: ValidationError, model: type[BaseModel], *, under: str = "") -> str:
    """Return one line for each thing wrong, with the key as the user writes it."""
    lines = []
    for detail in error.errors(include_url=False):
        loc: Loc = detail["loc"]
        key = _join(under, *loc)
        if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            lines.append(unknown_key(key, _model_at(loc[:-1], model).model_fields))
            continue
        message = _expectation(detail["type"], loc, model) or detail["msg"].removeprefix("Value error, ")
        lines.append(message if key in message or not key else f"{key}: {message}")
    return "\n".join(lines)


def mistakes_in(error: ValidationError, whole: str = "") -> list[str]:
    """Return what is wrong with data from outside, as `key.key: why` each; `whole` is what has no key."""
    found = ((_join(*one["loc"]) or whole, one["msg"]) for one in error.errors(include_url=False))
    return [f"{key}: {why}" if key else why for key, why in found]


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return what is said of a key that there is not: the one that was likely meant."""
    section = key.rpartition(".")[0]
    close = difflib.get_close_matches(key.rpartition(".")[2], sorted(known), n=1)
    return f"unknown key {key!r}" + (f": did you mean {_join(section, close[0])!r}?" if close else "")


def _join(*parts: int | str) -> str:
    return ".".join(str(part) for part in parts if part != "")


def _expectation(kind: str, loc: Loc, model: type[BaseModel]) -> str:
    """Return what to write where a value has the wrong shape, `""` for any other mistake."""
    inner = _model_at(loc, model)
    fields = inner.model_fields
    first = next((name for name, field in fields.items() if field.is_required()), next(iter(fields)))
    within_list = bool(loc) and isinstance(loc[-1], int)
    match kind:
        case "tuple_type" | "list_type":
            item = f"{{{first}: …}}" if inner is not model else "…"
            return f"give a list, each item on a line of its own: `- {item}`"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"give keys and values: `{'- ' if within_list else ''}{{{first}: …}}`"
        case "string_type" if loc and loc[-1] in ("model", "summary_model"):
            return "give a model's name; an object goes under one of yours in `models={'mine': OBJECT}`"
    return ""


def _model_at(loc: Loc, model: type[BaseModel]) -> type[BaseModel]:
    """Return the innermost section that a key leads to."""
    for part in loc:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
