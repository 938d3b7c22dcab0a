"""Memory across debates, which stores a debater's positions in earlier debates.

They are stored when a debate ends, and retrieved when another one starts.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from langchain_core.embeddings import Embeddings
from pydantic import TypeAdapter, ValidationError

from moot.calls.effects import LocalJob, LocalWork, PutInStore, SearchStore
from moot.claims import ledger_rendering
from moot.claims.claim_status import Ledger, message_seq
from moot.claims.ledger_from_events import ledger_of
from moot.config import DebateConfig, slug
from moot.config.memory_config import RetrievalConfig
from moot.config.participants import ReferenceDocument
from moot.memory.window import window_start
from moot.prompts.debate_context import DebateContext
from moot.prompts.truncation import display_name, source_time, speaker_label
from moot.retrieval import EvidenceIndex, MemoryItem, MemoryItems, RetrievalResult, rank, retrieve
from moot.retrieval.indexes import Indexes, may_block
from moot.state.claim_events import MAIN_QUESTION, OVERALL, CruxCard, Reflection, StanceEvent
from moot.state.conversation import ConversationState, EarlierPosition, Turn
from moot.state.entries import ENTRY_ID, Entry, entries_of, ids_in, memoize_by_identity, seq_of, seqs_of
from moot.text.plain_text import clip, excerpt, sanitize_line
from moot.text.terms import question_terms, sentence_terms, split_sentences
from moot.text.tokens import TokenCounter, truncate_middle

OTHER_DEBATES_HEADING = "# Your positions in earlier debates"
MAX_SEARCHED = 200
"""Maximum number of earlier debates to search."""
MAX_RETRIEVED = 3
"""Maximum number of similar earlier debates to retrieve."""
EARLIER_TOPIC_CHARS, POSITION_CHARS = 160, 240
MAX_POSITIONS, MAX_CONCESSIONS = 4, 3
_CITATION = re.compile(rf"(?<!\s)\s*[\[(]{ENTRY_ID.pattern}(?:,\s*{ENTRY_ID.pattern})*[\])]")

StoreLookup = Generator[SearchStore | LocalWork, Any, dict[str, list[EarlierPosition]]]


def retrieve_earlier_positions(
    config: DebateConfig, topic: str, debate: str, embeddings: Embeddings | None = None
) -> StoreLookup:
    """Return the positions that each debater took in the most similar earlier debates.

    `embeddings` is a LangChain embedding model, or `None` to compare only words.
    """
    positions: dict[str, list[EarlierPosition]] = {}
    for debater_id, identity in identities(config).items():
        stored = (yield SearchStore(namespace_of(identity), MAX_SEARCHED)) or []
        earlier_positions = [each for each in _valid(stored) if each["debate"] != debate]
        texts = [" ".join([each["topic"], each["stance"], *each["positions"]]) for each in earlier_positions]
        items = MemoryItems([MemoryItem(str(age), text) for age, text in enumerate(texts)], embeddings)

        def search(items: MemoryItems = items) -> str:
            matches = rank(items, topic[: 8 * EARLIER_TOPIC_CHARS])[:MAX_RETRIEVED]
            return json.dumps([int(each.item.id) for each in matches])

        job = LocalJob(json.dumps([debater_id, topic, texts]), search)
        reply = (yield LocalWork([job]))[0] if texts and may_block(embeddings) else search()
        if ages := json.loads(reply):  # the newest first if debates are equally similar
            positions[debater_id] = [earlier_positions[age] for age in ages]
    return positions


_POSITION = TypeAdapter(EarlierPosition)


def _valid(stored: Iterable[object]) -> list[EarlierPosition]:
    """Return the valid positions among the stored records, each text on one line.

    The records are checked because clients of a server can write to the store.
    """
    positions = []
    for record in stored:
        with suppress(ValidationError):
            position = _POSITION.validate_python(record, strict=True)
            positions.append(
                cast(EarlierPosition, {key: _on_one_line(value) for key, value in position.items()})
            )
    return positions


def _on_one_line(value: object) -> object:
    if isinstance(value, list):
        return [_on_one_line(each) for each in value[:MAX_POSITIONS]]
    return _line(value, POSITION_CHARS) if isinstance(value, str) else value


def store_positions(context: DebateContext, debate: str, now: str) -> Generator[PutInStore, Any, None]:
    """Store the final positions of debaters with an `identity` for later debates."""
    state, ledger = context.state, ledger_of(context.state)
    for debater, identity in identities(context.config).items():
        own_entries = [entry for entry in state["full_transcript"] if entry["speaker"] == debater]
        if not debate or not own_entries:
            continue
        stance, changes = ledger.stance(debater), ledger.changes[::-1]
        concessions = [_on_claim(ledger, event) for event in ledger.concessions(debater)[::-1]]
        position: EarlierPosition = {
            "topic": _line(state["topic"], EARLIER_TOPIC_CHARS),
            "stance": _on_claim(ledger, stance) if stance else "",
            "changes": [
                f"{_on_claim(ledger, each.event)}, before: {_on_claim(ledger, each.before)}"
                for each in changes
                if each.before and each.event["debater"] == debater and each.event["kind"] != "concedes"
            ][:MAX_CONCESSIONS],
            "positions": [_on_claim(ledger, event) for _, event in ledger.held(debater)[:MAX_POSITIONS]],
            "concessions": list(dict.fromkeys(concessions))[:MAX_CONCESSIONS],
            "challenged": [
                _line(each["quote"], POSITION_CHARS)
                for each in ledger.open_challenges(debater)[:MAX_CONCESSIONS]
            ],
            "last": _line(own_entries[-1]["content"], POSITION_CHARS),
            "winner": state.get("verdict", {}).get("winner", "") == debater,
            "debate": debate,
            "at": now[:10],
        }
        yield PutInStore(namespace_of(identity), debate, {**position})


def _on_claim(ledger: Ledger, event: StanceEvent) -> str:
    """Return a stance on one line with its claim, unless that is the main question, and its quotation."""
    claim, quote = ledger.claims[event["claim"]]["text"], _line(event["quote"], ledger_rendering.SHORT)
    text = f"{ledger_rendering.stance_text(event)}{ledger_rendering.side_conceded(ledger, event)}: “{quote}”"
    is_plain = event["claim"] == MAIN_QUESTION or ledger_rendering.board_text(claim) == quote
    return text if is_plain else f"{_line(claim, ledger_rendering.SHORT).rstrip('.')}: {text}"


def earlier_positions_text(
    cross_debate_memory: Sequence[EarlierPosition], remaining: int, count: TokenCounter
) -> str:
    """Return the prompt section on a debater's positions in earlier debates.

    Return `""` if there are none. Each debate has its own line. If it does not fit `remaining` tokens, it
    lists fewer items of each kind. A debate whose answer alone does not fit is left out.
    """
    lines = [OTHER_DEBATES_HEADING]
    for position in cross_debate_memory:
        min_items = 0 if position["stance"] else 1
        sized_lines = (_position_line(position, items) for items in range(MAX_POSITIONS, min_items - 1, -1))
        fitting_lines = (line for line in sized_lines if count("\n".join([*lines, line])) <= remaining)
        if line := next(fitting_lines, ""):
            lines.append(line)
    return "\n".join(lines) if len(lines) > 1 else ""


def _position_line(position: EarlierPosition, items: int) -> str:
    """Return one line on an earlier debate with at most `items` items of each kind."""
    parts = {
        "your answer was ": [position["stance"]],
        "you changed your mind: ": position.get("changes", [])[:items],
        "you argued: ": position["positions"][:items] or [position["last"]][: not position["stance"]],
        "you conceded: ": position["concessions"][:items],
        "you were challenged on this and did not answer: ": position.get("challenged", [])[:items],
    }
    texts = [f"{title}{'; '.join(texts)}" for title, texts in parts.items() if any(texts)]
    texts += ["the decision was for you"] if position["winner"] else []
    return f"- Last time this came up ({position['at']}, “{position['topic']}”) {'; '.join(texts)}"


def identities(config: DebateConfig) -> dict[str, str]:
    """Return names for positions across debates, by debater id, if `memory.cross_debate` is on."""
    if not config.memory.cross_debate:
        return {}
    return {debater.id: debater.identity for debater in config.debaters if debater.identity}


def namespace_of(identity: str) -> tuple[str, ...]:
    """Return the store's namespace of an identity. Its labels cannot contain periods."""
    label = f"{slug(identity)}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    return ("moot", "positions", label.strip("-"))


