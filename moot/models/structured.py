"""Reading of structured replies: unwrap the JSON object that a text holds, and fit it to a schema.

Models and servers send the right content in many forms. Each step accepts a form only if it has one meaning.
Where a reply has two, it is an error, and the caller asks again.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError

from moot.config.section import errors_in
from moot.models import json_objects
from moot.prompts.templates import break_fence, without_frame
from moot.state.entries import JsonObject, clean_text
from moot.text.naming import meant_name
from moot.text.plain_text import clip

MAX_DEPTH = 4
"""Maximum number of wrappers around the expected object, such as `{"tool_calls": [{"function": …}]}`."""
PERCENT = 100.0
"""Upper end of the scales on which a fraction, such as 0.8, cannot be a value that is meant as written."""
NAMED_CHARS = 200
"""Maximum length of a reply's part that is quoted in an error, in characters."""

JsonValue: TypeAlias = Any
"""Value of parsed JSON, whose type the code checks."""
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+(?:json|JSON)?")
_NUMBER = re.compile(
    r"[^\w+.,-]*([+-]?\d+(?:[.,]\d+)?)\s*(%?)(?:\s*(?:/|\bof\b|\bout of\b)\s*(\d+(?:[.,]\d+)?))?(\D*)"
)
_ID = re.compile(r"[a-z]+\d+")


@dataclass(frozen=True)
class ParsedReply:
    """Data parsed from a structured reply, or an error message if parsing failed.

    A reply with data and an error can be used, but the model should be asked again first.
    """

    data: JsonObject | None = None
    error: str = ""


def parse_reply(
    schema: type[BaseModel],
    text: str,
    arguments: JsonObject | None = None,
    *,
    fence: str = "",
    is_cut: bool = False,
) -> ParsedReply:
    """Parse a structured reply, and validate it against the schema.

    Valid JSON is preferred to repaired JSON, and an object that fits to one inside a wrapper. Two objects
    that fit and differ are an error that quotes both.
    `arguments` of a tool call replace the text. A reply that `is_cut` by the token limit is not repaired.
    """
    fit = _Fit(schema, fence)
    error = "it is cut off at the token limit" if is_cut else ""
    sources: list[Iterator[object]] = (
        [iter([dict(arguments)])] if arguments is not None else [json_objects.valid_values(text)]
    )
    if arguments is None and not is_cut:
        sources.append(json_objects.repaired_values(text, fit.keys))
    for source in sources:
        results: list[ParsedReply] = []
        for value in source:
            outcome = fit.read(value)
            if outcome.data is None:
                error = error if is_cut else outcome.error or error
            elif all(outcome.data != each.data for each in results):
                results.append(outcome)
        if len(results) > 1:
            return _two_answers(results)
        if results:
            return results[0]
    start = text.find("{")
    is_open = start >= 0 and not json_objects.object_end(text, start)
    return ParsedReply(error=error or ("its end is missing" if is_open else "it contains no JSON object"))


def _two_answers(results: Sequence[ParsedReply]) -> ParsedReply:
    first, second = (clip(json.dumps(each.data, ensure_ascii=False), NAMED_CHARS) for each in results[:2])
    return ParsedReply(error=f"it contains different answers, {first} and {second}: give only your own")


def clean_json(value: JsonValue, fence: str = "") -> JsonValue:
    """Return a JSON value with clean strings: escapes can hide forbidden characters, and names the fence."""
    if isinstance(value, str):
        return break_fence(without_frame(clean_text(value), fence), fence) if fence else clean_text(value)
    if isinstance(value, list):
        return [clean_json(item, fence) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item, fence) for key, item in value.items()}
    return value


class _ScaleNumber(NamedTuple):
    """Number in a reply whose schema limits it to a scale from 0."""

    path: tuple[str | int, ...]
    value: float
    maximum: float


@dataclass
class _Findings:
    """What was found while one object was fitted to the schema."""

    doubts: list[str] = field(default_factory=list)
    numbers: list[_ScaleNumber] = field(default_factory=list)


