"""Public interface for reading transcripts and context documents; every name here is stable.

`parse_transcript` reads a transcript that `Debates.import_transcript` turns into a debate. A reader, which an
installed package names in an entry point of the group `moot.importers`, returns a `ParsedTranscript`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from moot.debates.imported_debate import ImportedTranscript, ParsedMessage, Speaker, speakers_by_word
from moot.state.errors import ConfigError
from moot.state.settings import load_plugin, plugin_entry_points

__all__ = [
    "ImportedTranscript",
    "ParsedMessage",
    "ParsedTranscript",
    "Speaker",
    "converted_suffixes",
    "parse_transcript",
    "read_documents",
    "read_upload",
    "speakers_by_word",
    "transcript_suffixes",
]

PARTS_GROUP = "moot.importing"
"""Entry-point group with the two modules that read files: `transcripts` and `documents`."""


@dataclass(frozen=True)
class ParsedTranscript:
    """Parsed transcript whose speakers have no ids yet."""

    messages: list[ParsedMessage]
    topic: str = ""
    solution: str = ""


def parse_transcript(text: str, *, format: str | None = None, filename: str = "") -> ImportedTranscript:
    """Read a transcript.

    Args:
        text: The whole transcript.
        format: One of `json`, `jsonl`, `csv`, `txt`, `md`. Default: detected from the file extension,
            otherwise from the text.
        filename: Name of the file. Its extension determines the format. Its stem is the topic if the text
            has none.

    Raises:
        InputError: The text is invalid in its format, or contains no messages. The message names the line or
            entry and says what to do.
    """
    return _transcripts().parse_transcript(text, format=format, filename=filename)


def transcript_suffixes() -> Mapping[str, str]:
    """Return the file suffixes of transcripts, each with the name of its format."""
    return _transcripts().ENDINGS


def read_documents(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Read files and folders as context documents.

    Each file in a folder becomes a document, except hidden files.

    Raises:
        InputError: a file cannot be read, or is not text.
        ConfigError: a file needs the `documents` extra, which is not installed.
    """
    return _documents().read_documents(paths) if paths else []


def read_upload(name: str, data: bytes) -> str:
    """Return the text of a document that a visitor uploaded. A separate process converts the document.

    Raises:
        InputError: the file cannot be read, is not text, or takes too long to convert.
    """
    return _documents().read_upload(name, data)


def converted_suffixes() -> Mapping[str, str]:
    """Return the file suffixes of documents that are converted to text, each with the name of its format."""
    return _documents().CONVERTED


class _TranscriptPart(Protocol):
    """Module that reads transcripts."""

    ENDINGS: Mapping[str, str]

    def parse_transcript(self, text: str, *, format: str | None, filename: str) -> ImportedTranscript: ...


class _DocumentPart(Protocol):
    """Module that reads context documents."""

    CONVERTED: Mapping[str, str]

    def read_documents(self, paths: Sequence[Path]) -> list[dict[str, str]]: ...

    def read_upload(self, name: str, data: bytes) -> str: ...


def _transcripts() -> _TranscriptPart:
    return cast(_TranscriptPart, _part("transcripts"))


def _documents() -> _DocumentPart:
    return cast(_DocumentPart, _part("documents"))


def _part(name: str) -> object:
    point = plugin_entry_points(PARTS_GROUP).get(name)
    if point is None:
        raise ConfigError(f"no installed package reads {name}: install Moot again")
    return load_plugin(point, "import", create=False)
