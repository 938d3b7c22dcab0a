"""What a transcript reader gets and returns.

A reader recognises one form of transcript by its structure. It returns the speakers, messages and times, and
counts what it leaves out. An installed package adds its readers with entry points of the group
`moot.importers`; each entry point refers to a `Reader`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Literal, NoReturn, TypeVar

from moot.state.entries import EntryKind, ToolUse
from moot.state.errors import ConfigError, InputError
from moot.state.settings import load_plugin, plugin_entry_points
from moot.text.plain_text import clip, count_noun

ENTRY_POINT_GROUP = "moot.importers"
"""Entry-point group in which packages register readers."""


@dataclass(frozen=True)
class ParsedMessage:
    """A message read from a transcript."""

    speaker: str
    """Speaker's id, or the speaker's name if no id is assigned yet."""
    content: str
    time: str = ""
    """Time of the message, or `""` if no time is given. A complete date is in ISO 8601 format. Any other time
    is as written in the transcript."""
    kind: EntryKind = "speech"
    call_id: str = ""
    """Id of the tool call or clarification question that the message makes or answers, or `""` for other
    messages."""
    tool: ToolUse | None = None
    """Tool result in the message, or `None` for messages without a tool result."""
    round: int = 0
    """Number of the round, starting at 1, or 0 if the transcript has no rounds."""
    target: str = ""
    """Speaker whose proposal the message criticises or refines, or `""` if there is none."""
    phase: str = ""
    """Phase of the protocol, such as `critique` in a council, or `""` if the transcript has no phases."""
    model: str = ""
    """Model that wrote the message, or `""` if none is known."""
    tokens: int = 0
    """Tokens that the call for the message used, or 0 if they are not known."""

    @property
    def is_by_speaker(self) -> bool:
        """Whether one of the speakers wrote the message, and not a tool or the user."""
        return self.kind not in ("tool_result", "context", "answer")


@dataclass(frozen=True)
class ParsedSummary:
    """A summary that the program made during the debate."""

    owner: str
    """Speaker from whose perspective the summary is written, or `""` for the judge's summary."""
    text: str
    messages: int
    """Number of messages that the summary covers, from the first one."""
    before_chars: int = 0
    after_chars: int = 0
    model: str = ""
    created_at: str = ""


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
        """The text as parsed JSON. Several values in a row, such as JSON Lines, are a list.

        Raises:
            InputError: The JSON is invalid.
        """
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
        shown = ", ".join(f"{number} {title!r}" for number, title in enumerate(titles[:20], start=1))
        more = f" and {len(titles) - 20} more" if len(titles) > 20 else ""
        super().__init__(
            f"the file contains {len(titles)} conversations: {shown}{more}. Choose one with --conversation "
            "NUMBER or --conversation TITLE"
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
    wanted = source.conversation.strip().casefold()
    hits = [index for index, title in enumerate(titles) if title.casefold() == wanted]
    if len(hits) != 1 and wanted.isdecimal() and 1 <= int(wanted) <= len(titles):
        hits = [int(wanted) - 1]
    if len(hits) != 1:
        raise SeveralConversations(titles)
    return conversations[hits[0]]


def parse_json(text: str, line: int = 0) -> object:
    """Parse JSON, and raise an error with the line number if the JSON is invalid.

    Several values in a row are returned as a list. `line` overrides the line number.
    """
    decoder, values, end = json.JSONDecoder(), list[object](), 0
    try:
        while (end := _after_space(text, end)) < len(text):
            value, end = decoder.raw_decode(text, end)
            values.append(value)
            if len(values) == 1 and not isinstance(value, dict):
                break  # only objects follow each other
        if (end := _after_space(text, end)) < len(text):
            _raise_extra(text, end)
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


def _raise_extra(text: str, end: int) -> NoReturn:
    raise json.JSONDecodeError("Extra data", text, end)


_SPACE = re.compile(r"[ \t\n\r]*")


def _after_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def left_out_line(left_out: Mapping[str, int]) -> str:
    """Return a line such as `12 system messages, 3 attachments left out`, or `""` if nothing is left out."""
    counts = [count_noun(count, noun) for noun, count in left_out.items() if count]
    return f"{', '.join(counts)} left out" if counts else ""


def installed_readers() -> list[Reader]:
    """Return the readers of other installed packages, sorted by entry-point name.

    Raises:
        ConfigError: A plug-in cannot be imported, or is no `Reader`.
    """
    readers = []
    for name, point in sorted(plugin_entry_points(ENTRY_POINT_GROUP).items()):
        reader = load_plugin(point, "importer", create=False)
        if not isinstance(reader, Reader):
            raise ConfigError(f"importer: the plug-in {name!r} ({point.value}) is not a Reader")
        readers.append(reader)
    return readers


LeftOut = Counter[str]
"""Number of things that a reader leaves out, by their singular noun."""
