"""Terms of a text in any script, and what they say about likeness and salience."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from moot.nodes.text.plain import word_set

# Scripts written without spaces, or (Hangul) with particles glued on: their terms are character bigrams.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Indic vowel signs are no letters to `\w`, but belong to the word; the danda (0964, 0965) does not.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0d7f"
_RUN = re.compile(rf"(?P<unspaced>[{UNSPACED}]+)|(?P<word>(?:(?![{UNSPACED}])[\w{_MARKS}'])+)")
_ASCII_WORD = re.compile(r"[\w']+", re.ASCII)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ALIKE = 0.7  # likeness from which two texts say the same
_LONGEST_TERM = 40
_LONGEST_WORD = 64  # what is longer is cut before it is looked at, so that little is remembered of it
_STOP_WORDS = word_set(
    "a about after again all also am an and any are as at be because been before being but by can could "
    "did do does doing don't down each even few for from further get going got had has have having he her "
    "here him his how i i'd i'll i'm i've if in into is it it's its itself just know let let's like may "
    "me might more most much must my myself no nor not now of off on once one only or other our out over "
    "own really same say said see shall she should so some such than that that's the their them then "
    "there there's these they they're thing this those through to too under until up upon us very want "
    "was we we're well were what when where which while who whom why will with would yes you you're your "
    "yours der die das den dem des ein eine einer eines und oder aber ist sind war nicht mit von zu im "
    "auf für als auch es wir ich sie er wie dass daß sich werden wird hat haben kann noch nur nach bei "
    "aus um am an so le la les un une des du de et ou mais est sont pas ne que qui dans pour par sur avec "
    "ce cette ces il elle nous vous ils elles je au aux en se sa son ses plus on y el los las una unos "
    "unas y o pero es son no con por para como su sus lo al del se más que en yo и в не на что он она они "
    "мы вы я это как но а с по к у из за от же бы для так"
)


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order: folded words without stop words, bigrams in unspaced scripts."""
    if text.isascii():  # the same by a plainer pattern, in a fraction of the time
        words = _ASCII_WORD.findall(text.lower())
        return [term for word in words if (term := _term(word[:_LONGEST_WORD]))]
    found: list[str] = []
    for run in _RUN.finditer(unicodedata.normalize("NFKC", text).replace("’", "'").casefold()):
        if run.lastgroup == "unspaced":
            found.extend(_bigrams(run.group()))
        elif term := _term(run.group()[:_LONGEST_WORD]):
            found.append(term)
    return found


def _bigrams(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


@lru_cache(maxsize=65_536)  # a debate repeats its words, and every message is read for several purposes
def _term(run: str) -> str:
    """Return the term of a word, `""` for a stop word, without an English possessive or plural.

    Real stemming would need to know the language.
    """
    word = run.strip("'_")
    if word in _STOP_WORDS:
        return ""
    word = word.removesuffix("'s")[:_LONGEST_TERM]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=4096)
def term_set(text: str) -> frozenset[str]:
    """Return the distinct terms of a short `text`; remembered, since the same points are compared often."""
    return frozenset(terms(text))


@lru_cache(maxsize=256)  # a message is held against others for the blackboard and for every summary
def message_terms(text: str) -> frozenset[str]:
    """Return the distinct terms of a whole message."""
    return frozenset(terms(text))


def likeness(first: str, second: str) -> float:
    """Return how alike two short texts are, 0–1: Jaccard's index of their terms, or equality without any."""
    ours, theirs = term_set(first), term_set(second)
    if not ours or not theirs:
        return 1.0 if first.casefold() == second.casefold() else 0.0
    return len(ours & theirs) / len(ours | theirs)


@lru_cache(maxsize=4096)
def numbers(text: str) -> frozenset[str]:
    """Return the distinct numbers of a short `text`, as written in digits."""
    return frozenset(_NUMBER.findall(text))


def same_statement(first: str, second: str) -> bool:
    """Whether two short texts say nearly the same: terms in common, and no number differs."""
    return numbers(first) == numbers(second) and likeness(first, second) >= _ALIKE


def salience(sentences: Sequence[Sequence[str]]) -> list[float]:
    """Return a score 0–1 for each sentence, given as its terms: how much of the message's matter it carries.

    TF-IDF with sentences as the documents: a term weighs ln(1 + its count in the message) · ln(1 + n / its
    sentences); a sentence scores the mean of its terms, damped where it has only a few.
    """
    counts = Counter(term for sentence in sentences for term in sentence)
    spread = Counter(term for sentence in sentences for term in set(sentence))
    weight = {t: math.log1p(counts[t]) * math.log1p(len(sentences) / spread[t]) for t in counts}
    raw = [sum(weight[t] for t in set(sentence)) / (len(set(sentence)) + 6) for sentence in sentences]
    top = max(raw, default=0.0)
    return [score / top if top else 0.0 for score in raw]
