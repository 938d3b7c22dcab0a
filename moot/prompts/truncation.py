"""Assembly of a prompt from blocks, within its exact token budget.

A *block* is one wire message with a priority. If the blocks exceed the budget, the least important ones are
dropped first, and the receipt records them. Blocks with priority `KEEP` are truncated instead. Unused tokens
then restore truncated and dropped blocks, the most important first. The order of the blocks is the prompt's
layout; the protocol chooses their content.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from moot.calls.model_calls import Prompt, WireMessage
from moot.config.memory_config import Budget
from moot.prompts.templates import FENCE_TOKENS, break_fence, fenced, truncate_fenced
from moot.state.conversation import MemoryKind, Omission, StateValues
from moot.state.entries import Entry, entries_of, ids_in, memoize_by_identity
from moot.text.plain_text import break_template_tokens, clip, plain_line, sanitize_line
from moot.text.tokens import REPLY_PRIMING, TokenCounter, common_length, message_tokens, prompt_tokens

PEOPLE = {
    "user": "The person who opened the debate",
    "moot": "Note by the program",
    "moderator": "Moderator",
    "tools": "Tool result",
}
"""Display names of speakers who are not debaters, keyed by speaker id."""

LABEL_TOKENS = 18 + FENCE_TOKENS
"""Estimated number of tokens in a message's label. They include the fence lines. A name of one word needs 12
tokens, and a name of three words needs 18."""
NAME_CHARS = 40
"""Maximum length of a speaker's name in a message label, in characters."""
TIME_TOKENS = 14
"""Estimated number of tokens that a timestamp adds to a message's label."""
TIME_CHARS = 40
"""Maximum number of characters for the time in a message label."""
_ISO_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)\S*")
_PLAIN_NUMBER = re.compile(r"[\d.,\s]+")
_NO_BRACKETS = str.maketrans("", "", "()[]")


def label_tokens(entry: Entry) -> int:
    """Estimate how many tokens a message's label uses."""
    return LABEL_TOKENS + (TIME_TOKENS if entry.get("dated") else 0)


def display_name(speaker: str, names: Mapping[str, str]) -> str:
    """Return the display name of a speaker, or the speaker's id if no display name is known."""
    return names.get(speaker) or PEOPLE.get(speaker) or speaker


def prompt_name(speaker: str, names: Mapping[str, str]) -> str:
    """Return a speaker's name on one line, without control tokens of chat templates."""
    return break_template_tokens(plain_line(display_name(speaker, names))) or speaker


def speaker_label(speaker: str, names: Mapping[str, str], chars: int = NAME_CHARS) -> str:
    """Return a speaker's name on one line, truncated to `chars` characters."""
    return clip(sanitize_line(display_name(speaker, names)), chars)


def source_time(entry: Entry) -> str:
    """Return an imported message's original time in brackets, or `""` if it is unknown.

    ISO 8601 times are shown to the minute. A plain number, whose unit is unknown, is omitted. A text without
    a digit or with a message id is not a time.
    """
    return _time_label(entry["at"]) if entry.get("dated") else ""


@lru_cache(maxsize=4096)  # every message of a session has the same time
def _time_label(text: str) -> str:
    time = _ISO_TIME.sub(r"\1 \2", sanitize_line(text)).translate(_NO_BRACKETS)
    is_time = any(map(str.isdigit, time)) and not _PLAIN_NUMBER.fullmatch(time) and not ids_in(time)
    return f" ({clip(time, TIME_CHARS)})" if is_time else ""


def room_note(entry: Entry, names: Mapping[str, str]) -> str:
    """Return a note such as "(side room with Ann)" for a message of a crux room, or `""`."""
    if not entry.get("room"):
        return ""
    partner = next(
        (f" with {prompt_name(target, names)}" for target in entry["targets"] if target in names), ""
    )
    return f"(side room{partner})"


