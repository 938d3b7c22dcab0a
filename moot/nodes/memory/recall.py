"""Memories that come back into a debater's view: what has left the window and bears on what is said now.

Nothing happens here until something has left the window; from then on a turn pays for what has left since the
last one, and for at most `top_k` memories, however long the debate is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from moot.nodes.blackboard.board_words import TEXT, answers_text, board_text, quotation
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.standing import Ledger
from moot.nodes.effects import Job
from moot.nodes.memory.window import window_start
from moot.nodes.prompts.rendering import display_name, speaker_label
from moot.nodes.text.plain import excerpt, inert
from moot.nodes.text.sentences import sentence_terms
from moot.nodes.text.terms import question_terms
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.at_sight import at_sight
from moot.state.config.memory_config import RetrievalConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, ids_in, seq_of, seqs_of
from moot.state.ledger import CruxCard, Reflection

if TYPE_CHECKING:
    from moot.nodes.memory.indexes import Indexes
    from moot.nodes.memory.retrieval import EvidenceIndex, MemoryItem

HEADING = "# From earlier in the debate, as it bears on this"

LEAST = 48
"""Tokens below which nothing is brought back."""
READ_CHARS, EXCERPT_CHARS, EXCERPT_TOKENS = 8_000, 220, 56
"""Most that is looked at and shown of one message."""
QUERY_CHARS = 2_000
"""Characters of topic, instruction and message answered that make the query."""
TRIES, NEVER_FITS = 8, 10**9
"""Messages beyond `top_k` that are tried where some have no room; finding an excerpt is most of the work."""
SHIFTS, REFLECTIONS, CARDS = 64, 64, 32
"""The newest of them that may come back: a turn's cost must not grow with the debate."""

_SHIFT_IMPORTANCE, _CARD_IMPORTANCE = 8, 8


@dataclass(frozen=True)
class Memories:
    """Where a debate's indexes are kept."""

    indexes: Indexes
    debate: str
    embeddings: Any = None
    """An embedding model; `None` compares words alone."""


@dataclass(frozen=True)
class Reminder:
    """What came back, as text, and the ids of what it is."""

    text: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cue:
    """What memories are looked for with."""

    query: str
    answering: str = ""
    """The message being answered."""


def bring_back(
    state: ConversationState,
    memories: Memories,
    settings: RetrievalConfig,
    cue: Cue,
    *,
    room: int,
    count: TokenCounter,
    names: Mapping[str, str],
    shown: str = "",
) -> Reminder:
    """Return the memories that bear on `cue` and are not `shown` yet, within `room` tokens.

    A pure function of the state: the indexes behind it are caches.
    """
    room = min(room, settings.max_tokens)
    if not settings.enabled or window_start(state) <= 1 or room < LEAST:
        return Reminder()
    from moot.nodes.memory.retrieval import recall

    index = recall_index(state, memories, names)
    items = memory_items(ledger_of(state), state.get("crux_cards"), state.get("reflections"), names, count)
    told = set(seqs_of(ids_in(shown)))
    lines = _Lines(state["full_transcript"], names, count, cue, settings.top_k + TRIES)
    look = partial(
        recall,
        index,
        cue.query,
        budget=room - count(f"{HEADING}\n"),
        answering=cue.answering,
        items=memories.indexes.items(memories.debate, items),
        exclude=told,
        exclude_items={item.id for item in items if item.seq in told or item.text in shown},
        top=settings.top_k,
        costs=lines.cost,
    )
    try:
        found = look()
    except Exception:  # an embedding service that is out of order must never reach the turn
        if index.vectors is None:
            raise
        found = look(semantic=False)

    texts = {item.id: f"- {item.text}" for item in items}
    back = [(item_id, texts[item_id]) for item_id in found.item_ids]
    back += [(lines.transcript[seq]["id"], lines.text(seq)) for seq in found.seqs]
    while back:
        text = "\n".join([HEADING, *(line for _, line in back)])
        if count(text) <= room:  # a joined text may count a token more than its lines
            return Reminder(text, tuple(key for key, _ in back))
        back.pop()
    return Reminder()


def recall_index(state: ConversationState, memories: Memories, names: Mapping[str, str]) -> EvidenceIndex:
    """Return the index of what has left the window."""
    gone = state["full_transcript"][: window_start(state)]
    return memories.indexes.of(memories.debate, "recall", gone, names, memories.embeddings)