class _Fit:
    """Fitting of JSON values to a schema."""

    def __init__(self, schema: type[BaseModel], fence: str) -> None:
        self.schema, self.fence = schema, fence
        self.root = schema.model_json_schema()
        self.definitions: JsonObject = self.root.get("$defs", {})
        self.properties: JsonObject = self._node(self.root).get("properties", {})
        self.keys = frozenset(map(json_objects.folded_key, self.properties))

    def read(self, value: object) -> ParsedReply:
        """Return the reply in a JSON value, which may be in wrappers or a form that the schema flattens."""
        first: ParsedReply | None = None
        results: list[ParsedReply] = []
        is_open = isinstance(value, json_objects.UnclosedObject)
        if type(value) is dict and (flattened := getattr(self.schema, "flattened", None)):
            value = flattened(value)
        for candidate in self._unwrapped(value, MAX_DEPTH):
            outcome = self._validated(candidate, is_open=is_open)
            first = first or outcome
            if outcome.data is not None and all(each.data != outcome.data for each in results):
                results.append(outcome)
        if len(results) > 1:
            return _two_answers(results)
        return results[0] if results else first or ParsedReply()

    def _unwrapped(self, value: object, depth: int) -> Iterator[JsonObject]:
        """Yield the objects that may be the reply: the outermost ones with a key of the schema."""
        value = _inner_json(value) if isinstance(value, str) else value
        inner: Sequence[object] = []
        if isinstance(value, list):
            if rows := self._rows(value):
                yield rows
            else:
                inner = value[: json_objects.MAX_CANDIDATES]
        elif isinstance(value, dict):
            known = {json_objects.folded_key(key) for key in value} & self.keys
            if known or not value:
                yield value
            inner = [] if self._is_whole(known) else list(value.values())
        for item in inner if depth else ():
            yield from self._unwrapped(item, depth - 1)

    def _is_whole(self, known: set[str]) -> bool:
        fields = self.schema.model_fields.items()
        required = {json_objects.folded_key(name) for name, info in fields if info.is_required()}
        return bool(known) and required <= known

    def _rows(self, value: Sequence[object]) -> JsonObject | None:
        """Return the object for a list of rows, if the schema has only one field, which is a list."""
        if len(self.properties) != 1 or not value or not all(isinstance(item, dict) for item in value):
            return None
        (name, node), *_ = self.properties.items()
        rows = self._node(self._node(node).get("items", {})).get("properties", {})
        keys = {json_objects.folded_key(key) for item in value if isinstance(item, dict) for key in item}
        return {name: list(value)} if keys & set(map(json_objects.folded_key, rows)) else None

    def _validated(self, value: JsonObject, *, is_open: bool) -> ParsedReply:
        findings = _Findings()
        try:
            data = self._fitted(clean_json(value, self.fence), self.root, (), findings)
        except RecursionError:
            return ParsedReply(error="it is nested too deeply")
        missing = set(self.root.get("required", ())) - data.keys() if is_open else set()
        if len(missing) > 1:
            return ParsedReply(error=f"its end is missing, with {', '.join(sorted(missing))}")
        if error := _rescale(data, findings):
            return ParsedReply(error=error)
        return self._checked(data, findings)

    def _checked(self, data: JsonObject, findings: _Findings) -> ParsedReply:
        """Validate fitted data. Rows that are not valid are dropped, unless they are most of a list."""
        dropped = Counter[tuple[str | int, ...]]()
        while True:
            try:
                valid = self.schema.model_validate(data).model_dump(mode="json")
                break
            except ValidationError as invalid:
                if _round_integers(data, invalid):
                    continue
                error = "\n".join(f"- {each}" for each in errors_in(invalid, "the object")[:8])
                row = _invalid_row(data, invalid)
                if row is None:
                    return ParsedReply(error=error)
                *parents, index = row
                rows = _at(data, parents)
                dropped[tuple(parents)] += 1
                if dropped[tuple(parents)] >= len(rows):
                    return ParsedReply(error=error)
                del rows[index]
            except RecursionError:
                return ParsedReply(error="it is nested too deeply")
        return ParsedReply(data=valid, error="\n".join(f"- {each}" for each in findings.doubts[:8]))

    def _node(self, node: JsonObject) -> JsonObject:
        while "$ref" in node:
            node = self.definitions.get(node["$ref"].rpartition("/")[2], {})
        return node

    def _fitted(
        self, value: JsonValue, node: JsonObject, path: tuple[str | int, ...], findings: _Findings
    ) -> JsonValue:
        """Convert a JSON value to the type that a part of the schema asks for, where it has one meaning."""
        node = self._node(node)
        if options := node.get("anyOf") or node.get("oneOf"):
            return self._fitted_option(value, options, path, findings)
        match node.get("type"):
            case "object":
                return self._fitted_object(value, node, path, findings)
            case "array":
                return self._fitted_list(value, node, path, findings)
            case "number" | "integer":
                number = _number(value, node)
                is_scaled = node.get("minimum", 1) in (0, 1) and node.get("maximum", 0) > 1
                if is_scaled and isinstance(number, int | float):
                    findings.numbers.append(_ScaleNumber(path, number, node["maximum"]))
                return number
            case "boolean" if isinstance(value, str) and value.strip().casefold() in ("true", "false"):
                return value.strip().casefold() == "true"
            case "string":
                return _fitted_string(value, node, path, findings)
        return value

    def _fitted_option(
        self,
        value: JsonValue,
        options: Sequence[JsonObject],
        path: tuple[str | int, ...],
        findings: _Findings,
    ) -> JsonValue:
        nodes = [self._node(option) for option in options]
        if value is None and any(node.get("type") == "null" for node in nodes):
            return None
        trials = [(node, _Findings()) for node in nodes if node.get("type") != "null"]
        fitted = [(self._fitted(value, node, path, trial), trial) for node, trial in trials]
        best, trial = min(fitted, key=lambda pair: len(pair[1].doubts), default=(value, _Findings()))
        findings.numbers += trial.numbers
        findings.doubts += trial.doubts
        return best

    def _fitted_object(
        self, value: JsonValue, node: JsonObject, path: tuple[str | int, ...], findings: _Findings
    ) -> JsonValue:
        if isinstance(value, str) and isinstance(inner := _inner_json(value), dict):
            value = inner
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        properties: JsonObject = node.get("properties", {})
        if not isinstance(value, dict) or not properties:
            return value
        names = _matching_keys(value, properties)
        fitted: JsonObject = {}
        for key, item in value.items():
            name = names.get(key)
            if name is None:
                continue
            part = self._node(properties[name])
            if item is None and not _takes_null(part, self) and part.get("type") != "array":
                continue  # a missing value, so that a default applies
            fitted[name] = self._fitted(item, part, (*path, name), findings)
        return fitted

    def _fitted_list(
        self, value: JsonValue, node: JsonObject, path: tuple[str | int, ...], findings: _Findings
    ) -> JsonValue:
        items = self._node(node.get("items", {}))
        if isinstance(value, str) and isinstance(inner := _inner_json(value), list):
            value = inner
        if value is None or value == "":
            return []
        if isinstance(value, dict):
            value = _rows_of_map(value, items) or [value]
        elif not isinstance(value, list):
            value = [value]
        item_findings = [_Findings() for _ in value]
        fitted = [
            self._fitted(item, items, (*path, index), each)
            for index, (item, each) in enumerate(zip(value, item_findings, strict=True))
        ]
        findings.numbers += [number for each in item_findings for number in each.numbers]
        doubtful = [each.doubts for each in item_findings if each.doubts]
        if doubtful and 2 * len(doubtful) >= len(value) and "properties" in items:
            findings.doubts += doubtful[0]
        return fitted


