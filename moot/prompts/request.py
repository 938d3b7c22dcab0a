"""Requests to models: model parameters, prompt, and JSON schema of the reply.

Every `ModelCall` is made here. The schema of a structured reply states the valid values of each field.
Parsing is lenient: invalid values are dropped, counted or clamped, and the rest of the reply is used.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Protocol, TypeVar, Union, cast

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypeAliasType

from moot.calls.model_calls import Hints, ModelCall, Prompt, Purpose, StreamAs
from moot.config import DebateConfig, DebaterConfig, JudgeConfig, PanelJudge
from moot.config.memory_config import BlackboardConfig, MemoryConfig
from moot.state.conversation import MemoryKind
from moot.state.entries import JsonObject
from moot.text.tokens import TokenCounter, counter, encoding_for

Model = TypeVar("Model", bound=BaseModel)

MAX_IDS = 250
"""Maximum number of message ids that a reply's JSON schema lists as allowed values. OpenAI's strict mode
accepts 1,000 values in a schema."""
_MESSAGE_ID = r"^m[0-9]{6,9}$"


@dataclass(frozen=True)
class ModelParams:
    """Model name and sampling parameters of a model call."""

    model: str
    temperature: float | None
    """Sampling temperature. `None`: the provider's default."""
    fallbacks: tuple[str, ...]
    seed: int | None
    reply: int
    """Maximum length of the model's reply in tokens."""


class HasModel(Protocol):
    """Interface of configuration sections that set a model and a temperature."""

    @property
    def model(self) -> str | None: ...  # noqa: D102
    @property
    def temperature(self) -> float | None: ...  # noqa: D102


def model_params(
    config: DebateConfig, settings: DebaterConfig | PanelJudge | MemoryConfig | HasModel
) -> ModelParams:
    """Return a debater's, judge's or summarizer's model and sampling, or else the debate's."""
    reply = config.memory.budget.reply
    common = ModelParams(config.model, config.temperature, config.fallbacks, config.seed, reply)
    if isinstance(settings, DebaterConfig):
        temperature = common.temperature if settings.temperature is None else settings.temperature
        fallbacks = common.fallbacks if settings.fallbacks is None else settings.fallbacks
        return replace(common, model=config.model_of(settings), temperature=temperature, fallbacks=fallbacks)
    if isinstance(settings, MemoryConfig):
        temperature = (
            common.temperature if settings.summary_temperature is None else settings.summary_temperature
        )
        return replace(common, model=settings.summary_model or common.model, temperature=temperature)
    if isinstance(settings, PanelJudge):
        panel = model_params(config, config.judge)
        temperature = panel.temperature if settings.temperature is None else settings.temperature
        return replace(panel, model=settings.model or panel.model, temperature=temperature)
    reply = settings.reply if isinstance(settings, JudgeConfig | BlackboardConfig) else reply
    return replace(
        common, model=settings.model or common.model, temperature=settings.temperature, reply=reply
    )


def counter_of(params: ModelParams, config: DebateConfig) -> TokenCounter:
    """Return the token counter for the model in `params`."""
    return counter(config.settings(params.model).encoding or encoding_for(params.model))


def make_call(
    params: ModelParams,
    purpose: Purpose,
    prompt: Prompt,
    *,
    schema: type[BaseModel] | None = None,
    reply: int | None = None,
    tools: tuple[JsonObject, ...] = (),
    stream_as: StreamAs | None = None,
    call_index: int = 0,
    memory_kind: MemoryKind | Literal[""] = "",
    hints: Hints | None = None,
) -> ModelCall:
    """Create a model call from a prompt and model parameters."""
    return ModelCall(
        purpose=purpose,
        model=params.model,
        messages=prompt.messages,
        max_tokens=params.reply if reply is None else reply,
        temperature=params.temperature,
        seed=params.seed,
        fallbacks=params.fallbacks,
        schema=schema,
        tools=tools,
        prompt_tokens=prompt.total_tokens,
        stream_as=stream_as,
        call_index=call_index,
        hints={"phase": purpose, **(hints or {})},
        prompt=prompt,
        memory_kind=memory_kind,
    )


