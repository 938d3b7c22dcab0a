"""Reading a transcript of any known format."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from moot.graph.documents import FORMAT, DebateDocument, as_far_as_it_goes
from moot.graph.documents.reading import shown_config
from moot.graph.importing.csv_tables import header_of, read_csv
from moot.graph.importing.json_records import parse_json, read_json, read_jsonl
from moot.graph.importing.parse_result import ParsedSpeech, ParsedTranscript
from moot.graph.importing.text_speeches import BOLD, is_listed, read_md, read_txt
from moot.state.config.debaters import RESERVED_IDS, free_id, slug
from moot.state.entries import clean_text, kind_of
from moot.state.errors import InputError

FORMATS = ("json", "jsonl", "csv", "txt", "md")
ENDINGS = {".ndjson": "jsonl", ".tsv": "csv", ".markdown": "md", **{f".{name}": name for name in FORMATS}}
_READERS: dict[str, Callable[[str], ParsedTranscript]] = {
    "jsonl": read_jsonl,
    "csv": read_csv,
    "txt": read_txt,
    "md": read_md,
}
_RESERVED = RESERVED_IDS - {"judge", "moderator"}
"""A transcript's judge and moderator are a debate's: neither argues."""


@dataclass(frozen=True)
class Speaker:
    """Somebody who spoke."""

    id: str
    """`[a-z0-9-]`, 1–40 characters, different for each speaker."""
    name: str
    """As the transcript first wrote it, without surrounding space or a closing colon."""


@dataclass(frozen=True)
class ImportedTranscript:
    """A transcript, ready to become a debate."""

    topic: str
    """`""` where neither the text nor the file's name says one."""
    speakers: tuple[Speaker, ...]
    """In the order in which they first spoke."""
    utterances: tuple[ParsedSpeech, ...]
    document: dict[str, object] | None = None
    """The whole document where the input is a `moot.debate/1`, as it was given."""
    solution: str = ""
    """The conclusion where the input has one apart from what was said."""


def parse_transcript(text: str, *, format: str | None = None, filename: str = "") -> ImportedTranscript:
    """Read a transcript.

    Names that differ only in case, spacing or a closing colon are one speaker. Empty utterances and
    messages of chat systems that nobody said (`system`, `tool`) are left out.

    Args:
        text: the whole transcript.
        format: one of `json`, `jsonl`, `csv`, `txt`, `md`; by default the file's
            extension tells, else the text.
        filename: where the text came from; its extension tells the format, its stem stands in for a topic.

    Raises:
        InputError: the text cannot be read in its format or nobody speaks in it; the message names the
            line (or entry) and what to do.
    """
    text = clean_text(text).removeprefix("\ufeff")
    chosen = format or ENDINGS.get(PurePath(filename).suffix.lower()) or _format_of(text)
    if chosen not in FORMATS:
        raise InputError(f"unknown transcript format {chosen!r}: use one of {', '.join(FORMATS)}")
    if not text.strip():
        raise InputError("line 1: the transcript is empty")
    if chosen == "json":
        value = parse_json(text)
        if isinstance(value, dict) and str(value.get("format", "")).startswith("moot.debate/"):
            return _from_document(value)
        return _with_speakers(read_json(value), filename)
    return _with_speakers(_READERS[chosen](text.replace("\r\n", "\n").replace("\r", "\n")), filename)


def _with_speakers(read: ParsedTranscript, filename: str) -> ImportedTranscript:
    """Tell the speakers apart, and leave out who says nothing."""
    names: dict[str, str] = {}
    """As the transcript first wrote them, by what tells them apart."""
    said: list[ParsedSpeech] = []
    for one in read.utterances:
        content = one.content.strip()
        if content:
            name = " ".join(one.speaker.split()).strip("*_ ").removesuffix(":").rstrip() or "Speaker"
            speaker = names.setdefault(unicodedata.normalize("NFKC", name).casefold(), name)
            said.append(ParsedSpeech(speaker, content, one.at))
    if not said:
        raise InputError("line 1: nobody says anything in this transcript; write each speech as `NAME: text`")
    ids = slugs(names.values())
    return ImportedTranscript(
        topic=" ".join(read.topic.split()) or re.sub(r"[\W_]+", " ", PurePath(filename).stem).strip(),
        speakers=tuple(Speaker(ids[name], name) for name in names.values()),
        utterances=tuple(replace(one, speaker=ids[one.speaker]) for one in said),
        solution=read.solution,
    )


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Map distinct display names to ids that never collide, in the order given.

    A name of which nothing remains becomes `speaker-` and its position, from 1.
    """
    ids: dict[str, str] = {}
    for position, name in enumerate(dict.fromkeys(names), start=1):
        wanted = slug(name) or f"speaker-{position}"
        ids[name] = free_id(f"speaker-{wanted}" if wanted in _RESERVED else wanted, ids.values())
    return ids


def _format_of(text: str) -> str:
    start = text.lstrip()[:1]
    lines = [line for line in text.splitlines() if line.strip()]
    if start in ("{", "["):
        each = len(lines) > 1 and all(line.strip()[:1] == "{" and line.strip()[-1:] == "}" for line in lines)
        return "jsonl" if each else "json"
    if any(BOLD.match(line) or line.startswith("## ") for line in lines):
        return "md"
    if lines and header_of(lines[0]):
        return "csv"
    return "md" if is_listed(lines) else "txt"


def _from_document(given: dict[str, object]) -> ImportedTranscript:
    if given["format"] != FORMAT:
        raise InputError(f"line 1: format {given['format']!r} is not known; this version reads {FORMAT}")
    document = as_far_as_it_goes(DebateDocument, given)
    said = [entry for entry in document["transcript"] if kind_of(entry).spoken]
    debaters = shown_config(document)["debaters"]
    names = {debater["id"]: debater["name"] or debater["id"] for debater in debaters}
    spoke = dict.fromkeys(entry["speaker"] for entry in said)
    return ImportedTranscript(
        topic=document["topic"],
        speakers=tuple(Speaker(key, names.get(key, key)) for key in spoke),
        utterances=tuple(ParsedSpeech(entry["speaker"], entry["content"], entry["at"]) for entry in said),
        document=given,
        solution=document["solution"],
    )