def _line(text: str, chars: int) -> str:
    """Return a text on one line of at most `chars` characters, without message citations."""
    return clip(sanitize_line(_CITATION.sub("", text[: 8 * chars])), chars)


REFERENCE_CHARS = 400
"""Approximate number of characters in each passage of a reference document."""
MAX_REFERENCE_PASSAGES = 3
REFERENCE_HEADING = "# Passages from your own texts (cite them by their marks)"


class Passage(NamedTuple):
    """Passage from one of a debater's reference documents."""

    mark: str
    """Label that debaters use to cite the passage, such as `memoir §3`."""
    text: str


@lru_cache(maxsize=32)
def passages(reference_documents: tuple[ReferenceDocument, ...]) -> tuple[Passage, ...]:
    """Split reference documents at sentence ends into passages of about `REFERENCE_CHARS` characters."""
    all_passages: list[Passage] = []
    for document in reference_documents:
        parts: list[str] = []
        for sentence in filter(None, [sanitize_line(each.text) for each in split_sentences(document.text)]):
            if parts and len(parts[-1]) + len(sentence) < REFERENCE_CHARS:
                parts[-1] = f"{parts[-1]} {sentence}"
            else:
                parts.append(clip(sentence, 2 * REFERENCE_CHARS))
        name = sanitize_line(document.name)
        all_passages += [Passage(f"{name} §{n}", text) for n, text in enumerate(parts, 1)]
    return tuple(all_passages)


