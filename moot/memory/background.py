"""Background of a debate, which consists of documents, early messages and pinned messages.

Topic, background and pinned messages are shown whole if together they fit half of the prompt's budget. If
they do not fit, every prompt shows Moot's notes, such as the table of facts, and the same passages of the
rest, those that match the topic, so that a provider's prefix cache applies to them. Each prompt then adds the
passages that match its own subject, and uses its unused tokens for more of them.

People's messages to a running debate join the background of its turns when they leave the window of recent
messages. If only they do not fit, the rest of the background stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from moot.calls.model_calls import WireMessage
from moot.memory.passages import Place, Splitting, by_message, key_of, place_of
from moot.prompts import truncation
from moot.prompts.debate_context import DebateContext
from moot.state.entries import Entry, is_program_note, memoize_by_identity, traits_of
from moot.text.tokens import TRUNCATION_MARK, TokenCounter, message_tokens

if TYPE_CHECKING:
    from moot.retrieval import EvidenceIndex

BACKGROUND_SHARE = 0.5
"""Maximum share of the prompt budget for showing the background whole. The share covers the topic, the
background and the pinned messages. If the background is too long, the passages that every prompt shows may
use the same share together with the topic and the pinned messages."""
PASSAGES_SHARE = 0.07
"""Share of the prompt budget for background passages that match the current subject. A provider caches none
of them: with a document of 10,000 tokens, 80 % of the tokens are cached, and 75 % with a share of a tenth."""
PIN_SHARE = 0.25
"""Maximum share of `memory.budget.messages` for pinned messages. It applies if the background is too long to
be shown whole. The rest is left for the window of recent messages."""
PASSAGE_TOKENS = 120
"""Approximate number of tokens in a background passage. A shorter message is one passage."""
MIN_BACKGROUND_TOKENS = 48
"""Minimum number of unused prompt tokens needed to add more background passages."""

MORE = "(more of it)"
"""Heading of further passages of a message."""

_SPLITTING = Splitting(PASSAGE_TOKENS, PASSAGE_TOKENS)

Render = Callable[[Entry], WireMessage]
"""Function that converts a transcript entry to a chat message."""


def background_entries(debate: DebateContext) -> list[Entry]:
    """Return the debate's documents and all messages before the debaters' first turn."""
    state, names, transcript = debate.state, debate.names, debate.state["full_transcript"]
    first_seq = next(
        (entry["seq"] for entry in transcript if entry["speaker"] in names and traits_of(entry).ends_turn),
        len(transcript),
    )
    user_entries = (transcript[seq] for seq in state.get("user_provided") or () if seq >= first_seq)
    early_entries = (
        entry
        for entry in transcript[:first_seq]
        if traits_of(entry).in_prompts and not traits_of(entry).automatic
    )
    return [*early_entries, *(entry for entry in user_entries if traits_of(entry).user_input == "document")]


@dataclass(frozen=True)
class Background:
    """Background and pinned messages of a debate, formatted for prompts."""

    blocks: tuple[truncation.Block, ...]
    """Prompt blocks with the background and pinned messages. They are the same in every prompt."""
    tokens: int
    """Number of tokens in the prompt blocks of background and pinned messages."""
    ids: frozenset[str]
    """Ids of the background messages."""
    whole_ids: frozenset[str]
    """Ids of the background messages that every prompt shows whole."""
    _rest: _Passages | None
    """Background passages that did not fit into `blocks`. The value is `None` if `blocks` contains the
    whole background."""
    _render: Render
    _count: TokenCounter

    @property
    def shown_blocks(self) -> list[truncation.Block]:
        """Return the blocks without those of messages from which every prompt shows no passage."""
        return [block for block in self.blocks if block.priority != truncation.OMITTED_PRIORITY]

    @property
    def is_whole(self) -> bool:
        """Return True if the prompt blocks show the entire background of the debate."""
        return self._rest is None

    def passages(self, query: str, remaining: int, whole_ids: Collection[str] = ()) -> list[truncation.Block]:
        """Return further passages that best match, of all messages but `whole_ids`."""
        if self._rest is None or remaining < MIN_BACKGROUND_TOKENS:
            return []
        find, count = partial(_Passages.blocks, render=self._render, count=self._count), self._count
        blocks, rest = find(self._rest, query, remaining, heading=MORE, skip=whole_ids)
        left = remaining - background_tokens(blocks, count)
        if left >= MIN_BACKGROUND_TOKENS:  # the next passage is cut to what is left
            more, _ = find(rest, query, left + 2 * PASSAGE_TOKENS, heading=MORE, skip=whole_ids)
            blocks += [
                replace(each, message=truncation.cut_message(each.message, left, count)) for each in more[:1]
            ]
        return blocks

    def texts(self, query: str, remaining: int) -> list[str]:
        """Return background texts of at most `remaining` tokens, including passages that match `query`."""
        blocks = truncation.truncate_evenly(
            [block for block in self.shown_blocks if block.section == "background"], remaining, self._count
        )
        background_blocks = [block for block in blocks if block.priority == truncation.OPTIONAL]
        spare_tokens = remaining - background_tokens(background_blocks, self._count)
        return [
            block.message["content"] for block in (*background_blocks, *self.passages(query, spare_tokens))
        ]


def select_background(
    debate: DebateContext, render: Render | None = None, *, start: int = 0, brief: bool = False
) -> Background:
    """Select the background and the pinned messages that a debate's prompts show.

    `render` makes the chat message of an entry. People's messages before the window, which begins at `start`,
    are included; 0 for prompts that show them in their place. `brief` shows documents only in the tokens that
    are left, by `Background.passages`.
    """
    state, config, count, budget = debate.state, debate.config, debate.count, debate.config.memory.budget
    render_entry = render or (lambda entry: truncation.render_entry(entry, debate.names, config.fence))
    pinned = truncation.pinned_entries(state)
    pinned_ids = {entry["id"] for entry in pinned}
    entries = [entry for entry in background_entries(debate) if entry["id"] not in pinned_ids]
    known_ids = pinned_ids | {entry["id"] for entry in entries}
    user_seqs = [seq for seq in state.get("user_provided") or () if 0 < seq < start]  # before the window
    departed = [state["full_transcript"][seq] for seq in user_seqs]
    remarks = [each for each in departed if traits_of(each).is_message and each["id"] not in known_ids]
    ids = frozenset(entry["id"] for entry in (*entries, *remarks))
    pins = [
        truncation.Block(
            "pinned",
            render_entry(entry),
            truncation.OPTIONAL,
            (entry["id"],),
            label=f"pinned {entry['id']}",
            memory={"pinned": entry["tokens"]},
        )
        for entry in pinned
    ]
    topic_tokens = message_tokens(
        truncation.problem_block(state["topic"], budget, config.fence, count).message, count
    )
    limit = int(budget.total * BACKGROUND_SHARE) - topic_tokens

    def whole_blocks(candidates: Sequence[Entry]) -> list[truncation.Block] | None:
        """Show all whole, or return `None` if they, topic and pins are too long."""
        # The stored counts are without labels, so a background that is far too long is not rendered whole.
        if sum(entry["tokens"] for entry in candidates) > limit:
            return None
        blocks = [_background_block(entry, render_entry(entry)) for entry in candidates]
        return blocks if background_tokens([*blocks, *pins], count) <= limit else None

    def hidden_blocks(hidden_entries: Iterable[Entry]) -> list[truncation.Block]:
        """Return the blocks that name entries of which no passage is shown by default."""
        return [
            replace(_background_block(entry, render_entry(entry)), priority=truncation.OMITTED_PRIORITY)
            for entry in hidden_entries
        ]

    def background(
        blocks: Sequence[truncation.Block], whole_entries: Sequence[Entry], rest: _Passages | None
    ) -> Background:
        tokens = background_tokens(blocks, count)
        whole_ids = frozenset(entry["id"] for entry in whole_entries)
        return Background(tuple(blocks), tokens, ids, whole_ids, rest, render_entry, count)

    everything = sorted([*entries, *remarks], key=lambda entry: entry["seq"])
    notes = [entry for entry in everything if is_program_note(entry)]
    provided = [each for each in everything if traits_of(each).user_input == "document"] if brief else []
    documents = [entry for entry in provided if entry not in notes]
    shown_whole = [entry for entry in everything if entry not in documents]
    if (blocks := whole_blocks(shown_whole)) is not None:
        rest = _passages_of(*documents) if documents else None
        return background([*blocks, *hidden_blocks(documents), *pins], shown_whole, rest)
    if remarks and (blocks := whole_blocks(entries)) is not None:
        spare_tokens = limit - background_tokens([*blocks, *pins], count)
        parts, rest = _passages_of(*remarks).blocks(state["topic"], spare_tokens, render_entry, count)
        return background([*blocks, *parts, *pins], entries, rest)
    pins = truncation.truncate_evenly(pins, int(budget.messages * PIN_SHARE), count)
    limit = max(int(budget.total * PASSAGES_SHARE), limit - background_tokens(pins, count))
    # Moot's own notes, such as the table of facts, stand in place of the parts that do not fit.
    note_blocks = [_background_block(entry, render_entry(entry)) for entry in notes]
    if (note_tokens := background_tokens(note_blocks, count)) > limit // 2:
        notes, note_blocks, note_tokens = [], [], 0
    others = [entry for entry in everything if entry not in notes]
    if not others:
        return background([*note_blocks, *pins], notes, None)
    parts, rest = _passages_of(*others).blocks(state["topic"], limit - note_tokens, render_entry, count)
    shown_ids = {key for block in parts for key in block.ids}
    parts += hidden_blocks(entry for entry in others if entry["id"] not in shown_ids)
    return background([*note_blocks, *parts, *pins], notes, rest)


def background_tokens(blocks: Sequence[truncation.Block], count: TokenCounter) -> int:
    """Return the number of tokens in the prompt blocks that show background or pinned messages."""
    return sum(
        message_tokens(block.message, count) for block in blocks if block.priority == truncation.OPTIONAL
    )


def with_background(
    blocks: Sequence[truncation.Block], background: Sequence[truncation.Block]
) -> list[truncation.Block]:
    """Insert background and pinned messages after the prompt's shared prefix, without duplicates.

    A block that is always shown keeps its place. Any other copy of a pinned message is removed.
    """
    fixed_ids = {key for block in blocks if block.priority == 0 and block.ids for key in block.ids}
    background_blocks = [block for block in background if not fixed_ids.issuperset(block.ids)]
    ids = {block.ids for block in background_blocks}
    rest = [block for block in blocks if block.ids not in ids]
    prefix_length = next(
        (index for index, block in enumerate(rest) if block.section not in ("system", "topic")), len(rest)
    )
    return [*rest[:prefix_length], *background_blocks, *rest[prefix_length:]]


def _background_block(
    entry: Entry, message: WireMessage, full_message: WireMessage | None = None
) -> truncation.Block:
    return truncation.Block(
        "background",
        message,
        truncation.OPTIONAL,
        (entry["id"],),
        label=f"background {entry['id']}",
        whole=full_message,
        growth="whole",
    )


@dataclass(frozen=True)
class _Passages:
    """Searchable background passages, with a record of those that a prompt shows."""

    entries: tuple[Entry, ...]
    search: EvidenceIndex
    shown_keys: frozenset[int] = frozenset()
    """Keys of the passages that are already in the prompt."""

    def blocks(
        self,
        query: str,
        remaining: int,
        render: Render,
        count: TokenCounter,
        heading: str = "",
        skip: Collection[str] = (),
    ) -> tuple[list[truncation.Block], _Passages]:
        """Return prompt blocks with the passages that best match `query`.

        The second value is an index of the other passages. There is one block per message.

        The beginning of each message is selected first, because it names the document.
        """
        from moot.retrieval import select_evidence

        seqs = {entry["seq"] for entry in self.entries if entry["id"] not in skip}
        keys = [k for k in self.search.seqs if k not in self.shown_keys and place_of(k).seq in seqs]
        costs = {key: remaining + 1 for key in self.search.seqs}
        costs |= {key: self.search.tokens_of(key) + 4 for key in keys}
        start_keys = [] if self.shown_keys else [key_of(Place(entry["seq"], 0)) for entry in self.entries]
        frame_tokens = sum(
            message_tokens(render({**entry, "content": heading}), count) + 4 for entry in self.entries
        )
        budget = remaining - min(frame_tokens, remaining // 2)
        while budget > 0:
            evidence = select_evidence(self.search, query, budget=budget, costs=costs, must_keep=start_keys)
            blocks = self._render(evidence.seqs, render, heading)
            excess = background_tokens(blocks, count) - remaining
            if excess <= 0:
                return blocks, replace(self, shown_keys=self.shown_keys | frozenset(evidence.seqs))
            budget -= excess
        return [], self

    def _render(self, keys: Sequence[int], render: Render, heading: str) -> list[truncation.Block]:
        by_seq = {entry["seq"]: entry for entry in self.entries}
        blocks = []
        for seq, parts in by_message(sorted(keys)):
            entry, spans = by_seq[seq], _SPLITTING.spans(by_seq[seq])
            text, end = "", 0
            for start, stop in (spans[part] for part in parts):
                text += (TRUNCATION_MARK if start > end else "") + entry["content"][start:stop]
                end = stop
            text += TRUNCATION_MARK.rstrip() if end < len(entry["content"]) else ""
            is_whole = len(parts) == len(spans)
            message = render({**entry, "content": text})
            message = {**message, "content": f"{heading}\n{message['content']}".lstrip("\n")}
            blocks.append(_background_block(entry, message, None if is_whole else render(entry)))
        return blocks


@memoize_by_identity(8)  # the background is the same in all prompts of a debate
def _passages_of(*entries: Entry) -> _Passages:
    """Convert background messages to passages with a search index."""
    from moot.retrieval import EvidenceIndex

    return _Passages(entries, EvidenceIndex(chunk for entry in entries for chunk in _SPLITTING.chunks(entry)))
