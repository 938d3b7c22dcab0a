"""Questions prepared for a search: their terms, and the speakers that they name."""

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
        text_to_embed: Question without the speakers' names.
        terms: Term counts without speakers' names. Common terms count less.
        speakers: Index numbers of the speakers that the question names.
        unknown: Counts of the terms that the transcript does not contain.
    """

    text: str
    text_to_embed: str
    terms: dict[str, float]
    speakers: tuple[int, ...] = ()
    unknown: Mapping[str, float] = field(default_factory=dict)


def read_question(index: EvidenceIndex, text: str) -> RetrievalQuestion:
    """Prepare a question, with the speakers that it names, for a search of the transcript."""
    names = [_aliases(index.names.get(speaker, speaker)) for speaker in index.speakers]
    mentions = _speakers_in(names, _word_weights(text))
    name_words = frozenset[str]().union(*(alias for aliases in mentions.values() for alias in aliases))
    text_without_names = " ".join(word for word in WORD.findall(text) if _fold(word) not in name_words)
    counts = Counter(question_terms(text_without_names))
    rarities = {term: rarity(word) for word in words(text_without_names) for term in terms(word)}
    weights = {term: count * rarities.get(term, 1.0) for term, count in counts.items()}
    known = {term: weight for term, weight in weights.items() if term in index.postings}
    unknown = {term: weight for term, weight in weights.items() if term not in known}
    return RetrievalQuestion(text, text_without_names or text, known, tuple(mentions), unknown)


def _speakers_in(
    names: Sequence[Sequence[frozenset[str]]], word_weights: Mapping[str, float]
) -> dict[int, list[frozenset[str]]]:
    """Return the speakers that a question names.

    The values are the names that the question uses. The keys are indexes in `names`.

    A word has less weight if several speakers share it. A word that belongs to one speaker's full name does
    not name another speaker. For example, "Grad E" is not "Grad A".
    """
    full_names = {n: [a for a in aliases if a <= word_weights.keys()] for n, aliases in enumerate(names)}
    name_words = frozenset[str]().union(*(alias for aliases in full_names.values() for alias in aliases))
    other_words = {word: weight for word, weight in word_weights.items() if word not in name_words}
    name_counts = Counter(word for aliases in names for word in frozenset[str]().union(*aliases))
    weights = {}
    for word, count in name_counts.items():
        base_weight = _INITIAL_WEIGHT if len(word) == 1 else 1.0
        weights[word] = (_GRAMMAR_WEIGHT if word in STOP_WORDS else base_weight) / count

    def is_called(alias: frozenset[str]) -> bool:
        """Return True if the question has most of a name's words, by weight."""
        total = sum(weights[word] for word in alias)
        return sum(weights[word] * other_words.get(word, 0.0) for word in alias) > total / 2

    mentions = {n: full_names[n] or list(filter(is_called, names[n])) for n in full_names}
    return {n: aliases for n, aliases in mentions.items() if aliases}


def _fold(word: str) -> str:
    """Convert a word to lower case unless it is a single capital letter."""
    return word if len(word) == 1 and word.isupper() else word.casefold()


def _word_weights(text: str) -> dict[str, float]:
    """Weight a question's words to find speakers. Capitalized ones, except the first, are likely names."""
    weights = dict.fromkeys(words(text), 1.0)
    for n, word in enumerate(WORD.findall(text)):
        if word[0].isupper():
            weights[_fold(word)] = _CAPITAL_FACTOR if n else 1.0
    return weights


@lru_cache(maxsize=256)
def _aliases(name: str) -> list[frozenset[str]]:
    """Return a speaker's names, each as a set of words. Words in parentheses are a name of their own."""
    spellings = [_ALIAS.sub(" ", name), *_ALIAS.findall(name)]
    aliases = [
        frozenset(
            part for word in WORD.findall(s) for part in ([_fold(word)] if len(word) == 1 else words(word))
        )
        for s in spellings
    ]
    return [alias for alias in aliases if alias]