def embedding_job(
    state: ConversationState, memories: Memories, names: Mapping[str, str], cues: Sequence[Cue]
) -> Job | None:
    """Return the work of embedding what a step's views will compare; `None` where there is none to do.

    It is done before the views are assembled, on a worker thread: assembling then finds every vector made.
    """
    gone = window_start(state)
    if memories.embeddings is None or gone <= 1:
        return None

    def run() -> str:
        vectors = recall_index(state, memories, names).vectors
        try:
            for cue in cues if vectors else ():
                vectors.similarity(f"{cue.query}\n{cue.answering}".strip())  # type: ignore[union-attr]  # has them
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    asked = [gone, *((cue.query, cue.answering) for cue in cues)]
    return Job(json.dumps(asked), run)


class _Lines:
    """Entries as the tail shows them: one line each, around what bears on the cue."""

    def __init__(
        self, transcript: Sequence[Entry], names: Mapping[str, str], count: TokenCounter, cue: Cue, most: int
    ) -> None:
        self.transcript, self.names, self.count = transcript, names, count
        self.wanted = frozenset(question_terms(f"{cue.query}\n{cue.answering}"))
        self.most = most
        self._known: dict[int, str] = {}

    def text(self, seq: int) -> str:
        """Return an entry, cut to the sentence that has most of the cue's terms and what follows it."""
        if seq not in self._known:
            entry, content, start = self.transcript[seq], self.transcript[seq]["content"], 0
            if len(content) > EXCERPT_CHARS:
                sentences = sentence_terms(content[:READ_CHARS])
                scored = ((len(self.wanted & words), -at) for at, words in sentences)
                start = -max(scored, default=(0, 0))[1]
            words = cut_middle(inert(excerpt(content, EXCERPT_CHARS, start)), EXCERPT_TOKENS, self.count)
            self._known[seq] = f"- {speaker_label(entry['speaker'], self.names)} [{entry['id']}]: {words}"
        return self._known[seq]

    def cost(self, seq: int) -> int:
        if seq not in self._known and len(self._known) >= self.most:
            return NEVER_FITS
        return self.count(self.text(seq) + "\n")


@at_sight(8)  # they change as messages leave the window, and are looked through turn after turn
def memory_items(
    ledger: Ledger,
    cards: Mapping[str, CruxCard] | None,
    reflections: Sequence[Reflection] | None,
    names: Mapping[str, str],
    count: TokenCounter,
) -> list[MemoryItem]:
    """Return changes of position, crux cards and reflections as memories."""
    noted_down: list[tuple[str, str, int, Sequence[str]]] = []
    for change in ledger.changes[-SHIFTS:]:
        event, before = change.event, change.before
        held = f" from “{board_text(before['quote'])}”" if before else ""
        text = f"{display_name(event['debater'], names)} moved{held} to {quotation(event, TEXT)}"
        noted_down.append((f"shift:{event['id']}", text, _SHIFT_IMPORTANCE, [event["message_id"]]))
    for card in list((cards or {}).values())[-CARDS:]:
        outcome = card["resolution"] if card["resolved"] else f"unresolved, {card['diagnosis']}"
        text = f"{card['question']} ({answers_text(card, names)}; {outcome})"
        noted_down.append((card["id"], text, _CARD_IMPORTANCE, card["message_ids"]))
    for each in (reflections or [])[-REFLECTIONS:]:
        noted_down.append((each["id"], each["content"], each["importance"], each["message_ids"]))
    return [
        _memory_item(key, text, importance, max((seq_of(each) or 0 for each in ids), default=0), count)
        for key, text, importance, ids in noted_down
    ]


@lru_cache(maxsize=1024)
def _memory_item(key: str, text: str, importance: int, seq: int, count: TokenCounter) -> MemoryItem:
    """Return a memory, remembered: the same ones are looked through turn after turn."""
    from moot.nodes.memory.retrieval import MemoryItem

    line = inert(text)
    return MemoryItem(key, line, count(f"- {line}\n"), importance, seq)


def cue_for(state: ConversationState, window: Sequence[Entry], speaker: str) -> Cue:
    """Return what a speaker's memories are looked for with: the aspect or topic, and what it answers."""
    others = (entry for entry in reversed(window) if entry["speaker"] != speaker)
    answered = next(others, None)
    query = (state.get("step", {}).get("aspect") or state["topic"])[:QUERY_CHARS]
    return Cue(query, answered["content"][:QUERY_CHARS] if answered else "")
