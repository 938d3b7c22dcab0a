"""Prompts for the phases of a dialogue."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from moot.calls.effects import WireMessage
from moot.claims.claim_fold import ledger_of
from moot.claims.crux_cards import claim_text
from moot.claims.ledger_rendering import (
    REMARKS,
    ROOMS,
    card_text,
    cards_of,
    memory_tokens,
    reflections_text,
    render_blackboard,
)
from moot.memory.cross_debate_memory import RetrievalQuery
from moot.prompts.fences import FENCE_TOKENS, fenced
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import Block, fill_remaining
from moot.protocols.prompt_context import (
    PromptContext,
    entry_block,
    fill_with_earlier,
    rules_block,
    tool_blocks,
    topic_block,
    user_provided_block,
    user_provided_entries,
)
from moot.protocols.turn_suffix import (
    blackboard_text,
    references_text,
    turn_suffix_block,
)
from moot.state.claim_events import OVERALL
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, entries_of, traits_of
from moot.text.tokens import prompt_tokens

ASPECTS = load_prompt_template("rules", "aspects", home=__package__)

SUBJECT, EXCHANGE, BACKGROUND, EARLIER = 0, 1, 2, 3
"""Priorities of the different kinds of prompt blocks in a dialogue. They contain the message to answer and
the debater's commitments, the exchange around that message, other context, and earlier messages that
match."""

BOARD_TOKENS = 600
"""Number of prompt tokens that are reserved for the blackboard. The debater's own commitments come first in
the blackboard."""
FRAME_TOKENS = 6
"""Number of tokens reserved for the message format around the blackboard's text."""


