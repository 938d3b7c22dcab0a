"""How alike texts are, and which sentences of a text carry its matter, by their terms."""

import re
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
