"""Reader for a transcript in any supported format."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath

from moot import documents
from moot.config import RESERVED_IDS
from moot.config.participants import slug, unique_slug
from moot.importers import ImportedTranscript, ParsedMessage, ParsedTranscript, Speaker
from moot.plugins.importing import formats
from moot.state import entries as entry_types
from moot.state.errors import InputError
from moot.text.plain_text import plain_line

FORMATS = ("json", "jsonl", "csv", "txt", "md")
ENDINGS = {".ndjson": "jsonl", ".tsv": "csv", ".markdown": "md", **{f".{name}": name for name in FORMATS}}
_READERS: dict[str, Callable[[str], ParsedTranscript]] = {
    "jsonl": formats.read_jsonl,
    "csv": formats.read_csv,
    "txt": formats.read_txt,
    "md": formats.read_md,
}
_RESERVED = RESERVED_IDS - {"judge", "moderator"}
"""Reserved ids that are never assigned to imported speakers. A judge and a moderator keep their ids and do
not debate."""


def parse_transcript(text: str, *, format: str | None = None, filename: str = "") -> ImportedTranscript:
    """Read a transcript.

    Names that differ only in case, spacing or a final colon are one speaker. Empty messages and messages
    with the role `system` or `developer` are skipped. In OpenAI's chat format, tool calls and their results
    are kept.

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
    text = entry_types.clean_text(text).removeprefix("\ufeff")
    format_name = format or ENDINGS.get(PurePath(filename).suffix.lower()) or _format_of(text)
    if format_name not in FORMATS:
        raise InputError(f"unknown transcript format {format_name!r}: use one of {', '.join(FORMATS)}")
    if not text.strip():
        raise InputError("line 1: the transcript is empty")
    try:
        if format_name == "json":
            value = formats.parse_json(text)
            if isinstance(value, dict) and str(value.get("format", "")).startswith("moot.debate/"):
                return _from_document(value)
            return _with_speakers(formats.read_json(value), filename)
        return _with_speakers(_READERS[format_name](text.replace("\r\n", "\n").replace("\r", "\n")), filename)
    except RecursionError as error:
        raise InputError("the content of a message is nested too deeply: write it as text") from error


def _with_speakers(transcript: ParsedTranscript, filename: str) -> ImportedTranscript:
    """Assign ids to the speakers of a transcript, and remove empty messages."""
    names: dict[str, str] = {}
    """Name of each speaker as first written, by its normalized form."""
    messages: list[ParsedMessage] = []
    for message in transcript.messages:
        content = entry_types.clean_text(message.content).strip()
        if message.kind == "tool_result":
            messages.append(message)
        elif content:
            name = (
                plain_line(entry_types.clean_text(message.speaker)).strip("*_ ").removesuffix(":").rstrip()
                or "Speaker"
            )
            speaker = names.setdefault(unicodedata.normalize("NFKC", name).casefold(), name)
            messages.append(replace(message, speaker=speaker, content=content))
    if not names:
        raise InputError("line 1: the transcript has no messages; write each message as `NAME: text`")
    ids = slugs(names.values())
    return ImportedTranscript(
        topic=" ".join(transcript.topic.split()) or re.sub(r"[\W_]+", " ", PurePath(filename).stem).strip(),
        speakers=tuple(Speaker(ids[name], name) for name in names.values()),
        messages=tuple(
            message
            if message.kind == "tool_result"
            else replace(
                message, speaker=ids[message.speaker], target=ids.get(_known(message.target, names), "")
            )
            for message in messages
        ),
        solution=transcript.solution,
    )


def _known(name: str, names: Mapping[str, str]) -> str:
    return names.get(unicodedata.normalize("NFKC", " ".join(name.split())).casefold(), "")


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Return a unique id for each display name.

    A name without letters or digits becomes `speaker-` and its position, from 1.
    """
    ids: dict[str, str] = {}
    last_numbers: dict[str, int] = {}
    """Number after which to search for a free id, by id."""
    for position, name in enumerate(dict.fromkeys(names), start=1):
        candidate = slug(name) or f"speaker-{position}"
        candidate = f"speaker-{candidate}" if candidate in _RESERVED else candidate
        ids[name] = unique_slug(candidate, last_numbers, start=last_numbers.get(candidate, 1) + 1)
        last_numbers[candidate] = last_numbers.get(candidate, 0) + 1
        last_numbers.setdefault(ids[name], 1)
    return ids


def _format_of(text: str) -> str:
    start = text.lstrip()[:1]
    lines = [line for line in text.splitlines() if line.strip()]
    if start in ("{", "[") and not formats.TIME_STAMP.match(text.lstrip()):
        is_jsonl = len(lines) > 1 and all(
            line.strip()[:1] == "{" and line.strip()[-1:] == "}" for line in lines
        )
        return "jsonl" if is_jsonl else "json"
    if any(formats.BOLD.match(line) or line.startswith("## ") for line in lines):
        return "md"
    if lines and formats.header_of(lines[0]):
        return "csv"
    return "md" if formats.is_listed(lines) else "txt"


def _from_document(raw_document: dict[str, object]) -> ImportedTranscript:
    if raw_document["format"] != documents.FORMAT:
        raise InputError(
            f"line 1: the format {raw_document['format']!r} is unknown; this version of Moot reads "
            f"{documents.FORMAT}"
        )
    document = documents.read_document(raw_document, documents.IMPORT_HINT)
    entries = [entry for entry in document["transcript"] if entry_types.traits_of(entry).is_message]
    debaters = documents.document_config(document).debaters
    names = {debater.id: debater.name or debater.id for debater in debaters}
    speaker_ids = dict.fromkeys(entry["speaker"] for entry in entries)
    return ImportedTranscript(
        topic=document["topic"],
        speakers=tuple(Speaker(key, names.get(key, key)) for key in speaker_ids),
        messages=tuple(
            ParsedMessage(entry["speaker"], entry["content"], entry["at"] if entry.get("dated") else "")
            for entry in entries
        ),
        document=raw_document,
        solution=document["solution"],
    )
