"""Assembly of a prompt from blocks, within its exact token budget.

A *block* is one wire message with a priority. If the blocks exceed the budget, the least important ones are
dropped first, and the receipt records them. Blocks with priority `KEEP` are truncated instead. Unused tokens
then restore truncated and dropped blocks, the most important first, so that a prompt with a tenth of its
tokens free has cut nothing. The order of the blocks is the prompt's layout; the protocol chooses their
content.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from moot.calls.model_calls import Prompt, WireMessage
from moot.config.memory_config import Budget
from moot.prompts.templates import FENCE_TOKENS, break_fence, fenced, omitted_part, truncate_fenced
from moot.state.conversation import MemoryKind, Omission, StateValues
from moot.state.entries import Entry, entries_of, ids_in, memoize_by_identity
from moot.text import tokens
from moot.text.plain_text import break_template_tokens, clip, plain_line, sanitize_line

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
def entry_tokens(entry: Entry, names: Mapping[str, str], fence: str, count: tokens.TokenCounter) -> int:
    """Count the tokens that a transcript entry uses in a prompt."""
    return tokens.message_tokens(render_entry(entry, names, fence), count)


def cut_message(message: WireMessage, max_tokens: int, count: tokens.TokenCounter) -> WireMessage:
    """Shorten a message to `max_tokens` tokens by cutting out the middle of its quoted text."""
    overhead = tokens.message_tokens(message, count, content=0)
    return {**message, "content": truncate_fenced(message["content"], max(1, max_tokens - overhead), count)}


SHOWN_IN_PART = "shown in part"
"""Reason recorded for a message that a prompt shows only in part."""

_Sized = tuple[WireMessage, int]
"""Prompt message and its token count."""

MIN_RESTORED_TOKENS = 40
"""Minimum number of unused tokens with which a dropped message is partly shown: a label and a short sentence.
It is a tenth of the smallest budget."""
CONTINUED = "continued"
"""Section of the blocks with the rest of messages that a cached prompt shows in part."""

Growth = Literal["part", "whole", "spare"]
"""How unused tokens restore a truncated block: in part, whole or not at all, or only the tokens that exceed
`SPARE_SHARE`. A provider caches a text that stays the same from turn to turn."""

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
    growth: Growth = "part"
    cut: Callable[[int], WireMessage] | None = None
    """Function that shortens the full message to about a number of tokens. `None`: cut out its middle."""
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
    count: tokens.TokenCounter,
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


Passages = Callable[[int, Collection[str]], Sequence[Block]]
"""Function that returns blocks of at most that many tokens with further passages of the background, but not
of the messages with these ids."""


def truncate_blocks(
    blocks: Sequence[Block],
    budget: int,
    count: tokens.TokenCounter,
    *,
    passages: Passages | None = None,
    reserved: int | None = None,
) -> Prompt:
    """Make a prompt from blocks, and cut or drop blocks if needed.

    Args:
        blocks: blocks in display order.
        budget: maximum number of tokens.
        count: token counter.
        passages: finds further passages of the background that is shown in part. They come before the last
            block.
        reserved: tokens for passages if a provider caches the prompt. The prompt then shows the rest of
            other cut texts before its last block, too, because a text before it that changes ends the cached
            prefix.

    Raises:
        ValueError: the frame of the required messages exceeds the budget. A validated budget prevents this.
    """
    costs = [_cost(block.message, count) for block in blocks]
    full_costs = [
        tokens.message_tokens(block.whole, count) if block.whole else cost
        for block, cost in zip(blocks, costs, strict=True)
    ]
    hidden = {i for i, block in enumerate(blocks) if block.priority == OMITTED_PRIORITY}
    dropped_indices = _choose_dropped(blocks, costs, budget) | (hidden if reserved is not None else set())
    shown_messages = {
        i: (block.message, costs[i]) for i, block in enumerate(blocks) if i not in dropped_indices
    }

    # Required blocks that still exceed the budget are truncated, the longest first.
    while (excess := -_free(shown_messages, budget)) > 0:
        index = max(shown_messages, key=lambda i: shown_messages[i][1])
        message, cost = shown_messages[index]
        short_message = cut_message(message, cost - excess, count)
        short_cost = tokens.message_tokens(short_message, count)
        if short_cost >= cost:
            raise ValueError(f"the prompt's required messages do not fit in its budget of {budget} tokens")
        shown_messages[index] = short_message, short_cost

    spare = int(budget * tokens.SPARE_SHARE)
    growths: tuple[Growth, ...] = ("part", "whole") if reserved is None else ("part",)
    _fill_up(shown_messages, blocks, full_costs, budget - (reserved or 0), count, growths)
    if passages:
        free, lacking = _free(shown_messages, budget), _lacking(shown_messages, blocks, full_costs)
        max_tokens = free if reserved is None or free >= spare else min(free, reserved)
        cut_ids = {key for i in lacking for key in blocks[i].ids}
        parts = [*passages(max_tokens, {key for block in blocks for key in block.ids} - cut_ids)]
        for i in lacking if reserved is not None else ():
            left = free - sum(tokens.message_tokens(part.message, count) for part in parts)
            if blocks[i].growth == "spare" and i in shown_messages and left >= spare:
                parts += _rest_of(blocks[i], shown_messages[i][0], left, count)
        end = len(blocks) - 1
        parts_costs = [tokens.message_tokens(part.message, count) for part in parts]
        blocks = [*blocks[:end], *parts, blocks[end]]
        full_costs = [*full_costs[:end], *parts_costs, full_costs[end]]
        shown_messages[end + len(parts)] = shown_messages.pop(end)
        shown_messages |= {end + n: (part.message, parts_costs[n]) for n, part in enumerate(parts)}
    if _free(shown_messages, budget) >= spare:
        _fill_up(shown_messages, blocks, full_costs, budget, count, (*growths, "spare"))
    return _make_prompt(shown_messages, blocks, full_costs, budget)


def _free(shown_messages: Mapping[int, _Sized], budget: int) -> int:
    """Return the unused tokens of a prompt."""
    return budget - tokens.REPLY_PRIMING - sum(cost for _, cost in shown_messages.values())


def _lacking(
    shown_messages: Mapping[int, _Sized], blocks: Sequence[Block], full_costs: Sequence[int]
) -> list[int]:
    """Return the indices of the blocks that are dropped or cut, the most important and newest first."""
    rank = _ranks(blocks)
    indices = (
        i for i, full in enumerate(full_costs) if i not in shown_messages or shown_messages[i][1] < full
    )
    return sorted(indices, key=lambda i: (rank[i], -i))


@memoize_by_identity(512)  # many turns use the same messages of a window
def _cost(message: WireMessage, count: tokens.TokenCounter) -> int:
    return tokens.message_tokens(message, count)


def _choose_dropped(blocks: Sequence[Block], costs: Sequence[int], budget: int) -> set[int]:
    """Return the indices of the blocks to drop from a prompt.

    Without them, the prompt fits in `budget` tokens. The least important and earliest blocks are dropped
    first, and whole groups at once.
    """
    excess = tokens.REPLY_PRIMING + sum(costs) - budget
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


def _rest_of(
    block: Block, short_message: WireMessage, max_tokens: int, count: tokens.TokenCounter
) -> list[Block]:
    """Return a block with what a message cuts out of its quoted text, or `[]`."""
    content = omitted_part(block.whole["content"] if block.whole else "", short_message["content"])
    message: WireMessage = {"role": "user", "content": content}
    rest = replace(block, message=message, whole=None, section=CONTINUED, memory={})
    return [replace(rest, message=_shortened(rest, max_tokens, count)[0])] if content else []


def _shortened(block: Block, max_tokens: int, count: tokens.TokenCounter) -> _Sized:
    """Return a block's full message in at most `max_tokens` tokens, and its cost."""
    cut = block.cut or (lambda limit: cut_message(block.whole or block.message, limit, count))
    message = cut(max_tokens)
    return message, tokens.message_tokens(message, count)


