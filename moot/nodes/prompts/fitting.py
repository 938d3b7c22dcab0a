"""A view: the prompt that one speaker gets at one step, within its budget by exact count, never empty.

A view is built of *blocks*. Each block is one wire message or a part of the tail, with a priority; when the
whole is over budget, the least important blocks go first, and the receipt says which. Blocks that may not go
are cut in their middle. Nothing is cut while tokens are unused: what is left goes to what was cut or left
out, the most important first. The order of the blocks is the layout; what fills them is the view policy's.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moot.nodes.calls import View, WireMessage
from moot.nodes.prompts.rendering import cut_message
from moot.nodes.text.tokens import REPLY_PRIMING, TokenCounter, message_tokens
from moot.state.at_sight import at_sight
from moot.state.conversation import LeftOut, MemoryKind

_Sized = tuple[WireMessage, int]
"""A message as it is shown, and its tokens."""

LEAST_PART = 60
"""A message that was left out comes back in part only where at least this many tokens of it fit."""

KEEP, OPTIONAL = 0, 1
"""Priorities: of what is always present, cut if it must be; and of what matters most of all the rest."""


@dataclass(frozen=True)
class Block:
    """One message of a view, and how it is treated when room is short."""

    section: str
    """Section that the receipt counts it under."""
    message: WireMessage
    priority: int = KEEP
    """`KEEP` stays; of the rest, the highest number goes first, and among equals the earliest."""
    ids: tuple[str, ...] = ()
    """Entries that it shows."""
    group: str = ""
    """Blocks of one group stay or go together."""
    label: str = ""
    """What it is, for the receipt of what was left out."""
    whole: WireMessage | None = None
    """The message before the view policy cut it, `None` for the same: it gets what nothing else needs."""
    retrieved: tuple[str, ...] = ()
    """Ids of entries and memories that were brought back into it."""
    memory: Mapping[MemoryKind, int] = field(default_factory=dict)
    """Tokens of each kind of memory that it holds, about."""


def cut_block(
    section: str,
    message: WireMessage,
    max_tokens: int,
    count: TokenCounter,
    *,
    label: str,
    priority: int = KEEP,
    memory: MemoryKind | None = None,
) -> Block:
    """Return a message as a block of at most `max_tokens`; what is cut comes back where room is left.

    `memory` is the kind of memory that the message is.
    """
    shown = cut_message(message, max_tokens, count)
    held = {memory: count(shown["content"])} if memory else {}
    whole = message if shown != message else None
    return Block(section, shown, priority, label=label, whole=whole, memory=held)


def fit(blocks: Sequence[Block], budget: int, count: TokenCounter) -> View:
    """Assemble blocks, in their order, into a view of at most `budget` tokens.

    Raises:
        ValueError: not even the bare messages that must stay fit, which a validated budget rules out.
    """
    costs = [_cost(block.message, count) for block in blocks]
    wholes = [
        message_tokens(block.whole, count) if block.whole else cost
        for block, cost in zip(blocks, costs, strict=True)
    ]
    dropped = _choose_dropped(blocks, costs, budget)
    shown = {i: (block.message, costs[i]) for i, block in enumerate(blocks) if i not in dropped}

    # What must stay and is still too much is cut, the longest first.
    while (over := REPLY_PRIMING + sum(cost for _, cost in shown.values()) - budget) > 0:
        index = max(shown, key=lambda i: shown[i][1])
        message, cost = shown[index]
        shorter = cut_message(message, cost - over, count)
        smaller = message_tokens(shorter, count)
        if smaller >= cost:
            raise ValueError(f"a view of {budget} tokens cannot hold its own frame")
        shown[index] = shorter, smaller

    _fill_up(shown, blocks, wholes, budget, count)
    return _make_view(shown, blocks, wholes, budget)


@at_sight(512)  # a window's messages are the same ones turn after turn
def _cost(message: WireMessage, count: TokenCounter) -> int:
    return message_tokens(message, count)


def fit_messages(messages: Sequence[WireMessage], budget: int, count: TokenCounter) -> View:
    """Fit a prompt that is no debater's view: first and last message stay, the others go oldest first."""
    last = len(messages) - 1
    blocks = [
        Block("system" if i == 0 else "messages", message, KEEP if i in (0, last) else OPTIONAL)
        for i, message in enumerate(messages)
    ]
    return fit(blocks, budget, count)


