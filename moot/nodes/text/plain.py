"""Plain words: inert forms of what debaters wrote, which no list takes for structure; numbers with nouns."""

import re
from functools import lru_cache

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Invisible and direction-changing characters; the two joiners stay, emoji and Persian need them.
_INVISIBLE = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]+"
)
_LEADING_MARK = re.compile(r"(?:[#>|=~`]+|[-*+•](?=\s)|\d{1,3}[.)](?=\s)|-{2,}|\*{2,}|_{2,})\s*")
_HTML_HEADING = re.compile(r"<(?=/?\s{0,8}[hH][1-6])")
_MESSAGE_REFERENCE = re.compile(r"\[([^\[\]]{0,80}m\d{6,12}[^\[\]]{0,80})\]")


def word_set(words: str) -> frozenset[str]:
    """Return the set of the words of a table written as running text."""
    return frozenset(words.split())


def plain_line(text: str) -> str:
    """Return `text` on one line: control, line-breaking and invisible characters gone, white space single."""
    if not (text.isascii() and text.isprintable()):  # most texts are; the patterns cost more than the test
        text = _INVISIBLE.sub("", _BREAKS.sub(" ", text))
    return " ".join(text.split())


@lru_cache(maxsize=8192)  # the same names, quotations and points are shown turn after turn
def inert(text: str) -> str:
    """Return `text` on one line, unable to be a heading, a list item, a fence or somebody else's citation.

    Emphasis and leading Markdown marks are removed; a bracketed message id, which in our own renderings
    says where a point comes from, is put in parentheses.
    """
    line = plain_line(plain_line(text).replace("**", "").replace("```", ""))
    start = 0
    while mark := _LEADING_MARK.match(line, start):
        start = mark.end()
    line = _HTML_HEADING.sub("‹", line[start:])
    return _MESSAGE_REFERENCE.sub(r"(\1)", line).strip()


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, cut at a word where one ends near, marked with `…`."""
    if len(text) <= limit:
        return text
    if limit < 2:
        return "…"[:limit]
    head = text[: limit - 1]
    space = head.rfind(" ")
    if space > limit * 0.6:
        head = head[:space]
    return head.rstrip(" ,;:\u200c\u200d") + "…"


def excerpt(text: str, limit: int, around: int = 0) -> str:
    """Return one line of at most `limit` characters of `text` that holds the character at offset `around`."""
    start = max(0, around - limit // 4) if around > limit // 2 else 0
    line = plain_line(text[start : start + 2 * limit])
    if start == 0:
        return clip(line, limit)
    space = line.find(" ")
    if 0 <= space < limit // 6:
        line = line[space + 1 :]
    return "…" + clip(line, limit - 1)


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `1,200 turns`, `2 entries`."""
    if number == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number:,} {noun}{ending}"


def all_done(number: int, noun: str, done: str) -> str:
    """Return why a debate ended: `all 3 rounds are done`, `the one round is done`."""
    return f"the one {noun} is {done}" if number == 1 else f"all {number} {noun}s are {done}"
