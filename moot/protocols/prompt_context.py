"""Input of a turn's prompt, and prompt blocks that all protocols use."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from moot.calls.effects import Prompt, WireMessage
from moot.judging.rubrics import rubric_text
from moot.memory.background import PASSAGES_SHARE, Background, select_background, with_background
from moot.memory.cross_debate_memory import MemoryIndexes, RetrievalQuery, retrieval_query, retrieve_messages
from moot.memory.window import window_start
from moot.prompts.fences import system_message
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import (
    OMITTED_NOTICE,
    Block,
    cut_block,
    fill_remaining,
    problem_block,
    render_entry,
    truncate_blocks,
)
from moot.state.config import DebateConfig, DebaterConfig
from moot.state.conversation import ConversationState, MemoryKind, Step, Turn
from moot.state.entries import Entry, UserInputKind, traits_of
from moot.state.identity_cache import memoize_by_identity
from moot.text.plain_text import break_template_tokens, plain_line
from moot.text.tokens import TokenCounter, message_tokens, prompt_tokens

TOOL_RANK = 5
"""Amount added to a message's priority number to get the priority number of its tool results. Tool results
are dropped first."""


@dataclass(frozen=True)
class PromptContext:
    """Inputs that are needed to build a turn's prompt."""

    state: ConversationState
    config: DebateConfig
    turn: Turn
    count: TokenCounter
    total: int | None = None
    """Maximum number of tokens in the whole prompt. `None` stands for `memory.budget.total`. A smaller budget
    leaves space for tool definitions or applies to the phase."""
    memories: MemoryIndexes | None = None
    """Indexes from which earlier messages are retrieved, or `None` for no retrieval."""
    tool_tokens: int = 0
    """Number of tokens in the largest set of tool definitions that a debater has. The window leaves space
    for them in every turn, so that all debaters see the same window."""
    known_background: Background | None = None
    """Background of the debate, or `None` if it has not been selected yet."""

    @property
    def step(self) -> Step:
        """Current step of the debate."""
        return self.state["step"]

    @property
    def token_budget(self) -> int:
        """Number of tokens left for the prompt after subtracting background and pinned messages."""
        total = self.config.memory.budget.total if self.total is None else self.total
        return total - self.background.tokens

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Display names of the debaters, keyed by debater id."""
        return self.config.names()

    @property
    def speaker(self) -> DebaterConfig:
        """Configuration of the debater who takes the turn."""
        return self.config.debater(self.turn["speaker"])

    @property
    def persona_first(self) -> bool:
        """True if prompts state the debater's persona at the beginning and do not repeat it at the end."""
        return self.config.memory.layout == "per-speaker"

    @cached_property
    def background(self) -> Background:
        """Background of the debate that every prompt shows after the topic. It includes pinned messages."""
        return self.known_background or turn_background(self.state, self.config, self.count)

    @cached_property
    def query(self) -> RetrievalQuery:
        """Query used to retrieve earlier messages for the turn."""
        return retrieval_query(self.state, self.window, self.turn)

    @cached_property
    def window(self) -> list[Entry]:
        """Entries in the message window, oldest first, excluding the topic and the background."""
        entries = self.state["full_transcript"][window_start(self.state) :]
        return [
            entry
            for entry in entries
            if traits_of(entry).in_prompts and entry["id"] not in self.background.ids
        ]


def turn_background(state: ConversationState, config: DebateConfig, count: TokenCounter) -> Background:
    """Return the background that the prompts of a debate's next turns show.

    It includes the messages of people that have left the window of recent messages.
    """
    return select_background(state, config, count, start=window_start(state))


def assemble_prompt(
    ctx: PromptContext, blocks: Sequence[Block], query: RetrievalQuery, *, is_cached: bool
) -> Prompt:
    """Return the complete prompt of a turn.

    If the background is not shown whole, unused tokens go to its passages that match `query`. If a provider
    caches most of the prompt (`is_cached`), these passages use few tokens, because they are not cached.
    """
    background, total, count = ctx.background, ctx.token_budget + ctx.background.tokens, ctx.count
    *before, turn_suffix = with_background(blocks, background.blocks)
    if not background.is_whole:
        shown = [b.message for b in (*before, turn_suffix) if b.priority != OMITTED_NOTICE]
        left = total - prompt_tokens(shown, count)
        most = min(left, int(total * PASSAGES_SHARE)) if is_cached else left
        before += background.passages(f"{query.query}\n{query.answering}", most)
    return truncate_blocks([*before, turn_suffix], total, count)


