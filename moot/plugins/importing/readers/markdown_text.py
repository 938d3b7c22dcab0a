"""Markdown in which a heading or a bold name starts each message."""

import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Source
from moot.plugins.importing.dates import CLOCK
from moot.plugins.importing.names import is_label, is_name, why_implausible
from moot.plugins.importing.readers import speaker_lines as line_reader
from moot.state.errors import InputError
from moot.text.plain_text import quoted

_BOLD = (
    rf"(?P<time>[\[(]{CLOCK}[\])]\s*)?\*\*(?P<name>[^*\n]{{1,60}}?)"
    r"(?:[:：]\*\*|\*\*(?P<aside>\s*[\[(][^()\[\]\n]{1,60}[\])])?\s*[:：])\s*(?P<text>.*)"
)
BOLD = re.compile(_BOLD)
BOLD_LIST_ITEM = re.compile(rf"(?:[-*+]|\d+[.)])\s+{_BOLD}")
BOLD_QUOTE = re.compile(rf">\s?{_BOLD}")
BOLD_LINE = re.compile(
    rf"(?P<time>[\[(]{CLOCK}[\])]\s*)?(?P<mark>\*\*|__)(?P<name>[^*_\n:：]{{1,60}}?)(?P=mark)"
    rf"(?P<aside>\s*[\[(][^()\[\]\n]{{1,60}}[\])]|\s+{CLOCK})?\s*(?P<text>)"
)
"""Pattern for a line that consists of a bold name."""


_CHAPTERS = 3
"""Number of headings from which a text has chapters, not speakers, if no heading occurs twice."""


def read_markdown(source: Source, *, checked: bool) -> ParsedTranscript:
    """Read messages from Markdown.

    `markdown-it-py` finds headings and fences. Bold names are found line by line, because most transcripts
    have no blank lines between messages.

    Raises:
        InputError: No form fits, or with `checked` the messages are not plausible.
    """
    blocks = _blocks(source.text)
    heads = _heads(blocks, source.lines, checked=checked)
    if not heads:
        return line_reader.read_plain_text(source, checked=checked)
    borders = _separators(blocks, source.lines, heads)
    left_out = LeftOut({"heading or rule": len(borders)} if borders else {})
    if footer := _footer(blocks, source.lines):
        borders.append(footer)
        left_out["footer"] += 1
    transcript = line_reader.messages_under(source.lines, heads, borders)
    left_out.update(transcript.left_out)
    if checked and (reason := why_implausible(transcript.messages)):
        raise InputError(
            line_reader.implausible(reason, transcript.messages).replace("--format txt", "--format md")
        )
    return replace(transcript, messages=_unquoted(transcript.messages), left_out=left_out)


def _blocks(text: str) -> list[Token]:
    # Dashes below a message and tags before it must not start a new block.
    parser = MarkdownIt("commonmark").disable(["lheading", "html_block"])
    parser.core.ruler.disable("inline")
    return parser.parse(text)


def _heads(blocks: Sequence[Token], lines: Sequence[str], *, checked: bool) -> line_reader.SpeakerLines:
    """Return the messages by the lines that start them.

    Raises:
        InputError: With `checked`, headings and bold words may both be names, and none occurs twice. Or
            three or more headings each occur once, as titles of chapters do.
    """
    fenced_lines = {
        index for token in blocks if token.type == "fence" and token.map for index in range(*token.map)
    }
    headings = {
        token.map[0]: (token.tag, inline.content)
        for token, inline in pairwise(blocks)
        if token.type == "heading_open" and token.level == 0 and token.map
    }
    tags = Counter(tag for tag, _ in headings.values())
    # One heading of the first level is a title.
    levels = sorted(tag for tag, count in tags.items() if tag != "h1" or count == len(headings) > 1)
    names_at = {
        level: {index: name for index, (tag, name) in headings.items() if tag == level and not is_label(name)}
        for level in levels
    }
    # Speakers repeat, titles of rounds do not.
    repeating = [level for level, names in names_at.items() if len(set(names.values())) < len(names)]
    # An answer may have headings of its own, of any level, below that of its speaker.
    level = min(repeating, key=lambda each: min(names_at[each])) if repeating else next(iter(levels), "")
    names = names_at.get(level, {})
    if not repeating:
        # Above the first heading, bold words before a colon are fields, such as a date.
        first = min(names, default=0) if len(names) > 1 else 0
        for form in (BOLD, BOLD_LINE, BOLD_QUOTE):
            bold = _bold_lines(form, lines, fenced_lines)
            if any(index >= first for index in bold):
                if checked and len(names) > 1 and len({each.speaker for each in bold.values()}) == len(bold):
                    raise InputError(
                        "line 1: it is not clear who speaks: names may stand in the headings, "
                        f"as {quoted(list(names.values())[:2])}, or in bold, "
                        f"as {quoted([each.speaker for each in bold.values()][:2])}; use one form only"
                    )
                return bold
        # List items and a single heading count only if no other form names speakers.
        if len(names) < 2 and is_listed(lines):
            return _bold_lines(BOLD_LIST_ITEM, lines, fenced_lines)
        if checked and len(names) >= _CHAPTERS:
            raise InputError(
                f"line 1: the text was not recognised as a transcript: each of the headings "
                f"{quoted([*names.values()][:4])} occurs only once. Write each message as `**NAME:** text`. "
                "If the headings are speakers, use --format md"
            )
    return {index: _message(_heading_name(name), "") for index, name in names.items()}