def critique_note(entry: Entry, labels: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return a note such as "(criticism 1A of Ann)" for a critique, or `""`. `labels` are by entry id."""
    targets = ", ".join(prompt_name(target, names) for target in entry["targets"] if target in names)
    is_labelled = entry["kind"] == "critique" and targets
    return f"(criticism {labels[entry['id']]} of {targets})" if is_labelled else ""


@memoize_by_identity(4096)
def render_entry(entry: Entry, names: Mapping[str, str], fence: str, note: str = "") -> WireMessage:
    """Return a transcript entry as a chat message labelled with its speaker and id.

    `note` is a remark of the program about the message, shown after its id. Messages of side rooms name the
    room instead.

    Messages of the window are rendered several times a turn, so the result is cached.
    """
    speaker = break_fence(prompt_name(entry["speaker"], names), fence)
    time = break_fence(source_time(entry), fence)
    note = note or break_fence(room_note(entry, names), fence)
    label = f"{speaker} [{entry['id']}]{time}:" + (f" {note}" if note else "")
    return {"role": "user", "name": entry["speaker"], "content": fenced(entry["content"], fence, label)}


@memoize_by_identity(4096)
def entry_tokens(entry: Entry, names: Mapping[str, str], fence: str, count: TokenCounter) -> int:
    """Count the tokens that a transcript entry uses in a prompt."""
    return message_tokens(render_entry(entry, names, fence), count)


def cut_message(message: WireMessage, max_tokens: int, count: TokenCounter) -> WireMessage:
    """Shorten a message to `max_tokens` tokens by cutting out the middle of its quoted text."""
    overhead = message_tokens(message, count, content=0)
    return {**message, "content": truncate_fenced(message["content"], max(1, max_tokens - overhead), count)}


SHOWN_IN_PART = "shown in part"
"""Reason recorded for a message that a prompt shows only in part."""

_Sized = tuple[WireMessage, int]
"""Prompt message and its token count."""

MIN_RESTORED_TOKENS = 60
"""Minimum number of unused tokens with which a dropped message is partly shown."""

KEEP = 0
"""Priority of prompt blocks that are never dropped."""
OPTIONAL = 1
"""Priority of prompt blocks that are dropped last."""
SUMMARY = 3
"""Priority of a summary in a prompt. A summary is dropped after recent messages."""
RECENT = 5
"""Priority of recent messages in a prompt. Recent messages are dropped after older ones."""
OLDER = 7
"""Priority of older messages in a prompt."""


@dataclass(frozen=True)
class Block:
    """Prompt message with a priority, which decides when it is shortened or dropped."""

    section: str
    """Name of the prompt section to which the block belongs."""
    message: WireMessage
    priority: int = KEEP
    """Priority of the block. Blocks with the highest numbers are dropped first. Of equal ones, the earliest
    is dropped first. `KEEP` blocks are never dropped."""
    ids: tuple[str, ...] = ()
    """Ids of the transcript entries in the block."""
    group: str = ""
    """Name shared by prompt blocks that belong together, or `""` for a block without a group. All blocks of
    a group are shown or dropped together."""
    label: str = ""
    """Name of the block in the record of omitted and truncated blocks."""
    whole: WireMessage | None = None
    """Full message, or `None` if the block is not truncated. Unused tokens restore the full message."""
    grows: bool = True
    """True if unused tokens may be used to show more of a truncated message."""
    retrieved: tuple[str, ...] = ()
    """Ids of the entries and memories in the block that were retrieved for this prompt."""
    cites: tuple[str, ...] = ()
    """Ids of messages cited in the block, such as the sources of a summary. The block does not contain the
    cited messages."""
    memory: Mapping[MemoryKind, int] = field(default_factory=dict)
    """Approximate number of tokens in the block, keyed by kind of memory."""


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
    """Return a message as a prompt block, shortened to `max_tokens` tokens.

    If tokens of the prompt's budget remain unused, they restore the full message.

    `memory` is the kind of memory that the message shows.
    """
    short_message = cut_message(message, max_tokens, count)
    memory_tokens = {memory: count(short_message["content"])} if memory else {}
    full_message = message if short_message != message else None
    return Block(section, short_message, priority, label=label, whole=full_message, memory=memory_tokens)


def truncate_blocks(blocks: Sequence[Block], budget: int, count: TokenCounter) -> Prompt:
    """Make a prompt from blocks, and cut or drop blocks if needed.

    The prompt has at most `budget` tokens.

    Raises:
        ValueError: the frame of the required messages exceeds the budget. A validated budget prevents this.
    """
    costs = [_cost(block.message, count) for block in blocks]
    full_costs = [
        message_tokens(block.whole, count) if block.whole else cost
        for block, cost in zip(blocks, costs, strict=True)
    ]
    dropped_indices = _choose_dropped(blocks, costs, budget)
    shown_messages = {
        i: (block.message, costs[i]) for i, block in enumerate(blocks) if i not in dropped_indices
    }

    # Required blocks that still exceed the budget are truncated, the longest first.
    while (excess := REPLY_PRIMING + sum(cost for _, cost in shown_messages.values()) - budget) > 0:
        index = max(shown_messages, key=lambda i: shown_messages[i][1])
        message, cost = shown_messages[index]
        short_message = cut_message(message, cost - excess, count)
        short_cost = message_tokens(short_message, count)
        if short_cost >= cost:
            raise ValueError(f"the prompt's required messages do not fit in its budget of {budget} tokens")
        shown_messages[index] = short_message, short_cost

    _fill_up(shown_messages, blocks, full_costs, budget, count)
    return _make_prompt(shown_messages, blocks, full_costs, budget)


@memoize_by_identity(512)  # many turns use the same messages of a window
def _cost(message: WireMessage, count: TokenCounter) -> int:
    return message_tokens(message, count)


def truncate_messages(messages: Sequence[WireMessage], budget: int, count: TokenCounter) -> Prompt:
    """Drop the oldest messages, but not the first and the last, until the prompt fits the budget."""
    last = len(messages) - 1
    blocks = [
        Block("system" if i == 0 else "messages", message, KEEP if i in (0, last) else OPTIONAL)
        for i, message in enumerate(messages)
    ]
    return truncate_blocks(blocks, budget, count)


def _choose_dropped(blocks: Sequence[Block], costs: Sequence[int], budget: int) -> set[int]:
    """Return the indices of the blocks to drop from a prompt.

    Without them, the prompt fits in `budget` tokens. The least important and earliest blocks are dropped
    first, and whole groups at once.
    """
    excess = REPLY_PRIMING + sum(costs) - budget
    dropped_indices: set[int] = set()
    if excess <= 0:
        return dropped_indices
    rank = _ranks(blocks)
    order = sorted(
        (i for i, block in enumerate(blocks) if block.priority > KEEP), key=lambda i: (-rank[i], i)
    )
    for index in order:
        if excess <= 0:
            break
        for member in _group(blocks, index) - dropped_indices:
            dropped_indices.add(member)
            excess -= costs[member]
    return dropped_indices


def _ranks(blocks: Sequence[Block]) -> list[int]:
    """Return each block's priority for dropping: that of the most important one in its group."""
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
    shown_messages: dict[int, _Sized],
    blocks: Sequence[Block],
    full_costs: Sequence[int],
    budget: int,
    count: TokenCounter,
) -> None:
    """Use the remaining tokens to restore truncated and dropped blocks, most important first.

    The turn suffix is restored whole or not at all, because its instruction must never be truncated.
    """
    free = budget - REPLY_PRIMING - sum(cost for _, cost in shown_messages.values())
    rank = _ranks(blocks)
    lacking_indices = [
        i
        for i, full_cost in enumerate(full_costs)
        if i not in shown_messages or (shown_messages[i][1] < full_cost and blocks[i].grows)
    ]
    for index in sorted(lacking_indices, key=lambda i: (rank[i], -i)):
        members = (
            [index] if index in shown_messages else sorted(_group(blocks, index) - shown_messages.keys())
        )
        shown_tokens = sum(shown_messages[i][1] for i in members if i in shown_messages)
        needed_tokens = sum(full_costs[i] for i in members)
        if free <= 0 or needed_tokens <= shown_tokens:
            continue
        if needed_tokens <= free + shown_tokens:
            shown_messages.update((i, (blocks[i].whole or blocks[i].message, full_costs[i])) for i in members)
            free -= needed_tokens - shown_tokens
        elif (
            len(members) == 1
            and blocks[index].section != "turn_suffix"
            and free + shown_tokens >= MIN_RESTORED_TOKENS
        ):
            message = cut_message(blocks[index].whole or blocks[index].message, free + shown_tokens, count)
            cost = message_tokens(message, count)
            if shown_tokens < cost <= free + shown_tokens:
                shown_messages[index] = message, cost
                free -= cost - shown_tokens


