"""Logs of IRC clients, and chats in columns of time, name and text, such as WeeChat's and LINE's."""

import re

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source
from moot.plugins.importing.dates import TIME_OF_DAY

_DATE = r"(?:\d{4}-\d{2}-\d{2}[T ]|[^\W\d]{3} \d{1,2} )"
_TIME = rf"[\[(]?(?P<time>{_DATE}?{TIME_OF_DAY}Z?)[\])]?"
_SPOKEN = re.compile(
    rf"\s*(?:{_TIME}\s+)?<\s?[@+%~&]?(?P<name>[^<>\s][^<>\n]{{0,40}})>[ \t](?P<text>.*)", re.IGNORECASE
)
_EVENT = re.compile(rf"\s*{_TIME}\s+(?P<mark>\*{{1,3}}|-!-|--|-->|<--|=!=|-\S{{1,40}}-|•)\s.*", re.IGNORECASE)
_COLUMNS = re.compile(rf"\s*{_TIME}\t(?P<name>[^\t\n]{{1,60}})\t(?P<text>.*)", re.IGNORECASE)
_DAY = re.compile(r"(?:---|\*{3,4}|-{2,}) .*|\d{4}[/.]\d{1,2}[/.]\d{1,2}(?:\(.{1,3}\)| .{1,10})?")
"""Pattern for a line that starts or ends the log, or a day."""
_WEECHAT_MARKS = frozenset({"-->", "<--", "--", "=!=", "*", " *"})


def _read(source: Source) -> ParsedTranscript | None:
    lines = [(line, _SPOKEN.match(line) or _COLUMNS.match(line)) for line in source.lines]
    events = [
        bool(not match and (_EVENT.match(line) or _DAY.fullmatch(line.strip()))) for line, match in lines
    ]
    filled = [index for index, (line, _) in enumerate(lines) if line.strip()]
    known = [index for index in filled if lines[index][1] or events[index]]
    # Each message is one line. LINE writes a title above the first day.
    if not any(match for _, match in lines) or len(filled) - len(known) > max(2, len(filled) // 5):
        return None
    messages, left_out = list[ParsedMessage](), LeftOut()
    for index in filled:
        line, match = lines[index]
        if match and match["name"].strip() not in _WEECHAT_MARKS:
            messages.append(ParsedMessage(match["name"].strip(" @+%~&"), match["text"], match["time"] or ""))
        elif not match and not events[index] and messages:
            last = messages.pop()
            messages.append(ParsedMessage(last.speaker, f"{last.content}\n{line}", last.time))
        elif match or _EVENT.match(line):
            left_out["event"] += 1
    return ParsedTranscript(messages, left_out=left_out)


READER = Reader("IRC log", "text", _read)
