"""Transcripts in JSON and JSON lines: lists of utterances, chat messages, dialectic's debates."""

import json
from collections.abc import Iterable, Sequence

from moot.graph.importing.parse_result import (
    CONTENT_KEYS,
    SPEAKER_KEYS,
    TIME_KEYS,
    ParsedSpeech,
    ParsedTranscript,
)
from moot.state.errors import InputError

_TOPIC_KEYS = ("topic", "problem", "motion", "question", "title")
_TEXT_KEYS = (*CONTENT_KEYS, "description")
_LIST_KEYS = ("transcript", "utterances", "messages", "turns", "entries", "debate")
_INSTRUCTIONS = frozenset({"system", "developer", "tool"})


def parse_json(text: str, line: int = 0) -> object:
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


def read_json(value: object) -> ParsedTranscript:
    """Read a list of utterances, an object that holds one, or dialectic's rounds."""
    if isinstance(value, list):
        return ParsedTranscript(_utterances_in(value))
    if not isinstance(value, dict):
        raise InputError("line 1: a transcript in JSON is a list of utterances or an object that holds one")
    topic = _first_text(value, _TOPIC_KEYS)
    if isinstance(value.get("rounds"), list):
        final = value.get("finalSolution")
        solution = final if isinstance(final, dict) else {"text": final}
        return ParsedTranscript(_contributions(value["rounds"]), topic, _first_text(solution, _TEXT_KEYS))
    return ParsedTranscript(_utterances_in(_utterances_of(value)), topic)


def _utterances_of(document: dict[str, object]) -> list[object]:
    """Return the list that goes by a known name, else the one that holds nothing but utterances.

    Raises:
        InputError: there is none, or more than one.
    """
    for key in _LIST_KEYS:
        if isinstance(named := document.get(key), list):
            return named
    found = _lists_of_utterances(document)
    if len(found) == 1:
        return next(iter(found.values()))
    several = f"several lists of utterances ({', '.join(found)})" if found else "no list of utterances"
    raise InputError(f"line 1: {several}; name the one to read one of {', '.join(_LIST_KEYS)}")


def _lists_of_utterances(document: dict[str, object]) -> dict[str, list[object]]:
    """Return every list of objects that each have a speaker and a content, by its dotted key."""
    found: dict[str, list[object]] = {}
    waiting: list[tuple[str, object]] = list(document.items())
    for key, value in waiting:  # which grows
        if isinstance(value, dict):
            waiting += [(f"{key}.{inner}", each) for inner, each in value.items()]
        elif isinstance(value, list) and value and all(map(_is_utterance, value)):
            found[key] = value
    return found


def _is_utterance(item: object) -> bool:
    return (
        isinstance(item, dict)
        and bool(_first_text(item, SPEAKER_KEYS))
        and any(key in item for key in CONTENT_KEYS)
    )


def _contributions(rounds: Sequence[object]) -> list[ParsedSpeech]:
    """Read dialectic's rounds, each with its contributions in the order in which they were made."""
    found = [r.get("contributions") for r in rounds if isinstance(r, dict)]
    return _utterances_in(
        [one for contributions in found if isinstance(contributions, list) for one in contributions]
    )


def _utterances_in(
    items: Sequence[object], unit: str = "entry", numbers: Iterable[int] | None = None
) -> list[ParsedSpeech]:
    said = []
    for number, item in zip(numbers or range(1, len(items) + 1), items, strict=False):
        if not isinstance(item, dict):
            raise InputError(
                f"{unit} {number}: {type(item).__name__} instead of an object with speaker and content"
            )
        if item.get("role") in _INSTRUCTIONS and not item.get("speaker"):
            continue
        name = _first_text(item, SPEAKER_KEYS)
        if not name:
            raise InputError(f"{unit} {number}: nobody says this; add `speaker`")
        if not any(key in item for key in CONTENT_KEYS):
            raise InputError(f"{unit} {number}: {name!r} says nothing; add `content`")
        said.append(
            ParsedSpeech(name, _text_of(_content(item), f"{unit} {number}"), _first_text(item, TIME_KEYS))
        )
    return said


def _first_text(item: dict[str, object], keys: Iterable[str]) -> str:
    values = (item.get(key) for key in keys)
    found = (str(v).strip() for v in values if isinstance(v, str | int | float) and not isinstance(v, bool))
    return next((text for text in found if text), "")


def _content(item: dict[str, object]) -> object:
    """Return what stands under the first key of a content that is not null."""
    return next((item[key] for key in _TEXT_KEYS if item.get(key) is not None), None)


def _text_of(value: object, where: str) -> str:
    """Return the words of a content: a text, a number, a list of parts, or an object that holds it.

    Null is no words; nor are the parts of a chat message that are no text, such as images.

    Raises:
        InputError: it is none of these; `where` begins the message.
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_text_of(each, where) for each in value)))
    if isinstance(value, dict) and ((inner := _content(value)) is not None or "type" in value):
        return _text_of(inner, where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{where}: {json.dumps(value)[:60]} is no text; put quotes around what was said")


def read_jsonl(text: str) -> ParsedTranscript:
    """Read one utterance a line."""
    rows = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    values = [parse_json(line, number) for number, line in rows]
    return ParsedTranscript(_utterances_in(values, "line", [number for number, _ in rows]))
