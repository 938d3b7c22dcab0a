"""Input of a turn's prompt, and the prompt blocks and turn suffixes that protocols build from it.

The turn suffix is the last message of a prompt. It differs between debaters.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from moot.calls.model_calls import Prompt, WireMessage
from moot.claims.ledger_rendering import memory_tokens, render_blackboard
from moot.config import DebateConfig, DebaterConfig
from moot.judging.rubrics import rubric_text
from moot.memory import cross_debate_memory
from moot.memory.background import PASSAGES_SHARE, Background, select_background, with_background
from moot.memory.summarizers.rule_based import NOTICE_BELOW
from moot.memory.window import MESSAGE_SHARE, WindowLimits, compact, shown_message, window_start
from moot.prompts import templates, truncation
from moot.prompts.debate_context import DebateContext
from moot.state.conversation import ConversationState, MemoryKind, Step, Turn
from moot.state.entries import Entry, UserInputKind, entry_id, memoize_by_identity, traits_of
from moot.text.plain_text import break_template_tokens, plain_line
from moot.text.tokens import TokenCounter, message_tokens, prompt_tokens, truncate_middle_cached

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

    If the background is not shown whole, unused tokens go to its passages that match `query`. If a provider
    caches most of the prompt (`is_cached`), these passages use few tokens, because they are not cached.
    """
    background, total, count = ctx.background, ctx.token_budget + ctx.background.tokens, ctx.count
    *body, turn_suffix = with_background(blocks, background.blocks)
    if not background.is_whole:
        messages = [
            block.message for block in (*body, turn_suffix) if block.priority != truncation.OMITTED_PRIORITY
        ]
        left = total - prompt_tokens(messages, count)
        max_tokens = min(left, int(total * PASSAGES_SHARE)) if is_cached else left
        body += background.passages(f"{query.query}\n{query.answering}", max_tokens)
    return truncation.truncate_blocks([*body, turn_suffix], total, count)


def entry_block(
    ctx: PromptContext, entry: Entry, rank: int, label: str = "message", heading: str = ""
) -> truncation.Block:
    """Return a prompt block that shows one transcript entry."""
    message = truncation.render_entry(entry, ctx.names, ctx.config.fence)
    if heading:
        message = {**message, "content": f"{heading}\n{message['content']}"}
    return truncation.Block("messages", message, rank, (entry["id"],), label=f"{label} {entry['id']}")


def user_provided_entries(ctx: PromptContext, *gifts: UserInputKind) -> list[Entry]:
    """Return the messages and documents from people, oldest first.

    `gifts`: kinds to return, by default all.
    """
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
    """Return a prompt block for each tool call that a debater made just before a message.

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
        description = debater.description(with_id=True)
        lines.append(
            break_template_tokens(
                plain_line(f"- {debater.name} ({description})" if description else f"- {debater.name}")
            )
        )
    return "\n".join(lines)


@memoize_by_identity()
def topic_block(topic: str, config: DebateConfig, count: TokenCounter) -> truncation.Block:
    """Return a prompt block that contains the debate's topic."""
    return truncation.problem_block(topic, config.memory.budget, config.fence, count, heading="# Topic")


@memoize_by_identity()
def shared_prefix_tokens(topic: str, config: DebateConfig, count: TokenCounter) -> int:
    """Return the number of tokens in the rules and topic at the start of every prompt.

    If prompts begin with a persona, whose length differs, the rules count as the whole `system` budget.
    """
    rules = config.memory.budget.system
    if config.memory.layout == "shared":
        rules = min(message_tokens(templates.system_message(rules_text(config), config.fence), count), rules)
    return rules + message_tokens(topic_block(topic, config, count).message, count)


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
    message = templates.system_message(content, ctx.config.fence)
    return truncation.cut_block("system", message, ctx.config.memory.budget.system, ctx.count, label="rules")


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

    Args:
        ctx: input of the prompt.
        shared_prefix: first blocks, which stay whole.
        blocks: blocks with a higher priority than earlier messages.
        turn_suffix: last block, which stays whole.
        query: query for the messages.
        make_block: makes the block of a message.
        hidden: messages that this prompt must not show.
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


