"""Which words of a question nobody ever said: content words alone, for grammar and names say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from moot.nodes.prompts.rendering import PEOPLE
from moot.nodes.text.asking import ASKING, asking_terms
from moot.nodes.text.terms import is_unspaced, spelled, terms

if TYPE_CHECKING:
    from moot.nodes.memory.retrieval import RetrievalQuestion

# What parts the words of Chinese, longest first, and all that is no Han or Katakana: Hiragana is grammar.
_BETWEEN = re.compile(
    "|".join(sorted(filter(is_unspaced, ASKING), key=lambda word: (-len(word), word)))
    + "|[^\u3005\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
)


def unsaid(
    question: RetrievalQuestion, names: Mapping[str, str], *, ids: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the content words of a question that the transcript never uses, in lower case, in order.

    Where words are written without spaces between them, what is returned is each stretch of Chinese or
    Katakana in which no two characters stand together as they do in the transcript; in other such scripts a
    word's bounds are not known, and nothing is.
    """
    called = frozenset(terms(" ".join([*names, *names.values(), *PEOPLE, *PEOPLE.values(), *ids])))
    unknown = frozenset(question.unknown) - called - asking_terms()
    found: dict[str, None] = {}
    for run in map(str.casefold, spelled(question.text)):
        if is_unspaced(run):
            found |= dict.fromkeys(_stretches(run, unknown))
        elif len(run) > 1 and not unknown.isdisjoint(terms(run)):
            found[run] = None
    return tuple(found)


def _stretches(run: str, unknown: frozenset[str]) -> list[str]:
    """Return the stretches of a run without spaces that no known pair of characters touches."""
    said = set[int]()
    for place in range(len(run) - 1):
        if run[place : place + 2] not in unknown:
            said |= {place, place + 1}
    open_places = "".join(" " if place in said else character for place, character in enumerate(run))
    return [part for part in _BETWEEN.sub(" ", open_places).split() if len(part) > 1]
