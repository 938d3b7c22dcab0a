"""Saved chats of Zoom: the sender and the receiver stand between a time and a colon."""

import re

from moot.importers import ParsedMessage, ParsedTranscript, Reader, Source
from moot.state.errors import InputError

# The words that Zoom writes around sender and receiver in each of its languages.
_LABELS = (
    *(
        ("From", "to"),
        ("From", "To"),
        ("Von", "an"),
        ("Van", "aan"),
        ("De", "à"),
        ("De", "a"),
        ("De", "para"),
    ),
    *(("Da", "a"), ("Od", "do"), ("От", "кому"), ("De la", "către"), ("Från", "till"), ("Fra", "til")),
    *(("開始", "終了"), ("差出人", "宛先"), ("从", "到"), ("从", "发送至"), ("시작", "수신자")),
)
"""Words that Zoom writes before the sender and before the receiver, in its languages."""
_PEOPLE = "|".join(
    rf"{start}\s+(?P<name{number}>\S.{{0,80}}?)\s+{end}\s+\S.{{0,120}}?"
    for number, (start, end) in enumerate(_LABELS)
)
_HEAD = re.compile(
    rf"(?P<time>\d{{1,2}}:\d{{2}}:\d{{2}}(?:\s?[AP]M)?)\s+(?:{_PEOPLE})\s?[:：](?:\s+|$)(?P<text>.*)"
)


def _read(source: Source) -> ParsedTranscript | None:
    heads = {index: match for index, line in enumerate(source.lines) if (match := _HEAD.match(line))}
    first = next((index for index, line in enumerate(source.lines) if line.strip()), 0)
    if not heads:
        return None
    if first not in heads:
        raise InputError("line 1: the Zoom chat is damaged: it begins with the time of a message")
    ends = [*list(heads)[1:], len(source.lines)]
    messages = [
        ParsedMessage(
            next(name for key, name in match.groupdict().items() if key.startswith("name") and name),
            "\n".join(line.strip() for line in [match["text"], *source.lines[index + 1 : end]]).strip(),
            match["time"],
        )
        for (index, match), end in zip(heads.items(), ends, strict=True)
    ]
    return ParsedTranscript(messages)


READER = Reader("Zoom chat", "text", _read)