MIN_SUMMARY_TOKENS = 32
"""Minimum number of prompt tokens for the rolling summary. The same minimum applies to the notice that
replaces the summary if tokens are short."""
RECENT_MESSAGES = 4
"""Number of messages that count as recent when Moot truncates a prompt. Messages before them get the lower
priority of older ones."""


def summary_blocks(ctx: PromptContext) -> list[truncation.Block]:
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
        - shared_prefix_tokens(ctx.state["topic"], ctx.config, ctx.count)
    )
    has_space = left >= budget.summary + budget.messages * MESSAGE_SHARE
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


def window_blocks(ctx: PromptContext, entries: Sequence[Entry] | None = None) -> list[truncation.Block]:
    """Return one prompt block for each message in the window of recent messages.

    The newest message is never removed.

    A message longer than its share of the messages' budget is cut, so that it displaces no other message.
    Unused tokens restore only the newest one, so that the messages before it stay the same in the next turn.
    """
    shown_entries = ctx.window if entries is None else entries
    reserved = reserved_tokens(ctx.background, ctx.config, ctx.tool_tokens)
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
    """Return the prompt block of a message in the window, truncated if the message is too long.

    A debater's own entry (`is_own`) is shown in the assistant role, without name and id.
    """
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
        grows=priority == truncation.KEEP,
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


def reserved_tokens(background: Background, config: DebateConfig, tool_tokens: int) -> int:
    """Return how many prompt tokens the background and the tools need.

    The passages of the background are included.
    """
    retrieved = 0 if background.is_whole else int(config.memory.budget.total * PASSAGES_SHARE)
    return background.tokens + retrieved + tool_tokens


def window_limits(topic: str, config: DebateConfig, count: TokenCounter, reserved: int) -> WindowLimits:
    """Return the token limits of a debate's window of recent messages.

    Equal limits are the same object, because caches compare them by identity.
    """
    return _one_object(WindowLimits.of(config.memory, shared_prefix_tokens(topic, config, count) + reserved))


@lru_cache(maxsize=64)
def _one_object(limits: WindowLimits) -> WindowLimits:
    """Return the same object for equal limits.

    Caches can then compare limits by identity.
    """
    return limits


TURN_SUFFIX = templates.load_prompt_template(
    "turn_suffix", "contract", "perspective", "blackboard", "reference_documents", "retrieved", "instruction"
)
NEWS = "A person has written since your last message: {}. Say first what that changes."
"""Text that is added to a debater's instruction if a person has written since the debater's last message."""
NAMED_NEWS = 3
"""Maximum number of ids that an instruction lists for people's new messages. The newest messages are
listed."""
PARTS = ("blackboard", "perspective", "reference_documents", "retrieved")
"""Names of the optional parts of a prompt's last message, most important first."""
RETRIEVED_SHARE = 0.45
"""Share of a prompt's last message for retrieved messages. It is a share of the tokens that are left in the
last message of a long-form prompt."""
CROSS_DEBATE_DIVISOR = 4
"""Divisor that limits cross-debate memory to 1/4 of the token budget for a prompt's last message."""
REFERENCE_DIVISOR = 3
"""Divisor that limits reference documents to 1/3 of the token budget for a prompt's last message."""
MIN_OPTIONAL_PART_TOKENS = 16
"""Number of remaining tokens at or below which a prompt omits an optional part."""
MIN_BLACKBOARD_TOKENS = 40
"""Number of remaining tokens at or below which a prompt omits the blackboard."""
TURN_SUFFIX_MARGIN = 8
"""Number of tokens kept free in a prompt's last message as a safety margin."""
SUFFIX_PART_KINDS: dict[str, MemoryKind] = {
    "perspective": "cross-debate memory",
    "reference_documents": "reference documents",
    "retrieved": "retrieved",
}
"""Kind of memory that each optional part of a prompt's last message shows. The blackboard is missing, because
it contains several kinds."""