def entry_block(
    ctx: PromptContext, entry: Entry, rank: int, label: str = "message", heading: str = ""
) -> Block:
    """Return a prompt block with one transcript entry."""
    message = render_entry(entry, ctx.names, ctx.config.fence)
    if heading:
        message = {**message, "content": f"{heading}\n{message['content']}"}
    return Block("messages", message, rank, (entry["id"],), label=f"{label} {entry['id']}")


def user_provided_entries(ctx: PromptContext, *gifts: UserInputKind) -> list[Entry]:
    """Return the messages and documents from people, oldest first.

    `gifts`: kinds to return, by default all.
    """
    transcript = ctx.state["full_transcript"]
    given = [
        transcript[seq]
        for seq in ctx.state.get("user_provided", ())
        if transcript[seq]["id"] not in ctx.background.ids
    ]
    return [entry for entry in given if not gifts or traits_of(entry).user_input in gifts]


def user_provided_block(ctx: PromptContext, entry: Entry, *, message: int, document: int) -> Block:
    """Return a prompt block for a person's message or document."""
    rank = document if traits_of(entry).user_input == "document" else message
    return entry_block(ctx, entry, rank, "user-provided")


def tool_blocks(ctx: PromptContext, speech: Entry, rank: int) -> list[Block]:
    """Return a prompt block for each tool call made before a message.

    A block also shows the call's result.
    """
    transcript = ctx.state["full_transcript"]
    start = speech["seq"]
    while start > 0 and traits_of(transcript[start - 1]).tool:
        start -= 1
    trail = transcript[start : speech["seq"]]
    results = {target: entry for entry in trail for target in entry["targets"]}

    blocks = []
    for call in trail:
        if traits_of(call).pair == "opens":
            exchange = [call, results[call["id"]]] if call["id"] in results else [call]
            text = "\n\n".join(
                render_entry(entry, ctx.names, ctx.config.fence)["content"] for entry in exchange
            )
            message: WireMessage = {"role": "user", "name": call["speaker"], "content": text}
            ids = tuple(entry["id"] for entry in exchange)
            blocks.append(Block("messages", message, TOOL_RANK + rank, ids, label="tool call and result"))
    return blocks


RULES = load_prompt_template("rules", "debaters", "scored", "language")
CONTRACT = load_prompt_template("contract", "name", "role", "stance", "persona", "contract")


@memoize_by_identity()
def contract_text(debater: DebaterConfig) -> str:
    """Return the text that states a debater's name, role, stance and persona."""
    persona = debater.persona
    text, titled = ("", persona) if isinstance(persona, dict) else (persona, {})
    contract = {**titled, "What would change your mind": "; ".join(debater.flip_conditions)}
    text = CONTRACT.render(
        name=plain_line(debater.name),
        role=f"Your role: {debater.role}." if debater.adds_to_name(debater.role) else "",
        stance=f"Your stance at the start: {debater.stance}." if debater.stance else "",
        persona="\n\n".join(filter(None, [debater.system_prompt, text])),
        contract="\n".join(f"{title}: {text}" for title, text in contract.items() if text),
    )
    return break_template_tokens(text)


@memoize_by_identity()
def rules_text(config: DebateConfig) -> str:
    """Return the text of the debate's rules for use in every turn."""
    language = f"- Write in {plain_line(config.language)}." if config.language else ""
    text = RULES.render(debaters=members_text(config), scored=rubric_text(config), language=language)
    return break_template_tokens(text)


def members_text(config: DebateConfig) -> str:
    """Return a list of the debaters with their roles and stances, one per line."""
    lines = []
    for debater in config.debaters:
        told = debater.description(with_id=True)
        lines.append(
            break_template_tokens(plain_line(f"- {debater.name} ({told})" if told else f"- {debater.name}"))
        )
    return "\n".join(lines)


