"""References to files in a configuration, such as `@FILE`, and the texts that replace them."""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from moot.config.rubrics import load_rubric, rubric_names
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError, file_error_reason, read_file
from moot.state.settings import redact_urls

STDIN = Path("-")
"""Path that means "read the configuration from stdin"."""
LEFT_OUT = object()
"""Marker for a setting to remove from the configuration."""
Warn = Callable[[str], object]
"""Function that is called with a warning for each ignored configuration value."""
log: Warn = logging.getLogger(__name__).warning


def check_local(path: str) -> str:
    """Return a path, unless it is the address of a web page.

    Raises:
        InputError: The path is a URL.
    """
    if "://" in path:
        raise InputError(
            f"context {redact_urls(path)!r} is an address, and Moot downloads nothing: save the page and "
            f"give the file, such as `curl -o page.html {redact_urls(path)}`"
        )
    return path


def read_text(path: Path, what: str) -> str:
    """Return the text of a UTF-8 file without its byte order mark. The path `-` means stdin.

    Raises:
        InputError: The file cannot be read, or is not UTF-8 text.
    """
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {file_error_reason(error)}") from error


def read_bytes(path: Path, what: str) -> bytes:
    """Return the content of a file, or of stdin for `-`. An unreadable file is an `InputError`."""
    try:
        return sys.stdin.buffer.read() if path == STDIN else read_file(path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {file_error_reason(error)}") from error


def read_rubric(name_or_path: str, folder: Path) -> str | JsonObject:
    """Return a rubric file's data, or a built-in rubric's name unchanged. Otherwise raise a `ConfigError`."""
    if name_or_path in rubric_names():
        return name_or_path
    path = folder / name_or_path
    return load_rubric(path if path.exists() else Path(name_or_path)).model_dump(mode="json")


PROMPTS = (
    "debaters.*.system_prompt",
    "debaters.*.summary_prompt",
    "debaters.*.clarification_prompt",
    "debaters.*.perspective.prompt",
    "judge.summary.prompt",
    "memory.summary_prompt",
    "memory.perspectives.prompt",
)
"""Dotted names of all settings that can name a prompt file. `*` matches every item of a list."""


def with_files(data: JsonObject, folder: Path, warn: Warn = log) -> JsonObject:
    """Replace references to files in configuration data with the contents of the files.

    Raises:
        ConfigError: A topic, rubric, persona or document cannot be read. A prompt that cannot be read is
            replaced by the built-in one, with a warning.
    """
    readers: dict[str, Callable[[str, object], object]] = {
        "topic": partial(_text, folder),
        **dict.fromkeys(PROMPTS, partial(_prompt, folder, warn)),
        "debaters.*.persona": partial(_persona, folder),
        "debaters.*.reference_documents.*": partial(_reference_document, folder),
    }
    filled: object = with_rubrics(data, folder)
    for place, read in readers.items():
        *_, key = keys = place.split(".")
        filled = _replace(filled, keys, partial(read, key))
    return cast(JsonObject, filled)


def with_rubrics(data: JsonObject, folder: Path) -> JsonObject:
    """Replace the names of rubric files by their contents. An unreadable file is a `ConfigError`."""
    filled: object = data
    for place in ("judge.rubric", "judge.panel.*.rubric"):
        filled = _replace(filled, place.split("."), partial(_rubric, folder))
    return cast(JsonObject, filled)


def _rubric(folder: Path, value: object) -> object:
    return read_rubric(value, folder) if isinstance(value, str) else value


def _text(folder: Path, key: str, value: object) -> object:
    """Return the text of the file that an `@FILE` reference names. Return any other value unchanged."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    try:
        return read_text(folder / value[1:], key)
    except InputError as error:
        raise ConfigError(str(error)) from error


def _persona(folder: Path, key: str, value: object) -> object:
    """Replace each file reference such as `@FILE` in a persona with the file's text."""
    if isinstance(value, Mapping):
        return {title: _text(folder, f"{key}.{title}", text) for title, text in value.items()}
    return _text(folder, key, value)


def _prompt(folder: Path, warn: Warn, key: str, value: object) -> object:
    try:
        return _text(folder, key, value)
    except ConfigError as error:
        warn(f"{error}: the default prompt is used")
        return LEFT_OUT


def _reference_document(folder: Path, _: str, value: object) -> object:
    """Replace an `@FILE` reference by the file's text, with the file's name as the default name."""
    document = {"text": value} if isinstance(value, str) else value
    raw_text = document.get("text") if isinstance(document, Mapping) else None
    text = _text(folder, "reference_documents", raw_text)
    if not isinstance(document, Mapping) or text is raw_text:
        return value
    return {"name": Path(str(raw_text)[1:]).stem, **document, "text": text}


def _replace(data: object, keys: Sequence[str], read: Callable[[object], object]) -> object:
    """Return a copy of `data` in which `read` replaces the value at the path `keys`."""
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
