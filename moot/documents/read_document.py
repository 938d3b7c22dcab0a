"""Readers of `moot.debate/1` documents: strict for imports, lenient for reports.

Reports and imports read only part of the configuration, because another version of Moot may have written
it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict, is_typeddict

from moot.claims.model_extraction import uses_model
from moot.documents.document import DebateDocument
from moot.protocols.registry import rules_of
from moot.state.channel_values import check_storable
from moot.state.config.model_settings import OFFLINE
from moot.state.config.section import errors_in
from moot.state.conversation import check_schema_version
from moot.state.entries import EntryKind, entry_id
from moot.state.errors import InputError
from moot.text.topic_title import title_of

_T = TypeVar("_T")
_ZEROS: Mapping[Any, object] = {str: "", int: 0, float: 0.0, bool: False, EntryKind: "speech"}
"""Default values for missing keys, one for each expected value type. A missing value of any
other `Literal` type defaults to the first allowed value."""
_GROWN = ("blackboard", "verdicts", "verdict", "agreement", "state")
"""Keys of a debate's JSON document whose values may lack fields that newer format versions added. Missing
fields are filled in with defaults."""


def question_of(document: Mapping[str, Any]) -> str:
    """Return a debate's title. The judge's wording stands for a topic that is longer than one line."""
    verdict = document.get("verdict") or {}
    usable = verdict.get("status") == "ok" and not verdict.get("placeholder")
    return title_of(document["topic"], (verdict.get("question") or "") if usable else "")


def whole_document(given: Mapping[str, object]) -> DebateDocument:
    """Validate a `moot.debate/1` document, and add default values for fields that older documents lack.

    Raises:
        InputError: The document is invalid or incomplete. The message names the key.
    """
    for key, value in given.items():
        check_storable(str(key), value)
    kinds, _ = _fields(DebateDocument)
    grown = {key: fill_in(kinds[key], given[key]) for key in _GROWN if key in given}
    # The original value is returned, not the validated copy, to keep key order and number formats.
    document = cast(DebateDocument, {**given, **grown})
    try:
        _adapter(DebateDocument).validate_python(document, strict=True)
    except ValidationError as error:
        wrong, *others = errors_in(error)
        more = f" ({len(others)} more)" if others else ""
        raise InputError(
            f"the file is not a valid moot.debate/1 document: {wrong}{more}; to import only its messages, "
            "remove the `format` key"
        ) from error
    check_schema_version(document)
    for seq, entry in enumerate(document["transcript"]):
        if entry["seq"] != seq or entry["id"] != entry_id(seq):
            raise InputError(
                f"transcript.{seq}: the entry has the sequence number (`seq`) {entry['seq']} and the id "
                f"{entry['id']!r}, but must have the sequence number {seq} and the id {entry_id(seq)!r}"
            )
    carried = document.get("state", {})
    current = [carried.get("rolling_summary"), carried.get("judge_summary")]
    for summary in (*current, *carried.get("perspective_summaries", {}).values()):
        if summary and not -1 <= summary["covers_through_seq"] < len(document["transcript"]):
            raise InputError(
                f"state: a summary has covers_through_seq {summary['covers_through_seq']}, but the "
                "transcript has no entry with this seq"
            )
    return document


def load_leniently(kind: type[_T], given: object) -> _T:
    """Convert a value to a typed dict, replacing invalid and missing values with defaults."""
    value = fill_in(kind, given if isinstance(given, dict) else {})
    adapter = _adapter(cast(Any, kind))
    while True:
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            places = [_real_place(value, each["loc"]) for each in error.errors(include_url=False)]
            # In reverse order, because removing a list item changes the indexes of later items.
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
    """Return the part of a validation error's path that exists in `value`."""
    for depth, step in enumerate(place):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return place[:depth]
    return place


def fill_in(kind: Any, value: Any) -> Any:
    """Return a copy of `value` with default values for missing required keys."""
    if is_typeddict(kind) and isinstance(value, dict):
        fields, needed = _fields(kind)
        have = {
            key: item
            for key, item in value.items()
            if item != {} or key not in fields or key in needed or get_origin(fields[key]) is dict
        }
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
    """Return the value type of each key in a typed dict, and the set of required keys."""
    hints = get_type_hints(kind, include_extras=True)
    # Postponed annotations hide `NotRequired` from `__required_keys__`.
    optional = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    types = {key: get_args(hint)[0] if key in optional else hint for key, hint in hints.items()}
    types = {key: get_args(kind)[0] if get_origin(kind) is Annotated else kind for key, kind in types.items()}
    return types, kind.__required_keys__ - optional


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class DocumentDebater(TypedDict):
    """Settings of one debater in the configuration of a debate document."""

    id: str
    name: str
    role: str
    stance: str


class DocumentJudge(TypedDict, total=False):
    """Settings of one judge, as stored in a debate's JSON document."""

    rubric: object
    """The judge's rubric, or the name of a built-in rubric."""


class DocumentPanel(DocumentJudge, total=False):
    """Settings of a debate's judge or panel of judges, as stored in the debate's JSON document."""

    panel: list[DocumentJudge]


class Termination(TypedDict, total=False):
    """Settings that determine when a council debate ends."""

    threshold: float


class ShownBoard(TypedDict):
    """Claim extraction settings, as stored under `blackboard` in a debate's JSON document."""

    extraction: Literal["auto", "llm", "none"]
    model: str | None


class DocumentConfig(TypedDict):
    """Parts of a debate's configuration that are used by reports and imports."""

    model: str
    blackboard: ShownBoard
    debaters: list[DocumentDebater]
    judge: DocumentPanel
    termination: Termination


def document_config(document: DebateDocument) -> DocumentConfig:
    """Return the configuration in a debate document, with defaults for invalid values."""
    return load_leniently(DocumentConfig, document["config"])


def extracts_claims(document: Mapping[str, Any]) -> bool:
    """Return True if the document's debate uses a model to extract claims."""
    config = document_config(cast(DebateDocument, document))
    board = config["blackboard"]
    auto = rules_of(document).extracts_by_default
    return uses_model(board["extraction"], board["model"] or config["model"] or OFFLINE, auto=auto)
