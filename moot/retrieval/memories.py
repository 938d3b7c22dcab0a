"""Retrieval of memories for a turn, and of short texts such as passages of documents.

`retrieve` searches a transcript together with memory items. `rank` searches items alone.

A memory's score is 0.5 · recency + 3 · relevance + 2 · importance, each scaled to 0–1 over the candidates.
This is the score of Generative Agents (Park et al. 2023, §4.1, with the weights of the released code).
Unlike there, the newest memory has the highest recency, and an absolute relevance floor excludes irrelevant
memories.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from moot.retrieval import score as scoring
from moot.retrieval.index import IMPORTANT, EvidenceIndex, Postings
from moot.retrieval.retrieval_question import RetrievalQuestion, read_question
from moot.retrieval.selection import Costs, token_costs
from moot.retrieval.vectors import Floats, Ints, TextVectors
from moot.retrieval.weights import SEMANTIC_WEIGHTS, WEIGHTS
from moot.text.terms import question_terms

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

RECENCY_DECAY = 0.99  # as in the released code of Generative Agents
ANSWERING_SHARE = 0.5
"""Additional weight of search terms from the message to be answered."""
MEANING_SHARE = 0.45
"""Relevance of a text that has the meaning of the query but none of its words. Words and meaning add up.
Share of LoCoMo's evidence among eight memories: words alone .56, .4 to .5 .64, 1.0 .57, the higher of words
and meaning .41."""
MAX_QUERY_TERMS = 16
"""Maximum number of query terms to look up, starting with the rarest. The maximum keeps the cost of a turn
constant."""
MAX_PER_TERM = 32
"""Maximum number of texts that are considered for each query term. The same maximum applies to candidates of
high importance."""
MAX_MEMORY_CANDIDATES = 128  # bounds the cost of a turn, as `MAX_QUERY_TERMS` does
CONTEXT_MESSAGES = 4
"""Number of messages before and after a candidate message that count as its context."""
RELEVANCE_FLOOR = 0.1
"""Minimum relevance, from 0 to 1, for retrieving an unimportant memory. A memory is unimportant if its
importance is less than `IMPORTANT`. Relevance is the memory's share of the maximum evidence for the query."""


@dataclass(frozen=True)
class MemoryItem:
    """Short text that can be retrieved for a prompt, such as a reflection.

    A memory item is not a transcript entry.

    Attributes:
        id: Id of the item. A newer item with the same id replaces this one.
        text: Rendered text.
        tokens: Exact tokens of `text`.
        importance: Importance from 1 to 10.
        seq: `seq` of the last entry that it was made from.
    """

    id: str
    text: str
    tokens: int = 0
    importance: int = 1
    seq: int = 0


class MemoryItems:
    """Searchable collection of memory items. Only the last item with each id is kept.

    Args:
        items: items to search.
        embeddings: embedding model. `None` means that only words are compared.
    """

    def __init__(self, items: Sequence[MemoryItem] = (), embeddings: Embeddings | None = None) -> None:
        self.items = [*{item.id: item for item in items}.values()]
        self.postings = Postings()
        self.embeddings = embeddings
        self._vectors = embeddings and TextVectors(embeddings, [item.text for item in self.items])
        for item in self.items:
            self.postings.add(item.text, item.importance)

    def closeness(self, question: str) -> Floats:
        """Return how close in meaning each item is to a question, from 0 to 1. Without embeddings, all are 0.

        Exceptions of the embedding model propagate to the caller.
        """
        if not self._vectors or not self.items or not question:
            return np.zeros(len(self.items))
        return _closeness(self._vectors.similarity(question))


def _closeness(cosine: Floats) -> Floats:
    """Scale cosines from 0 (at most their mean, as unrelated texts are above zero) to 1 (equal texts)."""
    closeness: Floats = np.clip((cosine - cosine.mean()) / max(1e-9, 1 - cosine.mean()), 0, 1)
    return closeness


@dataclass(frozen=True)
class RetrievalResult:
    """Memories that `retrieve` selected for a query.

    Attributes:
        seqs: Entries in transcript order, neighbours included.
        item_ids: Memory items, best first.
        tokens: Total tokens of entries and items.
        omitted: Number of relevant candidates beyond the maximum count or the budget.
    """

    seqs: tuple[int, ...]
    item_ids: tuple[str, ...]
    tokens: int
    omitted: int


class _Candidate(NamedTuple):
    """Transcript entry or memory item that may be retrieved."""

    position: int
    """Position of the transcript entry or memory item in its index."""
    is_entry: bool
    seq: int
    importance: int
    relevance: float


