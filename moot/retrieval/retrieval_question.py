"""Questions prepared for a transcript search, with search terms and named speakers."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from moot.retrieval.index import EvidenceIndex
from moot.text.terms import STOP_WORDS, WORD, question_terms, terms, words
from moot.text.tokens import rarity

_ALIAS = re.compile(r"[(（]([^()（）]*)[)）]")
_GRAMMAR_WEIGHT = 0.1
_INITIAL_WEIGHT = 0.5
_CAPITAL_FACTOR = 1.5


@dataclass(frozen=True)
class RetrievalQuestion:
    """Question prepared for searching the transcript.

    Attributes:
        text: Question as it was asked.
        about: Question without the speakers' names. It is the text to embed.
        terms: Term counts without speakers' names. Common terms count less.
        speakers: Index numbers of the speakers that the question names.
        unknown: Counts of the terms that the transcript does not contain.
    """

    text: str
    about: str
    terms: dict[str, float]
    speakers: tuple[int, ...] = ()
    unknown: Mapping[str, float] = field(default_factory=dict)


def read_question(index: EvidenceIndex, text: str) -> RetrievalQuestion:
    """Prepare a question for searching the transcript, and find the speakers that it names."""
    names = [_aliases(index.names.get(speaker, speaker)) for speaker in index.speakers]
    called = _speakers_in(names, _word_weights(text))
    naming = frozenset[str]().union(*(alias for aliases in called.values() for alias in aliases))
    about = " ".join(word for word in WORD.findall(text) if _fold(word) not in naming)
    wanted = Counter(question_terms(about))
    rare = {term: rarity(word) for word in words(about) for term in terms(word)}
    weights = {term: count * rare.get(term, 1.0) for term, count in wanted.items()}
    known = {term: weight for term, weight in weights.items() if term in index.postings}
    unknown = {term: weight for term, weight in weights.items() if term not in known}
    return RetrievalQuestion(text, about or text, known, tuple(called), unknown)


def _speakers_in(
    names: Sequence[Sequence[frozenset[str]]], asked: Mapping[str, float]
) -> dict[int, list[frozenset[str]]]:
    """Return the names that a question uses for speakers, keyed by the speaker's index in `names`.

    A word has less weight if several speakers share it. A word that belongs to one speaker's full name does
    not name another speaker. For example, "Grad E" is not "Grad A".
    """
    full = {n: [a for a in aliases if a <= asked.keys()] for n, aliases in enumerate(names)}
    taken = frozenset[str]().union(*(alias for aliases in full.values() for alias in aliases))
    rest = {word: weight for word, weight in asked.items() if word not in taken}
    shared = Counter(word for aliases in names for word in frozenset[str]().union(*aliases))
    weights = {}
    for word, count in shared.items():
        own = _INITIAL_WEIGHT if len(word) == 1 else 1.0
        weights[word] = (_GRAMMAR_WEIGHT if word in STOP_WORDS else own) / count

    def is_called(alias: frozenset[str]) -> bool:
        """Return True if the question contains most of the words in `alias`, a speaker's name.

        Words are weighted.
        """
        total = sum(weights[word] for word in alias)
        return sum(weights[word] * rest.get(word, 0.0) for word in alias) > total / 2

    called = {n: full[n] or list(filter(is_called, names[n])) for n in full}
    return {n: aliases for n, aliases in called.items() if aliases}


def _fold(word: str) -> str:
    """Convert a word to lower case unless it is a single capital letter."""
    return word if len(word) == 1 and word.isupper() else word.casefold()


def _word_weights(text: str) -> dict[str, float]:
    """Return a weight for each word in a text. Rare words have higher weights.

    A capitalized word has more weight, because it is likely a name, unless it is the question's first word.
    """
    found = dict.fromkeys(words(text), 1.0)
    for n, word in enumerate(WORD.findall(text)):
        if word[0].isupper():
            found[_fold(word)] = _CAPITAL_FACTOR if n else 1.0
    return found


@lru_cache(maxsize=256)
def _aliases(name: str) -> list[frozenset[str]]:
    """Return the sets of words that may be used in place of a speaker's name.

    The words in parentheses form a set of their own.
    """
    spellings = [_ALIAS.sub(" ", name), *_ALIAS.findall(name)]
    found = [
        frozenset(
            part for word in WORD.findall(s) for part in ([_fold(word)] if len(word) == 1 else words(word))
        )
        for s in spellings
    ]
    return [alias for alias in found if alias]
