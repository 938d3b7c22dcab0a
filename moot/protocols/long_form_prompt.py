"""Prompt of a long-form turn: the rules, the topic, the summary, recent messages and the turn suffix."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from moot.calls.model_calls import WireMessage
from moot.config import DebateConfig
from moot.memory.summarizers.rule_based import NOTICE_BELOW
from moot.memory.window import LARGEST_MESSAGE_SHARE, WindowLimits, compact, shown_message
from moot.prompts import templates, truncation
from moot.protocols import prompt_context
from moot.protocols.suffix import turn_suffix_block
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, entry_id, memoize_by_identity, traits_of
from moot.text.plain_text import break_template_tokens
from moot.text.tokens import TokenCounter, message_tokens

MIN_SUMMARY_TOKENS = 32
"""Minimum number of prompt tokens for the rolling summary. The same minimum applies to the notice that
replaces the summary if tokens are short."""
RECENT_MESSAGES = 4
"""Number of messages that count as recent when Moot truncates a prompt. Messages before them get the lower
priority of older ones."""


def summary_blocks(ctx: prompt_context.PromptContext) -> list[truncation.Block]:
    """Return the rolling summary's prompt block in a list, or `[]` if there is no summary."""
    summary = ctx.state.get("rolling_summary", {})
    text = summary.get("text", "")
    if not text:
        return []
    budget = ctx.config.memory.budget
    # The budget of the section or, if few tokens remain, at most a tenth of them.
    left = (
        ctx.token_budget
        - budget.turn_suffix
        - prompt_context.shared_prefix_tokens(ctx.state["topic"], ctx.config, ctx.count)
    )
    has_space = left >= budget.summary + budget.messages * LARGEST_MESSAGE_SHARE
    remaining = budget.summary if has_space else max(0, min(budget.summary, left // 10))
    heading = f"# Summary of the debate up to [{entry_id(summary['covers_through_seq'])}]"
    full_message: WireMessage = {"role": "user", "content": templates.fenced(text, ctx.config.fence, heading)}
    message = full_message
    if remaining < min(NOTICE_BELOW, budget.summary):
        notice = f"{summary['messages']} earlier messages. The token budget has no space for their summary."
        message = {**full_message, "content": f"{heading}\n{notice}"}
    message = truncation.cut_message(message, max(remaining, MIN_SUMMARY_TOKENS), ctx.count)
    memory: dict[MemoryKind, int] = {"rolling summary": ctx.count(message["content"])}
    original = full_message if message != full_message else None
    return [
        truncation.Block(
            "summary", message, truncation.SUMMARY, label="rolling summary", whole=original, memory=memory
        )
    ]


def window_blocks(
    ctx: prompt_context.PromptContext, entries: Sequence[Entry] | None = None
) -> list[truncation.Block]:
    """Return one prompt block for each message in the window of recent messages.

    The newest message is never removed.

    A message longer than its share of the messages' budget is cut, so that it displaces no other message.
    Unused tokens restore only the newest one, so that the messages before it stay the same in the next turn.
    """
    shown_entries = ctx.window if entries is None else entries
    reserved = prompt_context.reserved_tokens(ctx.background, ctx.config, ctx.tool_tokens)
    limits = window_limits(ctx.state["topic"], ctx.config, ctx.count, reserved)
    last = len(shown_entries) - 1
    return [
        _message_block(
            entry,
            truncation.KEEP
            if index == last
            else truncation.RECENT
            if index > last - RECENT_MESSAGES
            else truncation.OLDER,
            ctx.persona_first and entry["speaker"] == ctx.speaker.id,
            ctx.config,
            limits,
            ctx.count,
        )
        for index, entry in enumerate(shown_entries)
    ]


@memoize_by_identity(4096)  # every turn's prompt shows the messages of the window
def _message_block(
    entry: Entry, priority: int, is_own: bool, config: DebateConfig, limits: WindowLimits, count: TokenCounter
) -> truncation.Block:
    """Return a message of the window, truncated, in the assistant role if it is the speaker's own."""
    names, fence = config.names(), config.fence
    message, tokens = shown_message(entry, names, fence, limits, count)
    full_message = truncation.render_entry(entry, names, fence)
    if is_own:
        content = templates.break_fence(break_template_tokens(entry["content"]), fence)
        full_message = {"role": "assistant", "content": content}
        message = (
            full_message
            if message_tokens(full_message, count) <= tokens
            else truncation.cut_message(full_message, tokens, count)
        )

    # A tool call and its result are kept or removed together, and so are a question and its answer.
    pair, group = traits_of(entry).pair, ""
    if pair == "closes" and entry["targets"]:
        group = entry["targets"][0]
    elif pair == "opens":
        group = entry["id"]
    label = f"message {entry['id']}" if priority == truncation.KEEP else "window messages"
    original = full_message if message != full_message else None
    return truncation.Block(
        "messages",
        message,
        priority,
        (entry["id"],),
        group,
        label,
        original,
        growth="part" if priority == truncation.KEEP else "spare",
    )


def evict_through(
    entries: Sequence[Entry], topic: str, config: DebateConfig, count: TokenCounter, *, reserved: int = 0
) -> int:
    """Return the last message that must leave the window of recent messages.

    Return its number, or -1 if there is none. The number is the message's `seq` in the transcript.

    `reserved`: tokens of background, pinned messages and tool definitions.
    """
    limits = window_limits(topic, config, count, reserved)
    through = compact(entries, limits, config.names(), config.fence, count)
    return -1 if through is None else through


def window_limits(topic: str, config: DebateConfig, count: TokenCounter, reserved: int) -> WindowLimits:
    """Return the window's limits. Equal ones are the same object, as caches compare identities."""
    prefix_tokens = prompt_context.shared_prefix_tokens(topic, config, count, reserved)
    return _one_object(WindowLimits.of(config.memory, prefix_tokens + reserved))


@lru_cache(maxsize=64)
def _one_object(limits: WindowLimits) -> WindowLimits:
    """Return the same object for equal limits, because caches compare identities."""
    return limits


def long_form_blocks(ctx: prompt_context.PromptContext) -> list[truncation.Block]:
    """Return the rules, topic, summary, recent messages and instruction of a turn."""
    # Unused tokens, which differ in every turn, must not change the prefix that a provider caches.
    shared_prefix = [
        prompt_context.rules_block(ctx),
        prompt_context.topic_block(ctx.state["topic"], ctx.config, ctx.count),
    ]
    return [
        *(replace(block, growth="spare") for block in shared_prefix),
        *summary_blocks(ctx),
        *window_blocks(ctx),
        turn_suffix_block(ctx, hidden=()),
    ]
