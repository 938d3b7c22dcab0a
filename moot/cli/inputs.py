"""Inputs of commands: topics, files, numbers, and the configuration of a run."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moot.cli.terminal import print_error, print_note
from moot.state.entries import clean_text, seq_of
from moot.state.errors import InputError
from moot.state.settings import variable
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from moot.config import DebateConfig
    from moot.importers import ImportedTranscript


def configured_model() -> str | None:
    """Return the user's default model, or `None` if none is configured. A built-in model does not count."""
    from moot.config.model_settings import is_built_in

    name = variable("MOOT_MODEL")
    return None if name is None or is_built_in(name) else name


def read_words(argument: str, what: str, advice: str) -> str:
    """Return the text of an argument, of `@FILE`, or of stdin (`-`). An empty text is an `InputError`."""
    from moot.config.file_references import read_text

    is_file = argument == "-" or argument.startswith("@")
    words = clean_text(read_text(Path(argument.removeprefix("@")), f"the {what}") if is_file else argument)
    if not words.strip():
        raise InputError(f"the {what} is empty: {advice}")
    return words


def read_topic(argument: str | None) -> str | None:
    """Return the topic of a debate as `read_words` reads it, or `None` without an argument."""
    return None if argument is None else read_words(argument, "topic", "write the question to debate")


STDIN_WAIT_S = 5.0
"""Seconds to wait for the first byte of stdin. Nobody writes to or closes the pipe of some CI jobs."""
MAX_STDIN_BYTES = 1_000_000
"""Maximum size of the text on stdin, as of a file that a tool reads. No model reads as much."""


def read_context(
    paths: Sequence[str] | None, *, remarks: bool = True
) -> tuple[str | None, list[dict[str, str]]]:
    """Return the folder of `--context`, or `None`, and its files and the text on stdin as documents.

    Text that is piped to the command is read without `--context -` too. Call this after everything else that
    may read stdin.

    Raises:
        InputError: there are several folders, or a file or stdin cannot be read.
    """
    from moot.config.file_references import check_local
    from moot.importers import read_documents

    names = [check_local(each) for each in paths or ()]
    folders = [each for each in names if Path(each).is_dir()]
    if len(folders) > 1:
        raise InputError(f"--context takes at most one folder: choose one of {', '.join(folders)}")
    documents = read_documents([Path(each) for each in names if each != "-" and each not in folders])
    if text := _piped_text(requested="-" in names):
        if remarks:
            print_note(f"stdin: {count_noun(len(text.splitlines()), 'line')}, a document for all debaters")
        documents.append({"name": "stdin", "content": text})
    return str(Path(folders[0]).absolute()) if folders else None, documents


def _piped_text(*, requested: bool) -> str:
    """Return the text that is piped to the command, or `""` if there is none.

    A terminal or a device such as `/dev/null` is read only if `requested`.
    """
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):  # the process has no stdin
        return ""
    if stat.S_ISCHR(kind) and not requested:
        return ""
    data, arrived, ended = bytearray(), threading.Event(), threading.Event()

    def read() -> None:
        while len(data) <= MAX_STDIN_BYTES and (piece := os.read(descriptor, MAX_STDIN_BYTES)):
            data.extend(piece)
            arrived.set()
        ended.set()
        arrived.set()

    threading.Thread(target=read, daemon=True).start()
    if not arrived.wait(None if sys.stdin.isatty() else STDIN_WAIT_S):
        print_error(f"warning: stdin: no text in {STDIN_WAIT_S:g} s, so the debate goes on without it")
        return ""
    ended.wait()
    if len(data) > MAX_STDIN_BYTES:
        raise InputError(f"stdin has more than {MAX_STDIN_BYTES:,} bytes: pass only the part that matters")
    try:
        text = clean_text(bytes(data).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError("stdin is not UTF-8 text: pass text, or close it with `</dev/null`") from error
    if not text.strip() and (requested or stat.S_ISFIFO(kind)):
        print_error("warning: stdin: it is empty, so the debate goes on without it")
    return text if text.strip() else ""


def file_of(subject: str) -> Path | None:
    """Return the file's path if an argument names a file, or `None` if it names a debate."""
    from moot.importers import transcript_suffixes

    path = Path(subject)
    return path if subject == "-" or "/" in subject or path.suffix.lower() in transcript_suffixes() else None


def read_transcript(path: Path, form: str | None = None, conversation: str = "") -> ImportedTranscript:
    """Read a transcript or a document from a file or stdin (`-`). Otherwise: `InputError`."""
    from moot.config.file_references import STDIN, read_bytes
    from moot.importers import SeveralConversations, parse_transcript

    data, name = read_bytes(path, "the transcript"), "" if path == STDIN else path.name
    try:
        return parse_transcript(data, format=form, filename=name, conversation=conversation)
    except SeveralConversations:
        raise
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error}") from error