def matching_passages(reference_documents: tuple[ReferenceDocument, ...], query: str) -> list[Passage]:
    """Return the passages that match the query, best first. Rare terms count more."""
    all_passages = passages(reference_documents)
    items = MemoryItems([MemoryItem(str(n), passage.text) for n, passage in enumerate(all_passages)])
    return [all_passages[int(match.item.id)] for match in rank(items, query)[:MAX_REFERENCE_PASSAGES]]


def reference_text(
    reference_documents: tuple[ReferenceDocument, ...], query: str, max_tokens: int, count: TokenCounter
) -> str:
    """Return passages that match the query and together fit in `max_tokens`, or `""` if none fits."""
    lines = [REFERENCE_HEADING]
    for passage in matching_passages(reference_documents, query) if reference_documents else ():
        line = f"- [{passage.mark}] {passage.text}"
        if count("\n".join([*lines, line])) <= max_tokens:
            lines.append(line)
    return "\n".join(lines) if len(lines) > 1 else ""


EARLIER_HEADING = "# Earlier messages that matter here"

MIN_MEMORY_TOKENS = 48
"""Minimum number of unused prompt tokens required to retrieve memories."""
EMBEDDED_CHARS = 8_000
"""Maximum number of characters that are read from a message."""
MEMORY_CHARS = 220
"""Maximum number of characters in an excerpt of a message."""
EXCERPT_TOKENS = 56
"""Maximum number of tokens in an excerpt of a message."""
QUERY_CHARS = 2_000
"""Maximum number of characters in each part of the search query."""
TRIES = 8
"""Number of additional messages, beyond `top_k`, whose tokens are counted."""
NEVER_FITS = 10**9
"""Assumed token count of messages whose tokens are not counted. It is too large for every prompt."""
SHIFTS = 64
"""Maximum number of position changes to search, newest first."""
POSITIONS_SEARCHED = 64
"""Maximum number of positions on claims to search, newest first."""
REFLECTIONS = 64
"""Maximum number of reflections to search, newest first."""
CARDS = 32
"""Maximum number of crux cards to search, newest first."""

_SHIFT_IMPORTANCE, _CARD_IMPORTANCE = 8, 8
CLAIM_IMPORTANCE = 4
"""Maximum importance of a message that contains claims."""
CONCESSION_IMPORTANCE = 7
"""Importance of a message that contains a concession."""


@dataclass(frozen=True)
class MemoryIndexes:
    """Search indexes for the memories of one debate."""

    indexes: Indexes
    debate: str
    embeddings: Any = None
    """Embedding model for retrieval. `None` means that retrieval compares words."""


