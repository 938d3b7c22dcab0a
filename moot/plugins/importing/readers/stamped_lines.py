"""Chats whose messages begin with a time and a name on one line: WhatsApp, Signal, Skype, Zoom and others."""

import re
from collections import Counter
from dataclasses import replace

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source
from moot.plugins.importing.dates import LOOSE_STAMP, STAMP, TIME_OF_DAY, iso_times
from moot.plugins.importing.names import FIELDS, MARKUP, is_name
from moot.plugins.importing.readers.speaker_lines import speaker_lines

_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that set the direction of text. WhatsApp marks its own texts with them."""
_TIME = rf"(?:{STAMP}|{TIME_OF_DAY})"
_HEAD = re.compile(
    rf"[{_MARKS}]*(?:(?P<dashed>{LOOSE_STAMP})\s[-–—]\s+"
    rf"|(?:[\[(](?P<bracketed>{_TIME}|{LOOSE_STAMP})[\])]|(?P<bare>{_TIME}))(?:\s*[-–—|,]\s+|\s+))(?P<rest>\S.*)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:~\s?)?(?P<name>[^:：\"“”„«»\n]{1,60}?)\s?[:：](?=\s|$)\s*(?P<text>.*)")
_MEDIA = re.compile(rf"[{_MARKS}].*|<[^<>\n]{{3,60}}>|[^\n]{{1,80}}\.\w{{3,4}} \([^()\n]{{3,40}}\)")
"""Pattern for a text that WhatsApp writes in place of an attachment."""
_MARKS_IN_DATE = re.compile(rf"(?<=\d)[{_MARKS}]{{1,3}}(?=[/.-])|(?<=[/.-])[{_MARKS}]{{1,3}}(?=\d)")
_EDITED = re.compile(rf"\s?[{_MARKS}]<[^<>\n]{{3,60}}>$")
"""Pattern for WhatsApp's mark of an edited message."""
_MAX_TITLE_LINES = 8
"""Maximum number of lines above the first message, such as a title, a date and a link."""
_EVENT_WORDS = 5
"""Number of words from which a text before a colon that occurs once is an event, not a name. An example is
`Ann Lee changed the topic to: x`."""
_CLOCK_IN_BRACKETS = re.compile(r"[\[(]\d{0,2}(?::\d{2}){1,2}(?:[.,]\d+)?[\])]")


def _read(source: Source) -> ParsedTranscript | None:
    lines = [_MARKS_IN_DATE.sub("", line) for line in source.lines]
    heads = [_HEAD.match(line) for line in lines]
    stamped = [head for head in heads if head]
    first = next((index for index, head in enumerate(heads) if head), 0)
    above = [line for line in lines[:first] if line.strip()]
    if not stamped or len(above) > min(_MAX_TITLE_LINES, len(stamped)) or speaker_lines(above):
        return None
    # Bracketed positions without dates may be missing from some messages: the plain-text reader reads them.
    if all(_CLOCK_IN_BRACKETS.match(head.string.lstrip(_MARKS)) for head in stamped):
        return None
    names = [_NAMED.match(head["rest"].lstrip(_MARKS)) for head in stamped]
    counts = Counter(_clean(match["name"]) for match in names if match)
    if not counts or any(map(FIELDS.fullmatch, counts)) or all(map(MARKUP.search, counts)):
        return None
    times = iter(iso_times([head["bracketed"] or head["dashed"] or head["bare"] for head in stamped]))
    messages, left_out, is_open = list[ParsedMessage](), LeftOut(), False
    left_out["header line"] += len(above)
    for line, head in zip(lines, heads, strict=True):
        if head is None:
            if is_open and messages:
                messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n{line.strip(_MARKS)}")
            continue
        time, speaker_match = next(times), _NAMED.match(head["rest"].lstrip(_MARKS))
        name = _clean(speaker_match["name"]) if speaker_match else ""
        is_event = counts[name] == 1 and len(name.split()) >= _EVENT_WORDS and not is_name(name, known=False)
        is_open = speaker_match is not None and not is_event
        if speaker_match is None or not is_open:
            left_out["system message"] += 1
        elif _MEDIA.fullmatch(speaker_match["text"].strip()):
            left_out["attachment or system message"] += 1
            is_open = False
        else:
            text = _EDITED.sub("", speaker_match["text"]).strip(_MARKS)
            messages.append(ParsedMessage(name, text, time))
    return ParsedTranscript(messages, left_out=left_out) if messages else None


def _clean(name: str) -> str:
    return name.strip(_MARKS + " \u00a0\u202f")


READER = Reader("chat with times", "text", _read)
