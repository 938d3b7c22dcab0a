"""Markdown in which a heading or a bold name starts each message."""

import re
from collections.abc import Container, Sequence
from itertools import pairwise

from markdown_it import MarkdownIt

from moot.importers import ParsedMessage, ParsedTranscript, Source
from moot.plugins.importing.dates import CLOCK
from moot.plugins.importing.names import is_name, why_implausible
from moot.plugins.importing.readers import speaker_lines
from moot.state.errors import InputError

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


def read_markdown(source: Source, *, checked: bool) -> ParsedTranscript:
    """Read messages from Markdown.

    `markdown-it-py` finds headings and fences. Bold names are found line by line, because most transcripts
    have no blank lines between messages.

    Raises:
        InputError: No form fits, or with `checked` the messages are not plausible.
    """
    heads = _heads(source)
    if not heads:
        return speaker_lines.read_plain_text(source, checked=checked)
    transcript = speaker_lines.messages_under(source.lines, heads)
    if checked and (reason := why_implausible(transcript.messages)):
        raise InputError(
            speaker_lines.implausible(reason, transcript.messages).replace("--format txt", "--format md")
        )
    return transcript


def _heads(source: Source) -> speaker_lines.SpeakerLines:
    # Dashes below a message and tags before it must not start a new block.
    parser = MarkdownIt("commonmark").disable(["lheading", "html_block"])
    parser.core.ruler.disable("inline")
    lines, blocks = source.lines, parser.parse(source.text)
    fenced_lines = {
        index for token in blocks if token.type == "fence" and token.map for index in range(*token.map)
    }
    headings = {
        token.map[0]: (token.tag, inline.content)
        for token, inline in pairwise(blocks)
        if token.type == "heading_open" and token.level == 0 and token.map
    }
    tags = [tag for tag, _ in headings.values()]
    # One heading of the first level is a title.
    level = min((tag for tag in tags if tag != "h1" or tags.count(tag) == len(tags) > 1), default="")
    names = {index: name for index, (tag, name) in headings.items() if tag == level}
    has_repeats = len(set(names.values())) < len(names)
    # List items and a single heading count only if no other form names speakers.
    forms = [
        form for form in (BOLD, BOLD_LINE, BOLD_QUOTE) if not has_repeats and _bold_lines(form, lines, ())
    ]
    if forms:
        return _bold_lines(forms[0], lines, fenced_lines)
    if not has_repeats and len(names) < 2 and is_listed(lines):
        return _bold_lines(BOLD_LIST_ITEM, lines, fenced_lines)
    return {index: _message(name.strip("*_ "), "") for index, name in names.items()}


def is_listed(lines: Sequence[str]) -> bool:
    """Return True if a transcript names its speakers in list items.

    The names are bold, and no other line starts with a name and a colon.
    """
    return any(map(BOLD_LIST_ITEM.match, lines)) and not speaker_lines.speaker_lines(lines)


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
) -> speaker_lines.SpeakerLines:
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
    match = re.fullmatch(speaker_lines.HEAD, head.strip())
    if match is None:
        return ParsedMessage(head, text)
    return ParsedMessage(match["name"], text, match["before"] or match["after"] or "")
