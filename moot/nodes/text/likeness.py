"""How alike texts are, and which sentences of a text carry its matter, by their terms."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from moot.nodes.text.terms import term_set

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


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


_ALIKE = 0.7  # likeness from which two texts say the same


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
