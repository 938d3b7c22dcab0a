"""Blocks of a long-form prompt, including the turn suffix, which differs between debaters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from moot.calls.effects import WireMessage
from moot.claims.ledger_rendering import memory_tokens, render_blackboard
from moot.memory.background import PASSAGES_SHARE, Background
from moot.memory.cross_debate_memory import earlier_positions_text, reference_text, retrieve_memories
from moot.memory.summarizers.rule_based import NOTICE_BELOW
from moot.memory.window import MESSAGE_SHARE, WindowLimits, compact, shown_message, window_start
from moot.prompts.fences import break_fence, fenced, fenced_section, truncate_fenced
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import KEEP, OLDER, RECENT, SUMMARY, Block, cut_message, render_entry
from moot.protocols.prompt_context import (
    PromptContext,
    contract_text,
    rules_block,
    shared_prefix_tokens,
    topic_block,
)
from moot.state.config import DebateConfig
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, entry_id, traits_of
from moot.state.identity_cache import memoize_by_identity
from moot.text.plain_text import break_template_tokens
from moot.text.tokens import TokenCounter, message_tokens, truncate_middle_cached

MIN_SUMMARY_TOKENS = 32
"""Minimum number of tokens reserved for a summary or for the notice that replaces it."""
RECENT_MESSAGES = 4
"""Number of messages that are treated as recent when a prompt is truncated. Messages before them get the
lower priority of older ones."""


def summary_blocks(ctx: PromptContext) -> list[Block]:
    """Return a list with the rolling summary's prompt block, or `[]` if there is no summary."""
    summary = ctx.state.get("rolling_summary", {})
    text = summary.get("text", "")
    if not text:
        return []
    budget = ctx.config.memory.budget
    # The budget of the section or, if few tokens remain, at most a tenth of them.
    left = (
        ctx.token_budget
        - budget.turn_suffix
        - shared_prefix_tokens(ctx.state["topic"], ctx.config, ctx.count)
    )
    has_space = left >= budget.summary + budget.messages * MESSAGE_SHARE
    remaining = budget.summary if has_space else max(0, min(budget.summary, left // 10))
    heading = f"# Summary of the debate up to [{entry_id(summary['covers_through_seq'])}]"
    whole: WireMessage = {"role": "user", "content": fenced(text, ctx.config.fence, heading)}
    message = whole
    if remaining < min(NOTICE_BELOW, budget.summary):
        notice = f"{summary['messages']} earlier messages. The token budget has no space for their summary."
        message = {**whole, "content": f"{heading}\n{notice}"}
    message = cut_message(message, max(remaining, MIN_SUMMARY_TOKENS), ctx.count)
    held: dict[MemoryKind, int] = {"rolling summary": ctx.count(message["content"])}
    cut = whole if message != whole else None
    return [Block("summary", message, SUMMARY, label="rolling summary", whole=cut, memory=held)]


def window_blocks(ctx: PromptContext, entries: Sequence[Entry] | None = None) -> list[Block]:
    """Return one prompt block for each message in the window of recent messages.

    The newest message is never removed.

    A message longer than its share of the messages' budget is cut, so that it displaces no other message.
    Unused tokens restore only the newest one, so that the messages before it stay the same in the next turn.
    """
    shown = ctx.window if entries is None else entries
    reserved = reserved_tokens(ctx.background, ctx.config, ctx.tool_tokens)
    limits = window_limits(ctx.state["topic"], ctx.config, ctx.count, reserved)
    last = len(shown) - 1
    return [
        _message_block(
            entry,
            KEEP if i == last else RECENT if i > last - RECENT_MESSAGES else OLDER,
            ctx.persona_first and entry["speaker"] == ctx.speaker.id,
            ctx.config,
            limits,
            ctx.count,
        )
        for i, entry in enumerate(shown)
    ]


@memoize_by_identity(4096)  # every turn's prompt shows the messages of the window
def _message_block(
    entry: Entry, priority: int, own: bool, config: DebateConfig, limits: WindowLimits, count: TokenCounter
) -> Block:
    """Return a message in the context window as a prompt block, truncated if it is too long.

    The debater's `own` entry is shown in the assistant role, without name and id.
    """
    names, fence = config.names(), config.fence
    message, tokens = shown_message(entry, names, fence, limits, count)
    whole = render_entry(entry, names, fence)
    if own:
        content = break_fence(break_template_tokens(entry["content"]), fence)
        whole = {"role": "assistant", "content": content}
        message = whole if message_tokens(whole, count) <= tokens else cut_message(whole, tokens, count)

    # A tool call and its result are kept or removed together, and so are a question and its answer.
    pair, group = traits_of(entry).pair, ""
    if pair == "closes" and entry["targets"]:
        group = entry["targets"][0]
    elif pair == "opens":
        group = entry["id"]
    label = f"message {entry['id']}" if priority == KEEP else "window messages"
    cut = whole if message != whole else None
    return Block("messages", message, priority, (entry["id"],), group, label, cut, grows=priority == KEEP)


def evict_through(
    entries: Sequence[Entry], topic: str, config: DebateConfig, count: TokenCounter, *, reserved: int = 0
) -> int:
    """Return the `seq` up to which entries must leave the context window, or -1 if all may stay.

    `reserved`: tokens of background, pinned messages and tool definitions.
    """
    limits = window_limits(topic, config, count, reserved)
    through = compact(entries, limits, config.names(), config.fence, count)
    return -1 if through is None else through


def reserved_tokens(background: Background, config: DebateConfig, tool_tokens: int) -> int:
    """Return the number of tokens that background, passages and tool definitions need in a prompt."""
    retrieved = 0 if background.is_whole else int(config.memory.budget.total * PASSAGES_SHARE)
    return background.tokens + retrieved + tool_tokens


def window_limits(topic: str, config: DebateConfig, count: TokenCounter, reserved: int) -> WindowLimits:
    """Return the token limits of a debate's window of recent messages.

    Equal limits are the same object, because caches compare them by identity.
    """
    return _one_object(WindowLimits.of(config.memory, shared_prefix_tokens(topic, config, count) + reserved))


@lru_cache(maxsize=64)
def _one_object(limits: WindowLimits) -> WindowLimits:
    """Return one shared object for all equal limits, so that caches can compare limits by identity."""
    return limits


TURN_SUFFIX = load_prompt_template(
    "turn_suffix", "contract", "perspective", "blackboard", "reference_documents", "retrieved", "instruction"
)
NEWS = "A person has written since your last message: {}. Say first what that changes."
"""Addition to the instruction of a debater who has not answered people's interjections yet."""
NAMED_NEWS = 3
"""Maximum number of a person's messages that an instruction names. The newest are named."""
PARTS = ("blackboard", "perspective", "reference_documents", "retrieved")
"""Names of the optional parts of a prompt's last message, most important first."""
RETRIEVED_SHARE = 0.45
"""Share of the tokens left in a prompt's last message to reserve for retrieved messages. It applies to
long-form prompts."""
CROSS_DEBATE_SHARE, REFERENCE_SHARE = 4, 3
"""Divisors of a token budget that give the shares of cross-debate memory and reference documents. They
divide the budget of the prompt's last message."""
MIN_PART_TOKENS, MIN_BLACKBOARD_TOKENS, TURN_SUFFIX_MARGIN = 16, 40, 8
"""Minimum tokens for an optional part, minimum tokens for the blackboard, and tokens kept free as a
margin."""
SUFFIX_PART_KINDS: dict[str, MemoryKind] = {
    "perspective": "cross-debate memory",
    "reference_documents": "reference documents",
    "retrieved": "retrieved",
}
"""Mapping from the names of optional prompt parts to the kind of memory that each part shows. The
blackboard contains several kinds."""


def turn_suffix_block(
    ctx: PromptContext, parts: Mapping[str, str] | None = None, retrieved: tuple[str, ...] = ()
) -> Block:
    """Return the prompt block of the turn suffix (the last message of a prompt).

    The instruction is always included, and so is the contract, unless the prompt begins with it. The other
    parts get the remaining tokens, the most important first, and are truncated if they are too long.

    Args:
        ctx: input of the prompt.
        parts: texts of the optional parts, by the names in `PARTS`.
        retrieved: ids of the retrieved memories, for the receipt.
    """
    texts, budget = _bare_turn_suffix(ctx), ctx.config.memory.budget.turn_suffix
    given = dict(parts or {})
    if "perspective" not in given:  # long-form protocols pass it, because they need its length
        given["perspective"] = cross_debate_text(ctx)
    for name in PARTS:
        if text := given.get(name):
            left = budget - _turn_suffix_tokens(texts, ctx.count)
            quoted = fenced_section(text, ctx.config.fence)
            texts[name] = truncate_fenced(quoted, left - 4, ctx.count) if left > MIN_PART_TOKENS else ""
    message: WireMessage = {"role": "user", "content": TURN_SUFFIX.render(**texts)}
    whole: WireMessage | None = None
    if texts["contract"] and texts["contract"] != (contract := contract_text(ctx.speaker)):
        whole = {"role": "user", "content": TURN_SUFFIX.render(**{**texts, "contract": contract})}
    held: dict[MemoryKind, int] = memory_tokens(texts["blackboard"], ctx.state, ctx.count)
    held |= {kind: ctx.count(texts[name]) for name, kind in SUFFIX_PART_KINDS.items() if texts[name]}
    whole_retrieved = fenced_section(given.get("retrieved", ""), ctx.config.fence)
    brought = retrieved if texts["retrieved"] == whole_retrieved else ()
    return Block(
        "turn_suffix", message, label="contract and instruction", whole=whole, retrieved=brought, memory=held
    )


def plain_turn_suffix(ctx: PromptContext, contract: str, instruction: str, query: str) -> Block:
    """Return the last message of a prompt, including reference passages that match `query`.

    It also contains the debater's persona (`contract`) and the instruction.
    """
    reference_documents = references_text(ctx, query)
    quoted = fenced_section(reference_documents, ctx.config.fence)
    parts = dict.fromkeys(PARTS, "") | {"reference_documents": quoted}
    message: WireMessage = {
        "role": "user",
        "content": TURN_SUFFIX.render(contract=contract, instruction=instruction, **parts),
    }
    held: dict[MemoryKind, int] = (
        {"reference documents": ctx.count(reference_documents)} if reference_documents else {}
    )
    return Block("turn_suffix", message, label="contract and instruction", memory=held)


def _bare_turn_suffix(ctx: PromptContext) -> dict[str, str]:
    """Return the parts of a prompt's last message, leaving all optional parts empty.

    If the prompt begins with the contract, the turn suffix has none.
    """
    instruction, budget = f"{ctx.turn['instruction']}{_news_text(ctx)}", ctx.config.memory.budget.turn_suffix
    contract = ""
    if not ctx.persona_first:
        remaining = max(budget // 2, budget - ctx.count(instruction) - TURN_SUFFIX_MARGIN)
        contract = truncate_middle_cached(contract_text(ctx.speaker), remaining, ctx.count)
    return {"contract": contract, "instruction": instruction, **dict.fromkeys(PARTS, "")}


def _news_text(ctx: PromptContext) -> str:
    """Return a request to take up what people wrote since the debater's last message, or `""`."""
    given = [ctx.state["full_transcript"][seq] for seq in ctx.state.get("user_provided", ())]
    news = [entry for entry in given if traits_of(entry).user_input == "interjection"]
    if not news:
        return ""
    own = (e for e in reversed(ctx.state["full_transcript"]) if e["speaker"] == ctx.speaker.id)
    last = next((entry["seq"] for entry in own if traits_of(entry).argues), None)
    ids = [f"[{entry['id']}]" for entry in news if last is not None and entry["seq"] > last]
    return f"\n\n{NEWS.format(', '.join(ids[-NAMED_NEWS:]))}" if ids else ""


def _turn_suffix_tokens(texts: dict[str, str], count: TokenCounter) -> int:
    return message_tokens({"role": "user", "content": TURN_SUFFIX.render(**texts)}, count)


def turn_suffix_remaining(ctx: PromptContext, parts: Mapping[str, str] | None = None) -> int:
    """Return the number of tokens left for further parts of the turn suffix (last prompt message)."""
    quoted = {name: fenced_section(text, ctx.config.fence) for name, text in (parts or {}).items()}
    texts = {**_bare_turn_suffix(ctx), **quoted}
    return ctx.config.memory.budget.turn_suffix - _turn_suffix_tokens(texts, ctx.count) - TURN_SUFFIX_MARGIN


def long_form_blocks(ctx: PromptContext) -> list[Block]:
    """Return all parts of the prompt for a turn in a long-form debate.

    They are the rules, the topic, the summary, the recent messages and the turn's instruction.
    """
    # Unused tokens, which differ in every turn, must not change the prefix that a provider caches.
    shared_prefix = [rules_block(ctx), topic_block(ctx.state["topic"], ctx.config, ctx.count)]
    return [
        *(replace(block, grows=False) for block in shared_prefix),
        *summary_blocks(ctx),
        *window_blocks(ctx),
        _long_form_suffix(ctx),
    ]


def _long_form_suffix(ctx: PromptContext) -> Block:
    """Return the last message of a prompt for a long-form debate.

    If memories are retrieved, the blackboard leaves them a share of the tokens. Cross-debate memory and
    reference documents are included, too.
    """
    query = ctx.query
    parts = {
        "perspective": cross_debate_text(ctx),
        "reference_documents": references_text(ctx, f"{query.query}\n{query.answering}"),
    }
    left = turn_suffix_remaining(ctx, parts)
    if ctx.memories is not None and window_start(ctx.state) > 1:
        board = blackboard_text(ctx, int(left * (1 - RETRIEVED_SHARE)))
        back = retrieve_memories(
            ctx.state,
            ctx.memories,
            ctx.config.memory.retrieval,
            query,
            remaining=left - ctx.count(board),
            count=ctx.count,
            names=ctx.names,
            shown=board,
            exclude={*ctx.background.ids, *ctx.state.get("pinned", ())},
        )
        if back.text:
            return turn_suffix_block(ctx, {**parts, "blackboard": board, "retrieved": back.text}, back.ids)
    return turn_suffix_block(ctx, {**parts, "blackboard": blackboard_text(ctx, left)})


def blackboard_text(ctx: PromptContext, remaining: int, *, found: bool = True, aspect: str = "") -> str:
    """Return the blackboard text for the debater, limited to `remaining` tokens.

    With `found=False` reflections and crux cards are left out, because the prompt shows them elsewhere.
    `aspect` is the aspect under discussion, on which all debaters' positions are shown.
    """
    if remaining <= MIN_BLACKBOARD_TOKENS:
        return ""
    return render_blackboard(
        ctx.state,
        ctx.speaker.id,
        max_tokens=remaining,
        count=ctx.count,
        names=ctx.names,
        answering=ctx.turn["targets"],
        aspect=aspect,
        found=found,
        alone=bool(ctx.turn["room"]),
    )


def cross_debate_text(ctx: PromptContext) -> str:
    """Return text that lists the debater's positions in earlier debates."""
    earlier = (ctx.state.get("cross_debate_memory") or {}).get(ctx.speaker.id) or []
    remaining = ctx.config.memory.budget.turn_suffix // CROSS_DEBATE_SHARE
    return earlier_positions_text(earlier, remaining, ctx.count)


def references_text(ctx: PromptContext, query: str) -> str:
    """Return passages from the debater's reference documents that match `query`."""
    remaining = ctx.config.memory.budget.turn_suffix // REFERENCE_SHARE
    return reference_text(ctx.speaker.reference_documents, query, remaining, ctx.count)