def turn_suffix_block(
    ctx: PromptContext, parts: Mapping[str, str] | None = None, retrieved: tuple[str, ...] = ()
) -> truncation.Block:
    """Return a prompt's last message as a prompt block.

    The last message is called the turn suffix. The instruction is always included, and so is the contract,
    unless the prompt begins with it. The other parts get the remaining tokens, the most important first, and
    are truncated if they are too long.

    Args:
        ctx: input of the prompt.
        parts: texts of the optional parts, by the names in `PARTS`.
        retrieved: ids of the retrieved memories, for the receipt.
    """
    texts, budget = _bare_turn_suffix(ctx), ctx.config.memory.budget.turn_suffix
    part_texts = dict(parts or {})
    if "perspective" not in part_texts:  # long-form protocols pass it, because they need its length
        part_texts["perspective"] = cross_debate_text(ctx)
    for name in PARTS:
        if text := part_texts.get(name):
            left = budget - _turn_suffix_tokens(texts, ctx.count)
            quoted = templates.fenced_section(text, ctx.config.fence)
            texts[name] = (
                templates.truncate_fenced(quoted, left - 4, ctx.count)
                if left > MIN_OPTIONAL_PART_TOKENS
                else ""
            )
    message: WireMessage = {"role": "user", "content": TURN_SUFFIX.render(**texts)}
    full_message: WireMessage | None = None
    if texts["contract"] and texts["contract"] != (contract := contract_text(ctx.speaker)):
        full_message = {"role": "user", "content": TURN_SUFFIX.render(**{**texts, "contract": contract})}
    memory: dict[MemoryKind, int] = memory_tokens(texts["blackboard"], ctx.state, ctx.count)
    memory |= {kind: ctx.count(texts[name]) for name, kind in SUFFIX_PART_KINDS.items() if texts[name]}
    retrieved_text = templates.fenced_section(part_texts.get("retrieved", ""), ctx.config.fence)
    shown_ids = retrieved if texts["retrieved"] == retrieved_text else ()
    return truncation.Block(
        "turn_suffix",
        message,
        label="contract and instruction",
        whole=full_message,
        retrieved=shown_ids,
        memory=memory,
    )


def plain_turn_suffix(ctx: PromptContext, contract: str, instruction: str, query: str) -> truncation.Block:
    """Return a prompt's last message with the instruction and reference passages.

    The passages match `query` and come from the debater's reference documents. The message also contains
    `contract`, the text about the debater's persona.
    """
    reference_documents = references_text(ctx, query)
    quoted = templates.fenced_section(reference_documents, ctx.config.fence)
    parts = dict.fromkeys(PARTS, "") | {"reference_documents": quoted}
    message: WireMessage = {
        "role": "user",
        "content": TURN_SUFFIX.render(contract=contract, instruction=instruction, **parts),
    }
    memory: dict[MemoryKind, int] = (
        {"reference documents": ctx.count(reference_documents)} if reference_documents else {}
    )
    return truncation.Block("turn_suffix", message, label="contract and instruction", memory=memory)


