"""What a run is asked to do: topic, configuration file and flags become one validated configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moot.graph.cli.complaint import complain
from moot.graph.cli.text_files import read_text
from moot.graph.cli.usual_config import configured, file_data
from moot.state.config import DebateConfig, slug
from moot.state.config.config_files import data_in, make_config, with_settings
from moot.state.entries import clean_text, seq_of
from moot.state.errors import ConfigError, InputError

if TYPE_CHECKING:
    from moot.graph.api import Debate

LENGTHS = ("turns", "rounds")
"""Flags that say how long a debate is."""


def read_topic(given: str | None) -> str | None:
    """Return the topic that `TOPIC`, `@FILE` or `-` stands for, `None` where none was given.

    Raises:
        InputError: the file cannot be read or there is nothing in it.
    """
    return None if given is None else read_words(given, "topic", "say what is to be argued")


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


def parse_debater(given: str, number: int = 1) -> dict[str, str]:
    """Return the debater that `NAME[:ROLE[:STANCE]]` describes, with an id where the name makes none.

    Raises:
        InputError: there is no name.
    """
    parts = [part.strip() for part in given.split(":", 2)]
    if not parts[0]:
        raise InputError(f"--debater {given!r}: give NAME[:ROLE[:STANCE]]")
    made = {} if slug(parts[0]) else {"id": f"debater-{number}"}
    return {**made, **dict(zip(("name", "role", "stance"), parts, strict=False))}


def parse_debaters(given: Sequence[str] | None) -> list[dict[str, str]] | None:
    """Return those whom `--debater` names, `None` where it is not given."""
    return [parse_debater(each, number) for number, each in enumerate(given, 1)] if given else None


def go_on_with(debate: Debate, path: Path | None, flags: Mapping[str, object], *, reconfigure: bool) -> None:
    """Let a stored debate go on with what a file and flags say, and reach what they name.

    Args:
        debate: any.
        path: `--config`.
        flags: values by dotted key, which count over the file and always.
        reconfigure: whether what the file changes counts.

    Raises:
        ConfigError: it cannot be used, or the file differs and is not to count.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    data = file_data(path) if path is not None else {}
    if not given and path is None:
        return
    said, frozen = make_config(data).to_json(), debate.config().to_json()
    new = make_config({**frozen, **{key: said[key] for key in data if key != "topic"}})
    debate.allow(make_config(with_settings(data, given)))
    if (keys := debate.differing_keys(new)) and not reconfigure:
        raise ConfigError(
            f"{str(path)!r} differs from the debate's frozen configuration in {', '.join(keys)}: "
            "leave --config out, or add --reconfigure to go on with the new values"
        )
    new = make_config(with_settings(new.to_json(), given))
    if debate.differing_keys(new):
        debate.reconfigure(new)


def entry_number(given: str, option: str) -> int:
    """Return the number of the entry that `12` or `m000012` names.

    Raises:
        InputError: it names none.
    """
    seq = int(given) if given.isdecimal() else seq_of(given)
    if seq is None:
        raise InputError(f"{option} {given!r}: give an entry's number or id, such as 12 or m000012")
    return seq


def run_config(
    path: Path | None,
    flags: Mapping[str, object],
    tools: Sequence[str] = (),
    *,
    topic: str | None = None,
    imports: bool = True,
) -> DebateConfig:
    """Return the configuration of a new debate: flags over file over `MOOT_MODEL` over defaults.

    Args:
        path: `--config`.
        flags: values by dotted key.
        tools: of those debaters who list none.
        topic: what is warned about; `None` takes the configuration's.
        imports: whether what it names is imported.

    Raises:
        ConfigError: it cannot be used; nothing has been written.
    """
    config = configured(path, flags)
    if tools:
        debaters = tuple(
            each if each.is_human or each.tools else each.model_copy(update={"tools": tuple(tools)})
            for each in config.debaters
        )
        config = config.model_copy(update={"debaters": debaters})
    # Slow to import, and not needed for most mistakes.
    from moot.graph.preflight import check_config, warnings_about
    from moot.nodes.driving.environment import Environment
    from moot.state.config.boundary import Claim

    check_config(Claim.of_operator(config), Environment(), imports=imports)
    asked = config if topic is None else config.model_copy(update={"topic": topic})
    for warning in warnings_about(asked):
        complain(f"warning: {warning}")
    return config


def warn_of_idle(flags: Mapping[str, object], config: DebateConfig) -> None:
    """Say on stderr which flags of length were given although other settings decide the protocol's."""
    from moot.nodes.protocols.protocol_table import protocol_named

    bounds = protocol_named(config.protocol).bounded_by
    if bounds is None:
        return
    instead = [f"--{name}" for name in LENGTHS if name in bounds] or bounds
    advice = f"use {' or '.join(instead)}" if instead else "its length is fixed"
    for name in LENGTHS:
        if flags.get(name) is not None and name not in bounds:
            complain(f"warning: {name} does not bound protocol {config.protocol!r}: {advice}")