def read_answers(path: Path | None) -> object:
    """Read prepared answers from a YAML or JSON file.

    Raises:
        ConfigError: the file is neither YAML nor JSON.
        InputError: the file cannot be read, or has neither a mapping nor a list.
    """
    if path is None:
        return None
    from moot.config.config_files import data_in
    from moot.config.file_references import read_text

    answers = data_in(read_text(path, "answers"), path, "answers")
    if not isinstance(answers, dict | list):
        raise InputError(
            f"answers file {str(path)!r} must contain a list of answers, or a mapping from "
            "questions or debaters to answers"
        )
    return answers


LENGTHS = ("turns", "rounds")
"""Options that set the number of turns or rounds of a debate, without the leading `--`."""


def parse_debaters(values: Sequence[str] | None) -> list[dict[str, str]] | None:
    """Parse the values of `--debater`. One without a name is an `InputError`."""
    from moot.config import slug

    debaters = []
    for number, value in enumerate(values or (), start=1):
        parts = [part.strip() for part in value.split(":", 2)]
        if not parts[0]:
            raise InputError(f"--debater {value!r} has no name: write NAME[:ROLE[:STANCE]]")
        id_setting = (
            {} if slug(parts[0]) else {"id": f"debater-{number}"}
        )  # the name has no letters for an id
        debaters.append({**id_setting, **dict(zip(("name", "role", "stance"), parts, strict=False))})
    return debaters or None


def run_config(
    path: Path | None,
    flags: Mapping[str, object],
    tools: Sequence[str] = (),
    *,
    topic: str | None = None,
    imports: bool = True,
) -> DebateConfig:
    """Return the validated configuration of a new debate.

    Raises:
        ConfigError: the configuration is invalid. Nothing has been written.
        InputError: a single `--debater` would reply to itself.
    """
    from moot.config.stages import read_config

    config = read_config(path, flags, print_error)
    if flags.get("debaters") is not None and len(config.debaters) == 1 and config.turns != 1:
        from moot.protocols.registry import protocol_named

        if "turns" in (protocol_named(config.protocol).length_settings or ()):
            raise InputError(
                f"--debater {config.debaters[0].name!r} is the only debater and would reply to itself: add "
                "another --debater, or use --protocol single to get one answer"
            )
    # These imports are slow, and most mistakes are found before them.
    from moot.config.boundary import Permissions
    from moot.debates.config_checks import check_config, warnings_about, with_tools
    from moot.runtime.environment import Environment

    config = with_tools(config, tools)
    check_config(Permissions.of_operator(config), Environment(), imports=imports)
    debate_config = config if topic is None else config.model_copy(update={"topic": topic})
    for warning in warnings_about(debate_config):
        print_error(f"warning: {warning}")
    return config


def warn_of_ignored_length(flags: Mapping[str, object], config: DebateConfig) -> None:
    """Warn the user if the protocol ignores the option `--turns` or `--rounds`."""
    from moot.protocols.registry import protocol_named

    length_settings = protocol_named(config.protocol).length_settings
    if length_settings is None:
        return
    alternatives = [f"--{name}" for name in LENGTHS if name in length_settings] or length_settings
    advice = f"use {' or '.join(alternatives)}" if alternatives else "its length is fixed"
    for name in LENGTHS:
        if flags.get(name) is not None and name not in length_settings:
            print_error(f"warning: --{name} has no effect on protocol {config.protocol!r}: {advice}")


def entry_number(argument: str, option: str) -> int:
    """Return the number of a message. The argument is a number such as `12` or an id such as `m000012`.

    Raises:
        InputError: the argument is neither a number nor a message id.
    """
    seq = int(argument) if argument.isdecimal() and len(argument) <= MAX_NUMBER_DIGITS else seq_of(argument)
    if seq is None:
        raise InputError(
            f"{option} {argument!r} is not the number or id of a message: give a value such as 12 or m000012"
        )
    return seq


MAX_NUMBER_DIGITS = 9
"""Maximum number of digits in a message number."""
