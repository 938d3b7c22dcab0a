"""Records of courts and parliaments in which a full stop or a dash, not a colon, follows the speaker."""

import re
from collections.abc import Iterator

from moot.importers import ParsedMessage, ParsedTranscript, Reader, Source
from moot.plugins.importing.names import is_name
from moot.plugins.importing.readers.speaker_lines import messages_under, speaker_lines

_TITLE = r"(?:M(?:r|rs|s|iss)\.?|MM?\.|Mme|Dr\.?|The|Senator|Representative|Delegate)"
_CONGRESS = re.compile(
    rf"(?P<name>{_TITLE} [A-Z][A-Z'’-]{{1,30}}(?: [A-Z][A-Z'’-]{{1,30}}){{0,4}}"
    r"(?: of [A-Z][\w ]{2,20})?)"
    r"(?: \([^()\n]{1,60}\))?\.\s++(?P<text>\S.*)"
)
"""Pattern for the start of a speech in the Congressional Record, such as `Mr. OKORO of Ohio. I rise.`"""
_DASHED = re.compile(
    r"(?P<name>[^\s:.–—-][^:.–—\n]{0,60}?)(?:\s\([^()\n]{1,40}+\))?(?:, [^.\n]{1,100}+)?"
    r"\.\s?[–—-]\s(?P<text>\S.*)"
)
"""Pattern for the start of a speech in the European Parliament, such as `Ann Lee (PPE). – I agree.`"""
_LINE_NUMBER = re.compile(r"^\s*+\d{1,2}(?:\s{2,}+|$)")
_EXAMINATION = re.compile(r"\s*BY (?P<name>[A-Z.'’ -]{3,50}):\s*")
_EXCHANGE = re.compile(r"\s*(?P<part>[QA])(?:[.:]\s*|\s{2,})(?P<text>\S.*)")


def _read(source: Source) -> ParsedTranscript | None:
    for form in (_CONGRESS, _DASHED):
        heads = {
            index: ParsedMessage(match["name"].strip(), match["text"])
            for index, line in enumerate(source.lines)
            if (match := form.match(line.lstrip())) and is_name(match["name"].strip(), known=False)
        }
        if len({head.speaker for head in heads.values()}) > 1:
            return messages_under(source.lines, heads)
    return _read_examination(source)


def _read_examination(source: Source) -> ParsedTranscript | None:
    """Read questions and answers of a witness, with or without numbers before the lines."""
    numbered = sum(bool(_LINE_NUMBER.match(line)) for line in source.lines)
    filled = sum(bool(line.strip()) for line in source.lines)
    lines = [
        (_LINE_NUMBER.sub("", line, count=1) if 2 * numbered > filled else line).strip()
        for line in source.lines
    ]
    exchanges = {index: match for index, line in enumerate(lines) if (match := _EXCHANGE.match(line))}
    if {match["part"] for match in exchanges.values()} != {"Q", "A"}:
        return None
    named_lines = speaker_lines(lines)
    examiner = next((match["name"] for match in map(_EXAMINATION.fullmatch, lines) if match), "Q")
    is_court = examiner != "Q" or any(head.speaker.startswith("THE ") for head in named_lines.values())
    witness = "THE WITNESS" if is_court else "A"
    heads: dict[int, ParsedMessage] = {}
    skipped = set[int]()
    for index, line in enumerate(lines):
        if match := _EXAMINATION.fullmatch(line):
            examiner = match["name"]
            skipped.add(index)
        elif match := exchanges.get(index):
            heads[index] = ParsedMessage(examiner if match["part"] == "Q" else witness, match["text"])
        elif index in named_lines:
            heads[index] = named_lines[index]
    return messages_under([*_without(lines, skipped)], heads)


def _without(lines: list[str], skipped: set[int]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield "" if index in skipped else line


READER = Reader("record of proceedings", "text", _read)
