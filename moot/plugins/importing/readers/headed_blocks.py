"""Transcripts and pasted chats in which a name and a time stand above the text.

Otter, Fireflies, Rev, Teams, Slack, Discord, Telegram and WeChat write them, each in its own order.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source
from moot.plugins.importing.dates import DATE, HALF_DAY, STAMP, TIME_OF_DAY, iso_times
from moot.plugins.importing.names import LABEL, first_messages, is_name, why_implausible
from moot.state.errors import InputError

_NAME = r"(?P<name>[^\s\[(\d:：<>*#|][^\n:：<>*#|\t]{0,59}?)"
_DAY = r"(?:[^\W\d]{3,12},? (?:at|um|à|a las|às|alle|kl\.?|o) )"
_MONTH = (
    r"(?:[^\W\d]{3,12}\.? \d{1,2},? (?:\d{4},? )?(?:at )?|\d{1,2}\.? [^\W\d]{3,12}\.? (?:\d{4},? )?(?:at )?)"
)
_SHORT_DATE = r"\d{1,2}[./-]\d{1,2}\.?,? "
_TIME = (
    rf"(?P<time>{STAMP}|\d{{1,2}}-[^\W\d]{{3,4}}-\d{{2,4}} {TIME_OF_DAY}|{_DAY}?{TIME_OF_DAY}(?: Uhr)?"
    rf"|{_MONTH}{TIME_OF_DAY}|{_SHORT_DATE}{TIME_OF_DAY}|{DATE})"
)
_RANGE_END = r"(?:\s*+(?:-->|-|–)\s*+\d{1,2}:\d{1,2}(?::\d{1,2})?(?:[.,]\d{1,6})?)?"
_BRACKETED = rf"[\[(](?:[^\W\d]{{3,12}},? )?{_TIME}{_RANGE_END}[\])]"
_FRAME = r"\d{1,2}[:;]\d{2}[:;]\d{2}[:;]\d{2}"
"""Pattern for a time that ends with the number of a frame, as video editors write it."""
_TIMES_LINE = re.compile(
    rf"[\[(]?(?:(?P<range>\d{{1,2}}:\d{{1,2}}:\d{{1,2}}(?:[.,]\d+)?)\s*+-->.*|(?P<frame>{_FRAME})\s-\s{_FRAME}"
    rf"|{_TIME}{_RANGE_END})[\])]?",
    re.IGNORECASE,
)
_NAME_LINE = re.compile(rf"{_NAME}\s*+:?")
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\[(?P<name>[^\[\]\n]{{1,60}})\] {_TIME}",
        rf"{_NAME}(?:\s{{2,}}+|\t){_TIME}\s*+:?",
        rf"{_NAME}\s*+[,:]?\s*+{_BRACKETED}\s*+:?",
        rf"{_NAME}\s*+[-–—|•·,]\s++{_TIME}\s*+:?",
        rf"{_NAME}\s++{_TIME}\s*+:?",
        rf"{_BRACKETED}\s*+(?:[-–—|•·]\s*+)?{_NAME}\s*+:?",
        rf"{_TIME}{_RANGE_END}(?:\s*+[-–—|•·])?\s++{_NAME}\s*+:?",
    )
)
"""Lines with a name and a time, from the form with the clearest border to the one with the least clear."""
_OTTER_FOOTER = re.compile(r"Transcribed by https?://otter\.ai/?")
_EVENT = re.compile(r".{1,60} (?:started|stopped) transcription")


@dataclass(frozen=True)
class _Head:
    """Lines with the name and the time of a message."""

    name: str
    time: str
    length: int
    """Number of lines."""


def _read(source: Source) -> ParsedTranscript | None:
    lines, left_out = [re.sub(r"^@(?=\d)|\*\*", "", line) for line in source.lines], LeftOut()
    for index, line in enumerate(lines):
        if _OTTER_FOOTER.fullmatch(line.strip()):
            lines[index] = ""
            left_out["footer"] += 1
        elif _EVENT.fullmatch(line.strip()):
            lines[index] = ""
            left_out["system message"] += 1
    candidates = [_heads(form, lines) for form in _FORMS]
    candidates += [_two_line_heads(lines, time_first=False), _two_line_heads(lines, time_first=True)]
    heads = max(candidates, key=len)
    if not heads or not _is_block_text(heads, lines):
        return None
    times = iso_times([head.time for head in heads.values()])
    ends = [*list(heads)[1:], len(lines)]
    messages = [
        ParsedMessage(head.name, "\n".join(lines[start + head.length : end]).strip(), time)
        for (start, head), end, time in zip(heads.items(), ends, times, strict=True)
    ]
    if reason := why_implausible(messages):
        raise InputError(
            f"line 1: it is not clear who speaks: {reason}. The first messages as read:\n"
            f"{first_messages(messages)}"
        )
    return ParsedTranscript(messages, left_out=left_out)


def _heads(form: re.Pattern[str], lines: Sequence[str]) -> dict[int, _Head]:
    return {
        index: _Head(match["name"].strip(), match["time"], 1)
        for index, line in enumerate(lines)
        if (match := form.fullmatch(line.strip())) and _may_be_name(match["name"])
    }


def _may_be_name(name: str) -> bool:
    name = name.strip()
    is_word = LABEL.fullmatch(name) or HALF_DAY.fullmatch(name)
    return is_name(name, known=" " not in name) and not is_word and name[-1] not in ".,-–—"


def _two_line_heads(lines: Sequence[str], *, time_first: bool) -> dict[int, _Head]:
    """Find names with a time on the line below, or above. Text follows both."""
    heads: dict[int, _Head] = {}
    for index in range(len(lines) - 2):
        above, below = lines[index], lines[index + 1]
        name, clock = (below, above) if time_first else (above, below)
        time, name_lines = _TIMES_LINE.fullmatch(clock.strip()), _NAME_LINE.fullmatch(name.strip())
        if time and name_lines and _may_be_name(name_lines["name"]) and lines[index + 2].strip():
            heads[index] = _Head(
                name_lines["name"].strip(), time["time"] or time["range"] or time["frame"], 2
            )
    return heads


def _is_block_text(heads: Mapping[int, _Head], lines: Sequence[str]) -> bool:
    """Return True if text follows each head, and little text stands above the first one."""
    first = next(iter(heads))
    above = sum(bool(line.strip()) for line in lines[:first])
    filled = [index + head.length for index, head in heads.items()]
    has_text = all(index < len(lines) and lines[index].strip() and index not in heads for index in filled)
    return has_text and above <= max(_MAX_TITLE_LINES, len(heads))


_MAX_TITLE_LINES = 8
"""Maximum number of lines above the first message, such as a title, a date and keywords."""

READER = Reader("names and times above the text", "text", _read)
