"""Whether a quotation really stands in a message, in its speaker's own words."""

import re
from functools import lru_cache

_QUOTES = frozenset('`"“”„‟«»‹›「」『』')
_MARKS = _QUOTES | frozenset("'‘’‚‛*_")
_SPEECH = re.compile(
    r"“[^“”]{8,600}”|\"[^\"\n]{8,600}\"|«[^«»]{8,600}»|„[^„“”]{8,600}[“”]|「[^「」]{4,300}」|『[^『』]{4,300}』"
    r"|^[ \t]{0,3}>.*$",
    re.MULTILINE,
)
LONGEST = 400
"""Characters of a quotation that are kept; a longer one is kept up to there."""


def find_quotation(quote: str, text: str) -> tuple[int, int] | None:
    """Return where a quotation stands in a text, white space, quotation marks and case aside."""
    wanted, _ = _bare(quote)
    bare, places = _bare(text)
    start = bare.find(wanted) if wanted else -1
    if start < 0:
        return None
    first, last = places[start], places[start + len(wanted) - 1] + 1
    # A quotation within it keeps both of its marks.
    opens = quote.strip()[0] in _QUOTES and text[:first].endswith(tuple(_QUOTES))
    closes = quote.strip()[-1] in _QUOTES and text.startswith(tuple(_QUOTES), last)
    return first - opens, last + closes


@lru_cache(maxsize=256)  # of one message many quotations are looked for
def _bare(text: str) -> tuple[str, list[int]]:
    """Return a text without white space and quotation marks, with the place of each character kept."""
    kept = [(char, at) for at, char in enumerate(text) if not char.isspace() and char not in _MARKS]
    folded = [(low, at) for char, at in kept for low in char.casefold()]
    return "".join(char for char, _ in folded), [at for _, at in folded]


def in_speech_of_another(text: str, start: int, end: int) -> bool:
    """Return whether a span lies inside a quotation, which belongs to the quoted."""
    return any(first <= start and end <= last for first, last in _speeches(text))


@lru_cache(maxsize=256)
def _speeches(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _SPEECH.finditer(text)]


def kept_quotation(text: str, start: int, end: int) -> str:
    """Return the words of a span, at most `LONGEST` characters, cut at a word."""
    words = text[start:end]
    if len(words) <= LONGEST:
        return words
    return words[: words.rfind(" ", 0, LONGEST) if " " in words[:LONGEST] else LONGEST]
