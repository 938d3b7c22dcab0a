"""Public interface for reading transcripts and context documents; every name here is stable.

`parse_transcript` reads a transcript that `Debates.import_transcript` turns into a debate. A `Reader`
recognises one form of transcript by its structure. It returns the speakers, messages and times as a
`ParsedTranscript`, and counts what it leaves out. An installed package adds its readers with entry points of
the group `moot.importers`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Literal, Protocol, TypeVar, cast

from moot.debates.imported_debate import (
    ImportedTranscript,
    ParsedMessage,
    ParsedSummary,
    Speaker,
    speakers_by_word,
)
from moot.state.errors import ConfigError, InputError, option
from moot.state.settings import load_plugin, plugin_entry_points
from moot.text.plain_text import clip

__all__ = [
    "ImportedTranscript",
    "LeftOut",
    "ParsedMessage",
    "ParsedSummary",
    "ParsedTranscript",
    "Reader",
    "SeveralConversations",
    "Source",
    "Speaker",
    "choose_conversation",
    "converted_suffixes",
    "parse_json",
    "parse_transcript",
    "read_documents",
    "read_upload",
    "speakers_by_word",
    "transcript_suffixes",
]

PARTS_GROUP = "moot.importing"
"""Entry-point group with the two modules that read files: `transcripts` and `documents`."""

LeftOut = Counter[str]
"""Number of things that a reader leaves out, by their singular noun."""


@dataclass(frozen=True)
class ParsedTranscript:
    """Parsed transcript whose speakers have no ids yet."""

    messages: Sequence[ParsedMessage]
    topic: str = ""
    solution: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    """Display names of speakers whose messages have only their ids."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Roles of the speakers."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of the debate that the file states, such as its protocol."""
    verdict: Mapping[str, object] = field(default_factory=dict)
    """Fields of the verdict in the file, or an empty mapping if it has none."""
    summaries: Sequence[ParsedSummary] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of things in the file that are no messages, by their singular noun, such as `attachment`."""


@dataclass(frozen=True)
class Source:
    """Text of a transcript file, as a reader gets it."""

    text: str
    """The whole text. Its lines end with line feeds, and it has no byte order mark."""
    filename: str = ""
    """Name of the file, or `""` if there is none."""
    conversation: str = ""
    """Number or title of the conversation to read, or `""` if the user named none."""

    @property
    def suffix(self) -> str:
        """The file name's suffix in lower case, such as `.vtt`, or `""`."""
        return PurePath(self.filename).suffix.lower()

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text without their line feeds."""
        return self.text.split("\n")

    @cached_property
    def json(self) -> object:
        """Text as JSON. Several values in a row are a list. Invalid JSON is an `InputError`."""
        if not self.is_json_lines:
            return parse_json(self.text)
        return [parse_json(self.lines[number - 1], number) for number in self._filled_lines]

    @cached_property
    def is_json_lines(self) -> bool:
        """Whether each line is a JSON value of its own."""
        filled = [self.lines[number - 1].strip() for number in self._filled_lines]
        return len(filled) > 1 and all(line[0] in "{[" and line[-1] in "}]" for line in filled)

    @cached_property
    def _filled_lines(self) -> list[int]:
        return [number for number, line in enumerate(self.lines, start=1) if line.strip()]

    def position(self, index: int) -> str:
        """Return where an item of the outermost list stands, such as `line 3` or `entry 3`, for errors."""
        return f"line {self._filled_lines[index]}" if self.is_json_lines else f"entry {index + 1}"


@dataclass(frozen=True)
class Reader:
    """Reader for one form of transcript."""

    name: str
    """Name of the form, as the user reads it, such as `WhatsApp`."""
    syntax: Literal["json", "text"]
    """`json`: the reader is called for JSON and JSON Lines. `text`: it is called for all other files."""
    read: Callable[[Source], ParsedTranscript | None]
    """Return the transcript, or `None` if the file has another form.

    It raises an `InputError` if the file has the form but cannot be imported.
    """


class SeveralConversations(InputError):
    """The file contains several conversations, and the user has to choose one."""

    def __init__(self, titles: Sequence[str]) -> None:
        self.titles = tuple(titles)
        listing = ", ".join(f"{number} {title!r}" for number, title in enumerate(titles[:20], start=1))
        more = f" and {len(titles) - 20} more" if len(titles) > 20 else ""
        super().__init__(
            f"the file contains {len(titles)} conversations: {listing}{more}. Choose one by its number or "
            f"title with {option('conversation')}"
        )


T = TypeVar("T")


def choose_conversation(conversations: Sequence[T], titles: Sequence[str], source: Source) -> T:
    """Return the only conversation, or the one whose number or title the user gave.

    Raises:
        SeveralConversations: There are several, and the user chose none of them.
    """
    if len(conversations) == 1 and not source.conversation:
        return conversations[0]
    # Titles may be missing or long.
    titles = [clip(" ".join(title.split()), 60) or "untitled" for title in titles]
    choice = source.conversation.strip().casefold()
    hits = [index for index, title in enumerate(titles) if title.casefold() == choice]
    if len(hits) != 1 and choice.isdecimal() and 1 <= int(choice) <= len(titles):
        hits = [int(choice) - 1]
    if len(hits) != 1:
        raise SeveralConversations(titles)
    return conversations[hits[0]]


def parse_json(text: str, line: int = 0) -> object:
    """Parse JSON, or several values in a row as a list. Errors have the line, or else `line`."""
    decoder, values, end = json.JSONDecoder(), list[object](), 0
    try:
        while (end := _after_space(text, end)) < len(text):
            value, end = decoder.raw_decode(text, end)
            values.append(value)
            if len(values) == 1 and not isinstance(value, dict):
                break  # only objects follow each other
        if (end := _after_space(text, end)) < len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except json.JSONDecodeError as error:
        raise InputError(
            f"line {line or error.lineno}: the text is not valid JSON ({error.msg}, column {error.colno}); "
            "correct the JSON, or set the format"
        ) from error
    except RecursionError as error:
        raise InputError(
            f"line {line or 1}: the JSON is nested too deeply: write the content of messages as text"
        ) from error
    except ValueError as error:  # a number has too many digits
        raise InputError(f"line {line or 1}: the text is not valid JSON ({error})") from error
    return values[0] if len(values) == 1 else values


_SPACE = re.compile(r"[ \t\n\r]*")


def _after_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def parse_transcript(
    transcript: str | bytes, *, format: str | None = None, filename: str = "", conversation: str = ""
) -> ImportedTranscript:
    """Read a transcript.

    Args:
        transcript: The whole text, or the file's bytes in any encoding.
        format: One of `json`, `jsonl`, `csv`, `txt`, `md`. Default: detected from the text and the file
            extension. In a format that is given, messages need not be plausible.
        filename: Name of the file. Its extension helps to detect the format. Its stem is the topic if the
            text has none.
        conversation: Number from 1, or title, of the conversation to read in a file with several.

    Raises:
        SeveralConversations: The file has several conversations, and `conversation` chooses none.
        InputError: The text is invalid in its format, contains no messages, or is not recognised. The message
            names the line or entry and says what to do.
        ConfigError: The file needs the `importing` extra, which is not installed.
    """
    return _transcripts().parse_transcript(
        transcript, format=format, filename=filename, conversation=conversation
    )


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

    def parse_transcript(
        self, transcript: str | bytes, *, format: str | None, filename: str, conversation: str
    ) -> ImportedTranscript: ...


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