def _make_prompt(
    shown_messages: Mapping[int, _Sized], blocks: Sequence[Block], full_costs: Sequence[int], budget: int
) -> Prompt:
    """Make a prompt from blocks, and record what it omits, merged by label."""
    sections, memory = Counter[str](), Counter[MemoryKind]()
    omitted: dict[tuple[str, str], Omission] = {}
    for index, block in enumerate(blocks):
        cost = 0
        if index in shown_messages:
            cost = shown_messages[index][1]
            sections[block.section] += cost
            if block.memory:
                memory.update(block.memory)
        if cost < full_costs[index]:
            cut = "cut in its middle" if block.grows else SHOWN_IN_PART
            label, reason = block.label or block.section, cut if cost else "no room"
            note = omitted.setdefault(
                (label, reason), {"what": label, "why": reason, "tokens": 0, "count": 0}
            )
            note["tokens"] += full_costs[index] - cost
            note["count"] += 1
    shown_blocks = [blocks[index] for index in sorted(shown_messages)]
    return Prompt(
        messages=tuple(shown_messages[index][0] for index in sorted(shown_messages)),
        total_tokens=REPLY_PRIMING + sections.total(),
        budget=budget,
        sections=dict(sections),
        shown_ids=tuple(key for block in shown_blocks for key in block.ids),
        omitted=tuple(omitted.values()),
        retrieved=tuple(key for block in shown_blocks for key in block.retrieved),
        cites=tuple(key for block in shown_blocks for key in block.cites),
        layout=tuple(block.section for block in shown_blocks),
        memory=memory,
    )