def dialogue_prompt_blocks(ctx: PromptContext) -> list[Block]:
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
    given = [
        user_provided_block(ctx, entry, message=EXCHANGE, document=BACKGROUND)
        for entry in user_provided_entries(ctx, "document", "answer")
    ]
    chunks = [*given, *material.get(phase, _room)(ctx)]
    said = [entry["content"] for entry in entries_of(ctx.turn["targets"], ctx.state["full_transcript"])]
    about = ctx.state["topic"] if aspect == OVERALL else aspect
    parts = {"reference_documents": references_text(ctx, "\n".join([about, ctx.turn["instruction"], *said]))}
    memory = ctx.state.get("protocol_state") or {}
    aspects, descriptions = memory.get("aspects") or [], memory.get("aspect_descriptions") or {}
    lines = [f"- {each}: {descriptions[each]}" if descriptions.get(each) else f"- {each}" for each in aspects]
    listed = ASPECTS.render(aspects="\n".join(lines)) if aspects else ""
    shared_prefix = [
        rules_block(ctx, extra=listed),
        topic_block(ctx.state["topic"], ctx.config, ctx.count),
    ]
    turn_suffix = turn_suffix_block(ctx, parts)
    if phase == "opening":
        return fill_remaining(shared_prefix, chunks, turn_suffix, ctx.token_budget, ctx.count)
    first = [block.message for block in (*shared_prefix, *chunks, turn_suffix) if block.priority <= EXCHANGE]
    left = ctx.token_budget - prompt_tokens(first, ctx.count)
    board = _board(ctx, max(left, min(BOARD_TOKENS, ctx.token_budget // 8)))
    return fill_with_earlier(
        ctx,
        shared_prefix,
        [*chunks[: len(given)], *board, *chunks[len(given) :]],
        turn_suffix,
        query=dialogue_query(ctx),
        make_block=lambda entry: entry_block(ctx, entry, EARLIER),
    )


def dialogue_query(ctx: PromptContext) -> RetrievalQuery:
    """Return a search query for earlier messages that are relevant to the current turn.

    In a crux room (side discussion), the query includes the disputed claim.
    """
    room = ctx.state.get("crux_rooms", {}).get(ctx.turn["room"])
    if not room:
        return ctx.query
    return replace(ctx.query, query=f"{ctx.query.query}\n{claim_text(ctx.state, room)}")


def _board(ctx: PromptContext, remaining: int) -> Iterator[Block]:
    """Yield a prompt block that shows the debate's claims in at most `remaining` tokens.

    A closing shows the ledger of all debaters alike. Crux rooms have separate blocks with crux cards and
    reflections.
    """
    most = remaining - FENCE_TOKENS - FRAME_TOKENS
    if ctx.step["phase"] == "closing":
        text = render_blackboard(
            ctx.state, "", max_tokens=most, count=ctx.count, names=ctx.names, found=False
        )
    else:
        text = blackboard_text(
            ctx, most, found=not ctx.turn["room"], aspect=ctx.step.get("aspect") or OVERALL
        )
    heading, _, board = text.partition("\n")
    yield from _text_block(
        ctx, heading.removeprefix("# "), board, SUBJECT, memory_tokens(text, ctx.state, ctx.count)
    )


def _openings(ctx: PromptContext) -> Iterator[Block]:
    """Yield prompt blocks for opening statements and people's interjections.

    Besides the speaker's own opening, only openings whose claims have not been extracted yet are shown.
    """
    own = (e for e in ctx.state["full_transcript"] if e["speaker"] == ctx.speaker.id and traits_of(e).argues)
    first = next(own, None)
    yield from _message_blocks(ctx, [*([first] if first else []), *_unread_openings(ctx)])


def _unread_openings(ctx: PromptContext) -> list[Entry]:
    """Return the opening statements whose claims have not been extracted yet.

    The list is empty unless the first aspect is under discussion.
    """
    if ctx.step["round"] != 2:
        return []
    read = ledger_of(ctx.state).read_through
    openings = (entry for entry in ctx.state["full_transcript"] if entry["phase"] == "opening")
    return [entry for entry in openings if entry["seq"] > read and traits_of(entry).argues]


def _exchange(ctx: PromptContext) -> Iterator[Block]:
    """Yield prompt blocks with the messages of the current round.

    Opening statements from which no claims have been extracted come first.

    The message to answer has the highest priority. Messages of this round's crux rooms follow; if tokens are
    short, only those of the speaker's own rooms stay.
    """
    transcript, round_no = ctx.state["full_transcript"], ctx.step["round"]
    own: list[str] = []
    others: list[str] = []
    for room in ctx.state.get("crux_rooms", {}).values():
        if room["round"] == round_no:
            heard = own if ctx.speaker.id in room["between"] else others
            heard += room["message_ids"]
    elsewhere = entries_of(others, transcript)
    openings = _unread_openings(ctx)
    recent = recent_exchange(transcript, round_no)
    speeches = [*openings, *recent, *entries_of(own, transcript), *elsewhere]
    yield from _message_blocks(ctx, speeches, ctx.turn["targets"], [*openings, *elsewhere])


def recent_exchange(transcript: Sequence[Entry], round_no: int) -> list[Entry]:
    """Return the debaters' messages from a round, oldest first, without those in side discussions."""
    said: list[Entry] = []
    for entry in reversed(transcript):
        if entry["round"] != round_no:
            break
        kind = traits_of(entry)
        if not (entry["room"] or kind.tool or kind.user_input):
            said.append(entry)
    return said[::-1]


def _room(ctx: PromptContext) -> Iterator[Block]:
    """Yield the prompt blocks for a turn in a crux room (side discussion)."""
    room = ctx.state["crux_rooms"][ctx.turn["room"]]
    for card in cards_of(ctx.state):
        if set(card["sides"]) & set(room["between"]):
            text = card_text(card, ctx.names)
            yield from _text_block(ctx, "Result of an earlier side room", text, BACKGROUND, "cruxes")
    yield from _text_block(ctx, REMARKS, reflections_text(ctx.state), BACKGROUND, "reflections")
    entries = entries_of([*room["trigger"], *room["message_ids"]], ctx.state["full_transcript"])
    yield from _message_blocks(ctx, entries, room["message_ids"])


def _message_blocks(
    ctx: PromptContext,
    speeches: Sequence[Entry] = (),
    subjects: Sequence[str] = (),
    background: Sequence[Entry] = (),
) -> Iterator[Block]:
    """Yield prompt blocks with debaters' messages, their tool results, and people's interjections.

    `subjects` are ids of messages with the highest priority.
    """
    shown = {entry["seq"]: entry for entry in (*speeches, *user_provided_entries(ctx, "interjection"))}
    ranks = {entry["id"]: BACKGROUND for entry in background} | dict.fromkeys(subjects, SUBJECT)
    for _, entry in sorted(shown.items()):
        if traits_of(entry).user_input == "interjection" and entry["id"] not in subjects:
            yield user_provided_block(ctx, entry, message=EXCHANGE, document=BACKGROUND)
            continue
        rank = ranks.get(entry["id"], EXCHANGE)
        yield from tool_blocks(ctx, entry, rank)
        yield entry_block(ctx, entry, rank)


def _before_closing(ctx: PromptContext) -> Iterator[Block]:
    """Yield the prompt blocks for a closing statement."""
    cards = "\n\n".join(card_text(card, ctx.names) for card in cards_of(ctx.state))
    yield from _text_block(ctx, ROOMS, cards, SUBJECT, "cruxes")
    yield from _text_block(ctx, REMARKS, reflections_text(ctx.state), EXCHANGE, "reflections")
    transcript, before = ctx.state["full_transcript"], ctx.step["round"] - 1
    own = [e for e in transcript if e["speaker"] == ctx.speaker.id and traits_of(e).argues]
    rooms = {entry["room"] for entry in own} - {""}
    confided = [e for e in transcript if e["room"] in rooms and traits_of(e).argues]
    speeches = [*own[:1], *confided, *recent_exchange(transcript, before)]
    yield from _message_blocks(ctx, speeches, [entry["id"] for entry in own[:1]], confided)


def _text_block(
    ctx: PromptContext, title: str, text: str, rank: int, held: MemoryKind | Mapping[MemoryKind, int]
) -> Iterator[Block]:
    if text:
        message: WireMessage = {"role": "user", "content": fenced(text, ctx.config.fence, f"# {title}")}
        memory = {held: ctx.count(text)} if isinstance(held, str) else held
        yield Block("blackboard", message, rank, label=title.lower(), memory=memory)