def _takes_null(node: JsonObject, fit: _Fit) -> bool:
    options = node.get("anyOf") or node.get("oneOf") or [node]
    return any(fit._node(option).get("type") in ("null", None) for option in options)


def _inner_json(text: str) -> object:
    """Return the JSON value that a string contains, or the string itself."""
    stripped = text.strip()
    if (match := _FENCE.match(stripped)) and stripped.endswith(match[1], match.end()):
        stripped = stripped[match.end() : -len(match[1])].strip()
    if stripped[:1] not in ("{", "[", '"'):
        return text
    try:
        value: object = json.loads(stripped)
    except (ValueError, RecursionError):
        return text
    return _inner_json(value) if isinstance(value, str) and value != text else value


def _matching_keys(value: Mapping[str, object], names: Mapping[str, object]) -> dict[str, str]:
    """Return the schema's name of each key. An exact key is preferred to one in another case or style."""
    by_fold = {json_objects.folded_key(name): name for name in names}
    matches = {key: key for key in value if key in names}
    for key in value:
        name = by_fold.get(json_objects.folded_key(key))
        if key not in matches and name is not None and name not in matches.values():
            matches[key] = name
    return matches


def _rows_of_map(value: Mapping[str, object], items: JsonObject) -> list[JsonObject] | None:
    """Return rows for a map from the first field of a row to its second, such as debaters to positions."""
    fields = list(items.get("properties", {}))
    if len(fields) < 2 or {json_objects.folded_key(key) for key in value} & set(
        map(json_objects.folded_key, fields)
    ):
        return None
    if all(isinstance(item, dict) for item in value.values()):
        return [{fields[0]: key, **item} for key, item in value.items() if isinstance(item, dict)]
    if len(fields) == 2 and not any(isinstance(item, dict | list) for item in value.values()):
        return [{fields[0]: key, fields[1]: item} for key, item in value.items()]
    return None


