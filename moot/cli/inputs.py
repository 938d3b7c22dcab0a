"""Functions that open or read inputs of commands: databases, debates, texts, documents and transcripts."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from moot.state.config.model_settings import is_built_in
from moot.state.entries import clean_text
from moot.state.errors import DebateNotFound, InputError
from moot.state.settings import check_database, database_exists, is_postgres, redact_url, variable

if TYPE_CHECKING:
    from moot.api import Debate, Debates
    from moot.importing import ImportedTranscript
    from moot.runtime.environment import Environment
    from moot.storage.records import Records
    from moot.work_queue import WorkQueue


def configured_model() -> str | None:
    """Return the user's default model, or `None` if no model or a built-in model is configured."""
    name = variable("MOOT_MODEL")
    return None if name is None or is_built_in(name) else name


STDIN = Path("-")
"""Path that stands for stdin."""


def _existing(db: str | None) -> str:
    url = check_database(db)
    if not database_exists(url):
        raise DebateNotFound(f"there are no debates, because the database {url!r} does not exist yet")
    return url


def open_database(db: str | None, *, make: bool = False, environment: Environment | None = None) -> Debates:
    """Open a database during a `with` block and yield its debates.

    Args:
        db: value of `--db`.
        make: create the database if it does not exist.
        environment: models and clock. The default calls real models.

    Raises:
        DebateNotFound: the database does not exist, and `make` is false.
        InputError: the database cannot be opened.
    """
    url = check_database(db) if make else _existing(db)
    from moot.api import open_debates

    return open_debates(url, environment=environment)


@contextmanager
def open_stored_debate(db: str | None, name: str) -> Iterator[Debate]:
    """Open one stored debate from a database during a `with` block.

    Raises:
        DebateNotFound: no debate has this name or id.
        InputError: the database cannot be opened.
    """
    with open_database(db) as debates:
        yield debates.get(name)


def present_records(db: str | None) -> AbstractContextManager[Records]:
    """Return a context manager that opens the Moot tables of an existing database.

    LangGraph, which is slow to import, is not loaded.

    Raises:
        DebateNotFound: the database does not exist.
        InputError: the database cannot be opened.
    """
    url = _existing(db)
    from moot.storage.records import open_records

    return closing(open_records(url))


def open_catalogue(db: str | None) -> AbstractContextManager[Records | None]:
    """Open Moot's own database tables, or yield `None` if the database does not exist.

    Raises:
        InputError: the database cannot be opened.
    """
    return present_records(db) if database_exists(check_database(db)) else nullcontext()


def open_queue(db: str | None) -> WorkQueue:
    """Return the queue of debates in a Postgres database.

    Raises:
        InputError: the database is not a Postgres database.
        ConfigError: the `queue` extra is not installed.
    """
    url = check_database(db)
    if not is_postgres(url):
        raise InputError(
            "the queue needs a Postgres database: add --db postgresql://…, or run `moot batch` or `moot eval "
            "run` without --queue"
        )
    from moot.work_queue import WorkQueue

    return WorkQueue(url)


def command_line(*words: str, db: str | None = None) -> str:
    """Return a `moot` command that the user can copy, including any `--db` option that the user gave."""
    program, called = "moot", Path(sys.argv[0])
    if called.name == "moot" and not shutil.which(
        "moot"
    ):  # not on PATH: repeat the path that started this process
        here = Path.cwd()
        program = str(called.relative_to(here) if called.is_relative_to(here) else called)
    return shlex.join([program, *words, *(["--db", redact_url(db)] if db else [])])


def after_setup(line: str) -> str:
    """Return a shell command that needs a model, with `moot setup` before it if no model is configured."""
    return line if configured_model() else f"{command_line('setup')} && {line}"


def read_words(given: str, what: str, advice: str) -> str:
    """Return the text of a `TEXT`, `@FILE` or `-` argument, where `-` means stdin.

    Raises:
        InputError: the file cannot be read, or the text is empty.
    """
    from moot.configuration.configure import read_text

    if given == "-" or given.startswith("@"):
        given = read_text(Path(given.removeprefix("@")), f"the {what}")
    words = clean_text(given)
    if not words.strip():
        raise InputError(f"the {what} is empty: {advice}")
    return words


def read_topic(given: str | None) -> str | None:
    """Return the topic of a `TOPIC`, `@FILE` or `-` argument, or `None` if the argument was omitted.

    Raises:
        InputError: the file cannot be read, or the text is empty.
    """
    return None if given is None else read_words(given, "topic", "write the question to debate")


def split_context(given: Sequence[Path] | None) -> tuple[str | None, list[Path]]:
    """Return the absolute path of the folder among the paths of `--context`, if any, and all files.

    Raises:
        InputError: there are several folders.
    """
    folders = [path for path in given or () if path.is_dir()]
    if len(folders) > 1:
        raise InputError(f"--context takes at most one folder: choose one of {', '.join(map(str, folders))}")
    return str(folders[0].absolute()) if folders else None, [p for p in given or () if p not in folders]


def file_of(subject: str) -> Path | None:
    """Return the path if the argument names a file, or `None` if it is a debate's id."""
    from moot.importing import ENDINGS

    path = Path(subject)
    return path if subject == "-" or "/" in subject or path.suffix.lower() in ENDINGS else None


def read_transcript(path: Path, form: str | None = None) -> ImportedTranscript:
    """Read a transcript or an exported debate from a file, or from stdin if the path is `-`.

    Raises:
        InputError: the file cannot be read or parsed.
    """
    from moot.configuration.configure import read_text
    from moot.importing import parse_transcript

    text = read_text(path, "the transcript")
    try:
        return parse_transcript(text, format=form, filename="" if path == STDIN else path.name)
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
    from moot.configuration.configure import read_text
    from moot.state.config.config_files import data_in

    answers = data_in(read_text(path, "answers"), path, "answers")
    if not isinstance(answers, dict | list):
        raise InputError(
            f"answers file {str(path)!r} must contain a list of answers, or a mapping whose keys are "
            "questions or debaters and whose values are answers"
        )
    return answers
