"""The configuration file with every setting and its default, made from the types."""

import textwrap
from collections.abc import Iterator
from typing import Any, get_args

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from moot.graph.json_schemas import field_docs, whole_config
from moot.state.config import DebaterConfig, JudgeSeat
from moot.state.config.model_settings import ModelSettings
from moot.state.entries import JsonObject

HEADING = """\
# A debate's configuration. Every key is optional; what is not a comment is the default.
# Use it with: moot run "TOPIC" --config FILE
"""
EXAMPLES: dict[type[BaseModel], JsonObject] = {
    DebaterConfig: {"name": "Economist", "role": "economist", "stance": "in favour", "model": "gpt-4o-mini"},
    JudgeSeat: {"id": "strict", "model": "gpt-4o"},
    ModelSettings: {"context_size": 128_000, "input_usd_per_million": 0.15, "output_usd_per_million": 0.6},
}
"""Shown, commented out, where a list or table of such things is empty by default."""
WIDTH = 100


def template() -> str:
    """Return the commented YAML file; loading it gives the default configuration."""
    return HEADING + "".join(f"{line}\n".replace(" \n", "\n") for line in _section(whole_config()()))


def _section(values: BaseModel, indent: str = "") -> Iterator[str]:
    docs = field_docs(type(values))
    for name, field in type(values).model_fields.items():
        if not indent:
            yield ""
        written = (docs.get(name) or field.description or "").replace("`None`", "`null`")
        yield from (f"{indent}# {line}" for line in textwrap.wrap(written, WIDTH - len(indent)))
        yield from _setting(name, getattr(values, name), field, indent)


def _setting(name: str, value: Any, field: FieldInfo, indent: str) -> Iterator[str]:
    example = next((EXAMPLES[kind] for kind in _types_in(field.annotation) if kind in EXAMPLES), None)
    if isinstance(value, BaseModel):
        yield f"{indent}{name}:"
        yield from _section(value, indent + "  ")
    elif value is None:
        yield f"{indent}# {name}:"
    elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
        # The protocol's own, which another protocol has otherwise.
        rows = [item.model_dump(mode="json", exclude_unset=True) for item in value]
        yield from _comment({name: rows}, indent)
    elif not value and example is not None:
        yield f"{indent}{name}: {'{}' if isinstance(value, dict) else '[]'}"
        yield from _comment(
            {name: {"gpt-4o-mini": example} if isinstance(value, dict) else [example]}, indent
        )
    else:
        plain = list(value) if isinstance(value, tuple) else value
        text = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=1000)
        scalar = text.removesuffix("...\n").strip()
        yield f"{indent}{name}: {scalar}"


def _comment(setting: JsonObject, indent: str) -> Iterator[str]:
    text = yaml.safe_dump(setting, sort_keys=False, allow_unicode=True)
    return (f"{indent}# {line}" for line in text.splitlines())


def _types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    for argument in get_args(annotation):
        yield from _types_in(argument)
