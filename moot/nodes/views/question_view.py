"""The view of a question about a debate: the window shrinks, and retrieval fills the whole budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from moot.nodes.blackboard.digest import render_blackboard
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.calls import View, WireMessage
from moot.nodes.memory.summarizers.points_layout import lay_out, render
from moot.nodes.prompts.fitting import Block, fit
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import pinned_entries
from moot.nodes.prompts.rendering import PEOPLE, cut_message
from moot.nodes.text.plain import inert
from moot.nodes.text.terms import ASKING, asking_terms, is_unspaced, spellings, term_set, terms
from moot.nodes.text.tokens import REPLY_PRIMING, TokenCounter, cut_middle, message_tokens
from moot.nodes.views.question_quotes import (
    HEADING,
    EntryLines,
    Quoted,
    Splitting,
    quote,
    quote_cut,
    with_heading,
)
from moot.nodes.views.rolling import SUMMARY
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import entry_id, ids_in, kind_of, seq_of, seqs_of

if TYPE_CHECKING:
    from moot.nodes.memory.indexes import Indexes
    from moot.nodes.memory.retrieval import EvidenceIndex, RetrievalQuestion, SelectedEvidence

ASK = load_prompt("ask", "topic", "speakers")
QUESTION = load_prompt("question", "question")

SUMMARY_SHARE, RECENT_SHARE = 0.125, 0.15
"""Most of the budget that the summary and the most recent messages take; retrieval gets all the rest."""
FRAME_SHARE = 0.2
"""Most of the budget that each of instruction and question takes, however long topic and question are."""
LEDGER_SHARE = 0.4
"""Most of the summary's room that the position ledger takes."""

# What parts the words of Chinese, longest first, and all that is no Han or Katakana: Hiragana is grammar.
_BETWEEN = re.compile(
    "|".join(sorted(filter(is_unspaced, ASKING), key=lambda word: (-len(word), word)))
    + "|[^\u3005\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
)


@dataclass(frozen=True)
class AskView:
    """The prompt of a question and what was chosen for it."""

    question: str
    view: View
    messages: Quoted
    room: int
    """Tokens that the messages could take."""
    unknown: tuple[str, ...]
    """Words of the question that nobody ever used."""
    failure: str = ""
    """Why the embedding model could not be used."""


def ask_view(
    state: ConversationState,
    config: DebateConfig,
    question: str,
    index: EvidenceIndex,
    count: TokenCounter,
    *,
    budget: int | None = None,
) -> AskView:
    """Assemble the view of a question: instruction, summary, messages in order, question.

    Of the messages, the most recent are always there; all others are chosen for the question until the exact
    budget is full.
    """
    from moot.nodes.memory.retrieval import read_question, select_evidence

    total = config.memory.budget.total if budget is None else budget
    head = _head(state, config, total, count)
    share = int(total * FRAME_SHARE)
    asked = QUESTION.render(question=cut_middle(question, max(8, share - 60), count))
    tail = Block("tail", cut_message({"role": "user", "content": asked}, share, count), label="question")
    frame: WireMessage = {"role": "user", "content": HEADING}
    shown = (*(block.message for block in head), frame, tail.message)
    room = total - REPLY_PRIMING - sum(message_tokens(message, count) for message in shown)
    lines = entry_lines(state, config, count)
    read = read_question(index, question)
    pins = (entry["seq"] for entry in pinned_entries(state))
    named = named_seqs(question, len(state["full_transcript"]))
    look = partial(
        select_evidence,
        index,
        read,
        costs=lines.key_cost,
        must_keep=lines.keys(recent_seqs(state, lines, total)),
        named=lines.keys([*_seqs_asked_for(state, index, read, named), *pins]),
    )
    quoted, failure = _fill_room(look, index, lines, room)
    messages: WireMessage = {"role": "user", "content": with_heading(quoted.text)}
    chosen = [Block("messages", messages, ids=quoted.ids, label="messages")] if len(index) else []
    unknown = unsaid_words(read, config.names(), ids=map(entry_id, named))
    return AskView(question, fit([*head, *chosen, tail], total, count), quoted, room, unknown, failure)


def _seqs_asked_for(
    state: ConversationState, index: EvidenceIndex, read: RetrievalQuestion, named: Sequence[int]
) -> set[int]:
    """Return the `seq` of the messages that a question asks for before all others.

    They are those that it names; where it names a speaker beside them, what that speaker said, on both sides
    of them; and where the ledger has changes of mind about what is asked, each with what was held before and
    the message that it answers.
    """
    transcript, ledger = state["full_transcript"], ledger_of(state)
    whose = {index.speakers[number] for number in read.speakers}
    wanted = set(named)
    if named and whose:
        wanted |= {entry["seq"] for entry in transcript if entry["speaker"] in whose}
    for change in ledger.changes:
        events = [change.event, *([change.before] if change.before else [])]
        about = ledger.propositions.get(change.event["proposition"])
        words = term_set(" ".join([about["text"] if about else "", *(each["quote"] for each in events)]))
        if words & read.terms.keys() and (not whose or change.event["debater"] in whose):
            seqs = list(seqs_of(each["message_id"] for each in events))
            wanted |= {*seqs, max(1, seqs[0] - 1)}
    return wanted


