"""The few memories that come back into a debate turn.

The score of Generative Agents (Park et al. 2023, §4.1, with the weights of the released code): recency,
relevance and importance, each scaled to 0–1 over the candidates. Unlike there, the newest memory has the
highest recency, and what is not relevant enough in absolute terms stays out however poor the others are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from moot.nodes.memory.retrieval.index import IMPORTANT, EvidenceIndex, Floats, Ints, MemoryItems, Postings
from moot.nodes.memory.retrieval.selection import Costs, pricing
from moot.nodes.text.terms import question_terms

RECENCY_DECAY = 0.99
RECENCY_WEIGHT, RELEVANCE_WEIGHT, IMPORTANCE_WEIGHT = 0.5, 3.0, 2.0

MAX_TERMS = 16
"""Terms of the query that are looked up, the rarest first: a turn's cost must not grow with what it
answers."""
MAX_PER_TERM = 32
"""Latest occurrences of a term, and latest important entries, that become candidates."""
MAX_CANDIDATES = 128
RELEVANCE_FLOOR = 0.1
"""Relevance (0–1: the matched share of the query's term weight) under which a memory that is not important
stays out."""
_SATURATION = 1.2  # BM25's k1 and b
_LENGTH_PENALTY = 0.75


@dataclass(frozen=True)
class Recall:
    """What `recall` brings back.

    Attributes:
        seqs: Entries in the order of the transcript, neighbours included.
        item_ids: Memory items, the best first.
        tokens: What all of it costs together.
        left_out: Candidates that were good enough, but not among the top or without room.
    """

    seqs: tuple[int, ...]
    item_ids: tuple[str, ...]
    tokens: int
    left_out: int


class _Candidate(NamedTuple):
    """An entry or an item that may come back."""

    position: int
    """In the index, or among the items."""
    is_entry: bool
    seq: int
    importance: int
    relevance: float


def recall(
    index: EvidenceIndex,
    query: str,
    *,
    budget: int,
    answering: str = "",
    items: MemoryItems | None = None,
    before: int | None = None,
    exclude: Collection[int] = (),
    exclude_items: Collection[str] = (),
    top: int = 8,
    neighbours: int = 1,
    costs: Costs | None = None,
    semantic: bool = True,
) -> Recall:
    """Return the memories that score highest for `query` within `budget` tokens.

    Candidates are entries, but for those with a `seq` from `before` on, and items that are important (7 or
    more) or match; their number is capped, so that the cost of a turn does not grow with the transcript. The
    terms of the message that is answered count half. What is close in meaning is a candidate, too, where the
    index has embeddings: as relevant as its cosine or its words make it, whichever is more.

    Brought back are `top` memories at most, and as many `neighbours` of an entry on each side as there is
    room for; `exclude` and `exclude_items` are what the view holds already.
    """
    limit = len(index) if before is None else bisect_left(index.seqs, before)
    items, passed_over = items or MemoryItems(), frozenset(exclude)
    wanted = _query_weights(index, items, query, answering)
    meant = f"{query}\n{answering}".strip() if semantic else ""
    found = [
        *_entries(index, wanted, limit, passed_over, meant),
        *_items(items, wanted, frozenset(exclude_items)),
    ]
    good = [each for each in found if each.relevance >= RELEVANCE_FLOOR or each.importance >= IMPORTANT]

    price, left, taken = pricing(index, costs), budget, list[_Candidate]()
    for each in _rank(good):
        if len(taken) == top:
            break
        cost = price(each.seq) if each.is_entry else items.items[each.position].tokens
        if cost <= left:
            left -= cost
            taken.append(each)

    # What stands beside the entries taken comes along, nearest first, while there is room.
    picked = [each.position for each in taken if each.is_entry]
    entries = set(picked)
    for step in (s for distance in range(1, neighbours + 1) for s in (-distance, distance)):
        for position in (p + step for p in picked):
            free = 0 <= position < limit and position not in entries
            if free and (seq := index.seqs[position]) not in passed_over and price(seq) <= left:
                left -= price(seq)
                entries.add(position)
    seqs = tuple(index.seqs[position] for position in sorted(entries))
    item_ids = tuple(items.items[each.position].id for each in taken if not each.is_entry)
    return Recall(seqs, item_ids, budget - left, len(good) - len(taken))


def _query_weights(index: EvidenceIndex, items: MemoryItems, query: str, answering: str) -> dict[str, float]:
    """Return term → weight: of the rarest known terms, and of those of `query` that nothing can match.

    The unknown ones keep relevance absolute: a memory that shares one word with a long question is not
    relevant.
    """
    asked = Counter(dict.fromkeys(question_terms(query), 2)) + Counter(
        dict.fromkeys(question_terms(answering), 1)
    )
    texts = len(index) + len(items.items)
    seen = {term: index.postings.frequency(term) + items.postings.frequency(term) for term in asked}
    weights = {t: n * math.log1p((texts - seen[t] + 0.5) / (seen[t] + 0.5)) for t, n in asked.items()}
    known = sorted((t for t in weights if seen[t]), key=lambda t: (-weights[t], t))[:MAX_TERMS]
    unknown = [t for t in weights if not seen[t] and asked[t] > 1]
    return {t: weights[t] for t in known + unknown}


def _entries(
    index: EvidenceIndex, wanted: dict[str, float], limit: int, exclude: frozenset[int], meant: str
) -> Iterator[_Candidate]:
    """Yield the entries under `limit` that may come back; `meant` is embedded, `""` for words alone."""
    positions = _matching(index.postings, wanted, limit)
    raised: Floats | None = None
    if meant and index.vectors is not None and limit:
        # Cosines of unrelated texts are no zeros: what counts is how far one stands above the mean.
        cosine = index.vectors.similarity(meant)[:limit]
        raised = np.clip((cosine - cosine.mean()) / max(1e-9, 1 - cosine.mean()), 0, 1)
        positions = np.union1d(positions, np.argsort(-raised, kind="stable")[:MAX_PER_TERM])
    relevance = _relevance(index.postings, positions, wanted)
    if raised is not None:
        relevance = np.maximum(relevance, raised[positions])
    for position, relevant in zip(positions.tolist(), relevance.tolist(), strict=True):
        if (seq := index.seqs[position]) not in exclude:
            yield _Candidate(position, True, seq, index.importance[position], relevant)


def _items(items: MemoryItems, wanted: dict[str, float], exclude: frozenset[str]) -> Iterator[_Candidate]:
    positions = _matching(items.postings, wanted, len(items.items))
    relevance = _relevance(items.postings, positions, wanted)
    for position, relevant in zip(positions.tolist(), relevance.tolist(), strict=True):
        item = items.items[position]
        if items.is_current(position) and item.id not in exclude:
            yield _Candidate(position, False, item.seq, item.importance, relevant)


def _matching(postings: Postings, wanted: dict[str, float], limit: int) -> Ints:
    """Return positions under `limit`, sorted: the latest that are important or have a wanted term."""
    flagged = [position for position in postings.important[-4 * MAX_PER_TERM :] if position < limit]
    found, room = set(flagged[-MAX_PER_TERM:]), MAX_CANDIDATES
    for term in sorted(wanted, key=lambda t: (-wanted[t], t)):
        positions = postings.latest(term, before=limit, last=min(MAX_PER_TERM, room))
        found.update(positions)
        room -= len(positions)
        if room <= 0:
            break
    return np.array(sorted(found), dtype=np.int64)


def _relevance(postings: Postings, positions: Ints, wanted: dict[str, float]) -> Floats:
    """Return the matched share of the query's weight, BM25-saturated, for each of `positions`."""
    total = sum(wanted.values())
    matched = np.zeros(len(positions))
    if not len(positions) or not total:
        return matched
    lengths = np.array([postings.lengths[p] for p in positions.tolist()])
    mean = max(1.0, postings.words / len(postings))
    norm = _SATURATION * (1 - _LENGTH_PENALTY + _LENGTH_PENALTY * lengths / mean)
    oldest = int(positions[0])
    for term, weight in wanted.items():
        where, counts = postings.occurrences(term, oldest)
        if len(where):
            at = np.minimum(np.searchsorted(where, positions), len(where) - 1)
            tf = np.where(where[at] == positions, counts[at], 0)
            matched += weight * tf / (tf + norm)
    return matched / total


def _scale(values: Floats) -> Floats:
    """Scale to 0–1; values that are all alike say nothing and become 0."""
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _rank(found: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the candidates, best first; ties go to the newer, then to the later in the list."""
    seqs = np.array([each.seq for each in found], dtype=np.int64)
    _, age = np.unique(-seqs, return_inverse=True)
    score = (
        RECENCY_WEIGHT * _scale(RECENCY_DECAY ** age.astype(float))
        + RELEVANCE_WEIGHT * _scale(np.array([each.relevance for each in found], dtype=float))
        + IMPORTANCE_WEIGHT * _scale(np.array([each.importance for each in found], dtype=float))
    )
    order = np.lexsort((-np.arange(len(score)), -seqs, -score.round(9)))
    return [found[number] for number in order.tolist()]
