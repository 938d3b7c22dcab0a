"""Transcripts in plain text (`NAME: text`) and Markdown (`## NAME`, `**NAME:** text`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from graph.importing.parsed import CLOCK, Parsed, Said
from state.errors import InputError

_LINE = re.compile(
    rf"(?:[\[(](?P<at>{CLOCK})[\])]\s*)?(?P<name>[^\s:*#>|`-][^:]{{0,59}}?)\s*:(?=\s|$)\s*(?P<text>.*)"
)
BOLD = re.compile(r"\*\*(?P<name>[^*\n]{1,60}?)(?::\*\*|\*\*\s*:)\s*(?P<text>.*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)[\s#]*$")
_LABEL = re.compile(
    r"(?i)topic|title|motion|questions?|answers?|notes?|examples?|summary|conclusion|first|second|third|finally"
    r"|however|yes|no|so|but|and|also|remember|warning|ps|sources?|evidence|result|update|date"
)
"""Words before a colon that open a line of a speech more often than they name a speaker."""
_PARTICLE = re.compile(r"d[aeiou]|dos|del|der|den|van|von|l[ae]|el|al|bin|ibn|y|e|of|the|and")


def read_txt(text: str) -> Parsed:
    """Read `NAME: text` with its continuation lines; a time in brackets may stand before the name."""
    lines = text.split("\n")
    matches = [_LINE.match(line) for line in lines]
    counts = Counter(match["name"] for match in matches if match)
    first = next((match for match in matches if match and not _is_label(match["name"])), None)

    def starts(line: str) -> Said | None:
        match = _LINE.match(line)
        if match is None or _is_label(match["name"]):
            return None
        known = counts[match["name"]] > 1 or (first is not None and match["name"] == first["name"])
        named = _is_name(match["name"], known=known)
        return Said(match["name"], match["text"], match["at"] or "") if named else None

    return _spoken(lines, starts, "NAME: text")


def _is_label(name: str) -> bool:
    return _LABEL.fullmatch(name) is not None


def _is_name(text: str, *, known: bool) -> bool:
    """Tell whether words before a colon name somebody: few, capitalised, without a sentence's punctuation.

    Args:
        text: the words; what stands in brackets, such as a role, is not looked at.
        known: whether they stand before a colon elsewhere too; then they may begin in lower case.
    """
    words = re.sub(r"\([^)]*\)", " ", text).split()
    if not words or len(words) > 6 or re.search(r"[;!?\"“”]|[^.\s]{6,}\.(?:\s|$)", text):
        return False
    capital = [not word[0].islower() or bool(_PARTICLE.fullmatch(word)) for word in words]
    return all(capital) or (known and (capital[-1] or len(words) == 1))


def read_md(text: str) -> Parsed:
    """Read speeches under `## NAME` or after `**NAME:**`; fences are never taken for either."""
    lines = text.split("\n")
    headings = [match for line in lines if (match := _HEADING.match(line))]
    level = min((len(h[1]) for h in headings if len(h[1]) > 1), default=0)
    names = Counter(h[2] for h in headings if len(h[1]) == level)
    bold = sum(1 for line in lines if BOLD.match(line))
    by_heading = bool(names) and (not bold or max(names.values()) > 1)

    def heading_starts(line: str) -> Said | None:
        match = _HEADING.match(line)
        return Said(match[2], "") if match and len(match[1]) == level else None

    def bold_starts(line: str) -> Said | None:
        match = BOLD.match(line)
        return Said(match["name"], match["text"]) if match else None

    if not by_heading and not bold:
        return read_txt(text)
    form = "## NAME" if by_heading else "**NAME:** text"
    return _spoken(lines, heading_starts if by_heading else bold_starts, form, markdown=True)


def _spoken(
    lines: list[str], starts: Callable[[str], Said | None], form: str, *, markdown: bool = False
) -> Parsed:
    """Split lines into speeches; what stands before the first is the topic."""
    topic: list[str] = []
    speeches: list[tuple[Said, list[str]]] = []
    fenced = False
    for line in lines:
        fenced ^= markdown and line.lstrip().startswith(("```", "~~~"))
        start = None if fenced else starts(line)
        if start is not None:
            speeches.append((start, [start.content]))
        elif speeches:
            speeches[-1][1].append(line)
        else:
            topic.append(re.sub(r"^(?:#+\s+|(?i:topic|title|motion|question)\s*:\s*)", "", line.strip()))
    if not speeches:
        raise InputError(f"line 1: no speaker found; write each speech as `{form}`")
    said = [Said(start.name, "\n".join(rest).strip(), start.at) for start, rest in speeches]
    return Parsed(said, " ".join(filter(None, topic)))