_UNSUPPORTED = ("default", "discriminator", "minLength", "maxLength", "title", "examples", "uniqueItems")
"""JSON Schema keywords that OpenAI's strict mode rejects. Names and descriptions tell a model what these
keywords say."""


def sent_schema(schema: type[BaseModel]) -> JsonObject:
    """Return a reply's JSON Schema without titles, defaults and docstrings, in strict form if possible."""
    return sent_form(schema.model_json_schema())


def sent_form(schema: JsonObject) -> JsonObject:
    """Simplify a JSON Schema for a model, and convert it to OpenAI's strict form if possible.

    Class docstrings are removed. A definition that is used once stands where it is used.
    """
    parts = {name: _without_docstring(part) for name, part in schema.get("$defs", {}).items()}
    full = {**_without_docstring(schema), **({"$defs": parts} if parts else {})}
    full = _with_single_uses_inlined(full)
    return strict_schema(full) or cast(JsonObject, _without_unsupported(full))


def _with_single_uses_inlined(schema: JsonObject) -> JsonObject:
    """Inline each schema definition that is referenced exactly once."""
    parts: JsonObject = schema.get("$defs", {})
    uses = Counter(_references(schema))
    single = {f"#/$defs/{name}": part for name, part in parts.items() if uses[f"#/$defs/{name}"] == 1}

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(part) for part in node]
        if not isinstance(node, dict):
            return node
        if (key := node.get("$ref")) in single:
            return inlined({**single[key], **{name: part for name, part in node.items() if name != "$ref"}})
        return {name: inlined(part) for name, part in node.items()}

    kept = {name: part for name, part in parts.items() if f"#/$defs/{name}" not in single}
    rest = {name: part for name, part in schema.items() if name != "$defs"}
    return cast(JsonObject, inlined({**({"$defs": kept} if kept else {}), **rest}))


def _references(node: object) -> Iterator[str]:
    """Yield all `$ref` targets in a part of a JSON Schema."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = list(node.values())
    for part in node if isinstance(node, list) else ():
        yield from _references(part)


def _without_docstring(part: JsonObject) -> JsonObject:
    return {key: value for key, value in part.items() if key != "description" or "properties" not in part}


def schema_instruction(schema: type[BaseModel]) -> str:
    """Return prompt text that asks the model to reply in JSON that matches a schema."""
    text = json.dumps(sent_schema(schema), ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object and nothing else. It must match this JSON Schema:\n{text}"


def schema_tokens(schema: type[BaseModel], count: TokenCounter) -> int:
    """Return the number of tokens in the JSON schema of a reply."""
    return count(schema_instruction(schema))


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """Convert a JSON Schema to OpenAI's strict form, or return `None` if that is impossible.

    Strict mode requires every property and allows no others. It has no free-form objects, tuples or `Any`.
    """
    try:
        strict = _strict(schema)
    except _NotStrict:
        return None
    return strict if strict.get("type") == "object" else None


class _NotStrict(Exception):
    """Error raised for a schema that OpenAI's strict mode cannot express."""


def _strict(node: JsonObject) -> JsonObject:
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    if not node.keys() & {"type", "anyOf", "oneOf", "allOf", "enum", "const"} or "prefixItems" in node:
        raise _NotStrict
    kept: JsonObject = {key: value for key, value in node.items() if key not in _UNSUPPORTED}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    for key in ("anyOf", "allOf"):
        if key in kept:
            kept[key] = [_strict(option) for option in kept[key]]
    if node.get("type") == "array":
        kept["items"] = _strict(node.get("items", {}))
    if node.get("type") == "object":
        properties = node.get("properties")
        if properties is None or node.get("additionalProperties", False) is not False:
            raise _NotStrict
        kept["properties"] = {name: _strict(part) for name, part in properties.items()}
        kept["required"] = list(properties)
        kept["additionalProperties"] = False
    if "$defs" in kept:
        kept["$defs"] = {name: _strict(part) for name, part in kept["$defs"].items()}
    return kept


def _without_unsupported(node: object, *, names: bool = False) -> object:
    """Remove keywords that OpenAI's strict mode rejects. `names`: the keys are field names, which stay."""
    if isinstance(node, dict):
        return {
            key: _without_unsupported(part, names=key in ("properties", "$defs") and not names)
            for key, part in node.items()
            if names or key not in _UNSUPPORTED
        }
    return [_without_unsupported(part) for part in node] if isinstance(node, list) else node


