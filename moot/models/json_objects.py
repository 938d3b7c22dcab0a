"""JSON objects in a text, found where they are valid and repaired where they are not."""

import json
import re
from collections.abc import Iterator

MAX_CANDIDATES = 40
"""Maximum number of places in a reply at which the parser looks for a JSON object. Each place is an opening
brace."""
MAX_REPAIRED_CHARS = 100_000
"""Maximum length of a text that is repaired, in characters. The repair takes seconds for a megabyte."""
MAX_REPAIRS = 4
"""Maximum number of texts in a reply that are repaired."""
MAX_NESTING = 200
"""Maximum nesting of a text that is repaired. The repair is recursive."""
_KEY = re.compile(r"""[{,\n][^\S\n]*+["'“]?([A-Za-z_]\w*+)["'”]?\s*+:""")


def valid_values(text: str) -> Iterator[object]:
    """Yield the whole text as JSON if it is valid, otherwise each valid outermost object in it."""
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    decoder, start, unclosed = json.JSONDecoder(), text.find("{"), 0
    for _ in range(MAX_CANDIDATES):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            # The objects inside a broken object are its parts, and no replies of their own.
            end = object_end(text, start)
            if not end:
                unclosed += 1
                end = start + 1 if unclosed < MAX_REPAIRS else len(text)
        else:
            yield value
        start = text.find("{", end)


def repaired_values(text: str, keys: frozenset[str]) -> Iterator[object]:
    """Yield the repaired outermost objects. A repair that loses a key of the schema is no repair."""
    from json_repair import loads  # imported late, because most replies are valid

    start, repairs = text.find("{"), 0
    while start >= 0 and repairs < MAX_REPAIRS:
        end = object_end(text, start)
        part = text[start:end] if end else _without_last_value(_before_fence(text[start:]))
        key_names = _named_keys(part, keys)
        if key_names and len(part) <= MAX_REPAIRED_CHARS and _nesting(part) <= MAX_NESTING:
            repairs += 1
            try:
                value = loads(_quotable(part), skip_json_loads=True)
            except (ValueError, RecursionError, IndexError):
                value = None
            if isinstance(value, list) and value and isinstance(value[0], dict):
                value = value[0]  # the repair also returns what follows the object
            if isinstance(value, dict) and key_names <= _all_keys(value):
                yield value if end else UnclosedObject(value)
        start = text.find("{", end or len(text))


class UnclosedObject(dict[str, object]):
    """Object whose closing brackets are missing, and perhaps the last field that the schema asks for."""


def _quotable(part: str) -> str:
    # Constants that JSON does not have would become strings.
    return re.sub(
        r"(?<=[:\[,])(\s*)(-?)(?:nan|inf|infinity)\b", r"\g<1>\g<2>1e999", part, flags=re.IGNORECASE
    )


def _without_last_value(part: str) -> str:
    """Return an unclosed object up to its last complete field, or `""` if more than one value is incomplete.

    A number at the end may lack digits, so it counts as incomplete. So does a text without its closing quote,
    but a text cannot be left out.
    """
    depth = comma = colon = 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*("?)|[{}\[\],:]', part, re.DOTALL):
        if match[0][0] == '"':
            if not match[1]:
                return ""
            continue
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth == 1 and match[0] in ",:":
            comma, colon = (match.start(), colon) if match[0] == "," else (comma, match.start())
    is_complete = re.search(r'(?:["\]}]|true|false|null)\s*$', part) and (depth > 1 or colon > comma)
    return part if is_complete else part[:comma] if depth == 1 else ""


def _before_fence(part: str) -> str:
    return re.split(r"\n[ \t]*(?:`{3,}|~{3,})", part, maxsplit=1)[0]


def object_end(text: str, start: int) -> int:
    """Return the index behind an object's closing brace, or 0. Braces in strings count only at need."""
    for pattern in (r'"(?:\\.|[^"\\])*"|[{}]', r"[{}]"):
        depth = 0
        for match in re.compile(pattern, re.DOTALL).finditer(text, start):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0:
                return match.end()
    return 0


def _nesting(part: str) -> int:
    depth = deepest = 0
    for char in part:
        depth += (char in "{[") - (char in "}]")
        deepest = max(deepest, depth)
    return deepest


def _named_keys(part: str, keys: frozenset[str]) -> set[str]:
    return {folded_key(key) for key in _KEY.findall(part)} & keys


def _all_keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return {folded_key(key) for key in value} | {k for item in value.values() for k in _all_keys(item)}
    return {key for item in value for key in _all_keys(item)} if isinstance(value, list) else set()


def folded_key(key: str) -> str:
    """Return a key without case and punctuation, because models write keys in other styles."""
    return "".join(char for char in key.casefold() if char.isalnum())