@dataclass(frozen=True)
class RetrievedMemories:
    """Retrieved memories, as shown in a prompt."""

    text: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetrievalQuery:
    """Query that retrieves memories for a debater's turn."""

    query: str
    answering: str = ""
    """Text of the message to which the debater replies."""


def retrieve_memories(
    state: ConversationState,
    memories: MemoryIndexes,
    settings: RetrievalConfig,
    query: RetrievalQuery,
    *,
    remaining: int,
    count: TokenCounter,
    names: Mapping[str, str],
    prompt_text: str = "",
    exclude: Collection[str] = (),
) -> RetrievedMemories:
    """Return earlier messages and other memories that match `query` and fit in the token limit.

    The limit is `remaining` tokens. Memories that `prompt_text` contains and messages with the ids `exclude`
    are omitted.

    The result depends only on the state. The indexes are caches.
    """
    remaining = min(remaining, settings.max_tokens)
    if not settings.enabled or window_start(state) <= 1 or remaining < MIN_MEMORY_TOKENS:
        return RetrievedMemories()
    index = retrieval_index(state, memories, names)
    records = (ledger_of(state), state.get("crux_cards"), state.get("reflections"))
    items = memory_items(*records, names, count, memories.embeddings is not None)
    shown_seqs = set(seqs_of(ids_in(prompt_text)))
    lines = _MemoryLines(state["full_transcript"], names, count, query, settings.top_k + TRIES)
    search = partial(
        retrieve,
        index,
        query.query,
        budget=remaining - count(f"{EARLIER_HEADING}\n"),
        answering=query.answering,
        items=memories.indexes.items(memories.debate, items, memories.embeddings),
        exclude=shown_seqs | set(seqs_of(exclude)),
        exclude_items={item.id for item in items if item.seq in shown_seqs or item.text in prompt_text},
        top=settings.top_k,
        costs=lines.cost,
        noted=noted_importance(ledger_of(state)),
    )
    result = _or_lexical(search, index)
    texts = {item.id: f"- {item.text}" for item in items}
    keyed_lines = [(item_id, texts[item_id]) for item_id in result.item_ids]
    keyed_lines += [(lines.transcript[seq]["id"], lines.text(seq)) for seq in result.seqs]
    while keyed_lines:
        text = "\n".join([EARLIER_HEADING, *(line for _, line in keyed_lines)])
        if count(text) <= remaining:  # joined text may have one more token per line
            return RetrievedMemories(text, tuple(key for key, _ in keyed_lines))
        keyed_lines.pop()
    return RetrievedMemories()


def retrieve_messages(
    state: ConversationState,
    memories: MemoryIndexes | None,
    settings: RetrievalConfig,
    query: RetrievalQuery,
    *,
    remaining: int,
    costs: Callable[[Entry], int],
    names: Mapping[str, str],
    exclude: Collection[int],
) -> list[Entry]:
    """Return earlier messages that match `query`, within a limit of prompt tokens.

    The limit is `remaining`.

    The whole transcript is searched, for protocols whose prompts show no window. The messages are returned in
    the order of the transcript.

    Args:
        state: state of the debate.
        memories: indexes. `None`: no messages are retrieved.
        settings: settings of retrieval.
        query: query for the messages.
        remaining: maximum number of tokens of the messages.
        costs: function that returns the number of tokens that a message takes in the prompt.
        names: display names by debater.
        exclude: `seq` of messages that must not be returned.
    """
    transcript = state["full_transcript"]
    if memories is None or not settings.enabled or remaining < MIN_MEMORY_TOKENS:
        return []
    index = retrieval_index(state, memories, names, everything=True)
    search = partial(
        retrieve,
        index,
        query.query,
        budget=remaining,
        answering=query.answering,
        exclude=exclude,
        top=len(transcript),
        neighbours=0,
        costs=lambda seq: costs(transcript[seq]),
        noted=noted_importance(ledger_of(state)),
    )
    return [transcript[seq] for seq in _or_lexical(search, index).seqs]


def _or_lexical(search: Callable[..., RetrievalResult], index: EvidenceIndex) -> RetrievalResult:
    """Search with embeddings, or by words only if the embedding service fails."""
    try:
        return search()
    except Exception:  # a failing embedding service must not fail the turn
        if index.vectors is None:
            raise
        return search(semantic=False)


