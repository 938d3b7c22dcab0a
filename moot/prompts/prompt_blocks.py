"""Prompt blocks shared by several protocols: the problem, pinned messages, and material that shares a budget.

If everything fits the budget, all of it is shown in full. Otherwise the lowest priority number is served
first. Within one priority the longest blocks are truncated to one common length, so short blocks stay whole.
"""

from collections.abc import Sequence
from dataclasses import replace

from moot.calls.effects import WireMessage
from moot.prompts.fences import fenced
from moot.prompts.truncation import (
    KEEP,
    Block,
    cut_block,
    cut_message,
)
from moot.state.config.memory_config import Budget
from moot.state.conversation import StateValues
from moot.state.entries import Entry, entries_of
from moot.text.tokens import TokenCounter, common_length, message_tokens, prompt_tokens

MIN_TRUNCATED_TOKENS = 60
"""Minimum length in tokens of a truncated prompt block. A block is omitted if fewer tokens are left for
it."""

OMITTED_NOTICE = 9
"""Priority assigned to a block that is left out because too few tokens remain for it. The block is dropped
first and named in the receipt."""

PROBLEM_SHARE = 0.5
"""Maximum share of the total prompt budget for the problem statement."""


def problem_block(
    problem: str, budget: Budget, fence: str, count: TokenCounter, *, heading: str = "# Problem"
) -> Block:
    """Return the problem statement as a prompt block, truncated to its share of the token budget."""
    whole: WireMessage = {"role": "user", "content": fenced(problem, fence, heading)}
    return cut_block("topic", whole, problem_token_limit(budget), count, label="topic")


def problem_token_limit(budget: Budget) -> int:
    """Return the maximum number of tokens that the problem statement may use in a prompt."""
    return int(min(budget.total * PROBLEM_SHARE, budget.messages))


def fill_remaining(
    shared_prefix: Sequence[Block],
    blocks: Sequence[Block],
    turn_suffix: Block,
    budget: int,
    count: TokenCounter,
) -> list[Block]:
    """Return all blocks of a prompt, truncated to at most `budget` tokens in total.

    `shared_prefix` and `turn_suffix` stay whole. `blocks` share the remaining tokens, the lowest priority
    number first.
    """
    remaining = budget - prompt_tokens([block.message for block in (*shared_prefix, turn_suffix)], count)
    shown = list(blocks)
    for rank in sorted({block.priority for block in blocks}):
        places = [at for at, block in enumerate(blocks) if block.priority == rank]
        for at, block in zip(
            places, truncate_evenly([blocks[at] for at in places], remaining, count), strict=True
        ):
            shown[at] = block
        remaining -= sum(
            message_tokens(shown[at].message, count) for at in places if shown[at].priority < OMITTED_NOTICE
        )
    return [*shared_prefix, *shown, turn_suffix]


def truncate_evenly(blocks: Sequence[Block], remaining: int, count: TokenCounter) -> list[Block]:
    """Truncate or omit the longest of several equally important blocks until all fit `remaining` tokens."""
    costs = [message_tokens(block.message, count) for block in blocks]
    cut: list[Block] = []
    for block, cost, cap in zip(blocks, costs, common_length(costs, remaining), strict=True):
        least = min(cost, MIN_TRUNCATED_TOKENS)
        if cap < least and block.priority != KEEP:
            block = replace(block, priority=OMITTED_NOTICE)
        elif cost > max(cap, least):
            shorter = cut_message(block.message, max(cap, least), count)
            block = replace(block, message=shorter, whole=block.message)
        cut.append(block)
    return cut


def pinned_entries(state: StateValues) -> list[Entry]:
    """Return the debate's pinned messages in the order in which they were pinned."""
    return entries_of(state.get("pinned") or [], state["full_transcript"])
