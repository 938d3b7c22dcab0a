"""`semantic`: what was said falls into clusters, and one sentence stands for each.

Clusters are found by leaders (Hartigan 1975, ch. 3), one pass and no number of clusters to choose; a sentence
that joins a cluster adds to its weight, so what was said often, or by many, stays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from moot.nodes.memory.summarizers.by_rule import RuleBased
from moot.nodes.memory.summarizers.extractive import Kept, candidates, everybody_first, laid_out
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest
from moot.nodes.text.likeness import same_statement
from moot.nodes.text.terms import terms

ALIKE, ALIKE_EMBEDDED = 0.35, 0.7
"""Cosine from which two sentences belong together: of words, and of an embedding model's vectors."""
KEPT = 200
"""Clusters that are carried on, the heaviest."""
MAX_IDS = 4

Vector = Mapping[Any, float]


class Semantic:
    """Summary by clusters, without a model but an optional embedding model."""

    name = "semantic"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Let new sentences join the clusters so far; yields no call."""
        points = yield from RuleBased().summarize(request)
        before: list[Kept] = request.carried("kept", Kept.__annotations__)
        clusters = clustered([*before, *candidates(request.entries)], request)
        ranked = everybody_first(sorted(clusters, key=lambda each: -each["weight"]))
        return Draft(laid_out(ranked, request), {**points.points, "kept": ranked[:KEPT]}, self.name)


def clustered(sentences: Sequence[Kept], request: SummaryRequest) -> list[Kept]:
    """Return one sentence a cluster, with the weight of all: the first, whose words the others share."""
    embeddings = request.memories.embeddings if request.memories else None
    texts = [sentence["text"] for sentence in sentences]
    vectors = _lexical(texts) if embeddings is None else _embedded(texts, embeddings)
    alike = ALIKE if embeddings is None else ALIKE_EMBEDDED
    leaders: list[tuple[Kept, Vector]] = []
    by_key: dict[Any, list[int]] = {}
    for sentence, vector in zip(sentences, vectors, strict=True):
        near = _nearest(vector, leaders, by_key)
        if near is not None and _cosine(vector, leaders[near][1]) >= alike:
            leaders[near] = (_joined(leaders[near][0], sentence), leaders[near][1])
        else:
            for key in vector:
                by_key.setdefault(key, []).append(len(leaders))
            leaders.append((sentence, vector))
    return [leader for leader, _ in leaders]


def _nearest(
    vector: Vector, leaders: Sequence[tuple[Kept, Vector]], by_key: Mapping[Any, list[int]]
) -> int | None:
    met = {index for key in vector for index in by_key.get(key, ())}
    return max(met, key=lambda index: (_cosine(vector, leaders[index][1]), -index), default=None)


def _joined(leader: Kept, sentence: Kept) -> Kept:
    """Return a leader with the weight of a sentence, and with its messages where they say the same."""
    says_it = leader["speaker"] == sentence["speaker"] and same_statement(leader["text"], sentence["text"])
    ids = list(dict.fromkeys([*leader["message_ids"], *(sentence["message_ids"] if says_it else ())]))
    ids = ids if len(ids) <= MAX_IDS else [*ids[:1], *ids[-(MAX_IDS - 1) :]]
    return Kept(
        text=leader["text"],
        speaker=leader["speaker"],
        message_ids=ids,
        weight=leader["weight"] + sentence["weight"],
    )


def _lexical(texts: Sequence[str]) -> list[Vector]:
    """Return unit vectors of term frequency times inverse sentence frequency."""
    counts = [Counter(terms(text)) for text in texts]
    frequency = Counter(term for count in counts for term in count)
    rarity = {term: math.log(1 + len(texts) / number) for term, number in frequency.items()}
    return [_unit({term: number * rarity[term] for term, number in count.items()}) for count in counts]


def _embedded(texts: Sequence[str], embeddings: Any) -> list[Vector]:
    return [_unit(dict(enumerate(vector))) for vector in embeddings.embed_documents(list(texts))]


def _unit(vector: Mapping[Any, float]) -> Vector:
    norm = math.sqrt(sum(value * value for value in vector.values())) or 1.0
    return {key: value / norm for key, value in vector.items()}


def _cosine(one: Vector, other: Vector) -> float:
    return sum(value * other.get(key, 0.0) for key, value in one.items())
