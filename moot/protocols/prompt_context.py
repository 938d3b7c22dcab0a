"""Input of a turn's prompt, and the prompt blocks that several protocols build from it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from moot.calls.model_calls import Prompt, WireMessage
from moot.config import DebateConfig, DebaterConfig
from moot.judging.rubrics import rubric_text
from moot.memory import cross_debate_memory
from moot.memory.background import PASSAGES_SHARE, Background, select_background, with_background
from moot.memory.window import window_start
from moot.prompts import templates, truncation
from moot.prompts.debate_context import DebateContext
from moot.state.conversation import ConversationState, MemoryKind, Step, Turn
from moot.state.entries import Entry, UserInputKind, memoize_by_identity, traits_of
from moot.text.plain_text import break_template_tokens, plain_line
from moot.text.tokens import TokenCounter, message_tokens, prompt_tokens

TOOL_RANK = 5
"""Difference in rank between a message and its tool results. Tool results have the lower priority, so they
are dropped first."""


@dataclass(frozen=True)
class PromptSource(DebateContext):
    """Debate with the background that the prompts of its next turns show."""

    @cached_property
    def background(self) -> Background:
        """Documents, early and pinned messages, and messages of people that have left the window."""
        return select_background(self, start=window_start(self.state))


@dataclass(frozen=True)
class PromptContext:
    """Inputs that are needed to build a turn's prompt."""

    debate: PromptSource
    turn: Turn
    total: int | None = None
    """Maximum number of tokens in the whole prompt. `None` stands for `memory.budget.total`. A smaller budget
    leaves space for tool definitions or applies to the phase."""
    memories: cross_debate_memory.MemoryIndexes | None = None
    """Indexes for retrieving earlier messages, or `None` to retrieve none."""
    tool_tokens: int = 0
    """Largest number of tokens that any debater's tool definitions need. The window leaves space for them
    in every turn, so that all debaters see the same window."""

    @property
    def state(self) -> ConversationState:
        """State of the debate."""
        return self.debate.state

    @property
    def config(self) -> DebateConfig:
        """Configuration of the debate."""
        return self.debate.config

    @property
    def count(self) -> TokenCounter:
        """Token counter of the debate."""
        return self.debate.count

    @property
    def step(self) -> Step:
        """Current step of the debate."""
        return self.state["step"]

    @property
    def token_budget(self) -> int:
        """Number of prompt tokens that the background and pinned messages leave for everything else."""
        total = self.config.memory.budget.total if self.total is None else self.total
        return total - self.background.tokens

    @property
    def names(self) -> Mapping[str, str]:
        """Display names of the debaters, keyed by debater id."""
        return self.debate.names

    @property
    def speaker(self) -> DebaterConfig:
        """Configuration of the debater who takes the turn."""
        return self.config.debater(self.turn["speaker"])

    @property
    def persona_first(self) -> bool:
        """True if a prompt states the debater's persona at its beginning and not in its last message."""
        return self.config.memory.layout == "per-speaker"

    @property
    def background(self) -> Background:
        """Background that every prompt of the debate shows, including pinned messages."""
        return self.debate.background

    @cached_property
    def query(self) -> cross_debate_memory.RetrievalQuery:
        """Query used to retrieve earlier messages for the turn."""
        return cross_debate_memory.retrieval_query(self.state, self.window, self.turn)

    @cached_property
    def window(self) -> list[Entry]:
        """Entries in the message window, oldest first, excluding the topic and the background."""
        entries = self.state["full_transcript"][window_start(self.state) :]
        return [
            entry
            for entry in entries
            if traits_of(entry).in_prompts and entry["id"] not in self.background.ids
        ]


def assemble_prompt(
    ctx: PromptContext,
    blocks: Sequence[truncation.Block],
    query: cross_debate_memory.RetrievalQuery,
    *,
    is_cached: bool,
) -> Prompt:
    """Return the complete prompt of a turn.

    If the background is not shown whole, unused tokens go to its passages that match `query`. `is_cached`: a
    provider caches most of the prompt, so its beginning must not change from turn to turn.
    """
    total = ctx.token_budget + ctx.background.tokens
    passages = partial(ctx.background.passages, f"{query.query}\n{query.answering}")
    reserved = 0 if ctx.background.is_whole else int(total * PASSAGES_SHARE)
    blocks = with_background(blocks, ctx.background.blocks)
    return truncation.truncate_blocks(
        blocks, total, ctx.count, passages=passages, reserved=reserved if is_cached else None
    )


