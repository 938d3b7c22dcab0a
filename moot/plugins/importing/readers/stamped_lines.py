"""Chats whose messages begin with a time and a name on one line: WhatsApp, Signal, Skype, Zoom and others."""

import re
from dataclasses import replace

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source
from moot.plugins.importing.dates import STAMP, TIME_OF_DAY, iso_times
from moot.plugins.importing.names import FIELDS

_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that set the direction of text. WhatsApp marks its own texts with them."""
_TIME = rf"(?:{STAMP}|{TIME_OF_DAY})"
_HEAD = re.compile(
    rf"[{_MARKS}]*(?:[\[(](?P<bracketed>{_TIME})[\])]|(?P<bare>{_TIME}))(?P<after>\s*[-–—|,]\s+|\s+)(?P<rest>\S.*)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:~\s?)?(?P<name>[^:：\"“”„«»\n]{1,60}?)\s?[:：](?=\s|$)\s*(?P<text>.*)")
_MEDIA = re.compile(rf"[{_MARKS}].*|<[^<>\n]{{3,60}}>|[^\n]{{1,80}}\.\w{{3,4}} \([^()\n]{{3,40}}\)")
"""Pattern for a text that WhatsApp writes in place of an attachment."""
_CLOCK_IN_BRACKETS = re.compile(r"[\[(]\d{0,2}(?::\d{2}){1,2}(?:[.,]\d+)?[\])]")


def _read(source: Source) -> ParsedTranscript | None:
    first = next((line for line in source.lines if line.strip()), "")
    if not _HEAD.match(first):
        return None
    heads = [_HEAD.match(line) for line in source.lines]
    stamped = [head for head in heads if head]
    # Bracketed positions without dates may be missing from some messages: the plain-text reader reads them.
    if all(_CLOCK_IN_BRACKETS.match(head.string.lstrip(_MARKS)) for head in stamped):
        return None
    names = [_NAMED.match(head["rest"].lstrip(_MARKS)) for head in stamped]
    if not any(names) or any(match and FIELDS.fullmatch(_clean(match["name"])) for match in names):
        return None
    times = iter(iso_times([head["bracketed"] or head["bare"] for head in stamped]))
    messages, left_out, is_open = list[ParsedMessage](), LeftOut(), False
    for line, head in zip(source.lines, heads, strict=True):
        if head is None:
            if is_open and messages:
                messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n{line.strip(_MARKS)}")
            continue
        time, label = next(times), _NAMED.match(head["rest"].lstrip(_MARKS))
        is_open = label is not None
        if label is None:
            left_out["system message"] += 1
        elif _MEDIA.fullmatch(label["text"].strip()):
            left_out["attachment or system message"] += 1
            is_open = False
        else:
            messages.append(ParsedMessage(_clean(label["name"]), label["text"].strip(_MARKS), time))
    return ParsedTranscript(messages, left_out=left_out) if messages else None


def _clean(name: str) -> str:
    return name.strip(_MARKS + " \u00a0\u202f")


READER = Reader("chat with times", "text", _read)
