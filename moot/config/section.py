"""Base classes of configuration sections, including those of protocols.

The configuration does not import any protocol: the table of protocols is passed in.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator

from moot.state.settings import passed_protocols


class Section(BaseModel):
    """Base class of all configuration sections. Unknown keys are errors, and instances are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _ignore_unknown_if_stored(cls, data: object, info: ValidationInfo) -> object:
        """Drop unknown keys of a stored configuration. They may be those of a plug-in of another version."""
        forbids = cls.model_config["extra"] == "forbid"  # `DebateConfig` keeps the sections of protocols
        if forbids and info.context and info.context.get("stored") and isinstance(data, Mapping):
            return {key: value for key, value in data.items() if key in cls.model_fields}
        return data


def duplicates(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once in a sequence, sorted alphabetically."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


class ProtocolSettings(Section):
    """Base class for the configuration section of a protocol. Every field needs a default."""

    key: ClassVar[str]
    """Key of the protocol's section in the configuration."""

    @classmethod
    def of(cls, config: BaseModel) -> Self:
        """Return this protocol's section of the configuration, or default values if it has none."""
        section = (config.model_extra or {}).get(cls.key)
        return section if isinstance(section, cls) else cls()

    def model_names(self) -> tuple[str, ...]:
        """Return the names of all models in this section of the configuration."""
        return ()


DEFAULT_DEBATERS: tuple[dict[str, str], ...] = (
    {"id": "advocate", "name": "Advocate", "stance": "in favour"},
    {"id": "skeptic", "name": "Skeptic", "stance": "against"},
)


class ProtocolSpec:
    """Properties of a protocol that Moot needs to read a configuration."""

    name: str
    settings: type[ProtocolSettings] | None = None
    """Class of the protocol's section in the configuration, or None if the protocol has no section."""
    debaters: Sequence[Mapping[str, str]] = DEFAULT_DEBATERS
    """Default debaters, used if the configuration lists none."""
    uses_order: bool = False
    """True if the protocol uses the `order` setting of the configuration."""


class ProtocolSpecTable(Protocol):
    """Interface for looking up the registered protocols."""

    @property
    def PROTOCOLS(self) -> Mapping[str, ProtocolSpec]:
        """Return all registered protocols, keyed by protocol name."""
        ...

    def find_protocol(self, name: str) -> ProtocolSpec | None:
        """Return the protocol with this name, or None if neither Moot nor a plug-in provides it."""
        ...

    def load_plugins(self) -> None:
        """Import all installed plug-ins and register the protocols that they provide."""
        ...


def default_protocols() -> ProtocolSpecTable:
    """Return the table of the registered protocols."""
    return cast(ProtocolSpecTable, passed_protocols())


def protocol_spec(name: object, protocols: ProtocolSpecTable) -> ProtocolSpec:
    """Return the spec of the protocol with this name, or a default spec if the name is unknown."""
    return (protocols.find_protocol(name) if isinstance(name, str) else None) or ProtocolSpec()


def protocol_sections(protocols: Mapping[str, ProtocolSpec]) -> dict[str, type[ProtocolSettings]]:
    """Return the configuration classes of all protocols, keyed by section key."""
    brought = [spec.settings for spec in protocols.values()]
    return {settings.key: settings for settings in brought if settings is not None}


Loc = tuple[int | str, ...]


def explain(error: ValidationError, model: type[BaseModel], *, under: str = "") -> str:
    """Describe each Pydantic validation error in one line that starts with the configuration key."""
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


MAX_KEY_CHARS = 100
"""Maximum length of an untrusted key in an error message, in characters."""


def errors_in(error: ValidationError, data_name: str = "") -> list[str]:
    """Return one message for each validation error in untrusted data, with the key and the reason."""
    errors = ((_join(*one["loc"]) or data_name, one["msg"]) for one in error.errors(include_url=False))
    errors = (
        (f"{key[:MAX_KEY_CHARS]}…" if len(key) > MAX_KEY_CHARS else key, reason) for key, reason in errors
    )
    messages = [
        (key, reason.removeprefix("Value error, ")) for key, reason in errors
    ]  # pydantic's own prefix
    return [f"{key}: {reason}" if key else reason for key, reason in messages]


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown key, suggesting the most similar known key."""
    section = key.rpartition(".")[0]
    close = difflib.get_close_matches(key.rpartition(".")[2], sorted(known), n=1)
    return f"unknown key {key!r}" + (f": did you mean {_join(section, close[0])!r}?" if close else "")


def _join(*parts: int | str) -> str:
    return ".".join(str(part) for part in parts if part != "")


def _expectation(kind: str, loc: Loc, model: type[BaseModel]) -> str:
    """Return advice on how to correct a setting of the wrong type, or `""` for other errors."""
    inner = _model_at(loc, model)
    fields = inner.model_fields
    first = next((name for name, field in fields.items() if field.is_required()), next(iter(fields), "…"))
    within_list = bool(loc) and isinstance(loc[-1], int)
    match kind:
        case "tuple_type" | "list_type":
            item = f"{{{first}: …}}" if inner is not model else "…"
            return f"give a list, with each item on a line of its own: `- {item}`"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"give keys and values: `{'- ' if within_list else ''}{{{first}: …}}`"
        case "string_type" if loc and loc[-1] in ("model", "summary_model"):
            return (
                "use a model's name; pass a model object under a name of your own: `models={'mine': OBJECT}`"
            )
        case "string_type":
            return "give text: put the value in quotes"
    return ""


def _model_at(loc: Loc, model: type[BaseModel]) -> type[BaseModel]:
    """Return the innermost Pydantic model that contains the configuration key at `loc`."""
    for part in loc:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
