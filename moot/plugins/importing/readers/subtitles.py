"""Subtitles: WebVTT of Zoom, Teams and Meet, SubRip (SRT), and the other forms that pysubs2 reads."""

import html
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source, parse_json
from moot.plugins.importing.names import LABEL, first_messages, is_name, why_implausible
from moot.state.errors import InputError
from moot.state.settings import require_extra

_TIMING = re.compile(
    r"\s*(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}\s*(?:-->|,)\s*(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}"
)
_SECTIONS = frozenset({"[Script Info]", "[Events]", "[V4+ Styles]"})
_VOICE = re.compile(r"<v(?:\.[\w.-]{1,60})?[ \t]+(?P<name>[^>\n]{1,80})>")
_TAG = re.compile(r"</?[a-z][^<>\n]{0,80}>|<\d{2}:[\d:.]{1,12}>", re.IGNORECASE)
_BRACKETS = re.compile(r"\s*\[(?P<name>[^\[\]\n]{1,60})\]\s+(?P<text>\S[\s\S]*)")
_WEBEX = re.compile(r'\d+ "(?P<name>[^"\n]{1,80})" \(\d+\)')
"""Pattern for the id of a cue with the name of its speaker."""
_SPEAKER = re.compile(
    r"\s*(?:[-–]\s*)?(?:>>+\s*)?(?:[\[(](?P<bracketed>[^\[\]()\n]{1,60})[\])]|(?P<name>[^\s:：<>\[(][^:：<>\n]{0,59}))"
    r"\s*[:：](?=\s|$)\s*(?P<text>.*)"
)


def _read(source: Source) -> ParsedTranscript | None:
    head = source.text.lstrip()[:200]
    if head.startswith("WEBVTT"):
        cues = _vtt_cues(source)
    elif _is_srt(source.lines) or head.startswith("[Script Info]"):
        cues = _other_cues(source)
    elif any(_TIMING.match(line) and "-->" in line for line in source.lines) or _SECTIONS & {*source.lines}:
        # A Teams transcript has the times of a cue too, but more colons.
        raise InputError("line 1: the subtitles are damaged: export them again, or remove the cue times")
    else:
        return None
    left_out = LeftOut()
    messages = _merged(_spoken(_bracketed(list(cues)), left_out))
    if not messages:
        raise InputError(
            "line 1: the subtitles do not say who speaks. Begin each cue with the speaker, as in `NAME: text`"
        )
    if reason := why_implausible(messages):
        raise InputError(
            f"line 1: the subtitles do not say clearly who speaks: {reason}. The first messages as read:\n"
            f"{first_messages(messages)}"
        )
    return ParsedTranscript(messages, left_out=left_out)


def _is_srt(lines: Sequence[str]) -> bool:
    """Return True if the first or second line with text is the times of a cue."""
    filled = [line for line in lines[:20] if line.strip()][:2]
    starts = [bool(_TIMING.match(line)) for line in filled]
    return any(starts) and (starts[0] or filled[0].strip().isdecimal())


def _vtt_cues(source: Source) -> Iterator[ParsedMessage]:
    with require_extra("importing", "reading subtitles"):
        import webvtt
    try:
        captions = webvtt.from_string(source.text.lstrip(), strict=True).captions
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError) as error:
        raise InputError(f"line 1: the subtitles are not valid WebVTT ({error})") from error
    for caption in captions:
        raw = caption.raw_text
        if webex := _WEBEX.fullmatch(caption.identifier or ""):
            yield ParsedMessage(webex["name"], _plain(raw), caption.start)
            continue
        if raw.startswith("{") and isinstance(cue := parse_json(raw), dict):  # Microsoft Graph
            name, text = str(cue.get("speakerName") or ""), str(cue.get("spokenText") or "")
            yield ParsedMessage(name, text, caption.start)
            continue
        voices = [*_VOICE.finditer(raw)]
        ends = [*(voice.start() for voice in voices[1:]), len(raw)]
        first = raw[: voices[0].start()] if voices else raw
        if _plain(first):
            yield ParsedMessage("", _plain(first), caption.start)
        for voice, end in zip(voices, ends if voices else (), strict=True):
            name = html.unescape(voice["name"]).strip()
            yield ParsedMessage(name, _plain(raw[voice.end() : end]), caption.start)


