"""Selection of the messages that most probably answer a question, within a token budget."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moot.retrieval.index import EvidenceIndex
from moot.retrieval.retrieval_question import RetrievalQuestion, read_question
from moot.retrieval.score import probabilities
from moot.retrieval.vectors import Floats

Costs = Mapping[int, int] | Callable[[int], int]
"""Number of tokens that each entry needs in a prompt. The numbers are given as a mapping or a function of the
entry's sequence number."""

SHARE_TOLERANCE = 0.1
"""Share of a debater's token budget that may stay unused when messages are selected. If more tokens stay
unused, more of the debater's messages might fit."""

EVIDENCE_LABEL_TOKENS = 7
"""Approximate number of tokens in the label of a message. The label names the message id and the speaker."""
MIN_LABELLED = 6
"""Minimum number of tokens for a message with its label."""

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
    mentioned_seqs: Iterable[int] = (),
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
        mentioned_seqs: `seq` of entries that the question names. They follow `must_keep`, the most probable
            first.
        speakers: Sides with equal shares of the budget, to within 10 %. Other speakers get only `must_keep`.
            A side that is shorter than its share is chosen whole.
        chances: Result of `probabilities` for the same index and question, if it is known already.
    """
    question = query if isinstance(query, RetrievalQuestion) else read_question(index, query)
    chances = probabilities(index, question) if chances is None else chances
    worth = chances / (np.array(index.tokens) + (0 if costs is None else EVIDENCE_LABEL_TOKENS))
    is_unnamed = np.ones(len(index), dtype=np.bool_)  # everyone whom the question does not name
    is_unnamed[[p for seq in mentioned_seqs if (p := index.position(seq)) is not None]] = False
    order = np.lexsort((-np.arange(len(index)), -worth, is_unnamed)).tolist()
    draft = _SelectionDraft(index, costs, budget)
    required = [p for seq in sorted(set(must_keep), reverse=True) if (p := index.position(seq)) is not None]
    draft.fill(required, budget)
    if not speakers:
        draft.fill(order, draft.left)
        return draft.evidence(required or order)

    # Each side has its share of the budget, which includes its required entries.
    sides, fixed = dict.fromkeys(speakers), frozenset(required)
    speaker_ids = [index.speakers[number] for number in index.speaker_of]
    spent_tokens = {
        side: draft.spent(p for p in draft.selected_positions if speaker_ids[p] == side) for side in sides
    }
    share = (draft.left + sum(spent_tokens.values())) // len(sides)
    for side in sides:
        side_positions = [p for p in order if speaker_ids[p] == side]
        remaining = draft.fill(side_positions, min(share - spent_tokens[side], draft.left))
        draft.top_up([p for p in side_positions if p not in fixed], remaining, int(share * SHARE_TOLERANCE))
    return draft.evidence(required or order)


def token_costs(index: EvidenceIndex, costs: Costs | None) -> Callable[[int], int]:
    """Return a function from an entry's number to its tokens, by default those of its content.

    An unknown number raises `KeyError`.
    """
    if costs is None:
        return index.tokens_of
    return costs if callable(costs) else costs.__getitem__


class _SelectionDraft:
    """Unfinished selection of transcript messages for a prompt, within a token budget."""

    def __init__(self, index: EvidenceIndex, costs: Costs | None, budget: int) -> None:
        self.index = index
        self.left = budget
        self.selected_positions: set[int] = set()
        self._price, self._is_dear = token_costs(index, costs), costs is None or callable(costs)
        self._least = MIN_LABELLED if callable(costs) else 1
        self._known: dict[int, int] = {}

    def cost(self, position: int) -> int:
        if position not in self._known:
            self._known[position] = self._price(self.index.seqs[position])
        return self._known[position]

    def fill(self, order: Iterable[int], remaining: int) -> int:
        """Select every entry that still fits, in this order, and return the unused tokens."""
        for position in order:
            if remaining < self._least:
                break
            # Rendering is expensive, so counting tokens stops when the prompt is full.
            too_long = self._is_dear and self.index.tokens[position] > remaining + _MERGED
            if position in self.selected_positions or too_long:
                continue
            if (cost := self.cost(position)) <= remaining:
                self.selected_positions.add(position)
                remaining -= cost
                self.left -= cost
        return remaining

    def top_up(self, positions: Sequence[int], remaining: int, tolerance: int) -> None:
        """Use leftover tokens by replacing selected messages with longer ones.

        Stop when at most `tolerance` tokens are left or nothing longer fits. Long messages leave gaps that no
        other message fits, which would give the sides unequal shares.
        """
        while remaining > tolerance:
            pool = [p for p in positions if p not in self.selected_positions][:_SWAP_POOL]
            swaps = [
                (self.cost(addition) - self.cost(removal), addition, removal)
                for removal in positions
                if removal in self.selected_positions
                for addition in pool
                if 0 < self.cost(addition) - self.cost(removal) <= remaining
            ]
            if not swaps:
                break
            extra_cost, addition, removal = max(swaps)
            self.selected_positions.remove(removal)
            self.selected_positions.add(addition)
            self.left -= extra_cost
            remaining -= extra_cost

    def spent(self, positions: Iterable[int]) -> int:
        return sum(self.cost(p) for p in positions)

    def evidence(self, ranked_positions: Sequence[int]) -> SelectedEvidence:
        """Return the selection. If nothing fits, the first ranked message is to be truncated."""
        seqs, positions = self.index.seqs, sorted(self.selected_positions)
        return SelectedEvidence(
            seqs=tuple(seqs[p] for p in positions),
            tokens=self.spent(positions),
            omitted=len(seqs) - len(positions),
            oversize=None if positions or not ranked_positions else seqs[ranked_positions[0]],
        )
