"""The files that a configuration names, read into it: rubrics, prompts, personas and anchors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from moot.graph.cli.complaint import complain
from moot.graph.cli.text_files import read_text
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError

Data = JsonObject
"""What a configuration file holds, not yet validated."""
LEFT_OUT = object()
"""What stands for a setting that is taken out."""


def with_files(data: Data, folder: Path) -> Data:
    """Return a configuration's data with the files that it names read into it.

    Raises:
        ConfigError: a rubric, a persona or an anchor cannot be read. A prompt that cannot be is left out with
            a warning: the built-in one stands.
    """
    return _filled(data, folder, {**RUBRICS, **TEXTS})


def with_rubrics(data: Data, folder: Path) -> Data:
    """Return the data with rubrics that are files replaced by their content."""
    return _filled(data, folder, RUBRICS)


def _filled(data: Data, folder: Path, readers: Mapping[str, Reader]) -> Data:
    filled: object = data
    for place, read in readers.items():
        keys = place.split(".")
        filled = _replaced(filled, keys, partial(read, keys[-1], folder))
    return cast(Data, filled)


def _replaced(data: object, keys: Sequence[str], read: Callable[[object], object]) -> object:
    """Return the data with what stands at these keys, `*` for every item of a list, as `read` makes it."""
    if not keys:
        return read(data)
    key, *rest = keys
    if key == "*":
        return [_replaced(each, rest, read) for each in data] if isinstance(data, list) else data
    if not isinstance(data, Mapping) or key not in data:
        return data
    value = _replaced(data[key], rest, read)
    if value is LEFT_OUT:
        return {name: each for name, each in data.items() if name != key}
    return {**data, key: value}


def read_rubric(named: str, folder: Path) -> str | Data:
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
RUBRICS: dict[str, Reader] = {"judge.rubric": _rubric, "judge.panel.*.rubric": _rubric}
TEXTS: dict[str, Reader] = {
    "debaters.*.system_prompt": _prompt,
    "debaters.*.summary_prompt": _prompt,
    "debaters.*.clarification_prompt": _prompt,
    "debaters.*.perspective.prompt": _prompt,
    "memory.summary_prompt": _prompt,
    "memory.perspectives.prompt": _prompt,
    "debaters.*.persona": _text,
    "debaters.*.anchors.*": _anchor,
}
"""Settings that may be `@FILE`."""
