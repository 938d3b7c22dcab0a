"""Prompts of a dialogue: the blocks of a turn's prompt, and the query for earlier messages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from moot.calls.model_calls import WireMessage
from moot.claims import blackboard, ledger_rendering
from moot.claims.crux_cards import claim_text
from moot.claims.ledger_from_events import ledger_of
from moot.memory.cross_debate_memory import RetrievalQuery
from moot.prompts.templates import FENCE_TOKENS, fenced, load_prompt_template
from moot.prompts.truncation import Block, truncate_by_priority
from moot.protocols import prompt_context
from moot.protocols.suffix import blackboard_text, turn_suffix_block
from moot.state.claim_events import OVERALL
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, entries_of, traits_of
from moot.text.tokens import prompt_tokens

ASPECTS = load_prompt_template("rules", "aspects", home=__package__)

SUBJECT = 0
"""Priority of the message to answer and of the debater's commitments. 0 is the highest priority."""
EXCHANGE = 1
"""Priority of the messages before and after the message to answer."""
BACKGROUND = 2
"""Priority of other context in a dialogue prompt."""
EARLIER = 3
"""Priority of earlier messages that match the search query."""

BOARD_TOKENS = 600
"""Number of prompt tokens that are reserved for the blackboard, which lists the debate's claims. The
debater's own commitments come first in the blackboard."""
BOARD_FRAME_TOKENS = 6
"""Number of tokens reserved for the message format around the blackboard's text."""


