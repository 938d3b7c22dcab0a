"""Reading what the command line and configurations name: words, files and stdin as text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from moot.graph.cli.screen.output import complain
from moot.state.config.config_files import data_in
from moot.state.entries import JsonObject, clean_text
from moot.state.errors import ConfigError, InputError

if TYPE_CHECKING:
    from moot.graph.importing import ImportedTranscript

STDIN = Path("-")
"""The file that stands for stdin."""
LEFT_OUT = object()
"""What stands for a setting that is taken out."""


def read_text(path: Path, what: str) -> str:
    """Return the text of a file, UTF-8 with or without a mark at its beginning; `-` is stdin.

    Raises:
        InputError: it cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: it is not UTF-8 text") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {error}") from error


def read_words(given: str, what: str, advice: str) -> str:
    """Return the words that `TEXT`, `@FILE` or `-` stands for.

    Raises:
        InputError: the file cannot be read or there is nothing in it.
    """
    if given == "-" or given.startswith("@"):
        given = read_text(Path(given.removeprefix("@")), f"the {what}")
    words = clean_text(given)
    if not words.strip():
        raise InputError(f"the {what} is empty: {advice}")
    return words


def read_topic(given: str | None) -> str | None:
    """Return the topic that `TOPIC`, `@FILE` or `-` stands for, `None` where none was given.

    Raises:
        InputError: the file cannot be read or there is nothing in it.
    """
    return None if given is None else read_words(given, "topic", "say what is to be argued")


def read_documents(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return context documents, `{name, content}` each: files, and the files of folders, in order of name.

    Raises:
        InputError: one cannot be read, or is not text.
    """
    documents = []
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in [each for each in inside if each == path or (each.is_file() and each.name[0] != ".")]:
            documents.append({"name": file.name, "content": clean_text(read_text(file, "context"))})
    return documents


def file_of(subject: str) -> Path | None:
    """Return the file that an argument means, `None` where it is a debate's id."""
    from moot.graph.importing import ENDINGS

    path = Path(subject)
    return path if subject == "-" or "/" in subject or path.suffix.lower() in ENDINGS else None


def read_transcript(path: Path, form: str | None = None) -> ImportedTranscript:
    """Read a transcript or an exported debate from a file, `-` for stdin.

    Raises:
        InputError: it cannot be read.
    """
    from moot.graph.importing import parse_transcript

    text = read_text(path, "the transcript")
    try:
        return parse_transcript(text, format=form, filename="" if path == STDIN else path.name)
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error}") from error


def read_answers(path: Path | None) -> object:
    """Return what a file of answers holds, YAML or JSON: a mapping, or a list in the order of the questions.

    Raises:
        ConfigError: it is neither YAML nor JSON.
        InputError: it cannot be read, or holds neither.
    """
    if path is None:
        return None
    answers = data_in(read_text(path, "answers"), path, "answers")
    if not isinstance(answers, dict | list):
        raise InputError(
            f"answers {str(path)!r}: give a mapping of questions or debaters to answers, or a list"
        )
    return answers


def read_rubric(named: str, folder: Path) -> str | JsonObject:
    """Return a shipped rubric's name as it is, a file's rubric as content.

    Raises:
        ConfigError: there is neither.
    """
    from moot.nodes.judging.rubrics import load_rubric, shipped_rubrics

    if named in shipped_rubrics():
        return named
    path = folder / named
    return load_rubric(path if path.exists() else Path(named)).model_dump(mode="json")


def _rubric(_: str, folder: Path, value: object) -> object:
    return read_rubric(value, folder) if isinstance(value, str) else value


def _text(key: str, folder: Path, value: object) -> object:
    """Return the text of the file that `@FILE` names, any other value as it is."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    try:
        return read_text(folder / value[1:], key)
    except InputError as error:
        raise ConfigError(str(error)) from error


def _prompt(key: str, folder: Path, value: object) -> object:
    try:
        return _text(key, folder, value)
    except ConfigError as error:
        complain(f"{error}: the built-in prompt is used")
        return LEFT_OUT


def _anchor(_: str, folder: Path, value: object) -> object:
    """Return an anchor with its file read, under the file's name where it has none of its own."""
    anchor = {"text": value} if isinstance(value, str) else value
    named = anchor.get("text") if isinstance(anchor, Mapping) else None
    text = _text("anchors", folder, named)
    if not isinstance(anchor, Mapping) or text is named:
        return value
    return {"name": Path(str(named)[1:]).stem, **anchor, "text": text}


Reader = Callable[[str, Path, object], object]
"""What makes a setting of what a file says, by its key, the folder and its value."""
RUBRICS: Mapping[str, Reader] = {"judge.rubric": _rubric, "judge.panel.*.rubric": _rubric}
FILES: Mapping[str, Reader] = {
    **RUBRICS,
    "debaters.*.system_prompt": _prompt,
    "debaters.*.summary_prompt": _prompt,
    "debaters.*.clarification_prompt": _prompt,
    "debaters.*.perspective.prompt": _prompt,
    "memory.summary_prompt": _prompt,
    "memory.perspectives.prompt": _prompt,
    "debaters.*.persona": _text,
    "debaters.*.anchors.*": _anchor,
}
"""Settings that may name a file, `*` standing for every item of a list."""


def with_files(data: JsonObject, folder: Path, readers: Mapping[str, Reader] = FILES) -> JsonObject:
    """Return a configuration's data with the files that it names read into it.

    Raises:
        ConfigError: a rubric, a persona or an anchor cannot be read. A prompt that cannot be is left out with
            a warning: the built-in one stands.
    """
    filled: object = data
    for place, read in readers.items():
        keys = place.split(".")
        filled = _replace(filled, keys, partial(read, keys[-1], folder))
    return cast(JsonObject, filled)


def _replace(data: object, keys: Sequence[str], read: Callable[[object], object]) -> object:
    """Return the data with what stands at these keys as `read` makes it."""
    if not keys:
        return read(data)
    key, *rest = keys
    if key == "*":
        return [_replace(each, rest, read) for each in data] if isinstance(data, list) else data
    if not isinstance(data, Mapping) or key not in data:
        return data
    value = _replace(data[key], rest, read)
    if value is LEFT_OUT:
        return {name: each for name, each in data.items() if name != key}
    return {**data, key: value}