def prompt_budget(total: int, schema: type[BaseModel], count: TokenCounter) -> int:
    """Return the tokens of a budget that a reply's schema leaves for the prompt, at least half."""
    return max(total // 2, total - schema_tokens(schema, count))


def with_schema(prompt: Prompt, schema: type[BaseModel], count: TokenCounter) -> Prompt:
    """Return a copy of a prompt whose token counts include the reply's JSON schema."""
    return with_section(prompt, "schema", schema_tokens(schema, count))


def with_section(prompt: Prompt, name: str, tokens: int) -> Prompt:
    """Return a copy of a prompt whose token counts include a part of the request outside its messages."""
    return replace(
        prompt,
        budget=prompt.budget + tokens,
        total_tokens=prompt.total_tokens + tokens,
        sections={**prompt.sections, name: tokens},
    )


def one_of(values: Iterable[str], name: str = "") -> Any:
    """Return a Pydantic type for a string with a fixed set of allowed values.

    An invalid value is dropped without failing the reply. With a `name`, the schema lists the values once,
    however many fields have the type. A field of a named type must not have a description of its own.
    """
    kind = Annotated[str, Field(json_schema_extra={"enum": list(values) or [""]})]
    return TypeAliasType(name, kind) if name else kind


def like(pattern: str, name: str = "") -> Any:
    """Return a type for strings with a pattern in the schema. Another form does not fail the reply.

    A `name` works as in `one_of`.
    """
    kind = Annotated[str, Field(json_schema_extra={"pattern": pattern})]
    return TypeAliasType(name, kind) if name else kind


def either(first: Any, second: Any, name: str = "") -> Any:
    """Return a Pydantic type that accepts either of two types. A `name` works as in `one_of`."""
    kind = Union[first, second]  # noqa: UP007  # built at run time
    return TypeAliasType(name, kind) if name else kind


def citation_type(ids: Sequence[str], others: Sequence[str] = ()) -> Any:
    """Return a Pydantic type for a list of message ids.

    The type lists the allowed `ids`, or only their format if there are none or too many. `others` are allowed
    ids of another form.
    """
    if 0 < len(ids) <= MAX_IDS:
        return list[one_of([*ids, *others], "MessageId")]  # type: ignore[misc]  # made for the debate
    like_an_id = like(_MESSAGE_ID)
    return list[either(one_of(others), like_an_id) if others else like_an_id]  # type: ignore[misc]  # made for the debate


def cause_type(ids: Sequence[str]) -> Any:
    """Return a type for the id of the message that changed a debater's mind. `""` cites none."""
    if 0 < len(ids) <= MAX_IDS:
        return either(one_of([""]), one_of(ids, "MessageId"))
    return like(rf"^$|{_MESSAGE_ID}")


def between(low: float, high: float, number: type[float] = float) -> Any:
    """Return a Pydantic type for a number in the given range.

    The schema asks for an integer if the ends are integers with others between them, because grammars of
    servers enforce bounds of integers only. A number out of range is clamped when it is read.
    """
    limits: JsonObject = {"minimum": low, "maximum": high}
    if low == int(low) and high == int(high) and high - low > 1:
        limits = {"type": "integer", "minimum": int(low), "maximum": int(high)}
    return Annotated[number, Field(json_schema_extra=limits)]


def many(item: Any, min_items: int, max_items: int) -> Any:
    """Return a Pydantic type for a list with a limited number of items. Extra items are ignored."""
    limits: JsonObject = {"minItems": min_items} if min_items else {}
    return Annotated[list[item], Field(json_schema_extra={**limits, "maxItems": max_items})]


def narrow_schema(model: type[Model], types: Mapping[str, Any], name: str = "") -> type[Model]:
    """Return a subclass of a Pydantic model with narrower types for some fields."""
    fields: dict[str, Any] = {}
    for key, kind in types.items():
        known = model.model_fields[key]
        default = ... if known.is_required() else known.default
        fields[key] = (Annotated[kind, Field(description=known.description)], default)
    return create_model(name or model.__name__, __base__=model, __doc__=model.__doc__, **fields)
