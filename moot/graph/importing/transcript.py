"""Reading a transcript of any known format."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath

from moot.graph.documents import FORMAT, DebateDocument, as_far_as_it_goes
from moot.graph.documents.shown_config import shown_config
from moot.graph.importing.csv_tables import header_of, read_csv
from moot.graph.importing.json_records import parse_json, read_json, read_jsonl
from moot.graph.importing.parse_result import ParsedSpeech, ParsedTranscript
from moot.graph.importing.speaker_ids import slugs
from moot.graph.importing.text_speeches import BOLD, is_listed, read_md, read_txt
from moot.state.entries import clean_text, kind_of
from moot.state.errors import InputError

FORMATS = ("json", "jsonl", "csv", "txt", "md")
_EXTENSIONS = {".ndjson": "jsonl", ".tsv": "csv", ".markdown": "md", **{f".{name}": name for name in FORMATS}}


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
    chosen = format or _EXTENSIONS.get(PurePath(filename).suffix.lower()) or _sniffed(text)
    if chosen not in FORMATS:
        raise InputError(f"unknown transcript format {chosen!r}: use one of {', '.join(FORMATS)}")
    if not text.strip():
        raise InputError("line 1: the transcript is empty")
    if chosen == "json":
        value = parse_json(text)
        if isinstance(value, dict) and str(value.get("format", "")).startswith("moot.debate/"):
            return _from_document(value)
        return _gathered(read_json(value), filename)
    return _gathered(_READERS[chosen](text.replace("\r\n", "\n").replace("\r", "\n")), filename)


def _gathered(read: ParsedTranscript, filename: str) -> ImportedTranscript:
    tidied = [
        replace(one, speaker=_tidy(one.speaker), content=one.content.strip())
        for one in read.utterances
        if one.content.strip()
    ]
    if not tidied:
        raise InputError("line 1: nobody says anything in this transcript; write each speech as `NAME: text`")
    names: dict[str, str] = {}
    for one in tidied:
        names.setdefault(_identity(one.speaker), one.speaker)
    ids = slugs(names.values())
    return ImportedTranscript(
        topic=" ".join(read.topic.split()) or re.sub(r"[\W_]+", " ", PurePath(filename).stem).strip(),
        speakers=tuple(Speaker(ids[name], name) for name in names.values()),
        utterances=tuple(replace(one, speaker=ids[names[_identity(one.speaker)]]) for one in tidied),
        solution=read.solution,
    )


def _tidy(name: str) -> str:
    return " ".join(name.split()).strip("*_ ").removesuffix(":").rstrip() or "Speaker"


def _identity(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _sniffed(text: str) -> str:
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


_READERS: dict[str, Callable[[str], ParsedTranscript]] = {
    "jsonl": read_jsonl,
    "csv": read_csv,
    "txt": read_txt,
    "md": read_md,
}