def _number(value: JsonValue, node: JsonObject) -> JsonValue:
    """Convert a text, such as `70%`, `7/10` or `72,5`, to a number on the scale of the schema."""
    while isinstance(value, list | dict) and len(value) == 1:
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
    if isinstance(value, bool):
        return str(value)  # Pydantic would take it for 1 or 0
    if not isinstance(value, str):
        return value
    if value.strip().casefold().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(value)
    match = _NUMBER.fullmatch(value.strip().strip("*_` "))
    if match is None or len(value) > NAMED_CHARS:
        return value
    digits, percent, divisor, _ = match.groups()
    number, maximum = float(digits.replace(",", ".")), node.get("maximum")
    parts = float(divisor.replace(",", ".")) if divisor else PERCENT if percent else None
    if parts is not None and maximum is not None and parts != maximum:
        number = number * maximum / parts if parts else number
    return int(number) if number == int(number) else number


def _fitted_string(
    value: JsonValue, node: JsonObject, path: tuple[str | int, ...], findings: _Findings
) -> JsonValue:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        texts = [item for key, item in value.items() if key in ("name", "value", "text", "id")] or [
            *value.values()
        ]
        value = texts[0] if len(texts) == 1 and isinstance(texts[0], str) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    allowed = node.get("enum")
    if not isinstance(value, str) or not allowed or value in allowed:
        return value
    option = meant_name(value, {each: () for each in allowed if isinstance(each, str)})
    if option:
        return option
    if (value.strip() or len(path) == 1) and not any(
        _ID.fullmatch(each) for each in allowed if isinstance(each, str)
    ):
        choices = ", ".join(repr(each) for each in allowed[:12])
        findings.doubts.append(
            f"{'.'.join(map(str, path))} is {clip(value, 80)!r}, which is none of {choices}"
        )
    return value


def _rescale(data: JsonObject, findings: _Findings) -> str:
    """Convert a reply whose numbers are all on a scale from 0 to 1. Return an error if only some are.

    Numbers below the scale, and numbers that are not finite, are errors too, and numbers above it are asked
    again. In a list's rows, they drop the row.
    """
    usable = [each for each in findings.numbers if 0 <= each.value <= each.maximum]
    for number in findings.numbers:
        if number in usable:
            continue
        *parents, key = number.path
        name = ".".join(map(str, number.path))
        doubt = f"{name} is {number.value:g}: write a whole number from 0 to {number.maximum:g}"
        if any(isinstance(part, int) for part in parents):
            _at(data, parents)[key] = None
        elif number.maximum < number.value < inf:
            findings.doubts.append(doubt)
        else:
            return doubt
    percents = [each for each in usable if each.maximum >= PERCENT]
    fractions = [each for each in percents if 0 < each.value < 1 or _is_float_one(each.value)]
    if not percents or not any(0 < each.value <= 1 for each in percents):
        return ""
    if fractions and any(0 < each.value < 1 for each in percents):
        if all(each.value <= 1 for each in usable):
            for each in usable:
                *parents, key = each.path
                _at(data, parents)[key] = round(each.value * each.maximum, 6)
            return ""
        name = ".".join(map(str, fractions[0].path))
        return f"{name} is {fractions[0].value:g}: write whole numbers from 0 to {fractions[0].maximum:g}"
    if fractions or all(each.value <= 1 for each in percents):
        first = next(each for each in percents if 0 < each.value <= 1)
        findings.doubts.append(
            f"{'.'.join(map(str, first.path))} is {first.value:g} on a scale from 0 to {first.maximum:g}: "
            "write whole numbers on this scale"
        )
    return ""


def _is_float_one(value: float) -> bool:
    return isinstance(value, float) and value == 1


def _at(data: JsonValue, path: Sequence[str | int]) -> JsonValue:
    for part in path:
        data = data[part]
    return data


def _round_integers(data: JsonObject, invalid: ValidationError) -> bool:
    """Round the numbers that a schema takes as integers only. Return True if there were any."""
    has_rounded = False
    for error in invalid.errors(include_url=False, include_context=False):
        if error["type"] == "int_from_float" and isfinite(error["input"]):
            *parents, key = error["loc"]
            try:
                rows = _at(data, parents)
                rows[key] = round(rows[key])
            except (KeyError, IndexError, TypeError):
                continue  # the location has a tag of a union
            has_rounded = True
    return has_rounded


def _invalid_row(data: JsonObject, invalid: ValidationError) -> tuple[str | int, ...] | None:
    """Return the path of the first list item that is not valid, or `None` if an error is outside of lists."""
    rows = []
    for error in invalid.errors(include_url=False, include_context=False, include_input=False):
        path: list[str | int] = []
        row: tuple[str | int, ...] | None = None
        node: JsonValue = data
        for part in error["loc"]:
            try:
                node = node[part]
            except (KeyError, IndexError, TypeError):
                continue  # the tag of a union, or a missing field
            path.append(part)
            if isinstance(part, int):
                row = tuple(path)
        if row is None:
            return None
        rows.append(row)
    return rows[0] if rows else None
