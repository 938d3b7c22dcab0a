"""`semantic`: what was said falls into clusters, and one sentence stands for each, as it was said.

Clusters are found by leaders (Hartigan 1975, ch. 3), one pass and no number of clusters to choose; a sentence
that joins a cluster adds to its weight, so what was said often, or by many, stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from moot.nodes.memory.summarizers.points import join_ids
from moot.nodes.memory.summarizers.rule_based import folded_points
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest
from moot.nodes.prompts.rendering import speaker_label
from moot.nodes.text.likeness import likeness, salience, same_statement
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import term_set, terms
from moot.state.entries import Entry, seq_of

ALIKE, ALIKE_EMBEDDED = 0.25, 0.7
"""From where two sentences belong together: likeness of words, and cosine of an embedding model's vectors."""
SENTENCES = 2
"""Sentences of a message that may stand for it, the most salient ones."""
KEPT = 200
"""Clusters that are carried on, the heaviest."""
READ_CHARS, TEXT_CHARS = 8_000, 200
"""Characters of a message that are looked at, and of a sentence that are shown."""
MAX_IDS = 4


class Kept(TypedDict):
    """A sentence that is kept; JSON types only."""

    text: str
    speaker: str
    message_ids: list[str]
    """Messages that say it, oldest first."""
    weight: float
    """Sentences that it stands for."""


class Semantic:
    """Summary by clusters, without a model but an optional embedding model."""

    name = "semantic"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Let new sentences join the clusters so far; yields no call."""
        yield from ()
        before: list[Kept] = request.carried("kept", Kept.__annotations__)
        embeddings = request.memories.embeddings if request.memories else None
        clusters = clustered([*before, *candidates(request.entries)], embeddings)
        ranked = everybody_first(sorted(clusters, key=lambda each: -each["weight"]))
        points = {**folded_points(request), "kept": ranked[:KEPT]}
        return Draft(laid_out(ranked, request), points, self.name)


def candidates(entries: Iterable[Entry]) -> list[Kept]:
    """Return the most salient sentences of each message, in order."""
    found = []
    for entry in entries:
        content = entry["content"][:READ_CHARS]
        sentences = [sentence.text for sentence in split_sentences(content)] or [content]
        scores = salience([terms(sentence) for sentence in sentences])
        best = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))[:SENTENCES]
        for text in (clip(inert(sentences[index]), TEXT_CHARS) for index in sorted(best)):
            if text:
                found.append(Kept(text=text, speaker=entry["speaker"], message_ids=[entry["id"]], weight=1.0))
    return found


def clustered(sentences: Sequence[Kept], embeddings: Any = None) -> list[Kept]:
    """Return one sentence a cluster, with the weight of all: the first, whose words the others share."""
    texts = [sentence["text"] for sentence in sentences]
    vectors = None if embeddings is None or not texts else _unit(embeddings.embed_documents(texts))
    leaders, numbers = list[Kept](), list[int]()
    by_term: dict[str, list[int]] = {}
    for number, sentence in enumerate(sentences):
        if vectors is None:
            met = sorted({n for term in term_set(texts[number]) for n in by_term.get(term, ())})
            near = [likeness(texts[numbers[n]], texts[number]) for n in met]
        else:
            met = list(range(len(leaders)))
            near = (vectors[numbers] @ vectors[number]).tolist()
        best = max(range(len(met)), key=lambda place: near[place], default=None)
        if best is not None and near[best] >= (ALIKE if vectors is None else ALIKE_EMBEDDED):
            leaders[met[best]] = _joined(leaders[met[best]], sentence)
            continue
        for term in term_set(texts[number]):
            by_term.setdefault(term, []).append(len(leaders))
        leaders.append(sentence)
        numbers.append(number)
    return leaders


def _unit(vectors: Sequence[Sequence[float]]) -> Any:
    matrix = np.asarray(vectors, dtype=np.float32)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)


def _joined(leader: Kept, sentence: Kept) -> Kept:
    """Return a leader with the weight of a sentence, and with its messages where they say the same."""
    says_it = leader["speaker"] == sentence["speaker"] and same_statement(leader["text"], sentence["text"])
    ids = join_ids([*leader["message_ids"], *(sentence["message_ids"] if says_it else ())], MAX_IDS)
    return Kept(**{**leader, "message_ids": ids, "weight": leader["weight"] + sentence["weight"]})


def everybody_first(ranked: Sequence[Kept]) -> list[Kept]:
    """Return sentences with the best one of each speaker before all others: nobody vanishes."""
    best = {each["speaker"]: number for number, each in reversed(list(enumerate(ranked)))}
    return [ranked[n] for n in sorted(range(len(ranked)), key=lambda n: best[ranked[n]["speaker"]] != n)]


def laid_out(kept: Sequence[Kept], request: SummaryRequest) -> str:
    """Return as many of the first sentences as fit, in the order they were said, each with its speaker."""
    names = request.config.names()
    chosen: list[tuple[int, str]] = []
    left = request.max_tokens
    for each in kept:
        ids = ", ".join(dict.fromkeys((each["message_ids"][0], each["message_ids"][-1])))
        line = f"- {speaker_label(each['speaker'], names)}: {each['text']} [{ids}]"
        if (cost := request.count(line + "\n")) <= left:
            chosen.append((seq_of(each["message_ids"][0]) or 0, line))
            left -= cost
    while request.count(text := "\n".join(line for _, line in sorted(chosen))) > request.max_tokens:
        chosen.pop()  # lines may count a token more when joined
    return text