def _fill_up(
    shown_messages: dict[int, _Sized],
    blocks: Sequence[Block],
    full_costs: Sequence[int],
    budget: int,
    count: tokens.TokenCounter,
    growths: Collection[Growth],
) -> None:
    """Use the remaining tokens to restore truncated and dropped blocks, most important first.

    Truncated blocks are restored only if `growths` has their kind of growth. Required ones, such as the
    rules, are always restored if they fit whole.
    """
    free, rank = _free(shown_messages, budget), _ranks(blocks)
    for index in _lacking(shown_messages, blocks, full_costs):
        # A cached prompt shows background that it left out in passages at its end, not in its place.
        is_dropped = index not in shown_messages and rank[index] != OMITTED_PRIORITY
        grows = is_dropped or blocks[index].growth in growths
        if not grows and blocks[index].priority > KEEP:
            continue
        members = (
            [index] if index in shown_messages else sorted(_group(blocks, index) - shown_messages.keys())
        )
        shown_tokens = sum(shown_messages[i][1] for i in members if i in shown_messages)
        full_tokens = [full_costs[i] for i in members]
        remaining = free + shown_tokens
        if free <= 0 or sum(full_tokens) <= shown_tokens:
            continue
        if sum(full_tokens) <= remaining:
            restored = {i: (blocks[i].whole or blocks[i].message, full_costs[i]) for i in members}
        elif (
            not grows
            or remaining < MIN_RESTORED_TOKENS * len(members)
            or (
                blocks[index].growth == "whole"
                and (index in shown_messages or rank[index] == OMITTED_PRIORITY)
            )
        ):
            continue
        else:
            limits = zip(members, tokens.common_length(full_tokens, remaining), strict=True)
            restored = {i: _shortened(blocks[i], limit, count) for i, limit in limits}
        restored_tokens = sum(cost for _, cost in restored.values())
        if shown_tokens < restored_tokens <= remaining:
            shown_messages.update(restored)
            free = remaining - restored_tokens


