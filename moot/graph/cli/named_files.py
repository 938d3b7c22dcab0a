"""Reading what the command line and configurations name: words, files and stdin as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moot.graph.operator_config import STDIN, read_text
from moot.state.config.config_files import data_in
from moot.state.entries import clean_text
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.graph.importing import ImportedTranscript


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
