"""Terms: what texts are compared by, in any script, and how alike they are by them. One tokeniser for all.

Words are lower-cased and lightly stemmed (Porter 2) where they are Latin; scripts without spaces between
words give overlapping pairs of characters, as Lucene's CJK analyser does.
"""

import re
import unicodedata
from functools import lru_cache
from importlib.resources import files

MAX_WORD = 40
"""Characters of a word that count: longer runs are addresses and encoded data."""

MAX_KEPT = 65_536
"""Words whose terms are remembered."""

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
"""Scripts written without spaces, or (Hangul) with particles glued on, as ranges of a character class."""

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SPELLED = re.compile(r"(?<![^\W_])(?:[^\W\d_][._]){2,}[^\W\d_]?(?![^\W_])")
_MAYBE_SPELLED = re.compile(r"[._][^\W\d_][._]")
_PRINTED = re.compile("[‘’“”„‚‹›«»–—…•·]")
"""Marks of print, which stand between words as their plain forms do."""
# Vowel signs and accents are marks, not letters, to `re`: without them words of Hindi or Hebrew fall apart.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3"
)
WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
"""A word in any script, as it is written."""
_RUNS = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# Whoever adds something stays below: of 4,153 pairs of what one speaker said in two messages and in the next
# two, in 35 meetings and three televised debates, none reaches .5 (the most is .42). Questions asked again
# are told the same in the labelled excerpts from .5 to .9.
ALIKE = 0.7
"""Likeness from which two texts say the same."""


def word_table(name: str) -> frozenset[str]:
    """Return the words of a file beside this module, in which `#` begins a comment."""
    lines = (files("moot.nodes.text") / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines for word in line.partition("#")[0].split())


TITLES = word_table("titles")
"""What may stand before a name and is no part of it."""
STOP_WORDS = word_table("stop_words")
"""Words that carry grammar rather than content."""
ASKING = word_table("asking")
"""Words of asking, such as "summarize" or "opinion"."""


@lru_cache(maxsize=MAX_KEPT)  # a debate repeats its words, and every message is read for several purposes
def _term(word: str) -> str:
    """Return the term that a lower-case word stands for, `""` for a stop word."""
    word = word[:MAX_WORD]
    if word in STOP_WORDS:
        return ""
    if not (word[0].isalpha() and unicodedata.name(word[0], "").startswith("LATIN")):
        return word
    from snowballstemmer.english_stemmer import EnglishStemmer

    # One stemmer a miss: it keeps the word as state, and several threads may index at once.
    return str(EnglishStemmer().stemWord(word))


def words(text: str) -> list[str]:
    """Return the lower-case words of `text`; a run without spaces gives its pairs of characters."""
    if _MAYBE_SPELLED.search(text):  # U.S., and L_C_D_ in transcripts
        text = _SPELLED.sub(lambda match: re.sub(r"[._]", "", match[0]) + " ", text)
    plain = text if text.isascii() else _PRINTED.sub(" ", text)
    if plain.isascii():  # the same by a plainer pattern, in a fraction of the time
        return _ASCII_WORD.findall(plain.lower())
    found: list[str] = []
    for word in WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if word.isascii() or not UNSPACED_CHARACTER.search(word):
            found.append(word)
            continue
        for run in _RUNS.findall(word):
            pairs = [run[i : i + 2] for i in range(len(run) - 1)] if is_unspaced(run) else []
            found.extend(pairs or [run])
    return found


def spellings(text: str) -> list[str]:
    """Return the words of `text` as they are written, split where their script changes."""
    return [run for word in WORD.findall(unicodedata.normalize("NFKC", text)) for run in _RUNS.findall(word)]


def is_unspaced(run: str) -> bool:
    """Whether a run is of a script without spaces between words, whose terms are pairs of characters."""
    return UNSPACED_CHARACTER.match(run) is not None


def terms(text: str) -> list[str]:
    """Return the content terms of `text` in order, repeated as often as they occur."""
    return [*_terms(text)]


@lru_cache(maxsize=256)  # of one message, what it is born, indexed, folded, searched and answered by
def _terms(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(_term, words(text))))


@lru_cache(maxsize=2048)  # the same points and messages are compared turn after turn
def term_set(text: str) -> frozenset[str]:
    """Return the distinct terms of `text`."""
    return frozenset(terms(text))


@lru_cache(maxsize=1)
def asking_terms() -> frozenset[str]:
    """Return the terms of the words of asking."""
    return frozenset(term for word in ASKING for term in terms(word))


def question_terms(text: str) -> list[str]:
    """Return what `text` asks about: its terms without those of asking, or all if no other is left."""
    every = terms(text)
    return [term for term in every if term not in asking_terms()] or every


def without_asking(text: str) -> str:
    """Return `text` without the words of asking: what an embedding model should compare."""
    kept = [word for word in text.split() if not asking_terms().issuperset(terms(word) or [""])]
    return " ".join(kept) or text


def likeness(first: str, second: str) -> float:
    """Return how alike two short texts are, 0–1: Jaccard's index of their terms, or equality without any."""
    ours, theirs = term_set(first), term_set(second)
    if not ours or not theirs:
        return float(first.casefold() == second.casefold())
    return len(ours & theirs) / len(ours | theirs)


@lru_cache(maxsize=4096)
def numbers(text: str) -> frozenset[str]:
    """Return the distinct numbers of a short `text`, as written in digits."""
    return frozenset(_NUMBER.findall(text))


def same_statement(first: str, second: str) -> bool:
    """Whether two short texts say nearly the same: terms in common, and no number differs."""
    return numbers(first) == numbers(second) and likeness(first, second) >= ALIKE