def _choose_dropped(blocks: Sequence[Block], costs: Sequence[int], budget: int) -> set[int]:
    """Return the indices of blocks to leave out: least important and earliest first, whole groups."""
    over = REPLY_PRIMING + sum(costs) - budget
    dropped: set[int] = set()
    if over <= 0:
        return dropped
    rank = _ranks(blocks)
    order = sorted((i for i, b in enumerate(blocks) if b.priority > KEEP), key=lambda i: (-rank[i], i))
    for index in order:
        if over <= 0:
            break
        for member in _group(blocks, index) - dropped:
            dropped.add(member)
            over -= costs[member]
    return dropped


def _ranks(blocks: Sequence[Block]) -> list[int]:
    """Return each block's priority: a group matters as much as its most important member."""
    best: dict[str, int] = {}
    for block in blocks:
        best[block.group] = min(block.priority, best.get(block.group, block.priority))
    return [best[block.group] if block.group else block.priority for block in blocks]


def _group(blocks: Sequence[Block], index: int) -> set[int]:
    group = blocks[index].group
    if not group:
        return {index}
    return {i for i, block in enumerate(blocks) if block.group == group and block.priority > KEEP}


def _fill_up(
    shown: dict[int, _Sized],
    blocks: Sequence[Block],
    wholes: Sequence[int],
    budget: int,
    count: TokenCounter,
) -> None:
    """Give what room is left to what was cut or left out: the most important first, then the latest.

    A tail is whole or as its policy cut it, part by part: its instruction is never what gives way.
    """
    free = budget - REPLY_PRIMING - sum(cost for _, cost in shown.values())
    rank = _ranks(blocks)
    lacking = [i for i, whole in enumerate(wholes) if i not in shown or shown[i][1] < whole]
    for index in sorted(lacking, key=lambda i: (rank[i], -i)):
        members = [index] if index in shown else sorted(_group(blocks, index) - shown.keys())
        before = sum(shown[i][1] for i in members if i in shown)
        needed = sum(wholes[i] for i in members)
        if free <= 0 or needed <= before:
            continue
        if needed <= free + before:
            shown.update((i, (blocks[i].whole or blocks[i].message, wholes[i])) for i in members)
            free -= needed - before
        elif len(members) == 1 and blocks[index].section != "tail" and free + before >= LEAST_PART:
            message = cut_message(blocks[index].whole or blocks[index].message, free + before, count)
            cost = message_tokens(message, count)
            if before < cost <= free + before:
                shown[index] = message, cost
                free -= cost - before


def _make_view(
    shown: Mapping[int, _Sized], blocks: Sequence[Block], wholes: Sequence[int], budget: int
) -> View:
    """Return what is shown as a view; notes about the same thing are one, so that a receipt stays small."""
    sections, memory = Counter[str](), Counter[MemoryKind]()
    left_out: dict[tuple[str, str], LeftOut] = {}
    for index, block in enumerate(blocks):
        cost = 0
        if index in shown:
            cost = shown[index][1]
            sections[block.section] += cost
            if block.memory:
                memory.update(block.memory)
        if cost < wholes[index]:
            what, why = block.label or block.section, "cut in its middle" if cost else "no room"
            note = left_out.setdefault((what, why), {"what": what, "why": why, "tokens": 0, "count": 0})
            note["tokens"] += wholes[index] - cost
            note["count"] += 1
    kept = [blocks[index] for index in sorted(shown)]
    return View(
        messages=tuple(shown[index][0] for index in sorted(shown)),
        total_tokens=REPLY_PRIMING + sections.total(),
        budget=budget,
        sections=dict(sections),
        shown=tuple(key for block in kept for key in block.ids),
        left_out=tuple(left_out.values()),
        retrieved=tuple(key for block in kept for key in block.retrieved),
        layout=tuple(block.section for block in kept),
        memory=memory,
    )
