"""Chosen material in a view: the problem, pinned messages, and pieces of different rank, within one budget.

Where everything fits, everything is shown as it was written. Where it does not, the higher rank is served
first, and within a rank all pieces are cut to one common length, so that the short ones stay whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from moot.nodes.calls import WireMessage
from moot.nodes.prompts.fitting import KEEP, OPTIONAL, Block, cut_block
from moot.nodes.prompts.rendering import cut_message, render_entry
from moot.nodes.text.tokens import TokenCounter, message_tokens, prompt_tokens
from moot.state.config import DebateConfig
from moot.state.config.memory_config import Budget
from moot.state.conversation import StateValues
from moot.state.entries import Entry, entries_of

LEAST_CUT = 60
"""A piece is only shown in part where at least this many tokens of it fit."""

LEFT_OUT = 9
"""Priority of a piece that has no room: it is the first to go, and the receipt names it."""

PROBLEM_SHARE = 0.5
"""Most of the whole budget that the problem statement may take; it is the same in every prompt."""

PIN_SHARE = 0.25
"""Most of the messages' budget that all pins together take: a window has to stay."""


def problem_block(problem: str, budget: Budget, count: TokenCounter, *, heading: str = "# Problem") -> Block:
    """Return the problem statement as a section of its own, in full while it fits its share."""
    whole: WireMessage = {"role": "user", "content": f"{heading}\n{problem}"}
    return cut_block("topic", whole, problem_room(budget), count, label="topic")


def problem_room(budget: Budget) -> int:
    """Return the tokens that the problem statement has in every prompt, however full."""
    return int(min(budget.total * PROBLEM_SHARE, budget.messages))


def with_pieces(
    head: Sequence[Block], pieces: Sequence[Block], tail: Block, budget: int, count: TokenCounter
) -> list[Block]:
    """Return head, pieces and tail; pieces share what these leave of `budget`, the lowest priority first."""
    room = budget - prompt_tokens([block.message for block in (*head, tail)], count)
    shown = list(pieces)
    for rank in sorted({piece.priority for piece in pieces}):
        places = [at for at, piece in enumerate(pieces) if piece.priority == rank]
        for at, piece in zip(places, _cut_alike([pieces[at] for at in places], room, count), strict=True):
            shown[at] = piece
        room -= sum(
            message_tokens(shown[at].message, count) for at in places if shown[at].priority < LEFT_OUT
        )
    return [*head, *shown, tail]


def common_length(costs: Sequence[int], room: int) -> list[int]:
    """Return what each piece may have: its cost, or the one length to which all longer ones are cut.

    The sum is at most `room`, and none of it is left while a piece is cut, but for rounding.
    """
    caps = [0] * len(costs)
    left = max(0, room)
    order = sorted(range(len(costs)), key=lambda index: costs[index])
    for position, index in enumerate(order):
        caps[index] = min(costs[index], left // (len(order) - position))
        left -= caps[index]
    return caps


def _cut_alike(pieces: Sequence[Block], room: int, count: TokenCounter) -> list[Block]:
    """Return pieces of one priority within `room` tokens, the longer ones cut to one length or left out."""
    costs = [message_tokens(piece.message, count) for piece in pieces]
    cut: list[Block] = []
    for piece, cost, cap in zip(pieces, costs, common_length(costs, room), strict=True):
        least = min(cost, LEAST_CUT)
        if cap < least and piece.priority != KEEP:
            piece = replace(piece, priority=LEFT_OUT)
        elif cost > max(cap, least):
            shorter = cut_message(piece.message, max(cap, least), count)
            piece = replace(piece, message=shorter, whole=piece.message)
        cut.append(piece)
    return cut


def pinned_entries(state: StateValues) -> list[Entry]:
    """Return the messages that are pinned, in the order in which they were."""
    return entries_of(state.get("pinned") or [], state["full_transcript"])


def pin_blocks(
    state: StateValues,
    config: DebateConfig,
    count: TokenCounter,
    render: Callable[[Entry], WireMessage] | None = None,
) -> list[Block]:
    """Return the pinned messages as blocks, by `render` where that is given; the longest are cut first."""
    names = config.names()
    shown = render or (lambda entry: render_entry(entry, names))
    pins = [
        Block(
            "pinned",
            shown(entry),
            OPTIONAL,
            (entry["id"],),
            label=f"pinned {entry['id']}",
            memory={"pinned": entry["tokens"]},
        )
        for entry in pinned_entries(state)
    ]
    return _cut_alike(pins, int(config.memory.budget.messages * PIN_SHARE), count)


def pins_tokens(blocks: Sequence[Block], count: TokenCounter) -> int:
    """Return what pinned messages take of a view."""
    return sum(message_tokens(block.message, count) for block in blocks if block.priority == OPTIONAL)


def with_pins(blocks: Sequence[Block], pins: Sequence[Block]) -> list[Block]:
    """Return a view's blocks with pins after its head; no message stands there twice.

    What the view shows in any case stays where it is; anywhere else the pin takes its place.
    """
    kept = {key for block in blocks if block.priority == KEEP and block.ids for key in block.ids}
    own = [pin for pin in pins if not kept.issuperset(pin.ids)]
    ids = {pin.ids for pin in own}
    rest = [block for block in blocks if block.ids not in ids]
    head = next((at for at, block in enumerate(rest) if block.section not in ("system", "topic")), len(rest))
    return [*rest[:head], *own, *rest[head:]]
