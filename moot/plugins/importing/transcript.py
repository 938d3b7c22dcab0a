"""Reader for a transcript in any supported format."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath

from moot import documents
from moot.config import RESERVED_IDS
from moot.config.participants import slug, unique_slug
from moot.importers import ImportedTranscript, LeftOut, ParsedMessage, ParsedTranscript, Source, Speaker
from moot.plugins.importing import registry
from moot.plugins.importing.encoding import decode
from moot.plugins.importing.registry import read_source
from moot.state import entries as entry_types
from moot.state.errors import InputError
from moot.text.plain_text import count_noun, plain_line

ENDINGS = registry.ENDINGS
"""Format of each file suffix. `moot.importers` reads it here."""
_RESERVED = RESERVED_IDS - {"judge", "moderator"}
"""Reserved ids that are never assigned to imported speakers. A judge and a moderator keep their ids and do
not debate."""


def parse_transcript(
    transcript: str | bytes, *, format: str | None = None, filename: str = "", conversation: str = ""
) -> ImportedTranscript:
    """Read a transcript.

    Names that differ only in case, spacing or a final colon are one speaker. Tool calls and their results are
    kept. Everything else that is no message is counted in `left_out`.

    The arguments and the errors are those of `moot.importers.parse_transcript`.
    """
    text, guessed_encoding = decode(transcript) if isinstance(transcript, bytes) else (transcript, "")
    text = re.sub(r"\x03\d{0,2}(?:,\d{1,2})?", "", text)  # colours of IRC
    text = entry_types.clean_text(text).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise InputError("line 1: the transcript is empty")
    try:
        source = Source(text, filename, conversation)
        if (document := _document_in(source, format)) is not None:
            return _from_document(document)
        parsed, reader = read_source(source, format)
    except RecursionError as error:
        raise InputError("the content of a message is nested too deeply: write it as text") from error
    return _with_speakers(parsed, filename, reader, guessed_encoding)


def left_out_line(left_out: Mapping[str, int]) -> str:
    """Return a line such as `12 system messages, 3 attachments left out`, or `""` if nothing is left out."""
    counts = [count_noun(count, noun) for noun, count in left_out.items() if count]
    return f"{', '.join(counts)} left out" if counts else ""


def _document_in(source: Source, format: str | None) -> dict[str, object] | None:
    """Return an exported debate, or `None` if the file is a transcript."""
    if (
        format not in (None, "json")
        or not source.text.lstrip().startswith("{")
        or "moot.debate/" not in source.text
    ):
        return None
    value = source.json
    is_document = isinstance(value, dict) and str(value.get("format", "")).startswith("moot.debate/")
    return value if is_document and isinstance(value, dict) else None


def _with_speakers(
    transcript: ParsedTranscript, filename: str, reader: str, guessed_encoding: str
) -> ImportedTranscript:
    """Assign ids to the speakers of a transcript, and remove empty messages."""
    names: dict[str, str] = {}
    """Name of each speaker as first written, by its normalized form."""
    messages: list[ParsedMessage] = []
    left_out = LeftOut(transcript.left_out)
    for message in transcript.messages:
        content = entry_types.clean_text(message.content).strip()
        if not message.is_by_speaker:
            messages.append(message)
        elif content:
            name = (
                plain_line(entry_types.clean_text(message.speaker)).strip("*_ ").removesuffix(":").rstrip()
                or "Speaker"
            )
            speaker = names.setdefault(unicodedata.normalize("NFKC", name).casefold(), name)
            messages.append(replace(message, speaker=speaker, content=content))
        else:
            left_out["empty message"] += 1
    if not names:
        raise InputError("line 1: the transcript has no messages; write each message as `NAME: text`")
    ids = slugs(names.values())
    return ImportedTranscript(
        topic="\n".join(line.rstrip() for line in transcript.topic.strip().splitlines())
        or re.sub(r"[\W_]+", " ", PurePath(filename).stem).strip(),
        speakers=tuple(
            Speaker(ids[name], transcript.names.get(name, name), transcript.roles.get(name, ""))
            for name in names.values()
        ),
        messages=tuple(
            message
            if not message.is_by_speaker
            else replace(
                message, speaker=ids[message.speaker], target=ids.get(_known(message.target, names), "")
            )
            for message in messages
        ),
        solution=transcript.solution,
        reader=reader,
        left_out=left_out_line(left_out),
        encoding=guessed_encoding,
        settings=transcript.settings,
        verdict=transcript.verdict,
        summaries=tuple(
            replace(each, owner=ids.get(_known(each.owner, names), "")) for each in transcript.summaries
        ),
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
