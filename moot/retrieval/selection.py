"""Selection of the messages that answer a question, within a token budget."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moot.retrieval.index import EvidenceIndex, Floats
from moot.retrieval.retrieval_question import RetrievalQuestion, read_question
from moot.retrieval.score import probabilities

Costs = Mapping[int, int] | Callable[[int], int]
"""Number of tokens that each entry takes in a prompt, keyed by the entry's sequence number."""

SHARE_TOLERANCE = 0.1
"""Fraction of a debater's token budget that may stay unused when messages are selected. More of its
messages might fit."""

LABEL_TOKENS = 7
"""Approximate number of tokens in the label of a message."""
MIN_LABELLED = 6
"""Minimum number of tokens that a message with its label takes up in a prompt."""

_SWAP_POOL = 64
_MERGED = 8  # rendering may merge this many tokens


@dataclass(frozen=True)
class SelectedEvidence:
    """Messages selected to answer a question.

    Attributes:
        seqs: Chosen entries in transcript order.
        tokens: Total tokens, at most the budget.
        omitted: Number of entries that were not chosen.
        oversize: `seq` of the entry to truncate if no entry fits.
    """

    seqs: tuple[int, ...]
    tokens: int
    omitted: int
    oversize: int | None = None


def select_evidence(
    index: EvidenceIndex,
    query: str | RetrievalQuestion,
    *,
    budget: int,
    costs: Costs | None = None,
    must_keep: Iterable[int] = (),
    named: Iterable[int] = (),
    speakers: Sequence[str] = (),
    chances: Floats | None = None,
) -> SelectedEvidence:
    """Return the messages that most likely answer a question, within a token budget.

    Messages are ranked by the probability that they answer the question, divided by their tokens with the
    label. A message that does not fit is skipped, not truncated.

    Args:
        index: Index of the transcript.
        query: Question, or the result of `read_question`.
        budget: Tokens for all chosen messages, `must_keep` included.
        costs: Tokens by `seq`, label included; a function must return at least the entry's own `tokens`.
            Default: the entries' `tokens`.
        must_keep: `seq` of entries to choose first, the newest first if not all fit.
        named: `seq` of entries that the question names. They follow `must_keep`, the most probable first.
        speakers: Sides with equal shares of the budget, to within 10 %. Other speakers get only `must_keep`.
            A side that is shorter than its share is chosen whole.
        chances: Result of `probabilities` for the same index and question, if it is known already.
    """
    question = query if isinstance(query, RetrievalQuestion) else read_question(index, query)
    chances = probabilities(index, question) if chances is None else chances
    worth = chances / (np.array(index.tokens) + (0 if costs is None else LABEL_TOKENS))
    others = np.ones(len(index), dtype=np.bool_)  # everyone whom the question does not name
    others[[p for seq in named if (p := index.position(seq)) is not None]] = False
    order = np.lexsort((-np.arange(len(index)), -worth, others)).tolist()
    draft = _SelectionDraft(index, costs, budget)
    must = [p for seq in sorted(set(must_keep), reverse=True) if (p := index.position(seq)) is not None]
    draft.fill(must, budget)
    if not speakers:
        draft.fill(order, draft.left)
        return draft.evidence(must or order)

    # Each side has its share of the budget, which includes its required entries.
    sides, fixed = dict.fromkeys(speakers), frozenset(must)
    said_by = [index.speakers[number] for number in index.speaker_of]
    kept = {side: draft.spent(p for p in draft.chosen if said_by[p] == side) for side in sides}
    share = (draft.left + sum(kept.values())) // len(sides)
    for side in sides:
        own = [p for p in order if said_by[p] == side]
        remaining = draft.fill(own, min(share - kept[side], draft.left))
        draft.top_up([p for p in own if p not in fixed], remaining, int(share * SHARE_TOLERANCE))
    return draft.evidence(must or order)


def token_costs(index: EvidenceIndex, costs: Costs | None) -> Callable[[int], int]:
    """Return a function that maps an entry's sequence number to the entry's token count.

    Default: the tokens of the entry's content.
    """
    if costs is None:
        return lambda seq: index.tokens[index.position(seq) or 0]
    return costs if callable(costs) else costs.__getitem__


class _SelectionDraft:
    """Unfinished selection of messages."""

    def __init__(self, index: EvidenceIndex, costs: Costs | None, budget: int) -> None:
        self.index = index
        self.left = budget
        self.chosen: set[int] = set()
        self._price, self._is_dear = token_costs(index, costs), costs is None or callable(costs)
        self._least = MIN_LABELLED if callable(costs) else 1
        self._known: dict[int, int] = {}

    def cost(self, position: int) -> int:
        if position not in self._known:
            self._known[position] = self._price(self.index.seqs[position])
        return self._known[position]

    def fill(self, order: Iterable[int], remaining: int) -> int:
        """Select entries in the given order while they fit, and return the number of unused tokens."""
        for position in order:
            if remaining < self._least:
                break
            # Rendering is expensive, so counting tokens stops when the prompt is full.
            too_long = self._is_dear and self.index.tokens[position] > remaining + _MERGED
            if position in self.chosen or too_long:
                continue
            if (cost := self.cost(position)) <= remaining:
                self.chosen.add(position)
                remaining -= cost
                self.left -= cost
        return remaining

    def top_up(self, own: Sequence[int], remaining: int, tolerance: int) -> None:
        """Replace selected messages with longer ones until few unused tokens remain.

        Long messages leave gaps that no other message fits, which would give the sides unequal shares.
        """
        while remaining > tolerance:
            rest = [p for p in own if p not in self.chosen][:_SWAP_POOL]
            swaps = [
                (self.cost(into) - self.cost(out), into, out)
                for out in own
                if out in self.chosen
                for into in rest
                if 0 < self.cost(into) - self.cost(out) <= remaining
            ]
            if not swaps:
                break
            more, into, out = max(swaps)
            self.chosen.remove(out)
            self.chosen.add(into)
            self.left -= more
            remaining -= more

    def spent(self, positions: Iterable[int]) -> int:
        return sum(self.cost(p) for p in positions)

    def evidence(self, wanted: Sequence[int]) -> SelectedEvidence:
        """Return the messages selected to answer a question, and the number of omitted messages.

        If no message fits, the caller should truncate the first message in `wanted`.
        """
        seqs, positions = self.index.seqs, sorted(self.chosen)
        return SelectedEvidence(
            seqs=tuple(seqs[p] for p in positions),
            tokens=self.spent(positions),
            omitted=len(seqs) - len(positions),
            oversize=None if positions or not wanted else seqs[wanted[0]],
        )