@memoize_by_identity()
def topic_block(topic: str, config: DebateConfig, count: TokenCounter) -> Block:
    """Return a prompt block that contains the debate's topic."""
    return problem_block(topic, config.memory.budget, config.fence, count, heading="# Topic")


@memoize_by_identity()
def shared_prefix_tokens(topic: str, config: DebateConfig, count: TokenCounter) -> int:
    """Return the number of tokens that the rules and the topic take at the start of every prompt.

    If prompts begin with a persona, whose length differs, the rules count as the whole `system` budget.
    """
    rules = config.memory.budget.system
    if config.memory.layout == "shared":
        rules = min(message_tokens(system_message(rules_text(config), config.fence), count), rules)
    return rules + message_tokens(topic_block(topic, config, count).message, count)


def rules_block(ctx: PromptContext, *, rules: str = "", extra: str = "", contract: str = "") -> Block:
    """Return the system message as a prompt block.

    Args:
        ctx: input of the prompt.
        rules: text that replaces the default rules.
        extra: text after the rules.
        contract: text that replaces the default persona contract, which precedes the rules in the layout
            `per-speaker`.
    """
    persona = (contract or contract_text(ctx.speaker)) if ctx.persona_first else ""
    content = "\n\n".join(filter(None, [persona, rules or rules_text(ctx.config), extra]))
    whole = system_message(content, ctx.config.fence)
    return cut_block("system", whole, ctx.config.memory.budget.system, ctx.count, label="rules")


def _as_retrieved(block: Block, entry: Entry, count: TokenCounter) -> Block:
    """Return the block of a retrieved message with the record that retrieval added it."""
    held: dict[MemoryKind, int] = {"retrieved": message_tokens(block.message, count)}
    return replace(block, retrieved=(entry["id"],), memory=held)


EarlierBlock = Callable[[Entry], Block]
"""Function that creates the prompt block for an earlier message."""


def fill_with_earlier(
    ctx: PromptContext,
    shared_prefix: Sequence[Block],
    blocks: Sequence[Block],
    turn_suffix: Block,
    *,
    query: RetrievalQuery,
    make_block: EarlierBlock,
    hidden: Iterable[Entry] = (),
) -> list[Block]:
    """Fill the remaining token budget of a prompt with earlier messages that match the turn's `query`.

    The messages are shown whole, in the order of the transcript, before `blocks`. Nothing is retrieved if
    `blocks` have to be truncated.

    Args:
        ctx: input of the prompt.
        shared_prefix: first blocks, which stay whole.
        blocks: blocks with a higher priority than earlier messages.
        turn_suffix: last block, which stays whole.
        query: query for the messages.
        make_block: makes the block of a message.
        hidden: messages that this prompt must not show.
    """
    filled = fill_remaining(shared_prefix, blocks, turn_suffix, ctx.token_budget, ctx.count)
    shown = [block for block in filled if block.priority != OMITTED_NOTICE]
    left = ctx.token_budget - prompt_tokens([block.message for block in shown], ctx.count)
    transcript = ctx.state["full_transcript"]
    apart = {*ctx.background.ids, *(key for block in (*blocks, *ctx.background.blocks) for key in block.ids)}
    apart |= {entry["id"] for entry in hidden}
    apart |= {entry["id"] for entry in transcript if not traits_of(entry).argues}
    found = retrieve_messages(
        ctx.state,
        ctx.memories,
        ctx.config.memory.retrieval,
        query,
        remaining=left,
        costs=lambda entry: message_tokens(make_block(entry).message, ctx.count),
        names=ctx.names,
        exclude={entry["seq"] for entry in transcript if entry["id"] in apart},
    )
    earlier = [_as_retrieved(make_block(entry), entry, ctx.count) for entry in found]
    if not earlier:
        return filled
    return fill_remaining(shared_prefix, [*earlier, *blocks], turn_suffix, ctx.token_budget, ctx.count)