def entry_block(
    ctx: PromptContext, entry: Entry, rank: int, label: str = "message", heading: str = ""
) -> truncation.Block:
    """Return a prompt block that shows one transcript entry."""
    message = truncation.render_entry(entry, ctx.names, ctx.config.fence)
    if heading:
        heading = templates.break_fence(heading, ctx.config.fence)
        message = {**message, "content": f"{heading}\n{message['content']}"}
    return truncation.Block("messages", message, rank, (entry["id"],), label=f"{label} {entry['id']}")


def user_provided_entries(ctx: PromptContext, *gifts: UserInputKind) -> list[Entry]:
    """Return messages and documents of people, by default of all kinds, oldest first."""
    transcript = ctx.state["full_transcript"]
    entries = [
        transcript[seq]
        for seq in ctx.state.get("user_provided", ())
        if transcript[seq]["id"] not in ctx.background.ids
    ]
    return [entry for entry in entries if not gifts or traits_of(entry).user_input in gifts]


def user_provided_block(ctx: PromptContext, entry: Entry, *, message: int, document: int) -> truncation.Block:
    """Return a prompt block for a person's message or document."""
    rank = document if traits_of(entry).user_input == "document" else message
    return entry_block(ctx, entry, rank, "user-provided")


def tool_blocks(ctx: PromptContext, speech: Entry, rank: int) -> list[truncation.Block]:
    """Return a block for each tool call before a message, with its result."""
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
                truncation.render_entry(entry, ctx.names, ctx.config.fence)["content"] for entry in exchange
            )
            message: WireMessage = {"role": "user", "name": call["speaker"], "content": text}
            ids = tuple(entry["id"] for entry in exchange)
            blocks.append(
                truncation.Block("messages", message, TOOL_RANK + rank, ids, label="tool call and result")
            )
    return blocks


RULES = templates.load_prompt_template("rules", "debaters", "scored", "language")
CONTRACT = templates.load_prompt_template("contract", "name", "role", "stance", "persona", "contract")


