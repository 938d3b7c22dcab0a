"""From text to the terms that lexical retrieval compares.

Words are lower-cased and lightly stemmed (Porter 2) where they are Latin; scripts without spaces between
words give overlapping pairs of characters, as Lucene's CJK analyser does.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MAX_WORD = 40
"""Characters of a word that count: longer runs are addresses and encoded data."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SPELLED = re.compile(r"(?<![^\W_])(?:[^\W\d_][._]){2,}[^\W\d_]?(?![^\W_])")
# Vowel signs and accents are marks, not letters, to `re`: without them words of Hindi or Hebrew fall apart.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3"
)
WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
"""A word in any script, as it is written."""
_RUNS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")

_GRAMMAR = """
a about above after again all also am an and any are aren as at be because been before being below
between both but by can cannot could couldn d did didn do does doesn doing don down during each either
else etc even ever every few for from further get gets getting got had hadn has hasn have haven having he
her here hers herself him himself his how however i if in into is isn it its itself just let ll m may
maybe me might more most much must my myself no nor not now of off oh okay on once only or other ought
our ours ourselves out over own per quite rather re really s same shall she should shouldn since so some
such t than that the their theirs them themselves then there these they this those though through to too
uh um under until up upon us ve very was wasn we well were weren what whatever when where whether which
while who whom whose why will with within without won would wouldn yeah yes yet you your yours yourself
yourselves
"""
_FRAME = """
according answer argue ask comment compare concern conclude conclusion consider decide describe detail
discuss discussion elaborate explain explanation express give list mention opinion outline overview point
present propose question reason recall recommend regard remark respond response said say speak state
statement suggest summarise summarize summary talk tell think thought told view
"""

STOP_WORDS = frozenset(_GRAMMAR.split())
"""English words that carry grammar rather than content, with the fillers of speech."""


@lru_cache(maxsize=65_536)
def _term(word: str) -> str | None:
    """Return the term that a lower-case word stands for, `None` for a stop word."""
    if word in STOP_WORDS:
        return None
    word = word[:MAX_WORD]
    if not (word[0].isalpha() and unicodedata.name(word[0], "").startswith("LATIN")):
        return word
    from snowballstemmer.english_stemmer import EnglishStemmer

    # One stemmer a miss: it keeps the word as state, and several threads may index at once.
    return str(EnglishStemmer().stemWord(word))


def words(text: str) -> list[str]:
    """Return the lower-case words of `text`; a run without spaces gives its pairs of characters."""
    text = _SPELLED.sub(
        lambda match: re.sub(r"[._]", "", match[0]) + " ", text
    )  # U.S., and L_C_D_ in transcripts
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    found: list[str] = []
    for word in WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        found.extend(_parts(word))
    return found


def _parts(word: str) -> list[str]:
    """Split a word where its script changes, and unspaced scripts into pairs of characters."""
    if word.isascii() or not _IS_UNSPACED.search(word):
        return [word]
    parts: list[str] = []
    for run in _RUNS.findall(word):
        if not _IS_UNSPACED.match(run) or len(run) == 1:
            parts.append(run)
        else:
            parts.extend(run[i : i + 2] for i in range(len(run) - 1))
    return parts


def spelled(text: str) -> list[str]:
    """Return the words of `text` as they are written, split where their script changes."""
    found = WORD.findall(unicodedata.normalize("NFKC", text))
    return [run for word in found for run in _RUNS.findall(word)]


def is_unspaced(run: str) -> bool:
    """Whether a run is of a script without spaces between words, whose terms are pairs of characters."""
    return _IS_UNSPACED.match(run) is not None


def terms(text: str) -> list[str]:
    """Return the content terms of `text` in order, repeated as often as they occur."""
    return [term for word in words(text) if (term := _term(word)) is not None]


@lru_cache(maxsize=1)
def frame_terms() -> frozenset[str]:
    """Return the terms of asking itself, such as "summarize" or "opinion"."""
    return frozenset(filter(None, map(_term, _FRAME.split())))


def question_terms(text: str) -> list[str]:
    """Return what `text` asks about: its terms without those of asking, or all if no other is left."""
    found = terms(text)
    return [term for term in found if term not in frame_terms()] or found


def without_frame(text: str) -> str:
    """Return `text` without the words of asking: what an embedding model should compare."""
    kept = [word for word in text.split() if not frame_terms().issuperset(terms(word) or [""])]
    return " ".join(kept) or text
