"""Transcripts of Google Meet as text: times on their own lines between messages, a header and a footer."""

import re

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source
from moot.plugins.importing.readers.speaker_lines import speaker_lines

_CLOCK = re.compile(r"(?:#{1,6}\s+)?\**\d{1,2}:\d{2}:\d{2}\**\s*")
_END = re.compile(r"(?!\d)[^:\n]{5,60}\d{1,2}:\d{2}:\d{2}[^:\n]{0,40}")
"""Pattern for the line below the last message. It contains the length of the meeting."""
_MAX_FOOTER_LINES = 3
"""Maximum number of lines of the footer. Google writes two."""


def _read(source: Source) -> ParsedTranscript | None:
    lines = [line.replace("**", "") for line in source.lines]
    first = next((index for index, line in enumerate(lines) if _CLOCK.fullmatch(line.strip())), None)
    is_timed = first is not None
    if first is None:  # older transcripts have no times, and name the people above the word for `Transcript`
        first = next(
            (index for index, line in enumerate(lines) if line and lines[0].endswith(f"- {line}")), None
        )
    if first is None:
        return None
    filled = [index for index in range(first + 1, len(lines)) if lines[index].strip()]
    lowest = filled[-_MAX_FOOTER_LINES:]
    end = next((index for index in lowest if _END.fullmatch(lines[index].strip())), None)
    if not is_timed and end is None:
        return None
    body = lines[first:end]
    if not (heads := speaker_lines(body)):
        return None
    first_text = next((index for index, line in enumerate(body) if line.strip() and index), 0)
    if first_text not in heads:
        return None
    messages, left_out, time = list[ParsedMessage](), LeftOut(), ""
    for index, line in enumerate(body):
        if _CLOCK.fullmatch(line.strip()):
            time = line.strip(" #*")
        elif head := heads.get(index):
            messages.append(ParsedMessage(head.speaker, head.content, time))
        elif messages:
            last = messages.pop()
            messages.append(ParsedMessage(last.speaker, f"{last.content}\n{line}", last.time))
    header = sum(bool(line.strip()) for line in lines[:first])
    footer = sum(bool(line.strip()) for line in lines[end:]) if end else 0
    left_out["header or footer line"] += header + footer
    return ParsedTranscript(messages, left_out=left_out)


READER = Reader("Google Meet transcript", "text", _read)