MIN_BLOCK_TOKENS = 60
"""Minimum length in tokens of a truncated prompt block. A block is omitted if fewer tokens are left for
it."""

OMITTED_PRIORITY = 9
"""Priority that marks a prompt block as omitted. Too few tokens remain for the block, so it is dropped first
and named in the receipt."""

PROBLEM_SHARE = 0.5
"""Maximum share of the prompt budget for the problem statement, from 0 to 1."""


def problem_block(
    problem: str, budget: Budget, fence: str, count: TokenCounter, *, heading: str = "# Problem"
) -> Block:
    """Return the problem statement, truncated to its token limit, as a prompt block."""
    message: WireMessage = {"role": "user", "content": fenced(problem, fence, heading)}
    return cut_block("topic", message, problem_token_limit(budget), count, label="topic")


def problem_token_limit(budget: Budget) -> int:
    """Return the maximum number of tokens for the problem statement in a prompt."""
    return int(min(budget.total * PROBLEM_SHARE, budget.messages))


def truncate_by_priority(
    shared_prefix: Sequence[Block],
    blocks: Sequence[Block],
    turn_suffix: Block,
    budget: int,
    count: TokenCounter,
) -> list[Block]:
    """Shorten the blocks of a prompt to fit in `budget` tokens.

    `shared_prefix` and `turn_suffix` stay whole. `blocks` share the remaining tokens, the lowest priority
    number first.
    """
    remaining = budget - prompt_tokens([block.message for block in (*shared_prefix, turn_suffix)], count)
    fitted_blocks = list(blocks)
    for priority in sorted({block.priority for block in blocks}):
        indices = [index for index, block in enumerate(blocks) if block.priority == priority]
        for index, block in zip(
            indices, truncate_evenly([blocks[index] for index in indices], remaining, count), strict=True
        ):
            fitted_blocks[index] = block
        remaining -= sum(
            message_tokens(fitted_blocks[index].message, count)
            for index in indices
            if fitted_blocks[index].priority < OMITTED_PRIORITY
        )
    return [*shared_prefix, *fitted_blocks, turn_suffix]


def truncate_evenly(blocks: Sequence[Block], remaining: int, count: TokenCounter) -> list[Block]:
    """Shorten the longest blocks to `remaining` tokens together. Too short ones are marked as omitted."""
    costs = [message_tokens(block.message, count) for block in blocks]
    cut_blocks: list[Block] = []
    for block, cost, cap in zip(blocks, costs, common_length(costs, remaining), strict=True):
        min_tokens = min(cost, MIN_BLOCK_TOKENS)
        if cap < min_tokens and block.priority != KEEP:
            block = replace(block, priority=OMITTED_PRIORITY)
        elif cost > max(cap, min_tokens):
            short_message = cut_message(block.message, max(cap, min_tokens), count)
            block = replace(block, message=short_message, whole=block.message)
        cut_blocks.append(block)
    return cut_blocks


def pinned_entries(state: StateValues) -> list[Entry]:
    """Return the pinned messages in the order in which they were pinned."""
    return entries_of(state.get("pinned") or [], state["full_transcript"])