@memoize_by_identity()
def contract_text(debater: DebaterConfig) -> str:
    """Return the text that states a debater's name, role, stance and persona."""
    persona = debater.persona
    text, titled = ("", persona) if isinstance(persona, dict) else (persona, {})
    contract = {**titled, "What would change your mind": "; ".join(debater.flip_conditions)}
    text = CONTRACT.render(
        name=plain_line(debater.name),
        role=f"Your role: {debater.role.rstrip('.')}." if debater.adds_to_name(debater.role) else "",
        stance=f"Your stance at the start: {debater.stance.rstrip('.')}." if debater.stance else "",
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
        description = debater.description(with_id=True)
        lines.append(
            break_template_tokens(
                plain_line(f"- {debater.name} ({description})" if description else f"- {debater.name}")
            )
        )
    return "\n".join(lines)


def topic_tokens(topic: str, config: DebateConfig, count: TokenCounter) -> int:
    """Return the number of tokens in the block that contains the debate's topic."""
    return message_tokens(topic_block(topic, config, count).message, count)


@memoize_by_identity()
def topic_block(topic: str, config: DebateConfig, count: TokenCounter) -> truncation.Block:
    """Return a prompt block that contains the debate's topic."""
    return truncation.problem_block(topic, config.memory.budget, config.fence, count, heading="# Topic")


def shared_prefix_tokens(topic: str, config: DebateConfig, count: TokenCounter, reserved: int = 0) -> int:
    """Return the number of tokens in the rules and topic at the start of every prompt, beside `reserved`."""
    limit = rules_limit(topic, config, count, reserved)
    return min(_rules_tokens(config, count), limit) + topic_tokens(topic, config, count)


@memoize_by_identity()
def _rules_tokens(config: DebateConfig, count: TokenCounter) -> int:
    """Return the number of tokens in the longest rules. A persona before them differs between debaters."""
    contracts = [contract_text(debater) for debater in config.debaters]
    persona = max(contracts, key=len) if config.memory.layout == "per-speaker" else ""
    text = "\n\n".join(filter(None, [persona, rules_text(config)]))
    return message_tokens(templates.system_message(text, config.fence), count)


def rules_limit(topic: str, config: DebateConfig, count: TokenCounter, reserved: int) -> int:
    """Return the maximum number of tokens in the rules.

    It is the `system` budget or, if that is more, what topic, summary, turn suffix, `reserved` tokens and
    half of the messages' budget leave.
    """
    budget = config.memory.budget
    others = budget.summary + budget.turn_suffix + budget.messages // 2
    return max(budget.system, budget.total - topic_tokens(topic, config, count) - reserved - others)


def reserved_tokens(background: Background, config: DebateConfig, tool_tokens: int) -> int:
    """Return the tokens that the background, with its passages, and the tools need."""
    retrieved = 0 if background.is_whole else int(config.memory.budget.total * PASSAGES_SHARE)
    return background.tokens + retrieved + tool_tokens


def rules_block(
    ctx: PromptContext, *, rules: str = "", extra: str = "", contract: str = ""
) -> truncation.Block:
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
    message = templates.system_message(templates.break_fence(content, ctx.config.fence), ctx.config.fence)
    reserved = reserved_tokens(ctx.background, ctx.config, ctx.tool_tokens)
    limit = rules_limit(ctx.state["topic"], ctx.config, ctx.count, reserved)
    limit = min(limit, max(ctx.config.memory.budget.system, ctx.token_budget // 2))
    return truncation.cut_block("system", message, limit, ctx.count, label="rules")


def _as_retrieved(block: truncation.Block, entry: Entry, count: TokenCounter) -> truncation.Block:
    """Return a copy of an earlier message's prompt block that is marked as retrieved."""
    memory: dict[MemoryKind, int] = {"retrieved": message_tokens(block.message, count)}
    return replace(block, retrieved=(entry["id"],), memory=memory)


EarlierBlock = Callable[[Entry], truncation.Block]
"""Function that creates the prompt block for an earlier message."""


def fill_with_earlier(
    ctx: PromptContext,
    shared_prefix: Sequence[truncation.Block],
    blocks: Sequence[truncation.Block],
    turn_suffix: truncation.Block,
    *,
    query: cross_debate_memory.RetrievalQuery,
    make_block: EarlierBlock,
    hidden: Iterable[Entry] = (),
) -> list[truncation.Block]:
    """Fill the unused tokens of a prompt with earlier messages that match `query`.

    The messages are shown whole, in the order of the transcript, before `blocks`. Nothing is retrieved if
    `blocks` have to be truncated.
    `shared_prefix` and `turn_suffix` stay whole. `blocks` have a higher priority than earlier messages.
    """
    truncated_blocks = truncation.truncate_by_priority(
        shared_prefix, blocks, turn_suffix, ctx.token_budget, ctx.count
    )
    shown_blocks = [block for block in truncated_blocks if block.priority != truncation.OMITTED_PRIORITY]
    left = ctx.token_budget - prompt_tokens([block.message for block in shown_blocks], ctx.count)
    transcript = ctx.state["full_transcript"]
    excluded_ids = {
        *ctx.background.ids,
        *(key for block in (*blocks, *ctx.background.blocks) for key in block.ids),
    }
    excluded_ids |= {entry["id"] for entry in hidden}
    excluded_ids |= {entry["id"] for entry in transcript if not traits_of(entry).argues}
    matches = cross_debate_memory.retrieve_messages(
        ctx.state,
        ctx.memories,
        ctx.config.memory.retrieval,
        query,
        remaining=left,
        costs=lambda entry: message_tokens(make_block(entry).message, ctx.count),
        names=ctx.names,
        exclude={entry["seq"] for entry in transcript if entry["id"] in excluded_ids},
    )
    earlier_blocks = [_as_retrieved(make_block(entry), entry, ctx.count) for entry in matches]
    if not earlier_blocks:
        return truncated_blocks
    return truncation.truncate_by_priority(
        shared_prefix, [*earlier_blocks, *blocks], turn_suffix, ctx.token_budget, ctx.count
    )
