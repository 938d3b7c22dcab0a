"""The readers that Moot ships, in the order in which they are tried, and the choice among them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import cast

from moot.importers import ParsedTranscript, Reader, Source
from moot.plugins.importing import readers
from moot.plugins.importing.readers.markdown_text import is_markdown, read_markdown
from moot.plugins.importing.readers.speaker_lines import read_plain_text
from moot.plugins.importing.readers.table import is_table, read_table
from moot.state.errors import ConfigError, InputError
from moot.state.settings import load_plugin, plugin_entry_points

ENTRY_POINT_GROUP = "moot.importers"
"""Entry-point group in which packages register readers."""

_READER_NAMES = (
    *("chatgpt.READER", "claude.READER", "claude_code.READER", "dialectic_state.READER"),
    *("debate_frameworks.LLM_COUNCIL", "debate_frameworks.COUNCIL", "debate_frameworks.MALLM"),
    *("debate_frameworks.CHATEVAL", "debate_frameworks.TRADING_AGENTS"),
    *("chat_objects.SLACK", "chat_objects.DISCORD", "chat_objects.TELEGRAM", "chat_objects.GITHUB"),
    "chat_objects.MESSENGER",
    *("chat_objects.REDDIT", "arguments.JSON", "conversation_sets.READER", "model_api.READER"),
    *("speech_to_text.READER", "message_list.READER"),
    *("arguments.TEXT", "subtitles.READER", "pasted_threads.DISCORD", "zoom_chat.READER", "irc.READER"),
    *("stamped_lines.READER", "google_meet.READER", "pasted_threads.GITHUB", "pasted_threads.REDDIT"),
    *("proceedings.READER", "headed_blocks.READER"),
)
"""Readers in the order in which they are tried. The last one for JSON reads any list of messages."""


def _reader(name: str) -> Reader:
    module, _, variable = name.partition(".")
    return cast(Reader, getattr(import_module(f"{readers.__name__}.{module}"), variable))


READERS: Sequence[Reader] = tuple(map(_reader, _READER_NAMES))

FORMATS = ("json", "jsonl", "csv", "txt", "md")
ENDINGS = {".ndjson": "jsonl", ".tsv": "csv", ".markdown": "md", **{f".{name}": name for name in FORMATS}}
_FALLBACKS: Mapping[str, Callable[[Source], ParsedTranscript]] = {
    "csv": read_table,
    "txt": lambda source: read_plain_text(source, checked=False),
    "md": lambda source: read_markdown(source, checked=False),
}
"""Readers of the formats that the user can name. Their messages need not be plausible."""
_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*(?:[\[{\"\]]|\d+\s*[\],]))")
"""Pattern for the start of JSON. A time or a name in brackets is no JSON."""
_LINE_SEPARATORS = re.compile(r"[\x0b\x0c\x85\u2028\u2029]")
_UNREADABLE = {
    "{\\rtf": "a rich-text file (RTF)",
    "%PDF": "a PDF file",
    "PK\x03\x04": "a ZIP archive or an office document",
    "BEGIN:V": "a calendar or an address book",
}


def read_source(source: Source, format: str | None = None) -> tuple[ParsedTranscript, str]:
    """Read a transcript with the first reader that recognises it. Return the reader's name too.

    Args:
        source: The file.
        format: Format that the user names, which is then not detected.

    Raises:
        InputError: No reader recognises the file, or it cannot be imported.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"unknown transcript format {format!r}: use one of {', '.join(FORMATS)}")
    if what := next((each for start, each in _UNREADABLE.items() if source.text.startswith(start)), ""):
        raise InputError(f"line 1: the file is {what}: save the conversation as plain text and import that")
    if format is not None and format in _FALLBACKS:
        return _FALLBACKS[format](source), format
    form = format or ENDINGS.get(source.suffix, "")
    is_json = form in ("json", "jsonl") or bool(_JSON.match(source.text))
    syntax = "json" if is_json else "text"
    source = source if is_json else replace(source, text=_LINE_SEPARATORS.sub("\n", source.text))
    if is_json or form != "csv":
        for reader in (*installed_readers(), *READERS):
            if reader.syntax == syntax and (transcript := reader.read(source)) is not None:
                return transcript, reader.name
    if form == "csv" or is_table(source):
        return read_table(source), "table"
    if form == "md" or is_markdown(source.lines):
        return read_markdown(source, checked=True), "Markdown"
    return read_plain_text(source, checked=True), "plain text"


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
