"""Transcripts in plain text (`NAME: text`) and Markdown (`## NAME`, `**NAME:** text`)."""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise

from markdown_it import MarkdownIt

from moot.graph.importing.parse_result import CLOCK, ParsedSpeech, ParsedTranscript
from moot.state.errors import InputError

Heads = Mapping[int, ParsedSpeech]
"""What begins on which line: whose speech, with the words beside its head; in order."""

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


def read_txt(text: str) -> ParsedTranscript:
    """Read `NAME: text` with its continuation lines; a time in brackets may stand beside the name."""
    lines = text.split("\n")
    return _speeches_under(lines, _line_heads(lines), "NAME: text")


def _line_heads(lines: Sequence[str]) -> Heads:
    """Return the speeches that lines begin; a name's other lines help to know it."""
    matches = {at: match for at, line in enumerate(lines) if (match := _LINE.match(line))}
    matches = {at: match for at, match in matches.items() if not _LABEL.fullmatch(match["name"])}
    counts = Counter(match["name"] for match in matches.values())
    first = next(iter(counts), "")
    heads = {}
    for at, match in matches.items():
        known = counts[match["name"]] > 1 or match["name"] == first
        setting = match["tight"] == ":" and match["name"][0].islower()  # `color:red`
        reported = match["tight"] and not known and _REPORTED.match(match["text"])
        if not (setting or reported) and _is_name(match["name"], known=known):
            heads[at] = ParsedSpeech(match["name"], match["text"], match["before"] or match["after"] or "")
    return heads


def _is_name(text: str, *, known: bool) -> bool:
    """Tell whether words before a colon name somebody: few, capitalised, without a sentence's punctuation."""
    words = re.sub(r"[(（][^)）]*[)）]", " ", text).split()
    if not words or len(words) > 6 or re.search(r"[;!?\"“”、。，！？；「」『』]|[^.\s]{6,}\.(?:\s|$)", text):
        return False
    if not known and any(word.lower() == word.upper() and len(word) > _CASELESS for word in words):
        return False
    capital = [not word[0].islower() or bool(_PARTICLE.fullmatch(word)) for word in words]
    return all(capital) or (known and (capital[-1] or len(words) == 1))


def read_md(text: str) -> ParsedTranscript:
    """Read speeches under `## NAME`, after `**NAME:**` or `- **NAME**:`; fences are taken for none.

    Headings and fences are `markdown-it-py`'s. Speeches after bold names are told line by line: most
    transcripts set no empty line between them, so that Markdown makes one paragraph of several.
    """
    # Neither dashes under a speech nor tags before it make it another block.
    parser = MarkdownIt("commonmark").disable(["lheading", "html_block"])
    parser.core.ruler.disable("inline")
    lines, blocks = text.split("\n"), parser.parse(text)
    fenced = {at for token in blocks if token.type == "fence" and token.map for at in range(*token.map)}
    headings = {
        token.map[0]: (token.tag, inside.content)
        for token, inside in pairwise(blocks)
        if token.type == "heading_open" and token.level == 0 and token.map
    }
    level = min((tag for tag, _ in headings.values() if tag != "h1"), default="")
    names = {at: name for at, (tag, name) in headings.items() if tag == level}
    repeated = len(set(names.values())) < len(names)
    # What stands in a list or under one heading is a speaker only where nothing else is.
    if not repeated and any(map(BOLD.match, lines)):
        return _speeches_under(lines, _bold_heads(BOLD, lines, fenced), "**NAME:** text")
    if not repeated and len(names) < 2 and is_listed(lines):
        return _speeches_under(lines, _bold_heads(LISTED, lines, fenced), "- **NAME**: text")
    if names:
        return _speeches_under(
            lines, {at: _markdown_speech(name, "") for at, name in names.items()}, "## NAME"
        )
    return read_txt(text)


def is_listed(lines: Sequence[str]) -> bool:
    """Tell whether the speeches are the items of a list, each under a bold name."""
    return any(map(LISTED.match, lines)) and not _line_heads(lines)


def _bold_heads(form: re.Pattern[str], lines: Sequence[str], fenced: Container[int]) -> Heads:
    matches = {at: match for at, line in enumerate(lines) if (match := form.match(line)) and at not in fenced}
    return {
        at: _markdown_speech(f"{match['time'] or ''}{match['name']}{match['aside'] or ''}", match["text"])
        for at, match in matches.items()
    }


def _markdown_speech(head: str, text: str) -> ParsedSpeech:
    """Return a speech by its head in Markdown: a name, and perhaps a time in brackets."""
    match = re.fullmatch(_HEAD, head.strip())
    if match is None:
        return ParsedSpeech(head, text)
    return ParsedSpeech(match["name"], text, match["before"] or match["after"] or "")


def _speeches_under(lines: Sequence[str], heads: Heads, form: str) -> ParsedTranscript:
    """Split lines into speeches; what stands before the first is the topic."""
    if not heads:
        raise InputError(f"line 1: no speaker found; write each speech as `{form}`")
    starts = [*heads, len(lines)]
    said = [
        ParsedSpeech(head.speaker, "\n".join([head.content, *lines[at + 1 : end]]).strip(), head.at)
        for (at, head), end in zip(heads.items(), starts[1:], strict=True)
    ]
    topic = (_TOPIC.sub("", line.strip()) for line in lines[: starts[0]])
    return ParsedTranscript(said, " ".join(filter(None, topic)))
