"""Plain text in which each message begins with a name: the reader for what no other reader recognises."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Source
from moot.plugins.importing.dates import CLOCK, TIME_OF_DAY
from moot.plugins.importing.names import first_messages, is_label, is_name, why_implausible
from moot.state.errors import InputError

SpeakerLines = Mapping[int, ParsedMessage]
"""Messages, keyed by the index of the line on which they start. The first line has the index 0."""

HEAD = (
    rf"(?:[\[(](?P<before>{CLOCK})[\])]\s*)?"
    r"(?P<name>[^\s:：*#>|`-](?:(?!\*\*)[^:：]){0,59}?)(?<!\s)"
    rf"(?:\s*[\[(](?P<after>{CLOCK})[\])])?"
)
_LINE = re.compile(
    # A colon without a space must not belong to a URL, a path, a time, a ratio or a smiley.
    rf"{HEAD}(?:\s*[:：](?=\s|$)|(?<!\s)(?P<tight>[:：])(?![/\\:：]|(?<=\d[:：])\d|[()|DP]\s*$))\s*(?P<text>.*)"
)
_TOPIC = re.compile(
    r"(?i)^(?:#+\s+|(?:topic|title|motion|question|議題|テーマ|主題|主题|议题|辩题|题目)\s*[:：]\s*)"
)
_REPORTED = re.compile(r"[\d\"“「『]")
"""Pattern for text after a colon that is probably not a speaker's message. Such text begins with a digit or a
quotation mark."""
_MAX_ABOVE_SHARE = 0.5
"""Maximum share of a text that may stand above the first message."""
_MIN_ABOVE_LINES = 4
"""Number of lines above the first message from which the share counts. A title and a date are fewer."""

_PREFIXES = tuple(
    re.compile(form)
    for form in (
        r"(?P<prefix>\s+)(?=\S)",  # indented, as in court records
        r"(?P<prefix>\s{0,80}\d{1,4}[.)]?\s{1,10})(?=[^\s\d])",  # numbered messages or lines
        r"(?P<prefix>\s{0,80}>{2,8}\s?)(?=\S)",  # captions of broadcasts
        r"(?P<prefix>>\s)(?=\S)",
        r"(?P<prefix>[-*+•]\s+)(?=[^\s*_])",
        r"(?P<prefix>@)(?=\w)",
    )
)
"""What may stand before each name. A file uses one of these forms."""
_BRACKETED = re.compile(
    r"\s{0,80}(?:\[(?P<name>[^\[\]\n]{1,60})\]|<(?P<angled>[^<>\n]{1,60})>)\s?[:：]?\s{1,80}(?P<text>\S.*)"
)
_EMPHASIZED = re.compile(
    r"\s{0,80}(?P<mark>__|[*_`])(?P<name>[^*_`\n]{1,60}?)(?:[:：](?P=mark)|(?P=mark)\s?[:：])\s*(?P<text>.*)"
)
_TIMED = re.compile(rf"(?P<name>[^\W\d][^:\[\]()\n]{{0,59}}?)\s[\[(]{CLOCK}[\])]\s+(?P<text>\S.*)")
_SAID = re.compile(r"(?P<name>[^\W\d]\w{0,20}(?: \w{1,20})?) said:\s*")
_DASHED = re.compile(r"(?P<name>[^\s:：*#>|`–—-][^:：\n–—]{0,40}?)\s+[–—]\s+(?P<text>\S.*)")
_OWN_LINE = re.compile(r"\s*(?P<name>[^\s:：*#>|`–—-][^:：\n]{0,40}?)\s*")

Reading = Callable[[Sequence[str]], SpeakerLines]


def read_plain_text(source: Source, *, checked: bool) -> ParsedTranscript:
    """Read messages from text in which each message starts with a name.

    Each form is tried in turn, and the first plausible one is used. Without `checked`, messages in the form
    `NAME: text` need not be plausible.

    Raises:
        InputError: No form fits, or none is plausible. The error shows the first messages as they are read.
    """
    refusal = ""
    lines = without_code(source.lines)
    for reading in _READINGS:
        heads = _with_one_name_each(reading(lines))
        if not heads:
            continue
        transcript = _with_times(messages_under(source.lines, heads))
        reason = why_implausible(transcript.messages) or _why_above(source.lines, heads)
        if not reason or (not checked and reading is speaker_lines):
            return transcript
        refusal = refusal or implausible(reason, transcript.messages)
    raise InputError(refusal or "line 1: no speaker was found; write each message as `NAME: text`")


def without_code(lines: Sequence[str]) -> list[str]:
    """Return the lines with those of fenced code emptied. An open fence at the end is none."""
    fences = [index for index, line in enumerate(lines) if line.lstrip().startswith("```")]
    coded = {
        index
        for start, end in zip(fences[::2], fences[1::2], strict=False)
        for index in range(start, end + 1)
    }
    return ["" if index in coded else line for index, line in enumerate(lines)]


_TEXT_TIME = re.compile(
    rf"(?:[\[(](?P<bracketed>{TIME_OF_DAY})[\])]|(?P<bare>\d{{1,2}}(?::\d{{2}}){{1,2}}))(?:\s+|$)"
)


def _with_times(transcript: ParsedTranscript) -> ParsedTranscript:
    """Move the times from the texts to the messages, if each text begins with one."""
    matches = [_TEXT_TIME.match(message.content) for message in transcript.messages]
    if len(matches) < 2 or not all(matches):
        return transcript
    messages = [
        replace(message, content=message.content[match.end() :], time=match["bracketed"] or match["bare"])
        for message, match in zip(transcript.messages, matches, strict=True)
        if match
    ]
    return replace(transcript, messages=messages)


_QUALIFIED = re.compile(r"(?P<name>[^()（）\n]{0,60}[^()（）\s])\s{0,3}[(（][^()（）\n]{1,60}[)）]")
"""Pattern for a name with a party, a place or a role in brackets."""


def _with_one_name_each(heads: SpeakerLines) -> SpeakerLines:
    """Use one name for a speaker who is named with and without brackets, as in records of parliaments."""
    names = {head.speaker for head in heads.values()}
    matches = {name: match["name"] for name in names if (match := _QUALIFIED.fullmatch(name))}
    counts = Counter(matches.values())
    renamed = {name: bare for name, bare in matches.items() if bare in names and counts[bare] == 1}
    return {
        index: replace(head, speaker=renamed.get(head.speaker, head.speaker)) for index, head in heads.items()
    }


def implausible(reason: str, messages: Sequence[ParsedMessage]) -> str:
    """Return the refusal of messages that are implausible, with the first ones as they are read."""
    return (
        f"line 1: the text was not recognised as a transcript: {reason}. The first messages as read:\n"
        f"{first_messages(messages)}\nWrite each message as `NAME: text`. If this reading is right, use "
        "--format txt"
    )


def _why_above(lines: Sequence[str], heads: SpeakerLines) -> str:
    above = [line for line in lines[: next(iter(heads))] if line.strip()]
    share = sum(map(len, above)) / max(1, sum(map(len, lines)))
    too_much = len(above) >= _MIN_ABOVE_LINES and share > _MAX_ABOVE_SHARE
    return f"{len(above)} lines of text stand above the first message" if too_much else ""


def speaker_lines(lines: Sequence[str]) -> SpeakerLines:
    """Find the lines that name a speaker before a colon, and return the message on each line.

    Names that occur repeatedly are checked less strictly.
    """
    matches = {index: match for index, line in enumerate(lines) if (match := _LINE.match(line))}
    matches = {index: match for index, match in matches.items() if not is_label(match["name"])}
    counts = Counter(match["name"] for match in matches.values())
    first_speaker = next(iter(counts), "")
    # Where each line is a message and somebody speaks twice, rare names may be lower-case too.
    filled = sum(bool(line.strip()) for line in lines[next(iter(matches), 0) :])
    is_uniform = len(matches) == filled > len(counts)
    heads = {}
    for index, match in matches.items():
        is_known = counts[match["name"]] > 1 or (
            " " not in match["name"] and (is_uniform or match["name"] == first_speaker)
        )
        is_setting = match["tight"] == ":" and match["name"][0].islower()  # `color:red`
        is_reported = match["tight"] and not is_known and _REPORTED.match(match["text"])
        if not (is_setting or is_reported) and is_name(match["name"], known=is_known):
            heads[index] = ParsedMessage(
                match["name"], match["text"], match["before"] or match["after"] or ""
            )
    return heads


def _prefixed(form: re.Pattern[str]) -> Reading:
    """Return a reading of messages with something before each name, such as a number."""

    def read(lines: Sequence[str]) -> SpeakerLines:
        stripped = [line[match.end() :] if (match := form.match(line)) else "" for line in lines]
        return speaker_lines(stripped)

    return read


def _matching(form: re.Pattern[str]) -> Reading:
    """Return a reading of lines with a name in brackets, with emphasis or before a dash."""

    def read(lines: Sequence[str]) -> SpeakerLines:
        matches = {index: match for index, line in enumerate(lines) if (match := form.match(line))}
        names = {index: _name_in(match) for index, match in matches.items()}
        counts = Counter(names.values())
        return {
            index: ParsedMessage(names[index], match.groupdict().get("text") or "")
            for index, match in matches.items()
            if is_name(names[index], known=counts[names[index]] > 1) and not is_label(names[index])
        }

    return read


def _name_in(match: re.Match[str]) -> str:
    return (match["name"] or match.groupdict().get("angled") or "").strip()


def _named_lines(lines: Sequence[str]) -> SpeakerLines:
    """Find names that stand alone above their messages.

    A line is a name if nothing else stands between two blank lines, or before it, and if it occurs again, or
    consists of capitals. The line below has text.
    """
    matches = {
        index: match
        for index, line in enumerate(lines[:-1])
        if (index == 0 or not lines[index - 1].strip())
        and lines[index + 1].strip()
        and (match := _OWN_LINE.fullmatch(line))
    }
    counts = Counter(match["name"] for match in matches.values())
    heads = {
        index: ParsedMessage(match["name"], "")
        for index, match in matches.items()
        if (counts[match["name"]] > 1 or match["name"].isupper()) and is_name(match["name"], known=False)
    }
    filled = [index for index, line in enumerate(lines) if line.strip()]
    # Above the first name there may be a title.
    return heads if heads and filled.index(next(iter(heads))) <= 1 else {}


_READINGS: Sequence[Reading] = (
    speaker_lines,
    *map(_prefixed, _PREFIXES),
    _matching(_BRACKETED),
    _matching(_EMPHASIZED),
    _matching(_TIMED),
    _matching(_SAID),
    _matching(_DASHED),
    _named_lines,
)


def messages_under(
    lines: Sequence[str], heads: SpeakerLines, borders: Iterable[int] = ()
) -> ParsedTranscript:
    """Split a transcript into messages, and leave out a header of fields such as the date.

    The lines in `heads` start the messages. A message also ends at the indices in `borders`.
    """
    header = _header(lines, heads)
    starts = [*(start for start in heads if start not in header), len(lines)]
    ends = sorted({*starts, *borders})
    messages = [
        ParsedMessage(
            heads[start].speaker,
            "\n".join([heads[start].content, *lines[start + 1 : ends[bisect_right(ends, start)]]]).strip(),
            heads[start].time,
        )
        for start in starts[:-1]
    ]
    above = [line.strip() for index, line in enumerate(lines[: starts[0]]) if index not in header]
    topic = " ".join(filter(None, (_TOPIC.sub("", line) for line in above)))
    return ParsedTranscript(messages, topic, left_out=LeftOut({"header line": len(header)} if header else {}))


def _header(lines: Sequence[str], heads: SpeakerLines) -> range:
    """Return the lines of the first paragraph if it is a header of fields.

    In a header, each of two or more names occurs once, and never again below. Below, somebody speaks twice.
    """
    first = next(iter(heads))
    end = next((index for index in range(first, len(lines)) if not lines[index].strip()), len(lines))
    start = next((index + 1 for index in range(first, -1, -1) if not lines[index].strip()), 0)
    fields = [head.speaker for index, head in heads.items() if index < end]
    counts = Counter(head.speaker for head in heads.values())
    others = [count for name, count in counts.items() if name not in fields]
    is_header = len(fields) > 1 and len(others) > 1 and max(others) > 1
    return range(start, end) if is_header and all(counts[name] == 1 for name in fields) else range(0)
