"""Texts that match a regular expression, for replies of the offline model to schemas with a pattern."""

import string
from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from typing import NamedTuple

_PARSER = import_module("re._parser")
"""Parser of Python's module `re`. Its trees have had this form since Python 3.11."""
_CHARS = string.ascii_letters + string.digits + string.punctuation + " "
_CATEGORIES: Mapping[str, Callable[[str], bool]] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}


class _Part(NamedTuple):
    """Part of a parsed pattern."""

    kind: object
    value: tuple[object, ...] | object

    @property
    def name(self) -> str:
        """Name of the part's kind, such as `LITERAL`."""
        return str(self.kind)


def text_matching(pattern: str, number: int = 0) -> str:
    """Return a short text that matches a regular expression.

    Different values of `number` give different texts if the pattern allows it. Conditions such as `(?!…)` are
    not considered.

    Raises:
        re.error: the pattern is not a regular expression.
    """
    return _Writer(number).write(_PARSER.parse(pattern))


class _Writer:
    """Writer that chooses a character for each part of a pattern."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._random = Random(number)  # noqa: S311  # no secret
        self._groups: dict[object, str] = {}

    def write(self, parts: object) -> str:
        return "".join(self._part(_Part(*part)) for part in parts)  # type: ignore[attr-defined]  # a parsed pattern

    def _part(self, part: _Part) -> str:
        match part.name, part.value:
            case "LITERAL", int(code):
                return chr(code)
            case "NOT_LITERAL" | "ANY", _:
                return self._choose([_Part("NEGATE", None), part._replace(kind="LITERAL")])
            case "IN", list(members):
                return self._choose([_Part(*member) for member in members])
            case "BRANCH", (_, list(options)):
                return self.write(options[self._number % len(options)])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT", (int(low), int(high), repeated):
                extra = self._random.randint(0, min(high - low, 3)) if self._number else 0
                return "".join(self.write(repeated) for _ in range(low + extra))
            case "SUBPATTERN", (group, _, _, inner):
                self._groups[group] = self.write(inner)
                return self._groups[group]
            case "ATOMIC_GROUP", inner:
                return self.write(inner)
            case "GROUPREF", group:
                return self._groups.get(group, "")
        return ""  # a position such as `^`, or a condition

    def _choose(self, members: list[_Part]) -> str:
        """Choose a character of a class, such as `[a-z]` or `[^0-9]`."""
        is_negated = members[0].name == "NEGATE"
        chars = {str(char) for part in members for char in _first_chars(part)}
        fitting = [
            char for char in _CHARS if any(_contains(part, char) for part in members) is not is_negated
        ]
        return self._random.choice(fitting or sorted(chars) or [""])


def _first_chars(part: _Part) -> list[str]:
    match part.name, part.value:
        case ("LITERAL", int(code)) | ("RANGE", (int(code), _)):
            return [chr(code)]
    return []


def _contains(part: _Part, char: str) -> bool:
    match part.name, part.value:
        case "LITERAL", int(code):
            return ord(char) == code
        case "RANGE", (int(low), int(high)):
            return low <= ord(char) <= high
        case "CATEGORY", category:
            _, *negation, name = str(category).split("_")
            return _CATEGORIES[name](char) is not bool(negation)
    return False
