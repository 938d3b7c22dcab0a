"""What a question asks about, and whose words it asks for."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from moot.nodes.memory.retrieval.index import EvidenceIndex
from moot.nodes.text.terms import STOP_WORDS, WORD, question_terms, terms, words
from moot.nodes.text.tokens import rarity

_ALIAS = re.compile(r"[(（]([^()（）]*)[)）]")
_GRAMMAR_WEIGHT = 0.1
_INITIAL_WEIGHT = 0.5
_CAPITAL_FACTOR = 1.5


@dataclass(frozen=True)
class RetrievalQuestion:
    """A question as retrieval sees it.

    Attributes:
        text: The question as it was asked.
        about: It without the words that name a speaker: what is embedded, for those are compared otherwise.
        terms: Term → how often the question has it, less for a word that is common in general; without the
            words that name a speaker.
        speakers: Numbers (in the index) of the speakers it names.
        unknown: Terms that the transcript never uses: what an answer cannot have found verbatim.
    """

    text: str
    about: str
    terms: dict[str, float]
    speakers: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


def read_question(index: EvidenceIndex, text: str) -> RetrievalQuestion:
    """Split `text` into the speakers it names and the terms it asks about."""
    names = [_aliases(index.names.get(speaker, speaker)) for speaker in index.speakers]
    called = _speakers_in(names, _word_weights(text))
    naming = frozenset[str]().union(*(alias for aliases in called.values() for alias in aliases))
    about = " ".join(word for word in WORD.findall(text) if _fold(word) not in naming)
    wanted = Counter(question_terms(about))
    rare = {term: rarity(word) for word in words(about) for term in terms(word)}
    known = {term: count * rare.get(term, 1.0) for term, count in wanted.items() if term in index.postings}
    unknown = tuple(term for term in wanted if term not in known)
    return RetrievalQuestion(text, about or text, known, tuple(called), unknown)


def _speakers_in(
    names: Sequence[Sequence[frozenset[str]]], asked: Mapping[str, float]
) -> dict[int, list[frozenset[str]]]:
    """Return the numbers of the speakers whom a question names, with the aliases by which it does.

    A word weighs by how few speakers share it. Words of one whom it names in full name nobody else: "Grad E"
    is not "Grad A", too.
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
        """Whether over half of a name's weight is in the question."""
        total = sum(weights[word] for word in alias)
        return sum(weights[word] * rest.get(word, 0.0) for word in alias) > total / 2

    called = {n: full[n] or list(filter(is_called, names[n])) for n in full}
    return {n: aliases for n, aliases in called.items() if aliases}


def _fold(word: str) -> str:
    """Lower-case a word; a lone capital stays, for "Grad A" is not "a"."""
    return word if len(word) == 1 and word.isupper() else word.casefold()


def _word_weights(text: str) -> dict[str, float]:
    """Return word → weight; a capital inside a question hints at a name: "Bains" will do for "Jo Bains"."""
    found = dict.fromkeys(words(text), 1.0)
    for n, word in enumerate(WORD.findall(text)):
        if word[0].isupper():
            found[_fold(word)] = _CAPITAL_FACTOR if n else 1.0
    return found


@lru_cache(maxsize=256)
def _aliases(name: str) -> list[frozenset[str]]:
    """Return the word sets that call a name: what stands outside its parentheses, and inside each."""
    spellings = [_ALIAS.sub(" ", name), *_ALIAS.findall(name)]
    found = [
        frozenset(
            part for word in WORD.findall(s) for part in ([_fold(word)] if len(word) == 1 else words(word))
        )
        for s in spellings
    ]
    return [alias for alias in found if alias]
