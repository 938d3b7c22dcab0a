"""What a run is asked to do: topic, configuration file and flags become one validated configuration."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moot.graph.cli.screen.terminal_text import safe
from moot.state.catalogue import check_name
from moot.state.config import DebateConfig
from moot.state.config.config_files import load_config, make_config
from moot.state.dialectic import from_dialectic, is_dialectic
from moot.state.entries import clean_text
from moot.state.errors import ConfigError, InputError
from moot.state.settings import default_config_path, default_model


def read_topic(given: str | None) -> str | None:
    """Return the topic that `TOPIC`, `@FILE` or `-` stands for, `None` where none was given.

    Raises:
        InputError: the file cannot be read or there is nothing in it.
    """
    return None if given is None else _words(given, "topic", "say what is to be argued")


def read_remark(given: str) -> str:
    """Return what is said from the floor: `TEXT`, `@FILE` or `-`.

    Raises:
        InputError: the file cannot be read or there is nothing in it.
    """
    return _words(given, "remark", "give the words")


def _words(given: str, what: str, wanted: str) -> str:
    said = clean_text(_read(given, what))
    if not said.strip():
        raise InputError(f"the {what} is empty: {wanted}")
    return said


def _read(given: str, what: str) -> str:
    try:
        if given == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        return Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read the {what} from {given!r}: it is not UTF-8 text") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the {what} from {given!r}: {error}") from error


def require_topic(said: str | None, config: DebateConfig) -> None:
    """Refuse a run without a topic.

    Raises:
        InputError: neither the command line nor the configuration says what is argued.
    """
    if said is None and not (config.topic or "").strip():
        raise InputError("no topic: give TOPIC, @FILE or -, or `topic` in the configuration")


def read_documents(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return context documents, `{name, content}` each: files, and the files of folders, in order of name.

    Raises:
        InputError: one cannot be read, or is not text.
    """
    return [_document(file) for path in paths for file in _files(path)]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))


