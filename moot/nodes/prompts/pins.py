"""Pinned messages in a view: they stand after the topic, as a section of their own, while there is room."""

from collections.abc import Callable, Sequence

from moot.nodes.calls import WireMessage
from moot.nodes.prompts.fitting import KEEP, OPTIONAL, Block
from moot.nodes.prompts.material import Piece, common_length, piece_block
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.text.tokens import TokenCounter, message_tokens
from moot.state.config import DebateConfig
from moot.state.conversation import StateValues
from moot.state.entries import Entry, seq_of

PIN_SHARE = 0.25
"""Most of the messages' budget that all pins together take: a window has to stay."""


def pinned_entries(state: StateValues) -> list[Entry]:
    """Return the messages that are pinned, in the order in which they were."""
    transcript = state["full_transcript"]
    return [transcript[seq] for key in state.get("pinned") or [] if (seq := seq_of(key)) is not None]


def pin_blocks(
    state: StateValues,
    config: DebateConfig,
    count: TokenCounter,
    render: Callable[[Entry], WireMessage] | None = None,
) -> list[Block]:
    """Return the pinned messages as blocks, by `render` where that is given; the longest are cut first."""
    names = config.names()
    shown = render or (lambda entry: render_entry(entry, names))
    pieces = [
        Piece(
            shown(entry),
            OPTIONAL,
            f"pinned {entry['id']}",
            (entry["id"],),
            "pinned",
            {"pinned": entry["tokens"]},
        )
        for entry in pinned_entries(state)
    ]
    costs = [message_tokens(piece.message, count) for piece in pieces]
    caps = common_length(costs, int(config.memory.budget.messages * PIN_SHARE))
    return [
        piece_block(piece, cost, cap, count) for piece, cost, cap in zip(pieces, costs, caps, strict=True)
    ]


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
