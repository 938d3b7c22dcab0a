"""Transcripts in JSON and JSON lines: lists of utterances, chat messages, dialectic's debates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from graph.importing.parsed import CONTENT_KEYS, SPEAKER_KEYS, TIME_KEYS, Parsed, Said
from state.errors import InputError

_TOPIC_KEYS = ("topic", "problem", "motion", "question", "title")
_LIST_KEYS = ("transcript", "utterances", "messages", "turns", "entries", "debate")
_INSTRUCTIONS = frozenset({"system", "developer", "tool"})


def parse_json(text: str, line: int = 0) -> Any:
    """Parse JSON; an error names the line, or `line` where the text is one line of a larger one."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"line {line or error.lineno}: not valid JSON ({error.msg}, column {error.colno}); "
            "correct it, or name the format"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {line or 1}: JSON that cannot be read ({error})") from error


def read_json(value: Any) -> Parsed:
    """Read a list of utterances, an object that holds one, or dialectic's rounds."""
    if isinstance(value, list):
        return Parsed(_said_in(value))
    if not isinstance(value, dict):
        raise InputError("line 1: a transcript in JSON is a list of utterances or an object that holds one")
    topic = _first_text(value, _TOPIC_KEYS)
    if isinstance(value.get("rounds"), list):
        return Parsed(_contributions(value["rounds"]), topic, _text_of(value.get("finalSolution")))
    found = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
    if found is None:
        raise InputError(f"line 1: no list of utterances; name it one of {', '.join(_LIST_KEYS)}")
    return Parsed(_said_in(found), topic)


def _contributions(rounds: Sequence[Any]) -> list[Said]:
    """Read dialectic's rounds, each with its contributions in the order in which they were made."""
    found = [r.get("contributions") for r in rounds if isinstance(r, dict)]
    return _said_in(
        [one for contributions in found if isinstance(contributions, list) for one in contributions]
    )


def _said_in(items: Sequence[Any], unit: str = "entry", numbers: Iterable[int] | None = None) -> list[Said]:
    said = []
    for number, item in zip(numbers or range(1, len(items) + 1), items, strict=False):
        if not isinstance(item, dict):
            raise InputError(
                f"{unit} {number}: {type(item).__name__} instead of an object with speaker and content"
            )
        if item.get("role") in _INSTRUCTIONS and not item.get("speaker"):
            continue
        name = _first_text(item, SPEAKER_KEYS)
        key = next((key for key in CONTENT_KEYS if key in item), None)
        if not name:
            raise InputError(f"{unit} {number}: nobody says this; add `speaker`")
        if key is None:
            raise InputError(f"{unit} {number}: {name!r} says nothing; add `content`")
        said.append(Said(name, _text_of(item[key]), _first_text(item, TIME_KEYS)))
    return said


def _first_text(item: dict[str, Any], keys: Iterable[str]) -> str:
    values = (item.get(key) for key in keys)
    found = (str(v).strip() for v in values if isinstance(v, str | int | float) and not isinstance(v, bool))
    return next((text for text in found if text), "")


def _text_of(value: Any) -> str:
    """Return the words of a content: a text, a list of parts, or an object that holds it."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text_of, value)))
    if isinstance(value, dict):
        return _text_of(next((value[key] for key in (*CONTENT_KEYS, "description") if key in value), ""))
    return value if isinstance(value, str) else ""


def read_jsonl(text: str) -> Parsed:
    """Read one utterance a line."""
    rows = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    values = [parse_json(line, number) for number, line in rows]
    return Parsed(_said_in(values, "line", [number for number, _ in rows]))
