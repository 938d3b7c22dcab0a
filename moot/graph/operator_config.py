"""The operator's configuration: flags, its file with the files that this names, and the environment."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from moot.state.config import DebateConfig
from moot.state.config.config_files import load_config, make_config, with_settings
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError
from moot.state.settings import variable

STDIN = Path("-")
"""The file that stands for stdin."""
LEFT_OUT = object()
"""What stands for a setting that is taken out."""

Warn = Callable[[str], object]
"""Who is told what could not be taken as it stands."""
log: Warn = logging.getLogger(__name__).warning


def usual_data(path: Path | None, flags: Mapping[str, object], warn: Warn = log) -> JsonObject:
    """Return the data of a configuration that flags, `--config`, `MOOT_MODEL` make, in this order."""
    model = variable("MOOT_MODEL")
    return with_settings({**({"model": model} if model else {}), **file_data(path, warn)}, flags)


def usual_config(path: Path | None, flags: Mapping[str, object], warn: Warn = log) -> DebateConfig:
    """Return the configuration that flags, `--config`, `MOOT_MODEL` and the defaults make, in this order.

    Raises:
        ConfigError: it is none.
    """
    return make_config(usual_data(path, flags, warn))


def file_data(path: Path | None, warn: Warn = log) -> JsonObject:
    """Return what the configuration file says, with the files that it names read into it; `{}` without one.

    Args:
        path: `--config`; where it is not given, `MOOT_CONFIG` counts.
        warn: is told what is not taken over.

    Raises:
        ConfigError: it cannot be read.
    """
    chosen = path or variable("MOOT_CONFIG")
    if chosen is None:
        return {}
    data, folder = load_config(chosen), Path(chosen).parent
    from moot.graph.importing.dialectic import from_dialectic, is_dialectic  # with all readers of transcripts

    if is_dialectic(data):
        converted = from_dialectic(data, folder)
        for warning in converted.warnings:
            warn(f"warning: {warning}")
        data = converted.data
    elif isinstance(data.get("context"), str):
        data["context"] = str((folder / data["context"]).absolute())
    return with_files(data, folder, warn)


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


PROMPTS = (
    "debaters.*.system_prompt",
    "debaters.*.summary_prompt",
    "debaters.*.clarification_prompt",
    "debaters.*.perspective.prompt",
    "memory.summary_prompt",
    "memory.perspectives.prompt",
)
"""Settings that may name a file with a prompt, `*` standing for every item of a list."""


def with_files(data: JsonObject, folder: Path, warn: Warn = log) -> JsonObject:
    """Return a configuration's data with the files that it names read into it.

    Raises:
        ConfigError: a rubric, a persona or an anchor cannot be read. A prompt that cannot be is left out with
            a warning: the built-in one stands.
    """
    readers: dict[str, Callable[[str, object], object]] = {
        **dict.fromkeys(PROMPTS, partial(_prompt, folder, warn)),
        "debaters.*.persona": partial(_text, folder),
        "debaters.*.anchors.*": partial(_anchor, folder),
    }
    filled: object = with_rubrics(data, folder)
    for place, read in readers.items():
        *_, key = keys = place.split(".")
        filled = _replace(filled, keys, partial(read, key))
    return cast(JsonObject, filled)


def with_rubrics(data: JsonObject, folder: Path) -> JsonObject:
    """Return a configuration's data with the rubrics' files that it names read into it.

    Raises:
        ConfigError: one cannot be read.
    """
    filled: object = data
    for place in ("judge.rubric", "judge.panel.*.rubric"):
        filled = _replace(filled, place.split("."), partial(_rubric, folder))
    return cast(JsonObject, filled)


def _rubric(folder: Path, value: object) -> object:
    return read_rubric(value, folder) if isinstance(value, str) else value


def _text(folder: Path, key: str, value: object) -> object:
    """Return the text of the file that `@FILE` names, any other value as it is."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    try:
        return read_text(folder / value[1:], key)
    except InputError as error:
        raise ConfigError(str(error)) from error


def _prompt(folder: Path, warn: Warn, key: str, value: object) -> object:
    try:
        return _text(folder, key, value)
    except ConfigError as error:
        warn(f"{error}: the built-in prompt is used")
        return LEFT_OUT


def _anchor(folder: Path, _: str, value: object) -> object:
    """Return an anchor with its file read, under the file's name where it has none of its own."""
    anchor = {"text": value} if isinstance(value, str) else value
    named = anchor.get("text") if isinstance(anchor, Mapping) else None
    text = _text(folder, "anchors", named)
    if not isinstance(anchor, Mapping) or text is named:
        return value
    return {"name": Path(str(named)[1:]).stem, **anchor, "text": text}


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
