"""Turn suffix: the last message of a prompt, which differs between debaters.

It has the debater's contract, then sections of memory, then the instruction. `SECTIONS` has a row for each
section. A new row appears in the prompts of every protocol.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moot.calls.model_calls import WireMessage
from moot.claims.blackboard import memory_tokens, render_blackboard
from moot.memory import cross_debate_memory
from moot.memory.window import window_start
from moot.prompts import templates
from moot.prompts.truncation import Block
from moot.protocols.prompt_context import PromptContext, contract_text
from moot.state.conversation import MemoryKind
from moot.state.entries import traits_of
from moot.text.tokens import message_tokens, truncate_middle_cached

TURN_SUFFIX = templates.load_prompt_template("turn_suffix", "contract", "sections", "instruction")
NEWS = "A person has written since your last message: {}. Say first what that changes."
"""Text that is added to a debater's instruction if a person has written since the debater's last message."""
NAMED_NEWS = 3
"""Maximum number of ids that an instruction lists for people's new messages. The newest messages are
listed."""
MIN_SECTION_TOKENS = 16
"""Number of remaining tokens at or below which a section is left out."""
MIN_BLACKBOARD_TOKENS = 40
"""Number of remaining tokens at or below which a prompt omits the blackboard."""
TURN_SUFFIX_MARGIN = 8
"""Number of tokens kept free in a turn suffix as a safety margin."""
QUOTE_MARGIN = 4
"""Number of tokens kept free for the blank lines around a section."""


class SectionText(NamedTuple):
    """Text of a section for one prompt."""

    text: str = ""
    """Text with a heading in its first line, or `""` to leave the section out."""
    ids: tuple[str, ...] = ()
    """Ids of the earlier messages and memories that retrieval found and that the text shows."""


class SectionRequest(NamedTuple):
    """Values from which a section is rendered, beside the input of the prompt."""

    query: str | None
    """Text that reference passages match, or `None` for the turn's query for earlier messages."""
    max_tokens: int
    """Maximum number of tokens of the text."""
    before: str
    """Texts of the sections that were rendered before this one."""


@dataclass(frozen=True)
class SuffixSection:
    """Row of the table of sections."""

    name: str
    render: Callable[[PromptContext, SectionRequest], SectionText]
    order: int
    """Place in the message. The lowest number comes first."""
    share: float
    """Maximum share of the budget `memory.budget.turn_suffix`. With `shares_rest`, the weight with which the
    section shares what the other sections leave."""
    shares_rest: bool = False
    """True if the section gets a share of the remaining tokens. An empty section leaves its share to the
    others."""
    kind: MemoryKind | None = None
    """Kind of memory that the section shows, or `None` if it shows none. The parts of a `ledger` are counted
    by kind."""


def _cross_debate_section(ctx: PromptContext, request: SectionRequest) -> SectionText:
    earlier = (ctx.state.get("cross_debate_memory") or {}).get(ctx.speaker.id) or []
    return SectionText(cross_debate_memory.earlier_positions_text(earlier, request.max_tokens, ctx.count))


def _references_section(ctx: PromptContext, request: SectionRequest) -> SectionText:
    documents = ctx.speaker.reference_documents
    if not documents:
        return SectionText()
    query = f"{ctx.query.query}\n{ctx.query.answering}" if request.query is None else request.query
    return SectionText(cross_debate_memory.reference_text(documents, query, request.max_tokens, ctx.count))


def _retrieved_section(ctx: PromptContext, request: SectionRequest) -> SectionText:
    if ctx.memories is None or window_start(ctx.state) <= 1:
        return SectionText()
    memories = cross_debate_memory.retrieve_memories(
        ctx.state,
        ctx.memories,
        ctx.config.memory.retrieval,
        ctx.query,
        remaining=request.max_tokens,
        count=ctx.count,
        names=ctx.names,
        prompt_text=request.before,
        exclude={*ctx.background.ids, *ctx.state.get("pinned", ())},
    )
    return SectionText(memories.text, memories.ids)


SECTIONS: tuple[SuffixSection, ...] = (
    SuffixSection("perspective", _cross_debate_section, 1, 1 / 3, kind="cross-debate memory"),
    SuffixSection("reference_documents", _references_section, 3, 1 / 3, kind="reference documents"),
    SuffixSection(
        "blackboard",
        lambda ctx, request: SectionText(blackboard_text(ctx, request.max_tokens)),
        2,
        0.55,  # more than `retrieved`, because it lists the unanswered challenges
        shares_rest=True,
        kind="ledger",
    ),
    SuffixSection("retrieved", _retrieved_section, 4, 0.45, shares_rest=True, kind="retrieved"),
)
"""Sections of the turn suffix, in the order in which they are rendered."""
SHOWN_ELSEWHERE = ("blackboard", "retrieved")
"""Sections that a prompt of short context leaves out, because blocks of its own show this memory."""
SELF_CONTAINED = ("perspective", *SHOWN_ELSEWHERE)
"""Sections that a prompt leaves out if its answer must not depend on other debates either."""