def named_seqs(question: str, entries: int) -> list[int]:
    """Return the `seq` of the existing messages whose ids a question names."""
    named = map(seq_of, ids_in(question.lower()))
    return [seq for seq in dict.fromkeys(named) if seq is not None and seq < entries]


def _fill_room(
    look: Callable[..., SelectedEvidence], index: EvidenceIndex, lines: EntryLines, room: int
) -> tuple[Quoted, str]:
    """Return what fills `room`, and why the embedding model could not be used, `""` where it could."""
    failure = ""
    try:
        found = look(budget=room)
    except Exception as error:  # an embedding service that is out of order must not cost the answer
        if index.vectors is None:
            raise
        failure = f"{type(error).__name__}: {error}"
        look = partial(look, semantic=False)
        found = look(budget=room)
    if found.oversize is not None:
        return quote_cut(found.oversize, lines, room), failure
    if found.left_out and any(map(lines.is_part, found.seqs)):
        # Passages side by side cost less than each by itself, as which they were chosen.
        spare = room - lines.size(lines.passages(found.seqs))
        more = look(budget=room + max(0, spare))
        found = more if lines.size(lines.passages(more.seqs)) <= room else found
    return quote(found.seqs, lines, room), failure


def entry_lines(state: ConversationState, config: DebateConfig, count: TokenCounter) -> EntryLines:
    """Return the rendering of a debate's entries."""
    splitting = Splitting.within(config.memory.budget.total)
    return EntryLines(state["full_transcript"], config.names(), count, splitting)


def ask_index(
    indexes: Indexes, debate: str, state: ConversationState, config: DebateConfig, embeddings: Any = None
) -> EvidenceIndex:
    """Return the index in which questions about a debate look: of the passages of all its messages."""
    splitting = Splitting.within(config.memory.budget.total)
    use = f"ask {splitting.long}"
    return indexes.of(
        debate, use, state["full_transcript"], config.names(), embeddings, split=splitting.pieces
    )


def _head(state: ConversationState, config: DebateConfig, total: int, count: TokenCounter) -> list[Block]:
    """Return the instruction, then summary and ledger as one message, where there is either."""
    share = int(total * FRAME_SHARE)
    speakers = inert(", ".join(dict.fromkeys(debater.name for debater in config.debaters)))
    text = ASK.render(
        topic=cut_middle(state["topic"], share // 3, count), speakers=cut_middle(speakers, share // 3, count)
    )
    message = cut_message({"role": "system", "content": text}, share, count)
    head = [Block("system", message, label="instruction")]

    share, names = int(total * SUMMARY_SHARE), config.names()
    most = int((share - 16) * LEDGER_SHARE)
    board = render_blackboard(state, "", max_tokens=most, count=count, names=names)
    summary = _summary_text(state, share - 16 - count(board) - 8, names, count)
    text = "\n\n".join(filter(None, [f"# Summary\n{summary}" if summary else "", board]))
    if text:
        message = cut_message({"role": "user", "content": text}, share, count)
        head.append(Block("summary", message, SUMMARY, label="summary and ledger"))
    return head


def _summary_text(state: ConversationState, room: int, names: Mapping[str, str], count: TokenCounter) -> str:
    """Return the rolling summary within `room` tokens: as it is where it fits, else laid out anew."""
    summary = state.get("rolling_summary", {})
    text = str(summary.get("text", ""))
    if not text or room <= 0 or count(text) <= room:
        return text if room > 0 else ""
    points: Any = summary.get("points")
    if points and str(summary.get("method", "")).startswith("rule-based"):
        return render(lay_out(points, max_tokens=room, count=count, names=names), names)
    return cut_middle(text, room, count)


def recent_seqs(state: ConversationState, lines: EntryLines, total: int) -> list[int]:
    """Return the `seq` of the newest messages that fit their share of a view of `total` tokens."""
    room, kept = int(total * RECENT_SHARE), list[int]()
    for entry in reversed(state["full_transcript"]):
        if entry["tokens"] > room or not kind_of(entry).shown:
            break
        room -= lines.cost(entry["seq"])
        if room < 0:
            break
        kept.append(entry["seq"])
    return kept


def unsaid_words(
    question: RetrievalQuestion, names: Mapping[str, str], *, ids: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the content words of a question that the transcript never uses, in lower case, in order.

    Where words are written without spaces between them, what is returned is each stretch of Chinese or
    Katakana in which no two characters stand together as they do in the transcript; in other such scripts a
    word's bounds are not known, and nothing is.
    """
    called = frozenset(terms(" ".join([*names, *names.values(), *PEOPLE, *PEOPLE.values(), *ids])))
    unknown = frozenset(question.unknown) - called - asking_terms()
    words: dict[str, None] = {}
    for run in map(str.casefold, spellings(question.text)):
        if not is_unspaced(run):
            if len(run) > 1 and not unknown.isdisjoint(terms(run)):
                words[run] = None
            continue
        # Of a run without spaces, the stretches that no known pair of characters touches.
        pairs = [place for place in range(len(run) - 1) if run[place : place + 2] not in unknown]
        known = {*pairs, *(place + 1 for place in pairs)}
        left = "".join(" " if place in known else character for place, character in enumerate(run))
        words |= dict.fromkeys(part for part in _BETWEEN.sub(" ", left).split() if len(part) > 1)
    return tuple(words)