def retrieve(
    index: EvidenceIndex,
    query: str | RetrievalQuestion,
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
    noted: Mapping[int, int] | None = None,
) -> RetrievalResult:
    """Return the memories that best match a query, within a token budget.

    Candidates are entries with a `seq` below `before`, and memory items, that are important (7 or more) or
    match the query. Their number is limited, so that the cost of a turn does not grow with the transcript.
    Terms of the answered message count half. With embeddings, similar entries and items are candidates too,
    and their similarity adds to their relevance.

    At most `top` memories are returned, with up to `neighbours` entries on each side if they fit. `exclude`
    and `exclude_items` name what the prompt already shows. An entry's importance is the higher of the indexed
    one and the value in `noted` for its `seq`.
    """
    limit = len(index) if before is None else bisect_left(index.seqs, before)
    items, excluded_seqs = items or MemoryItems(), frozenset(exclude)
    question = query if isinstance(query, RetrievalQuestion) else read_question(index, query)
    terms = _query_weights(index, items, question, answering, excluded_seqs)
    text_to_embed = f"{question.text}\n{answering}".strip() if semantic else ""
    candidates = [
        *_entries(index, question, terms, limit, excluded_seqs, text_to_embed, noted or {}),
        *_items(items, terms, frozenset(exclude_items), text_to_embed),
    ]

    price, left, selection = token_costs(index, costs), budget, list[_Candidate]()
    for each in _rank(candidates):
        if len(selection) == top:
            break
        cost = price(each.seq) if each.is_entry else items.items[each.position].tokens
        if cost <= left:
            left -= cost
            selection.append(each)

    # Add neighbours of the chosen entries, nearest first, while tokens remain.
    selected_positions = [each.position for each in selection if each.is_entry]
    entries = set(selected_positions)
    for step in (s for distance in range(1, neighbours + 1) for s in (-distance, distance)):
        for position in (p + step for p in selected_positions):
            is_free = 0 <= position < limit and position not in entries
            if is_free and (seq := index.seqs[position]) not in excluded_seqs and price(seq) <= left:
                left -= price(seq)
                entries.add(position)
    seqs = tuple(index.seqs[position] for position in sorted(entries))
    item_ids = tuple(items.items[each.position].id for each in selection if not each.is_entry)
    return RetrievalResult(seqs, item_ids, budget - left, len(candidates) - len(selection))


class RankedItem(NamedTuple):
    """Memory item that a search found, with its relevance to the query."""

    item: MemoryItem
    relevance: float
    """Relevance of the memory item to the query, from 0 to 1."""


def rank(items: MemoryItems, query: str) -> list[RankedItem]:
    """Return the items that share words or meaning with a query. If the model fails, only words count."""
    index = EvidenceIndex()
    terms = _query_weights(index, items, read_question(index, query), "")
    relevance = scoring.own_evidence(items.postings, terms) / (scoring.most_evidence(terms) or 1.0)
    matches = relevance > 0
    try:
        relevance = relevance + MEANING_SHARE * items.closeness(query)
    except Exception:  # a failing embedding service must not fail the debate
        if items.embeddings is None:
            raise
    matches |= relevance >= RELEVANCE_FLOOR
    ranking = [RankedItem(item, share) for item, share in zip(items.items, relevance.tolist(), strict=True)]
    return sorted(compress(ranking, matches), key=lambda each: -each.relevance)


def _query_weights(
    index: EvidenceIndex,
    items: MemoryItems,
    question: RetrievalQuestion,
    answering: str,
    exclude: Collection[int] = (),
) -> dict[str, float]:
    """Return the query terms to search for, with their weights.

    The search terms are the rarest terms that memories contain, and all terms that none contains. Terms that
    no memory contains keep relevance absolute: a memory that shares one word with a long question is not
    relevant. `exclude` holds the `seq` of the messages that are no memories. One of them is the answered
    message, whose rarest terms no other message contains.
    """
    excluded_positions = {index.position(seq) for seq in exclude}

    def is_known(term: str) -> bool:
        return term in items.postings or any(
            p not in excluded_positions for p in index.postings.positions(term)
        )

    own_terms = {**question.terms, **question.unknown}
    terms = dict(own_terms)
    for term in dict.fromkeys(question_terms(answering)):
        terms[term] = terms.get(term, 0.0) + ANSWERING_SHARE
    weights = scoring.term_weights(replace(question, terms=terms, unknown={}), index.postings, items.postings)
    known_terms = set(filter(is_known, weights))
    rarest_terms = sorted(known_terms, key=lambda term: (-weights[term], term))[:MAX_QUERY_TERMS]
    unknown_terms = [term for term in own_terms if term not in known_terms]
    return {term: weights[term] for term in (*rarest_terms, *unknown_terms)}


