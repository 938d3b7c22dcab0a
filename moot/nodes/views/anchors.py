"""Anchors: passages of a persona's own texts, brought back where their words fit what is discussed."""

import math
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from moot.nodes.text.plain import clip, inert
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import terms
from moot.nodes.text.tokens import TokenCounter
from moot.state.config.debaters import Anchor

PASSAGE = 400
"""Characters of a passage, about."""
MOST = 3
HEADING = "# From your own texts, to be cited by their marks"


class Passage(NamedTuple):
    """A part of an anchor."""

    mark: str
    """What it is cited by, such as `memoir §3`."""
    text: str
    terms: Counter[str]


@lru_cache(maxsize=32)
def passages(anchors: tuple[Anchor, ...]) -> tuple[Passage, ...]:
    """Return anchors split at sentences into passages of about `PASSAGE` characters."""
    split: list[Passage] = []
    for anchor in anchors:
        parts: list[str] = []
        for sentence in filter(None, [inert(each.text) for each in split_sentences(anchor.text)]):
            if parts and len(parts[-1]) + len(sentence) < PASSAGE:
                parts[-1] = f"{parts[-1]} {sentence}"
            else:
                parts.append(clip(sentence, 2 * PASSAGE))
        name = inert(anchor.name)
        split += [Passage(f"{name} §{n}", text, Counter(terms(text))) for n, text in enumerate(parts, 1)]
    return tuple(split)


def fitting(anchors: tuple[Anchor, ...], query: str) -> list[Passage]:
    """Return the passages that share the rarest words with the query, the best first."""
    every = passages(anchors)
    wanted = set(terms(query))
    spread = {term: sum(term in passage.terms for passage in every) for term in wanted}

    def score(passage: Passage) -> float:
        shared = wanted & passage.terms.keys()
        worth = sum(math.log(1 + len(every) / spread[term]) for term in shared)
        return worth / math.sqrt(1 + passage.terms.total())

    ranked = sorted(((score(passage), -n, passage) for n, passage in enumerate(every)), reverse=True)
    return [passage for worth, _, passage in ranked[:MOST] if worth > 0]


def anchor_text(anchors: tuple[Anchor, ...], query: str, max_tokens: int, count: TokenCounter) -> str:
    """Return fitting passages under their marks within `max_tokens`, `""` where none fits."""
    lines = [HEADING]
    for passage in fitting(anchors, query) if anchors else ():
        line = f"- [{passage.mark}] {passage.text}"
        if count("\n".join([*lines, line])) <= max_tokens:
            lines.append(line)
    return "\n".join(lines) if len(lines) > 1 else ""
