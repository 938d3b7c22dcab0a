"""Transcripts in JSON and JSON lines: lists of utterances, chat messages, dialectic's debates."""

import json
from collections.abc import Iterable, Mapping

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
    topic = solution = ""
    if isinstance(value, list):
        items = value
    elif not isinstance(value, dict):
        raise InputError("line 1: a transcript in JSON is a list of utterances or an object that holds one")
    else:
        topic = _first_text(value, _TOPIC_KEYS)
        if isinstance(rounds := value.get("rounds"), list):
            found = [each.get("contributions") for each in rounds if isinstance(each, dict)]
            items = [
                one for contributions in found if isinstance(contributions, list) for one in contributions
            ]
            final = value.get("finalSolution")
            solution = _first_text(final if isinstance(final, dict) else {"text": final}, _TEXT_KEYS)
        else:
            items = _utterances_of(value)
    said = _speeches({f"entry {number}": item for number, item in enumerate(items, start=1)})
    return ParsedTranscript(said, topic, solution)


def read_jsonl(text: str) -> ParsedTranscript:
    """Read one utterance a line."""
    lines = enumerate(text.split("\n"), start=1)
    return ParsedTranscript(
        _speeches({f"line {number}": parse_json(line, number) for number, line in lines if line.strip()})
    )


def _utterances_of(document: dict[str, object]) -> list[object]:
    """Return the list that goes by a known name, else the one that holds nothing but utterances.

    Raises:
        InputError: there is none, or more than one.
    """
    for key in _LIST_KEYS:
        if isinstance(named := document.get(key), list):
            return named
    found: dict[str, list[object]] = {}
    waiting: list[tuple[str, object]] = list(document.items())
    for key, value in waiting:  # which grows
        if isinstance(value, dict):
            waiting += [(f"{key}.{inner}", each) for inner, each in value.items()]
        elif isinstance(value, list) and value and all(map(_is_utterance, value)):
            found[key] = value
    if len(found) == 1:
        return next(iter(found.values()))
    several = f"several lists of utterances ({', '.join(found)})" if found else "no list of utterances"
    raise InputError(f"line 1: {several}; name the one to read one of {', '.join(_LIST_KEYS)}")


def _is_utterance(item: object) -> bool:
    return (
        isinstance(item, dict)
        and bool(_first_text(item, SPEAKER_KEYS))
        and any(key in item for key in CONTENT_KEYS)
    )


def _speeches(items: Mapping[str, object]) -> list[ParsedSpeech]:
    """Read utterances, each under where it stands, which begins the message of what is wrong with it."""
    said = []
    for where, item in items.items():
        if not isinstance(item, dict):
            kind = type(item).__name__
            raise InputError(f"{where}: {kind} instead of an object with speaker and content")
        if item.get("role") in _INSTRUCTIONS and not item.get("speaker"):
            continue
        name = _first_text(item, SPEAKER_KEYS)
        if not name:
            raise InputError(f"{where}: nobody says this; add `speaker`")
        if not any(key in item for key in CONTENT_KEYS):
            raise InputError(f"{where}: {name!r} says nothing; add `content`")
        said.append(ParsedSpeech(name, _text_of(_content(item), where), _first_text(item, TIME_KEYS)))
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