def turn_suffix_block(
    ctx: PromptContext,
    *,
    contract: str | None = None,
    instruction: str | None = None,
    query: str | None = None,
    hidden: Collection[str] = SHOWN_ELSEWHERE,
) -> Block:
    """Return a prompt's last message, the turn suffix, as a prompt block.

    It uses at most `memory.budget.turn_suffix` tokens. The instruction is always whole. The contract and the
    sections are cut if they exceed the rest. Unused tokens of the prompt restore them.

    Args:
        ctx: input of the prompt.
        contract: text about the debater's persona. `None`: the default one, or none if the prompt begins with
            the persona.
        instruction: text that replaces the turn's instruction.
        query: text that reference passages match. `None`: the turn's query for earlier messages.
        hidden: names of the `SECTIONS` that this prompt does not show.
    """
    budget, count = ctx.config.memory.budget.turn_suffix, ctx.count
    if instruction is None:
        instruction = f"{ctx.turn['instruction']}{_news_text(ctx)}"
    if contract is None:
        contract = "" if ctx.persona_first else contract_text(ctx.speaker)
    contract, instruction = (
        templates.break_fence(text, ctx.config.fence) for text in (contract, instruction)
    )
    remaining = max(budget // 2, budget - count(instruction) - TURN_SUFFIX_MARGIN)
    short_contract = truncate_middle_cached(contract, remaining, count)

    def message(contract: str, texts: dict[SuffixSection, str]) -> WireMessage:
        sections = "\n\n".join(texts[row] for row in sorted(texts, key=lambda row: row.order) if texts[row])
        content = TURN_SUFFIX.render(contract=contract, sections=sections, instruction=instruction)
        return {"role": "user", "content": content}

    def left(texts: dict[SuffixSection, str]) -> int:
        return budget - message_tokens(message(short_contract, texts), count)

    rows = [row for row in SECTIONS if row.name not in hidden]
    fixed = [row for row in rows if not row.shares_rest]
    limits = {row: int(budget * row.share) for row in fixed}
    rendered = {row: row.render(ctx, SectionRequest(query, limits[row], "")) for row in fixed}
    quoted = {row: templates.fenced_section(each.text, ctx.config.fence) for row, each in rendered.items()}
    rest = _render_rest(
        ctx, [row for row in rows if row.shares_rest], query, left(quoted) - TURN_SUFFIX_MARGIN
    )
    rendered |= rest
    quoted |= {row: templates.fenced_section(each.text, ctx.config.fence) for row, each in rest.items()}
    cut: dict[SuffixSection, str] = {}
    for row, text in quoted.items():
        tokens = left(cut)
        cut[row] = (
            templates.truncate_fenced(text, tokens - QUOTE_MARGIN, count)
            if text and tokens > MIN_SECTION_TOKENS
            else ""
        )
    full = {**cut, **{row: quoted[row] for row in fixed}}
    is_cut = short_contract != contract or cut != quoted

    def restored(max_tokens: int) -> WireMessage:
        """Restore first the contract, then the sections with a fixed share, in at most `max_tokens`."""
        spare = max_tokens - message_tokens(message(short_contract, cut), count) - TURN_SUFFIX_MARGIN
        longer = truncate_middle_cached(contract, max(0, count(short_contract) + spare), count)
        texts = dict(cut)
        for row in fixed if longer == contract else ():
            left = max_tokens - message_tokens(message(contract, {**texts, row: ""}), count) - QUOTE_MARGIN
            texts[row] = templates.truncate_fenced(full[row], max(count(texts[row]), left), count)
        return message(longer, texts)

    memory: dict[MemoryKind, int] = {}
    for row, text in cut.items():
        if text and row.kind:
            is_ledger = row.kind == "ledger"
            memory |= memory_tokens(text, ctx.state, count) if is_ledger else {row.kind: count(text)}
    return Block(
        "turn_suffix",
        message(short_contract, cut),
        label="contract and instruction",
        whole=message(contract, full) if is_cut else None,
        cut=restored,
        retrieved=tuple(key for row in rows if cut[row] == quoted[row] for key in rendered[row].ids),
        memory=memory,
    )


def _render_rest(
    ctx: PromptContext, rows: Sequence[SuffixSection], query: str | None, remaining: int
) -> dict[SuffixSection, SectionText]:
    """Render the sections that share `remaining` tokens. What one leaves flows to the next ones."""
    rendered: dict[SuffixSection, SectionText] = {}
    left = remaining
    for place, row in enumerate(rows):
        share = row.share / sum(each.share for each in rows[place:])
        before = "\n".join(each.text for each in rendered.values())
        rendered[row] = row.render(ctx, SectionRequest(query, int(left * share), before))
        left -= ctx.count(rendered[row].text)
    if len(rows) > 1 and not rendered[rows[-1]].text:
        return {**_render_rest(ctx, rows[:-1], query, remaining), rows[-1]: SectionText()}
    return rendered


def _news_text(ctx: PromptContext) -> str:
    """Return a request to consider people's messages since the debater's last one, or `""`."""
    entries = [ctx.state["full_transcript"][seq] for seq in ctx.state.get("user_provided", ())]
    news = [entry for entry in entries if traits_of(entry).user_input == "interjection"]
    if not news:
        return ""
    own_entries = (e for e in reversed(ctx.state["full_transcript"]) if e["speaker"] == ctx.speaker.id)
    last = next((entry["seq"] for entry in own_entries if traits_of(entry).argues), None)
    ids = [f"[{entry['id']}]" for entry in news if last is not None and entry["seq"] > last]
    return f"\n\n{NEWS.format(', '.join(ids[-NAMED_NEWS:]))}" if ids else ""


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