def _document(path: Path) -> dict[str, str]:
    try:
        return {"name": path.name, "content": clean_text(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read context {str(path)!r}: {error}") from error


def check_new_name(name: str | None) -> None:
    """Refuse a name that could not be typed again.

    Raises:
        InputError: it is empty, too long or has characters that do not print.
    """
    if name is not None:
        check_name(name)


def parse_debater(given: str) -> dict[str, str]:
    """Return the debater that `NAME[:ROLE[:STANCE]]` describes.

    Raises:
        InputError: there is no name.
    """
    parts = [part.strip() for part in given.split(":", 2)]
    if not parts[0]:
        raise InputError(f"--debater {given!r}: give NAME[:ROLE[:STANCE]]")
    return dict(zip(("name", "role", "stance"), parts, strict=False))


def file_data(path: Path | None, *, use_default: bool = True) -> dict[str, Any]:
    """Return what the configuration file says, with the files that it names read into it; `{}` without one.

    Args:
        path: `--config`.
        use_default: whether `MOOT_CONFIG` counts where no file is given.

    Raises:
        ConfigError: it cannot be read.
    """
    chosen = path or (default_config_path() if use_default else None)
    if chosen is None:
        return {}
    folder = Path(chosen).parent
    return with_prompts(with_rubrics(_ours(load_config(chosen), folder), folder), folder)


def _ours(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a file's content as it is where it is ours, else what it means here, with warnings."""
    if not is_dialectic(data):
        context = data.get("context")
        return {**data, "context": str((folder / context).absolute())} if isinstance(context, str) else data
    converted = from_dialectic(data, folder)
    for warning in converted.warnings:
        print(f"moot: warning: {safe(warning)}", file=sys.stderr)
    return converted.data


def with_rubrics(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the data with rubrics that are files replaced by their content; paths count from `folder`."""
    judge = data.get("judge")
    if not isinstance(judge, dict):
        return data
    panel = judge.get("panel")
    seats = {"panel": [_with_rubric(seat, folder) for seat in panel]} if isinstance(panel, list) else {}
    return {**data, "judge": {**_with_rubric(judge, folder), **seats}}


def _with_rubric(section: Any, folder: Path) -> Any:
    named = section.get("rubric") if isinstance(section, dict) else None
    return {**section, "rubric": read_rubric(named, folder)} if isinstance(named, str) else section


LENGTHS = ("turns", "rounds")
"""Flags that say how long a debate is."""

PROMPTS = ("system_prompt", "summary_prompt", "clarification_prompt")
"""Settings of a debater that may be `@FILE`, and for which there is a built-in text."""


def with_prompts(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the data with prompts given as `@FILE` replaced by the file's text.

    A prompt that cannot be read is left out with a warning: the built-in one stands. Personas and anchors
    have none.

    Raises:
        ConfigError: a persona or an anchor cannot be read.
    """
    result = dict(data)
    if isinstance(data.get("debaters"), list):
        result["debaters"] = [_debater_prompts(debater, folder) for debater in data["debaters"]]
    memory = data.get("memory")
    if isinstance(memory, dict):
        result["memory"] = read = _read_in(memory, ("summary_prompt",), folder)
        if "perspectives" in memory:
            read["perspectives"] = _read_in(memory["perspectives"], ("prompt",), folder)
    return result


def _debater_prompts(debater: Any, folder: Path) -> Any:
    if not isinstance(debater, dict):
        return debater
    result = _read_in(debater, PROMPTS, folder)
    if "perspective" in debater:
        result["perspective"] = _read_in(debater["perspective"], ("prompt",), folder)
    persona = debater.get("persona")
    if isinstance(persona, str) and persona.startswith("@"):
        result["persona"] = _prompt("persona", persona, folder)
    if isinstance(debater.get("anchors"), list):
        result["anchors"] = [_anchor(anchor, folder) for anchor in debater["anchors"]]
    return result


def _anchor(anchor: Any, folder: Path) -> Any:
    """Return an anchor with its file read, under the file's name where it has none of its own."""
    given = {"text": anchor} if isinstance(anchor, str) else anchor
    named = given.get("text") if isinstance(given, dict) else None
    if not isinstance(named, str) or not named.startswith("@"):
        return anchor
    return {"name": Path(named[1:]).stem, **given, "text": _prompt("anchors", named, folder)}


def _read_in(section: Any, keys: Sequence[str], folder: Path) -> Any:
    """Return a section with its `@FILE` values read; what cannot be read is left out, with a warning."""
    if not isinstance(section, dict):
        return section
    result = dict(section)
    for key in keys:
        if not str(section.get(key, "")).startswith("@"):
            continue
        try:
            result[key] = _prompt(key, str(section[key]), folder)
        except ConfigError as error:
            del result[key]
            print(f"moot: {safe(str(error))}: the built-in prompt is used", file=sys.stderr)
    return result


def _prompt(key: str, named: str, folder: Path) -> str:
    """Return the text of the file that `@FILE` names.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return (folder / named[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: cannot read {named[1:]!r}: {error}") from error


def read_rubric(named: str, folder: Path) -> str | dict[str, Any]:
    """Return a shipped rubric's name as it is, a file's rubric as content.

    Raises:
        ConfigError: there is neither.
    """
    from moot.nodes.judging.rubrics import load_rubric, shipped_rubrics

    if named in shipped_rubrics():
        return named
    path = folder / named
    return load_rubric(path if path.exists() else named).model_dump(mode="json")


def merged(data: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data with flags laid over it, section by section; a flag that is `None` was not given.

    Raises:
        ConfigError: a section that a flag belongs to is no mapping.
    """
    result = dict(data)
    for key, value in flags.items():
        if value is None:
            continue
        section, _, name = key.partition(".")
        if not name:
            result[key] = value
            continue
        present = result.get(section) or {}
        if not isinstance(present, Mapping):
            raise ConfigError(f"{section}: give keys and values, not {present!r}")
        result[section] = {**present, name: value}
    return result


def run_config(path: Path | None, flags: Mapping[str, Any]) -> DebateConfig:
    """Return the configuration of a new debate: flags over file over `MOOT_MODEL` over defaults.

    Raises:
        ConfigError: it cannot be used; nothing has been written.
    """
    model = default_model()
    data = {**({"model": model} if model else {}), **file_data(path)}
    config = make_config(merged(data, flags))
    _check_names(config)
    return config


def warn_of_idle(flags: Mapping[str, Any], config: DebateConfig) -> None:
    """Say on stderr which flags of length were given although other settings decide the protocol's."""
    from moot.nodes.protocols.protocol_table import protocol_named

    bounds = protocol_named(config.protocol).bounded_by
    if bounds is None:
        return
    instead = [f"--{name}" for name in LENGTHS if name in bounds] or bounds
    advice = f"use {' or '.join(instead)}" if instead else "its length is fixed"
    for name in LENGTHS:
        if flags.get(name) is not None and name not in bounds:
            said = f"{name} does not bound protocol {config.protocol!r}: {advice}"
            print(f"moot: warning: {said}", file=sys.stderr)


def _check_names(config: DebateConfig) -> None:
    from moot.graph.preflight import (  # slow to import, and not needed for most mistakes
        check_config,
        warnings_about,
    )
    from moot.nodes.driving.environment import Environment

    check_config(config, Environment())
    for warning in warnings_about(config):
        print(f"moot: warning: {safe(warning)}", file=sys.stderr)