def retrieval_index(
    state: ConversationState, memories: MemoryIndexes, names: Mapping[str, str], *, everything: bool = False
) -> EvidenceIndex:
    """Return the index over messages outside of the window, or over `everything`."""
    entries = state["full_transcript"] if everything else state["full_transcript"][: window_start(state)]
    use = "transcript" if everything else "retrieval"
    return memories.indexes.of(memories.debate, use, entries, names, memories.embeddings)


def embedding_job(
    state: ConversationState,
    memories: MemoryIndexes,
    names: Mapping[str, str],
    queries: Sequence[RetrievalQuery],
    count: TokenCounter,
    *,
    everything: bool = False,
) -> LocalJob | None:
    """Return a job that asks a service for a step's embeddings, or `None` if no service is needed.

    It embeds queries, entries and memory items. A worker thread runs it before prompts are assembled, so
    assembly finds all vectors in the cache. `everything`: prompts retrieve from the whole transcript, not
    only from what has left the window.
    """
    entry_count = len(state["full_transcript"]) if everything else window_start(state)
    if not may_block(memories.embeddings) or entry_count <= 1:
        return None

    def run() -> str:
        index = retrieval_index(state, memories, names, everything=everything)
        records = (ledger_of(state), state.get("crux_cards"), state.get("reflections"))
        items = [] if everything else memory_items(*records, names, count, memories.embeddings is not None)
        item_index = memories.indexes.items(memories.debate, items, memories.embeddings)
        try:
            for query in queries if index.vectors else ():
                text = f"{query.query}\n{query.answering}".strip()
                index.vectors.similarity(text)  # type: ignore[union-attr]  # has them
                item_index.closeness(text)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    job_key = [entry_count, *((query.query, query.answering) for query in queries)]
    return LocalJob(json.dumps(job_key), run)


class _MemoryLines:
    """Renderer that shortens each retrieved entry to one line, from the text that best matches the query."""

    def __init__(
        self,
        transcript: Sequence[Entry],
        names: Mapping[str, str],
        count: TokenCounter,
        query: RetrievalQuery,
        max_lines: int,
    ) -> None:
        self.transcript, self.names, self.count = transcript, names, count
        self.query_terms = frozenset(question_terms(f"{query.query}\n{query.answering}"))
        self.max_lines = max_lines
        self._known: dict[int, str] = {}

    def text(self, seq: int) -> str:
        """Return one line with an excerpt of an entry, starting at the sentence with the most query terms."""
        if seq not in self._known:
            entry, content, start = self.transcript[seq], self.transcript[seq]["content"], 0
            if len(content) > MEMORY_CHARS:
                sentences = sentence_terms(content[:EMBEDDED_CHARS])
                scored = [(len(self.query_terms & words), -offset) for offset, words in sentences]
                start = -max(scored, default=(0, 0))[1]
            label = f"{speaker_label(entry['speaker'], self.names)} [{entry['id']}]{source_time(entry)}"
            self._known[seq] = f"- {label}: {_excerpt_from(content, start, self.count)}"
        return self._known[seq]

    def cost(self, seq: int) -> int:
        if seq not in self._known and len(self._known) >= self.max_lines:
            return NEVER_FITS
        return self.count(self.text(seq) + "\n")


@lru_cache(maxsize=4096)  # many turns retrieve the same messages
def _excerpt_from(content: str, start: int, count: TokenCounter) -> str:
    """Return a one-line excerpt of a message, starting at character number `start`."""
    return truncate_middle(sanitize_line(excerpt(content, MEMORY_CHARS, start)), EXCERPT_TOKENS, count)


