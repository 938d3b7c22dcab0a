"""Transcripts in plain text (`NAME: text`) and Markdown (`## NAME`, `**NAME:** text`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from moot.graph.importing.parse_result import CLOCK, Parsed, Said
from moot.state.errors import InputError

Starts = Callable[[str], Said | None]
"""Tells whether a line begins a speech, and whose."""

_HEAD = (
    rf"(?:[\[(](?P<before>{CLOCK})[\])]\s*)?"
    r"(?P<name>[^\s:：*#>|`-](?:(?!\*\*)[^:：]){0,59}?)"
    rf"(?:\s*[\[(](?P<after>{CLOCK})[\])])?"
)
_LINE = re.compile(
    # A colon without a space after it: not of an address, a path, a time, a ratio or a smiley.
    rf"{_HEAD}(?:\s*[:：](?=\s|$)|(?<!\s)(?P<tight>[:：])(?![/\\:：]|(?<=\d[:：])\d|[()|DP]\s*$))\s*(?P<text>.*)"
)
_BOLD = (
    rf"(?P<time>[\[(]{CLOCK}[\])]\s*)?\*\*(?P<name>[^*\n]{{1,60}}?)"
    r"(?:[:：]\*\*|\*\*(?P<aside>\s*[\[(][^()\[\]\n]{1,60}[\])])?\s*[:：])\s*(?P<text>.*)"
)
BOLD = re.compile(_BOLD)
LISTED = re.compile(rf"(?:[-*+]|\d+[.)])\s+{_BOLD}")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)[\s#]*$")
_LABEL = re.compile(
    r"(?i)topic|title|motion|questions?|answers?|notes?|examples?|summary|conclusion|first|second|third|finally"
    r"|however|yes|no|so|but|and|also|remember|warning|ps|sources?|evidence|result|update|date|todo|re"
    r"|議題|テーマ|主題|主题|议题|辩题|题目|問題|问题|質問|回答|答|問|问|結論|结论|理由|原因|例|例如|注|注意"
)
"""Words before a colon that open a line of a speech more often than they name a speaker."""
_TOPIC = re.compile(
    r"(?i)^(?:#+\s+|(?:topic|title|motion|question|議題|テーマ|主題|主题|议题|辩题|题目)\s*[:：]\s*)"
)
_REPORTED = re.compile(r"[\d\"“「『]")
"""What a colon without a space introduces in a sentence: a figure, or what somebody else said."""
_CASELESS = 12
"""Characters of a name in a script without capitals, which says nothing of where a name ends."""
_PARTICLE = re.compile(r"d[aeiou]|dos|del|der|den|van|von|l[ae]|el|al|bin|ibn|y|e|of|the|and")


def read_txt(text: str) -> Parsed:
    """Read `NAME: text` with its continuation lines; a time in brackets may stand beside the name."""
    lines = text.split("\n")
    return _spoken(lines, _line_starts(lines), "NAME: text")


def _line_starts(lines: list[str]) -> Starts:
    """Return what tells the lines that begin a speech; a name's other lines help to know it."""
    matches = [match for line in lines if (match := _LINE.match(line)) and not _is_label(match["name"])]
    counts = Counter(match["name"] for match in matches)
    first = matches[0]["name"] if matches else ""

    def starts(line: str) -> Said | None:
        match = _LINE.match(line)
        if match is None or _is_label(match["name"]):
            return None
        known = counts[match["name"]] > 1 or match["name"] == first
        setting = match["tight"] == ":" and match["name"][0].islower()  # `color:red`
        reported = match["tight"] and not known and _REPORTED.match(match["text"])
        named = not (setting or reported) and _is_name(match["name"], known=known)
        return _said(match, match["text"]) if named else None

    return starts


def _said(head: re.Match[str], text: str) -> Said:
    return Said(head["name"], text, head["before"] or head["after"] or "")


def _headed(head: str, text: str) -> Said:
    """Return a speech by its head in Markdown: a name, and perhaps a time in brackets."""
    match = re.fullmatch(_HEAD, head.strip())
    return _said(match, text) if match else Said(head, text)


def _is_label(name: str) -> bool:
    return _LABEL.fullmatch(name) is not None


def _is_name(text: str, *, known: bool) -> bool:
    """Tell whether words before a colon name somebody: few, capitalised, without a sentence's punctuation.

    Args:
        text: the words; what stands in brackets, such as a role, is not looked at.
        known: whether they stand before a colon elsewhere too; then they may begin in lower case.
    """
    words = re.sub(r"[(（][^)）]*[)）]", " ", text).split()
    if not words or len(words) > 6 or re.search(r"[;!?\"“”、。，！？；「」『』]|[^.\s]{6,}\.(?:\s|$)", text):
        return False
    if not known and any(_is_caseless(word) and len(word) > _CASELESS for word in words):
        return False
    capital = [not word[0].islower() or bool(_PARTICLE.fullmatch(word)) for word in words]
    return all(capital) or (known and (capital[-1] or len(words) == 1))


def _is_caseless(word: str) -> bool:
    return word.lower() == word.upper()


def read_md(text: str) -> Parsed:
    """Read speeches under `## NAME`, after `**NAME:**` or `- **NAME**:`; fences are taken for none."""
    lines = text.split("\n")
    headings = [match for line in lines if (match := _HEADING.match(line))]
    level = min((len(h[1]) for h in headings if len(h[1]) > 1), default=0)
    names = Counter(h[2] for h in headings if len(h[1]) == level)

    def heading_starts(line: str) -> Said | None:
        match = _HEADING.match(line)
        return _headed(match[2], "") if match and len(match[1]) == level else None

    repeated = max(names.values(), default=0) > 1
    # What stands in a list or under one heading is a speaker only where nothing else is.
    if not repeated and any(map(BOLD.match, lines)):
        return _spoken(lines, _bold_starts(BOLD), "**NAME:** text", markdown=True)
    if len(names) < 2 and not repeated and is_listed(lines):
        return _spoken(lines, _bold_starts(LISTED), "- **NAME**: text", markdown=True)
    if names:
        return _spoken(lines, heading_starts, "## NAME", markdown=True)
    return read_txt(text)


def is_listed(lines: list[str]) -> bool:
    """Tell whether the speeches are the items of a list, each under a bold name."""
    return any(map(LISTED.match, lines)) and not any(map(_line_starts(lines), lines))


def _bold_starts(form: re.Pattern[str]) -> Starts:
    def starts(line: str) -> Said | None:
        match = form.match(line)
        head = f"{match['time'] or ''}{match['name']}{match['aside'] or ''}" if match else ""
        return _headed(head, match["text"]) if match else None

    return starts


def _spoken(lines: list[str], starts: Starts, form: str, *, markdown: bool = False) -> Parsed:
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
            topic.append(_TOPIC.sub("", line.strip()))
    if not speeches:
        raise InputError(f"line 1: no speaker found; write each speech as `{form}`")
    said = [Said(start.name, "\n".join(rest).strip(), start.at) for start, rest in speeches]
    return Parsed(said, " ".join(filter(None, topic)))