def _bare_turn_suffix(ctx: PromptContext) -> dict[str, str]:
    """Return the texts of a prompt's last message without optional parts.

    The keys are the names of the parts, and the optional parts are empty. If the prompt begins with the
    contract, the turn suffix has none.
    """
    instruction, budget = f"{ctx.turn['instruction']}{_news_text(ctx)}", ctx.config.memory.budget.turn_suffix
    contract = ""
    if not ctx.persona_first:
        remaining = max(budget // 2, budget - ctx.count(instruction) - TURN_SUFFIX_MARGIN)
        contract = truncate_middle_cached(contract_text(ctx.speaker), remaining, ctx.count)
    return {"contract": contract, "instruction": instruction, **dict.fromkeys(PARTS, "")}


def _news_text(ctx: PromptContext) -> str:
    """Return a request to consider what people have written since the debater's last message.

    The request is `""` if nobody has written, or if the debater has no message yet.
    """
    entries = [ctx.state["full_transcript"][seq] for seq in ctx.state.get("user_provided", ())]
    news = [entry for entry in entries if traits_of(entry).user_input == "interjection"]
    if not news:
        return ""
    own_entries = (e for e in reversed(ctx.state["full_transcript"]) if e["speaker"] == ctx.speaker.id)
    last = next((entry["seq"] for entry in own_entries if traits_of(entry).argues), None)
    ids = [f"[{entry['id']}]" for entry in news if last is not None and entry["seq"] > last]
    return f"\n\n{NEWS.format(', '.join(ids[-NAMED_NEWS:]))}" if ids else ""


def _turn_suffix_tokens(texts: dict[str, str], count: TokenCounter) -> int:
    return message_tokens({"role": "user", "content": TURN_SUFFIX.render(**texts)}, count)


def turn_suffix_remaining(ctx: PromptContext, parts: Mapping[str, str] | None = None) -> int:
    """Return how many tokens are left in a prompt's last message."""
    quoted = {name: templates.fenced_section(text, ctx.config.fence) for name, text in (parts or {}).items()}
    texts = {**_bare_turn_suffix(ctx), **quoted}
    return ctx.config.memory.budget.turn_suffix - _turn_suffix_tokens(texts, ctx.count) - TURN_SUFFIX_MARGIN


def long_form_blocks(ctx: PromptContext) -> list[truncation.Block]:
    """Return all parts of the prompt for a turn in a long-form debate.

    The parts are the rules, the topic, the summary, the recent messages and the turn's instruction.
    """
    # Unused tokens, which differ in every turn, must not change the prefix that a provider caches.
    shared_prefix = [rules_block(ctx), topic_block(ctx.state["topic"], ctx.config, ctx.count)]
    return [
        *(replace(block, grows=False) for block in shared_prefix),
        *summary_blocks(ctx),
        *window_blocks(ctx),
        _long_form_suffix(ctx),
    ]


def _long_form_suffix(ctx: PromptContext) -> truncation.Block:
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
        memories = cross_debate_memory.retrieve_memories(
            ctx.state,
            ctx.memories,
            ctx.config.memory.retrieval,
            query,
            remaining=left - ctx.count(board),
            count=ctx.count,
            names=ctx.names,
            prompt_text=board,
            exclude={*ctx.background.ids, *ctx.state.get("pinned", ())},
        )
        if memories.text:
            return turn_suffix_block(
                ctx, {**parts, "blackboard": board, "retrieved": memories.text}, memories.ids
            )
    return turn_suffix_block(ctx, {**parts, "blackboard": blackboard_text(ctx, left)})


def blackboard_text(
    ctx: PromptContext, remaining: int, *, has_insights: bool = True, aspect: str = ""
) -> str:
    """Return the blackboard's claims and reflections for a debater's prompt, in at most `remaining` tokens.

    With `has_insights=False` reflections and crux cards are left out, because the prompt shows them
    elsewhere. `aspect` is the aspect under discussion, on which all debaters' positions are shown.
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
        has_insights=has_insights,
        alone=bool(ctx.turn["room"]),
    )


def cross_debate_text(ctx: PromptContext) -> str:
    """Return the debater's positions in earlier debates as text for a prompt."""
    earlier = (ctx.state.get("cross_debate_memory") or {}).get(ctx.speaker.id) or []
    remaining = ctx.config.memory.budget.turn_suffix // CROSS_DEBATE_DIVISOR
    return cross_debate_memory.earlier_positions_text(earlier, remaining, ctx.count)


def references_text(ctx: PromptContext, query: str) -> str:
    """Return passages from the debater's reference documents that match `query`."""
    remaining = ctx.config.memory.budget.turn_suffix // REFERENCE_DIVISOR
    return cross_debate_memory.reference_text(ctx.speaker.reference_documents, query, remaining, ctx.count)