@memoize_by_identity(8)  # the ledger changes only when messages leave the window
def noted_importance(ledger: Ledger) -> Mapping[int, int]:
    """Return the importance of each message with claim events, from 1 to 10.

    The keys are values of `seq`. Each claim event adds 1 to the lowest importance, up to 4. A concession
    gives 7, from which a message is always a candidate, and a change of position gives 8. These weights were
    not measured. For messages without claims, the entry's kind decides. Text patterns instead retrieved 5.4
    messages a question, of which 23 % answered it, compared with 3.9 and 28 % (237 questions of QMSum, 600
    tokens).
    """
    events = Counter(message_seq(event) for event in ledger.events)
    importances = {seq: min(CLAIM_IMPORTANCE, 1 + number) for seq, number in events.items()}
    importances |= {message_seq(event): CONCESSION_IMPORTANCE for event in ledger.concessions()}
    return importances | {message_seq(change.event): _SHIFT_IMPORTANCE for change in ledger.changes}


@memoize_by_identity(8)  # memory items change only when messages leave the window, but every turn reads them
def memory_items(
    ledger: Ledger,
    cards: Mapping[str, CruxCard] | None,
    reflections: Sequence[Reflection] | None,
    names: Mapping[str, str],
    count: TokenCounter,
    with_positions: bool = False,
) -> list[MemoryItem]:
    """Return a debate's position changes, side discussions and reflections as memory items.

    `with_positions` adds the debaters' positions on claims. With embeddings they are found by meaning. By
    words alone they would displace the messages that state them.

    Memory items can be retrieved. A side discussion is represented by its crux card.
    """
    records: list[tuple[str, str, int, Sequence[str]]] = []
    for change in ledger.changes[-SHIFTS:]:
        event, before = change.event, change.before
        origin = f" from “{ledger_rendering.board_text(before['quote'])}”" if before else ""
        verb = f"kept the answer and {change.conditions_note}," if change.conditions_note else "moved"
        quotation = ledger_rendering.quotation(event, ledger_rendering.TEXT)
        text = f"{display_name(event['debater'], names)} {verb}{origin} to {quotation}"
        records.append((f"shift:{event['id']}", text, _SHIFT_IMPORTANCE, [event["message_id"]]))
    moved_ids = {change.event["id"] for change in ledger.changes}
    position_events = [
        event
        for debater in (names if with_positions else ())
        for _, event in ledger.held(debater)
        if event["id"] not in moved_ids
    ]
    for event in sorted(position_events, key=message_seq)[-POSITIONS_SEARCHED:]:
        text = f"{display_name(event['debater'], names)} holds: {_on_claim(ledger, event)}"
        records.append((f"position:{event['id']}", text, CLAIM_IMPORTANCE, [event["message_id"]]))
    for card in list((cards or {}).values())[-CARDS:]:
        outcome = f"{ledger_rendering.card_status(card)}: {card['resolution'] or card['diagnosis']}"
        text = f"{card['question']} ({ledger_rendering.card_results_text(card, names)}; {outcome})"
        records.append((card["id"], text, _CARD_IMPORTANCE, card["message_ids"]))
    current = [
        reflection for reflection in reflections or [] if reflection["id"] not in ledger.dropped_reflections
    ]
    for reflection in current[-REFLECTIONS:]:
        records.append(
            (reflection["id"], reflection["content"], reflection["importance"], reflection["message_ids"])
        )
    return [
        _memory_item(key, text, importance, max((seq_of(each) or 0 for each in ids), default=0), count)
        for key, text, importance, ids in records
    ]


@lru_cache(maxsize=1024)
def _memory_item(key: str, text: str, importance: int, seq: int, count: TokenCounter) -> MemoryItem:
    """Return a cached item, because every turn reads the same ones, with its text on one line."""
    line = sanitize_line(text)
    return MemoryItem(key, line, count(f"- {line}\n"), importance, seq)


def retrieval_query(state: ConversationState, window: Sequence[Entry], turn: Turn) -> RetrievalQuery:
    """Return the query that retrieves memories for a speaker's turn.

    It combines the aspect or topic with the message to answer. That message is a target of the turn, or else
    the newest message of another speaker in the window.
    """
    target_entries = entries_of(turn["targets"], state["full_transcript"])
    others = (entry for entry in reversed(window) if entry["speaker"] != turn["speaker"])
    answered_entry = target_entries[-1] if target_entries else next(others, None)
    aspect = state.get("step", {}).get("aspect") or OVERALL
    query = (state["topic"] if aspect == OVERALL else aspect)[:QUERY_CHARS]
    return RetrievalQuery(query, answered_entry["content"][:QUERY_CHARS] if answered_entry else "")