def _make_prompt(
    shown_messages: Mapping[int, _Sized], blocks: Sequence[Block], full_costs: Sequence[int], budget: int
) -> Prompt:
    """Make a prompt from blocks, and record what it omits, merged by label."""
    sections, memory = Counter[str](), Counter[MemoryKind]()
    omitted: dict[tuple[str, str], Omission] = {}
    continued = Counter[tuple[str, ...]]()
    for index, (_, cost) in shown_messages.items():
        if (block := blocks[index]).growth != "part":
            continued[block.label, *block.ids] += max(0, cost - LABEL_TOKENS)
    for index, block in enumerate(blocks):
        cost = 0
        if index in shown_messages:
            cost = shown_messages[index][1]
            sections[block.section] += cost
            if block.memory:
                memory.update(block.memory)
        # A block with further passages of a message continues the block that shows it in part.
        missing = full_costs[index] - cost
        if missing > 0 and (parts_tokens := continued[block.label, *block.ids]):
            missing, cost = full_costs[index] - LABEL_TOKENS - parts_tokens, parts_tokens
        if missing > 0:
            cut = "cut in its middle" if block.growth == "part" else SHOWN_IN_PART
            label, reason = block.label or block.section, cut if cost else "no room"
            note = omitted.setdefault(
                (label, reason), {"what": label, "why": reason, "tokens": 0, "count": 0}
            )
            note["tokens"] += missing
            note["count"] += 1
    shown_blocks = [blocks[index] for index in sorted(shown_messages)]
    return Prompt(
        messages=tuple(shown_messages[index][0] for index in sorted(shown_messages)),
        total_tokens=tokens.REPLY_PRIMING + sections.total(),
        budget=budget,
        sections=dict(sections),
        shown_ids=tuple(dict.fromkeys(key for block in shown_blocks for key in block.ids)),
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
    problem: str, budget: Budget, fence: str, count: tokens.TokenCounter, *, heading: str = "# Problem"
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
    count: tokens.TokenCounter,
) -> list[Block]:
    """Shorten the blocks of a prompt to fit in `budget` tokens.

    `shared_prefix` and `turn_suffix` stay whole. `blocks` share the remaining tokens, the lowest priority
    number first.
    """
    remaining = budget - tokens.prompt_tokens(
        [block.message for block in (*shared_prefix, turn_suffix)], count
    )
    fitted_blocks = list(blocks)
    for priority in sorted({block.priority for block in blocks}):
        indices = [index for index, block in enumerate(blocks) if block.priority == priority]
        for index, block in zip(
            indices, truncate_evenly([blocks[index] for index in indices], remaining, count), strict=True
        ):
            fitted_blocks[index] = block
        remaining -= sum(
            tokens.message_tokens(fitted_blocks[index].message, count)
            for index in indices
            if fitted_blocks[index].priority < OMITTED_PRIORITY
        )
    return [*shared_prefix, *fitted_blocks, turn_suffix]


def truncate_evenly(blocks: Sequence[Block], remaining: int, count: tokens.TokenCounter) -> list[Block]:
    """Shorten the longest blocks to `remaining` tokens together. Too short ones are marked as omitted."""
    costs = [tokens.message_tokens(block.message, count) for block in blocks]
    cut_blocks: list[Block] = []
    for block, cost, cap in zip(blocks, costs, tokens.common_length(costs, remaining), strict=True):
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
