"""Which messages go into a view when a question is asked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moot.nodes.memory.retrieval.index import EvidenceIndex
from moot.nodes.memory.retrieval.posterior import densities
from moot.nodes.memory.retrieval.question import RetrievalQuestion, read_question

Costs = Mapping[int, int] | Callable[[int], int]
"""Exact tokens of an entry as the view renders it, by `seq`."""

SHARE_TOLERANCE = 0.1
"""How far below its share a side may stay while other messages of its own would fill it."""

LABEL_TOKENS = 7
"""What a message's id and speaker take in a view, about: they count against short ones."""
LEAST_LABELLED = 6
"""Less than any message costs with id and speaker."""

_SWAP_POOL = 64
_MERGED = (
    8  # rendering may merge a few tokens of the content with its frame, so a cost may lie this far below
)


@dataclass(frozen=True)
class SelectedEvidence:
    """What `select_evidence` chose.

    Attributes:
        seqs: The chosen entries in the order of the transcript.
        tokens: What they cost together, never above the budget.
        left_out: How many entries of the index were not chosen.
        oversize: `seq` of the entry to cut in its middle, where nothing at all fitted.
    """

    seqs: tuple[int, ...]
    tokens: int
    left_out: int
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
    semantic: bool = True,
) -> SelectedEvidence:
    """Choose the messages most probably answering `query` whose rendering fits `budget` tokens.

    Messages go in the order of the probability that a token spent on them is evidence, their label included;
    one that does not fit is skipped, for cutting would lose what makes it evidence.

    Args:
        index: The transcript.
        query: The question, or what `read_question` made of it.
        budget: Tokens for everything chosen, `must_keep` included.
        costs: Tokens by `seq`; a callable must count a label, too, and not return less than the entry's own
            `tokens`: entries that cannot fit by those are never asked for. Without it, the entries' `tokens`.
        must_keep: `seq` of entries to choose first, the newest first where not all fit.
        named: `seq` of entries that the question asks for: of what is not kept anyway they go before all
            others, the most probable first.
        speakers: Sides that get an equal share of the budget (to 10 %, where they said enough); others get
            none beyond `must_keep`. A side that said less than its share is chosen whole.
        semantic: Whether the index's embeddings are used; without, words alone are compared.
    """
    question = query if isinstance(query, RetrievalQuestion) else read_question(index, query)
    worth = densities(index, question, semantic=semantic)
    if costs is not None:
        tokens = np.array(index.tokens)
        worth *= tokens / (tokens + LABEL_TOKENS)
    others = np.ones(len(index), dtype=np.bool_)  # whatever the question does not ask for
    others[[p for seq in named if (p := index.position(seq)) is not None]] = False
    order = np.lexsort((-np.arange(len(index)), -worth, others)).tolist()
    draft = _SelectionDraft(index, costs, budget)
    must = [p for seq in sorted(set(must_keep), reverse=True) if (p := index.position(seq)) is not None]
    draft.fill(must, budget)
    if not speakers:
        draft.fill(order, draft.left)
        return draft.evidence(must or order)

    # Each side has its share of the budget; what had to be kept of a side counts towards it.
    sides, fixed = dict.fromkeys(speakers), frozenset(must)
    said_by = [index.speakers[number] for number in index.speaker_of]
    kept = {side: draft.spent(p for p in draft.chosen if said_by[p] == side) for side in sides}
    share = (draft.left + sum(kept.values())) // len(sides)
    for side in sides:
        own = [p for p in order if said_by[p] == side]
        room = draft.fill(own, min(share - kept[side], draft.left))
        draft.top_up([p for p in own if p not in fixed], room, int(share * SHARE_TOLERANCE))
    return draft.evidence(must or order)


def pricing(index: EvidenceIndex, costs: Costs | None) -> Callable[[int], int]:
    """Return what tells the tokens of an entry by its `seq`: by default those of its bare content."""
    if costs is None:
        return lambda seq: index.tokens[index.position(seq) or 0]
    return costs if callable(costs) else costs.__getitem__


class _SelectionDraft:
    """A selection in the making: positions chosen, tokens left."""

    def __init__(self, index: EvidenceIndex, costs: Costs | None, budget: int) -> None:
        self.index = index
        self.left = budget
        self.chosen: set[int] = set()
        self._price, self._is_dear = pricing(index, costs), costs is None or callable(costs)
        self._least = LEAST_LABELLED if callable(costs) else 1
        self._known: dict[int, int] = {}

    def cost(self, position: int) -> int:
        if position not in self._known:
            self._known[position] = self._price(self.index.seqs[position])
        return self._known[position]

    def fill(self, order: Iterable[int], room: int) -> int:
        """Choose along `order` what fits into `room` and return what is left of it."""
        for position in order:
            if room < self._least:
                break
            # Pricing renders and counts: no thousands of messages are priced to find that the view is full.
            too_long = self._is_dear and self.index.tokens[position] > room + _MERGED
            if position in self.chosen or too_long:
                continue
            if (cost := self.cost(position)) <= room:
                self.chosen.add(position)
                room -= cost
                self.left -= cost
        return room

    def top_up(self, own: Sequence[int], room: int, tolerance: int) -> None:
        """Exchange choices for longer ones until at most `tolerance` of `room` is unused, or none is there.

        Long speeches leave gaps that no other speech fits; two sides with different gaps would not be heard
        equally.
        """
        while room > tolerance:
            rest = [p for p in own if p not in self.chosen][:_SWAP_POOL]
            swaps = [
                (self.cost(into) - self.cost(out), into, out)
                for out in own
                if out in self.chosen
                for into in rest
                if 0 < self.cost(into) - self.cost(out) <= room
            ]
            if not swaps:
                break
            more, into, out = max(swaps)
            self.chosen.remove(out)
            self.chosen.add(into)
            self.left -= more
            room -= more

    def spent(self, positions: Iterable[int]) -> int:
        return sum(self.cost(p) for p in positions)

    def evidence(self, wanted: Sequence[int]) -> SelectedEvidence:
        """Return what was chosen; where nothing fitted, the first of `wanted` is to be cut."""
        seqs, positions = self.index.seqs, sorted(self.chosen)
        return SelectedEvidence(
            seqs=tuple(seqs[p] for p in positions),
            tokens=self.spent(positions),
            left_out=len(seqs) - len(positions),
            oversize=None if positions or not wanted else seqs[wanted[0]],
        )