def _plain(text: str) -> str:
    return html.unescape(_TAG.sub("", text)).strip()


def _other_cues(source: Source) -> Iterator[ParsedMessage]:
    with require_extra("importing", "reading subtitles"):
        import pysubs2
    form = "ass" if source.text.lstrip().startswith("[Script Info]") else "srt"
    text = source.text
    if form == "srt" and "-->" not in text:  # YouTube's form has commas between the times
        text = "\n".join(_as_srt(line) for line in source.lines)
    try:
        with warnings.catch_warnings(action="ignore"):  # it warns of fields that are not needed here
            file = pysubs2.SSAFile.from_string(text, format_=form)
    except (pysubs2.exceptions.Pysubs2Error, ValueError, OverflowError) as error:
        raise InputError(f"line 1: the subtitles cannot be read ({error})") from error
    for event in file:
        if event.is_comment:
            continue
        seconds, milliseconds = divmod(max(0, event.start), 1000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milliseconds:03}"
        yield ParsedMessage(event.name, _plain(event.plaintext), clock)


def _as_srt(line: str) -> str:
    if not _TIMING.match(line):
        return line
    start, _, end = line.partition(",")
    return f"{start.replace('.', ',')} --> {end.replace('.', ',')}"


def _bracketed(cues: list[ParsedMessage]) -> list[ParsedMessage]:
    """Take the names from brackets if each cue begins with them. Otherwise brackets may contain sounds."""
    matches = [_BRACKETS.fullmatch(cue.content) for cue in cues if not cue.speaker]
    name_matches = [match for match in matches if match and is_name(match["name"], known=False)]
    if len(name_matches) < len(cues):
        return cues
    return [
        replace(cue, speaker=match["name"], content=match["text"])
        for cue, match in zip(cues, name_matches, strict=True)
    ]


def _spoken(cues: Sequence[ParsedMessage], left_out: LeftOut) -> Iterator[ParsedMessage]:
    """Yield the messages of the cues. A cue without a speaker continues the message before it."""
    matches = [
        match
        for cue in cues
        if not cue.speaker
        for line in cue.content.split("\n")
        if (match := _SPEAKER.match(line))
    ]
    counts = Counter(_name_in(match) for match in matches)
    # Where each cue names a speaker and somebody speaks twice, rare names may be lower-case too.
    is_uniform = len(matches) == len(cues) > len(counts)
    speaker = ""
    for cue in cues:
        if cue.speaker:
            speaker = cue.speaker
            yield cue
            continue
        for line in filter(str.strip, cue.content.split("\n")):
            match = _SPEAKER.match(line)
            name = _name_in(match) if match else ""
            if match and not LABEL.fullmatch(name) and is_name(name, known=is_uniform or counts[name] > 1):
                speaker, line = name, match["text"]
            if speaker:
                yield ParsedMessage(speaker, line.strip(), cue.time)
            else:
                left_out["unattributed line"] += 1


def _name_in(match: re.Match[str]) -> str:
    return (match["bracketed"] or match["name"] or "").strip()


def _merged(messages: Iterator[ParsedMessage]) -> list[ParsedMessage]:
    """Join neighbouring messages of a speaker, whom subtitles split into lines."""
    runs: list[tuple[ParsedMessage, list[str]]] = []
    for message in messages:
        if not runs or runs[-1][0].speaker != message.speaker:
            runs.append((message, []))
        runs[-1][1].append(message.content)
    return [replace(first, content="\n".join(filter(None, texts))) for first, texts in runs]


READER = Reader("subtitles", "text", _read)
