"""Words of a question that occur nowhere in the debate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from moot.prompts import truncation
from moot.text import terms as text_terms

if TYPE_CHECKING:
    from moot.retrieval import RetrievalQuestion

# Chinese function words, longest first, and all other characters outside Han and Katakana
_BETWEEN = re.compile(
    "|".join(
        sorted(filter(text_terms.is_unspaced, text_terms.QUESTION_WORDS), key=lambda word: (-len(word), word))
    )
    + "|[^\u3005\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
)


def unsaid_words(
    question: RetrievalQuestion, names: Mapping[str, str], *, others: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the content words of a question that occur in no known text.

    Known texts are the transcript, the speakers' `names` and `others`, such as the verdict.

    For Chinese and Katakana, which have no spaces between words, the result holds each stretch of characters
    of which no adjacent pair occurs in the transcript. Other scripts without spaces give no result, because
    word limits are unknown.
    """
    name_terms = frozenset(
        text_terms.terms(
            " ".join([*names, *names.values(), *truncation.PEOPLE, *truncation.PEOPLE.values(), *others])
        )
    )
    unknown = frozenset(question.unknown) - name_terms - text_terms.question_word_terms()
    words: dict[str, None] = {}
    for run in map(str.casefold, text_terms.spellings(question.text)):
        if not text_terms.is_unspaced(run):
            if len(run) > 1 and not unknown.isdisjoint(text_terms.terms(run)):
                words[run] = None
            continue
        # Split text without spaces at known pairs of characters.
        pairs = [place for place in range(len(run) - 1) if run[place : place + 2] not in unknown]
        known = {*pairs, *(place + 1 for place in pairs)}
        rest = "".join(" " if place in known else character for place, character in enumerate(run))
        words |= dict.fromkeys(part for part in _BETWEEN.sub(" ", rest).split() if len(part) > 1)
    return tuple(words)