def _heading_name(heading: str) -> str:
    """Return the name in a heading without emphasis and without a model in emphasised brackets."""
    return re.sub(r"\s{1,4}[_*]\([^()]{1,60}\)[_*]$", "", heading.strip()).strip("*_ ")


def _footer(blocks: Sequence[Token], lines: Sequence[str]) -> int:
    """Return the line of a rule below which only one emphasised line follows, or 0."""
    rules = [token.map[0] for token in blocks if token.type == "hr" and token.map]
    below = [line.strip() for line in lines[rules[-1] + 1 :] if line.strip()] if rules else []
    is_footer = len(below) == 1 and (
        re.fullmatch(r"([_*])[^_*].*\1", below[0]) or re.search(r"\]\(https?://[^()\s]{1,200}\)$", below[0])
    )
    return rules[-1] if is_footer else 0


def _separators(blocks: Sequence[Token], lines: Sequence[str], heads: line_reader.SpeakerLines) -> list[int]:
    """Return the headings and rules after which the next message begins. Others are part of a message."""
    starts = {token.map[0] for token in blocks if token.type in ("heading_open", "hr") and token.map}
    first, separators, is_open = min(heads), list[int](), True
    for index in range(len(lines) - 1, first, -1):
        if index in heads:
            is_open = True
        elif index in starts and is_open:
            separators.append(index)
        elif lines[index].strip():
            is_open = False
    return separators


def _unquoted(messages: Sequence[ParsedMessage]) -> Sequence[ParsedMessage]:
    """Remove the marks of quotations if every line of every message has one."""
    lines = [line for message in messages for line in message.content.split("\n")]
    if not all(line.startswith(">") for line in lines if line.strip()):
        return messages
    return [
        replace(each, content="\n".join(re.sub(r"^> ?", "", line) for line in each.content.split("\n")))
        for each in messages
    ]


def is_listed(lines: Sequence[str]) -> bool:
    """Return True if a transcript names its speakers in list items.

    The names are bold, and no other line starts with a name and a colon.
    """
    return any(map(BOLD_LIST_ITEM.match, lines)) and not line_reader.speaker_lines(lines)


def is_markdown(lines: Sequence[str]) -> bool:
    """Return True if a text has headings or bold names, as a transcript in Markdown has."""
    is_bold = (
        sum(bool(match and is_name(match["name"], known=False)) for match in map(BOLD_LINE.fullmatch, lines))
        > 1
    )
    return (
        is_bold
        or any(
            BOLD.match(line) or BOLD_QUOTE.match(line) or line.startswith(("## ", "### ")) for line in lines
        )
        or is_listed(lines)
    )


def _bold_lines(
    form: re.Pattern[str], lines: Sequence[str], fenced_lines: Container[int]
) -> line_reader.SpeakerLines:
    is_whole_line = form is BOLD_LINE
    return {
        index: _message(_head_of(match), match["text"])
        for index, line in enumerate(lines)
        if (match := form.fullmatch(line) if is_whole_line else form.match(line))
        and index not in fenced_lines
    }


def _head_of(match: re.Match[str]) -> str:
    """Return a bold name with the time beside it in brackets."""
    aside = (match["aside"] or "").strip()
    if aside and aside[0].isdigit():
        aside = f"({aside})"
    return f"{match['time'] or ''}{match['name']}{' ' if aside else ''}{aside}"


def _message(head: str, text: str) -> ParsedMessage:
    """Read a message's speaker and time from a Markdown heading or bold name."""
    match = re.fullmatch(line_reader.HEAD, head.strip())
    if match is None:
        return ParsedMessage(head, text)
    return ParsedMessage(match["name"], text, match["before"] or match["after"] or "")
