"""What a question asks about: its words without those of asking itself."""

from functools import lru_cache

from moot.nodes.text.terms import terms, word_table

ASKING = word_table("asking")
"""Words of asking, such as "summarize" or "opinion"."""


@lru_cache(maxsize=1)
def asking_terms() -> frozenset[str]:
    """Return the terms of the words of asking."""
    return frozenset(term for word in ASKING for term in terms(word))


def question_terms(text: str) -> list[str]:
    """Return what `text` asks about: its terms without those of asking, or all if no other is left."""
    found = terms(text)
    return [term for term in found if term not in asking_terms()] or found


def without_asking(text: str) -> str:
    """Return `text` without the words of asking: what an embedding model should compare."""
    kept = [word for word in text.split() if not asking_terms().issuperset(terms(word) or [""])]
    return " ".join(kept) or text