def _entries(
    index: EvidenceIndex,
    question: RetrievalQuestion,
    terms: Mapping[str, float],
    limit: int,
    exclude: frozenset[int],
    text_to_embed: str,
    noted: Mapping[int, int],
) -> Iterator[_Candidate]:
    """Yield the transcript entries that are important or relevant enough to be retrieved.

    An entry is relevant by its own words or meaning. Its score also counts the words of the messages around
    it. Only positions below `limit` count.

    With `text_to_embed=""`, the search is by words only.
    """
    noted_positions = (index.position(seq) for seq, importance in noted.items() if importance >= IMPORTANT)
    important = [position for position in noted_positions if position is not None]
    positions = _matching(index.postings, terms, limit, important)
    closeness: Floats | None = None
    weights = WEIGHTS
    if text_to_embed and index.vectors is not None and limit:
        weights = SEMANTIC_WEIGHTS
        closeness = _closeness(index.vectors.similarity(text_to_embed).messages[:limit])
        positions = np.union1d(positions, np.argsort(-closeness, kind="stable")[:MAX_PER_TERM])
    near = (positions[:, None] + np.arange(-CONTEXT_MESSAGES, CONTEXT_MESSAGES + 1)).ravel()
    is_near = np.zeros(limit, dtype=bool)
    is_near[near[(near >= 0) & (near < limit)]] = True
    context_positions = is_near.nonzero()[0]
    max_evidence = scoring.most_evidence(terms) or 1.0
    indices = context_positions.searchsorted(positions)
    word_evidence = scoring.own_evidence(index.postings, terms, context_positions)
    evidence = scoring.message_evidence(index, question, word_evidence, weights, context_positions)[indices]
    evidence += weights.asking * np.array(index.asking)[positions]
    relevance = evidence / (weights.message * max_evidence)
    own_relevance = word_evidence[indices] / max_evidence
    if closeness is not None:
        own_relevance = own_relevance + MEANING_SHARE * closeness[positions]
        relevance = relevance + MEANING_SHARE * closeness[positions]
    scored = zip(
        positions.tolist(), relevance.tolist(), (own_relevance >= RELEVANCE_FLOOR).tolist(), strict=True
    )
    for position, share, is_relevant in scored:
        seq = index.seqs[position]
        importance = max(index.importance[position], noted.get(seq, 0))
        if (is_relevant or importance >= IMPORTANT) and seq not in exclude:
            yield _Candidate(position, True, seq, importance, share)


def _items(
    items: MemoryItems, terms: Mapping[str, float], exclude: frozenset[str], text_to_embed: str
) -> Iterator[_Candidate]:
    positions, closeness = _matching(items.postings, terms, len(items.items)), items.closeness(text_to_embed)
    positions = np.union1d(positions, closeness.nonzero()[0])
    relevance = scoring.own_evidence(items.postings, terms, positions) / (scoring.most_evidence(terms) or 1.0)
    relevance = relevance + MEANING_SHARE * closeness[positions]
    for position, share in zip(positions.tolist(), relevance.tolist(), strict=True):
        item = items.items[position]
        if (share >= RELEVANCE_FLOOR or item.importance >= IMPORTANT) and item.id not in exclude:
            yield _Candidate(position, False, item.seq, item.importance, share)


def _matching(
    postings: Postings, terms: Mapping[str, float], limit: int, important: Sequence[int] = ()
) -> Ints:
    """Return the positions of the texts that are considered for retrieval.

    These texts contain a query term or are marked as important. Only positions below `limit` count.
    `important` holds positions that are important in addition to the indexed ones.
    """
    important_positions = sorted({*postings.important[-4 * MAX_PER_TERM :], *important})
    matches = set([position for position in important_positions if position < limit][-MAX_PER_TERM:])
    remaining = MAX_MEMORY_CANDIDATES
    for term in sorted(terms, key=lambda t: (-terms[t], t)):
        positions = postings.latest(term, before=limit, last=min(MAX_PER_TERM, remaining))
        matches.update(positions)
        remaining -= len(positions)
        if remaining <= 0:
            break
    return np.array(sorted(matches), dtype=np.int64)


def _scale(values: Floats) -> Floats:
    """Scale values linearly to the range from 0 to 1. Equal values become 0."""
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _rank(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return candidates sorted by score, best first. Ties: the newer one, then the later one."""
    seqs = np.array([each.seq for each in candidates], dtype=np.int64)
    ages = {seq: age for age, seq in enumerate(sorted({each.seq for each in candidates}, reverse=True))}
    age = np.array([ages[each.seq] for each in candidates], dtype=float)
    score = (
        WEIGHTS.recency * _scale(RECENCY_DECAY**age)
        + WEIGHTS.relevance * _scale(np.array([each.relevance for each in candidates], dtype=float))
        + WEIGHTS.importance * _scale(np.array([each.importance for each in candidates], dtype=float))
    )
    order = np.lexsort((-np.arange(len(score)), -seqs, -score.round(9)))
    return [candidates[number] for number in order.tolist()]