def dialogue_prompt_blocks(ctx: prompt_context.PromptContext) -> list[Block]:
    """Return the blocks of a dialogue prompt, such as the rules, aspects, messages and instruction.

    Documents and answers of people come before the messages of the phase. Interjections appear among these
    messages. Earlier messages that match fill the rest of the budget, except in an opening, which shows none.
    """
    material = {
        "opening": _message_blocks,
        "take": _openings,
        "respond": _exchange,
        "reply": _exchange,
        "closing": _before_closing,
    }
    phase, aspect = ctx.step["phase"], ctx.step.get("aspect") or OVERALL
    user_blocks = [
        prompt_context.user_provided_block(ctx, entry, message=EXCHANGE, document=BACKGROUND)
        for entry in prompt_context.user_provided_entries(ctx, "document", "answer")
    ]
    chunks = [*user_blocks, *material.get(phase, _room)(ctx)]
    target_texts = [
        entry["content"] for entry in entries_of(ctx.turn["targets"], ctx.state["full_transcript"])
    ]
    topic_or_aspect = ctx.state["topic"] if aspect == OVERALL else aspect
    memory = ctx.state.get("protocol_state") or {}
    aspects, descriptions = memory.get("aspects") or [], memory.get("aspect_descriptions") or {}
    lines = [f"- {each}: {descriptions[each]}" if descriptions.get(each) else f"- {each}" for each in aspects]
    aspects_text = ASPECTS.render(aspects="\n".join(lines)) if aspects else ""
    shared_prefix = [
        prompt_context.rules_block(ctx, extra=aspects_text),
        prompt_context.topic_block(ctx.state["topic"], ctx.config, ctx.count),
    ]
    query = "\n".join([topic_or_aspect, ctx.turn["instruction"], *target_texts])
    turn_suffix = turn_suffix_block(ctx, query=query)
    if phase == "opening":
        return truncate_by_priority(shared_prefix, chunks, turn_suffix, ctx.token_budget, ctx.count)
    priority_messages = [
        block.message for block in (*shared_prefix, *chunks, turn_suffix) if block.priority <= EXCHANGE
    ]
    left = ctx.token_budget - prompt_tokens(priority_messages, ctx.count)
    board = _board(ctx, max(left, min(BOARD_TOKENS, ctx.token_budget // 8)))
    return prompt_context.fill_with_earlier(
        ctx,
        shared_prefix,
        [*chunks[: len(user_blocks)], *board, *chunks[len(user_blocks) :]],
        turn_suffix,
        query=dialogue_query(ctx),
        make_block=lambda entry: prompt_context.entry_block(ctx, entry, EARLIER),
    )


def dialogue_query(ctx: prompt_context.PromptContext) -> RetrievalQuery:
    """Return the turn's query, in a crux room with the disputed claim."""
    room = ctx.state.get("crux_rooms", {}).get(ctx.turn["room"])
    if not room:
        return ctx.query
    return replace(ctx.query, query=f"{ctx.query.query}\n{claim_text(ctx.state, room)}")


def _board(ctx: prompt_context.PromptContext, remaining: int) -> Iterator[Block]:
    """Yield a prompt block that shows the debate's claims in at most `remaining` tokens.

    A closing shows the ledger of all debaters alike. Crux rooms have separate blocks with crux cards and
    reflections.
    """
    max_tokens = remaining - FENCE_TOKENS - BOARD_FRAME_TOKENS
    if ctx.step["phase"] == "closing":
        text = blackboard.render_blackboard(
            ctx.state,
            "",
            max_tokens=max_tokens,
            count=ctx.count,
            names=ctx.names,
            has_insights=False,
            evidence_of=ctx.speaker.id,
        )
    else:
        text = blackboard_text(
            ctx, max_tokens, has_insights=not ctx.turn["room"], aspect=ctx.step.get("aspect") or OVERALL
        )
    heading, _, board = text.partition("\n")
    yield from _text_block(
        ctx,
        heading.removeprefix("# "),
        board,
        SUBJECT,
        blackboard.memory_tokens(text, ctx.state, ctx.count),
    )


def _openings(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield the speaker's own opening, others with claims not extracted yet, and interjections."""
    own_entries = (
        e for e in ctx.state["full_transcript"] if e["speaker"] == ctx.speaker.id and traits_of(e).argues
    )
    own_opening = next(own_entries, None)
    yield from _message_blocks(ctx, [*([own_opening] if own_opening else []), *_unread_openings(ctx)])


def _unread_openings(ctx: prompt_context.PromptContext) -> list[Entry]:
    """Return openings without extracted claims while the first aspect is under discussion."""
    if ctx.step["round"] != 2:
        return []
    read_through = ledger_of(ctx.state).read_through
    openings = (entry for entry in ctx.state["full_transcript"] if entry["phase"] == "opening")
    return [entry for entry in openings if entry["seq"] > read_through and traits_of(entry).argues]


def _exchange(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield prompt blocks with the messages of the current round.

    Opening statements from which no claims have been extracted come first.

    The message to answer has the highest priority. Messages of this round's crux rooms follow; if tokens are
    short, only those of the speaker's own rooms stay.
    """
    transcript, round_no = ctx.state["full_transcript"], ctx.step["round"]
    own_ids: list[str] = []
    other_ids: list[str] = []
    for room in ctx.state.get("crux_rooms", {}).values():
        if room["round"] == round_no:
            ids = own_ids if ctx.speaker.id in room["between"] else other_ids
            ids += room["message_ids"]
    other_entries = entries_of(other_ids, transcript)
    openings = _unread_openings(ctx)
    recent = recent_exchange(transcript, round_no)
    speeches = [*openings, *recent, *entries_of(own_ids, transcript), *other_entries]
    yield from _message_blocks(ctx, speeches, ctx.turn["targets"], [*openings, *other_entries])


def recent_exchange(transcript: Sequence[Entry], round_no: int) -> list[Entry]:
    """Return the debaters' messages from a round, oldest first, without those in side discussions."""
    messages: list[Entry] = []
    for entry in reversed(transcript):
        if entry["round"] != round_no:
            break
        traits = traits_of(entry)
        if not (entry["room"] or traits.tool or traits.user_input):
            messages.append(entry)
    return messages[::-1]


def _room(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield the prompt blocks for a turn in a crux room, which is a side discussion of two debaters."""
    room = ctx.state["crux_rooms"][ctx.turn["room"]]
    for card in ledger_rendering.cards_of(ctx.state):
        if set(card["sides"]) & set(room["between"]):
            text = ledger_rendering.card_text(card, ctx.names)
            yield from _text_block(ctx, "Result of an earlier side room", text, BACKGROUND, "cruxes")
    yield from _text_block(
        ctx, blackboard.REMARKS, ledger_rendering.reflections_text(ctx.state), BACKGROUND, "reflections"
    )
    entries = entries_of([*room["trigger"], *room["message_ids"]], ctx.state["full_transcript"])
    yield from _message_blocks(ctx, entries, room["message_ids"])


def _message_blocks(
    ctx: prompt_context.PromptContext,
    speeches: Sequence[Entry] = (),
    subjects: Sequence[str] = (),
    background: Sequence[Entry] = (),
) -> Iterator[Block]:
    """Yield messages, tool results and interjections. `subjects` have the highest priority."""
    entries = {
        entry["seq"]: entry
        for entry in (*speeches, *prompt_context.user_provided_entries(ctx, "interjection"))
    }
    ranks = {entry["id"]: BACKGROUND for entry in background} | dict.fromkeys(subjects, SUBJECT)
    for _, entry in sorted(entries.items()):
        if traits_of(entry).user_input == "interjection" and entry["id"] not in subjects:
            yield prompt_context.user_provided_block(ctx, entry, message=EXCHANGE, document=BACKGROUND)
            continue
        rank = ranks.get(entry["id"], EXCHANGE)
        yield from prompt_context.tool_blocks(ctx, entry, rank)
        yield prompt_context.entry_block(ctx, entry, rank)


def _before_closing(ctx: prompt_context.PromptContext) -> Iterator[Block]:
    """Yield the prompt blocks for a closing statement."""
    cards = "\n\n".join(
        ledger_rendering.card_text(card, ctx.names) for card in ledger_rendering.cards_of(ctx.state)
    )
    yield from _text_block(ctx, blackboard.ROOMS, cards, SUBJECT, "cruxes")
    yield from _text_block(
        ctx, blackboard.REMARKS, ledger_rendering.reflections_text(ctx.state), EXCHANGE, "reflections"
    )
    transcript, previous_round = ctx.state["full_transcript"], ctx.step["round"] - 1
    own_entries = [e for e in transcript if e["speaker"] == ctx.speaker.id and traits_of(e).argues]
    rooms = {entry["room"] for entry in own_entries} - {""}
    room_entries = [e for e in transcript if e["room"] in rooms and traits_of(e).argues]
    speeches = [*own_entries[:1], *room_entries, *recent_exchange(transcript, previous_round)]
    yield from _message_blocks(ctx, speeches, [entry["id"] for entry in own_entries[:1]], room_entries)


def _text_block(
    ctx: prompt_context.PromptContext,
    title: str,
    text: str,
    rank: int,
    memory: MemoryKind | Mapping[MemoryKind, int],
) -> Iterator[Block]:
    if text:
        message: WireMessage = {"role": "user", "content": fenced(text, ctx.config.fence, f"# {title}")}
        tokens_by_kind = {memory: ctx.count(text)} if isinstance(memory, str) else memory
        yield Block("blackboard", message, rank, label=title.lower(), memory=tokens_by_kind)
