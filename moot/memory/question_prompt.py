"""Answers to questions about a debate: the prompt with retrieved messages, and the checked reply.

One model call answers, and its citations are checked. Without a model, the most relevant passages are the
answer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic import BaseModel, Field

from moot.calls.model_calls import CallGenerator, Prompt, WireMessage
from moot.claims.ledger_from_events import ledger_of
from moot.claims.ledger_rendering import render_blackboard
from moot.config import DebateConfig
from moot.memory.summarizers.rule_based import SummaryPoints, layout_points, render
from moot.prompts import templates, truncation
from moot.prompts.request import citation_type, make_call, model_params, narrow_schema
from moot.state import entries as entry_types
from moot.state.conversation import ConversationState, Omission
from moot.text import terms as text_terms
from moot.text.plain_text import sanitize_line
from moot.text.tokens import REPLY_PRIMING, TRUNCATION_MARK, TokenCounter, message_tokens, truncate_middle

if TYPE_CHECKING:
    from moot.retrieval import EvidenceIndex, RetrievalQuestion, SelectedEvidence
    from moot.retrieval.indexes import Indexes


HEADING = "# Messages"
NAME_CHARS = 60
TOO_LONG = "too long: cut around what bears on the question"
LONG_MESSAGE_DIVISOR = 8
"""Divisor for the length of a long message. A message is long if it has more than 1/`LONG_MESSAGE_DIVISOR` of
the prompt's tokens."""
LONG_TOKENS = 1_000
"""Number of tokens above which a message is always long."""
PASSAGES = 4
"""Approximate number of passages in the shortest long message."""
MIN_TOKENS = 32
"""Minimum number of tokens in a passage of a long message."""
PARTS = 1 << 20
"""Maximum number of passages into which a message is split."""


class Place(NamedTuple):
    """Position of a passage in the transcript, as a message number and a passage number."""

    seq: int
    """Number of the message that contains the passage (`seq`)."""
    part: int
    """Index of the passage within its message, starting at 0."""


class Span(NamedTuple):
    """Start and end of a passage, as character offsets in the message's content."""

    start: int
    end: int


def key_of(place: Place) -> int:
    """Encode a passage's place as one integer.

    The place consists of the message number and the passage number.
    """
    return place.seq * PARTS + place.part


def place_of(key: int) -> Place:
    """Decode a passage's place from one integer.

    The place consists of the message number and the passage number.
    """
    return Place(*divmod(key, PARTS))


@dataclass(frozen=True)
class Splitting:
    """Token limits for splitting long messages into passages."""

    long: int
    """Maximum number of tokens in a message that is not split into passages."""
    passage: int
    """Approximate number of tokens in each passage of a split message."""

    @classmethod
    def within(cls, total: int) -> Splitting:
        """Return the splitting limits for a prompt of `total` tokens."""
        long = min(LONG_TOKENS, total // LONG_MESSAGE_DIVISOR)
        return cls(long, max(MIN_TOKENS, long // PASSAGES))

    def spans(self, entry: entry_types.Entry) -> list[Span]:
        """Return the character range of each passage in an entry. Together they cover the whole content.

        A passage ends at a sentence boundary, or else at white space if there is any.
        """
        content, tokens = entry["content"], entry["tokens"]
        if tokens <= self.long:
            return [Span(0, len(content))]
        max_chars = max(1, self.passage * len(content) // tokens)
        starts = [sentence.start for sentence in text_terms.split_sentences(content)]
        spans, start = list[Span](), 0
        while len(content) - start > max_chars:
            limit = start + max_chars
            end = starts[bisect_right(starts, limit) - 1] if starts else 0
            if end <= start:
                end = max(content.rfind(" ", start, limit), content.rfind("\n", start, limit)) + 1
            end = end if end > start else limit
            spans.append(Span(start, end))
            start = end
        return [*spans, Span(start, len(content))]

    def chunks(self, entry: entry_types.Entry) -> Iterable[entry_types.Entry]:
        """Yield each passage of a transcript entry as an entry of its own.

        The `seq` of the new entry is the passage's key.
        """
        content = entry["content"]
        for part, (start, end) in enumerate(self.spans(entry)):
            tokens = entry["tokens"] * (end - start) // max(1, len(content))
            key = key_of(Place(entry["seq"], part))
            yield {**entry, "seq": key, "content": content[start:end], "tokens": tokens}


_Counts = tuple[dict[int, int], dict[int, list[Span]]]
_COUNTS: WeakKeyDictionary[EvidenceIndex, dict[tuple[object, ...], _Counts]] = WeakKeyDictionary()
"""Cache of the token counts and character ranges of passages. The keys are the transcript's search index and
the layout of the prompt. The values do not depend on the question."""


class EntryLines:
    """Renderer that converts transcript entries to prompt text and counts the tokens."""

    def __init__(
        self,
        transcript: Sequence[entry_types.Entry],
        config: DebateConfig,
        count: TokenCounter,
        splitting: Splitting,
    ) -> None:
        self.transcript, self.names, self.fence = transcript, config.names(), config.fence
        self.count, self.splitting = count, splitting
        self._labels: dict[str, str] = {}
        self._whole: dict[tuple[int, str], str] = {}
        self._costs: dict[int, int] = {}
        self._spans: dict[int, list[Span]] = {}

    def share_counts(self, index: EvidenceIndex) -> None:
        """Use the same cache for all questions about the transcript.

        The cache contains token counts and passage positions.
        """
        layout = self.fence, tuple(self.names.items()), self.count, self.splitting
        known = _COUNTS.setdefault(index, {})
        self._costs, self._spans = known.setdefault(layout, (self._costs, self._spans))

    def text(self, seq: int) -> str:
        """Return a transcript entry as one paragraph of prompt text.

        The paragraph begins with the fence, which no other line contains.
        """
        return self._paragraph(seq, truncation.source_time(self.transcript[seq]))

    def cost(self, seq: int) -> int:
        """Return the number of tokens that a transcript entry needs in a prompt."""
        return self.count(self.text(seq))

    def passages(self, keys: Iterable[int]) -> str:
        """Return the passages as text with one paragraph per message, marking each gap between passages.

        A message shows its time unless the message above it in the text has the same time.
        """
        lines, time_above = [], ""
        for seq, parts in by_message(keys):
            time = truncation.source_time(self.transcript[seq])
            shown_time = "" if time == time_above else time
            if len(parts) == len(self.spans(seq)):
                lines.append(self._paragraph(seq, shown_time))
            else:
                lines.append(self._line(seq, self._excerpt(seq, parts), shown_time))
            time_above = time
        return "".join(lines)

    def block(self, text: str) -> str:
        """Return the text of the quoted messages as one prompt block under a heading.

        Each message has its own delimiters.
        """
        return templates.fenced_items(text, self.fence, HEADING)

    def size(self, text: str) -> int:
        """Return how many tokens `text` adds to a prompt.

        The heading of the quoted messages does not count.
        """
        return self.count(self.block(text)) - self.count(self.block(""))

    def fit(self, index: EvidenceIndex, remaining: int) -> bool:
        """Return True if all passages in the index fit in `remaining` tokens.

        Labels are assumed to be as long as that of the newest message.
        """
        if not len(index):
            return True
        last = self.transcript[-1]
        label = max(0, self.cost(last["seq"]) - last["tokens"])
        return index.ends[-1] + label * len(index) <= remaining

    def key_cost(self, key: int) -> int:
        """Return the number of tokens needed to quote only the passage with the given key."""
        if key not in self._costs:
            self._costs[key] = self.count(self.passages([key]))
        return self._costs[key]

    def is_part(self, key: int) -> bool:
        """Return True if `key` identifies only a part of a message."""
        return len(self.spans(place_of(key).seq)) > 1

    def has_source_time(self, key: int) -> bool:
        """Return True if the passage's message has its original time.

        A prompt omits the original time if the message above has the same one.
        """
        return bool(truncation.source_time(self.transcript[place_of(key).seq]))

    def keys(self, seqs: Iterable[int]) -> list[int]:
        """Return the integer keys of all passages in the messages listed in `seqs`."""
        return [key_of(Place(seq, part)) for seq in seqs for part in range(len(self.spans(seq)))]

    def spans(self, seq: int) -> list[Span]:
        """Return the character range of each passage in a message."""
        if seq not in self._spans:
            self._spans[seq] = self.splitting.spans(self.transcript[seq])
        return self._spans[seq]

    def lack(self, seq: int, quotation: str) -> int:
        """Estimate how many tokens of a message are left out of an excerpt.

        The excerpt is `quotation`.
        """
        return max(0, self.transcript[seq]["tokens"] - self.count(quotation))

    def _paragraph(self, seq: int, time: str) -> str:
        """Return a whole message as one paragraph of a prompt."""
        if (seq, time) not in self._whole:
            self._whole[seq, time] = self._line(seq, self.transcript[seq]["content"], time)
        return self._whole[seq, time]

    def _excerpt(self, seq: int, parts: Iterable[int]) -> str:
        """Return the given passages of a message as text, with a mark at each gap."""
        content, spans = self.transcript[seq]["content"], self.spans(seq)
        texts, end = list[str](), 0
        for start, stop in (spans[part] for part in parts):
            texts += [TRUNCATION_MARK, content[start:stop]] if start > end else [content[start:stop]]
            end = stop
        return "".join([*texts, TRUNCATION_MARK.rstrip() if end < len(content) else ""])

    def _line(self, seq: int, content: str, time: str) -> str:
        entry = self.transcript[seq]
        speaker = entry["speaker"]
        if speaker not in self._labels:
            self._labels[speaker] = truncation.speaker_label(speaker, self.names, NAME_CHARS)
        room = f" {note}" if (note := truncation.room_note(entry, self.names)) else ""
        label = f"{entry['id']} {self._labels[speaker]}{room}{time}"
        return templates.fenced_item(label, content.strip(), self.fence)


def by_message(keys: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    """Group passages by message.

    Yield the number of each message with the numbers of its passages.
    """
    for seq, group in groupby(keys, key=lambda key: key // PARTS):
        yield seq, [key % PARTS for key in group]


@dataclass(frozen=True)
class Quoted:
    """Messages and passages that a prompt quotes."""

    text: str
    full_seqs: tuple[int, ...]
    """Sequence number (`seq`) of each message that the prompt shows in full."""
    cut: Mapping[int, int]
    """Approximate number of tokens left out of each shortened message, keyed by `seq`."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all messages that the prompt quotes, in transcript order."""
        return tuple(map(entry_types.entry_id, sorted((*self.full_seqs, *self.cut))))

    def omitted(self, transcript: Sequence[entry_types.Entry]) -> list[entry_types.Entry]:
        """Return the transcript entries that the prompt does not quote at all."""
        quoted_seqs = {*self.full_seqs, *self.cut}
        return [
            entry
            for entry in transcript
            if entry["seq"] not in quoted_seqs and entry_types.traits_of(entry).in_prompts
        ]

    def notes(self, transcript: Sequence[entry_types.Entry]) -> list[entry_types.JsonObject]:
        """Return notes about shortened and omitted messages.

        There is one note per shortened message, and one for all omitted messages.
        """
        notes: list[entry_types.JsonObject] = [
            {"what": entry_types.entry_id(seq), "why": TOO_LONG, "tokens": tokens, "count": 1}
            for seq, tokens in self.cut.items()
        ]
        omitted_tokens = [entry["tokens"] for entry in self.omitted(transcript)]
        if omitted_tokens:
            notes.append(
                {
                    "what": "messages",
                    "why": "no room",
                    "tokens": sum(omitted_tokens),
                    "count": len(omitted_tokens),
                }
            )
        return notes


def quote(keys: Sequence[int], lines: EntryLines, remaining: int) -> Quoted:
    """Quote passages in at most `remaining` tokens.

    The shortest ones are left out if necessary.
    """
    quoted_keys = list(keys)
    text = lines.passages(quoted_keys)
    while quoted_keys and lines.size(text) > remaining:  # joined lines may have one more token each
        quoted_keys.remove(min(quoted_keys, key=lines.key_cost))
        text = lines.passages(quoted_keys)
    whole_seqs, cut_tokens = list[int](), dict[int, int]()
    for seq, parts in by_message(quoted_keys):
        if len(parts) == len(lines.spans(seq)):
            whole_seqs.append(seq)
        else:
            cut_tokens[seq] = lines.lack(seq, lines.passages(key_of(Place(seq, part)) for part in parts))
    return Quoted(text, tuple(whole_seqs), cut_tokens)


def quote_cut(key: int, lines: EntryLines, remaining: int) -> Quoted:
    """Quote one passage in at most `remaining` tokens.

    The middle of the passage is cut out if necessary.
    """
    text = truncate_middle(lines.passages([key]), max(1, remaining), lines.count)
    seq = place_of(key).seq
    return Quoted(text, (), {seq: lines.lack(seq, text)})


ASK = templates.load_prompt_template("ask", "topic", "speakers", "verdict", "fence", "times")
_TIMES = (
    "A time in parentheses applies to its message and to all following messages until another time is given. "
)
VERDICT_ID = "verdict"
"""Id with which answers cite the verdict. The verdict is not in the transcript, so it has no message id."""
_VERDICT = f"The verdict of the judge, or of a vote, follows them. Its id is `{VERDICT_ID}`. "
_VERDICT_HEADING = f"# Verdict (id: {VERDICT_ID})"
QUESTION = templates.load_prompt_template("question", "question")

SUMMARY_SHARE = 0.125
"""Maximum share of the prompt's token budget for the summary."""
RECENT_SHARE = 0.15
"""Maximum share of the prompt's token budget for the latest messages. Retrieved messages get the rest of the
budget."""
FOCUS = 0.35
"""Minimum probability that a few messages contain the answer.

It is the result of `concentration`. A question with a lower result is treated as one about the whole
transcript. Of LoCoMo's questions about facts, 97 % reach it. Of twenty questions about a whole transcript,
such as "Who won?", asked of five conversations and seven meetings, 25 % reach it."""
NOT_BROAD = "the question is about certain messages"
"""Reason for omitting the debate's summary from a prompt."""
FRAME_SHARE = 0.2
"""Maximum share of the prompt's token budget for the instruction message. The same share applies to the
question."""
VERDICT_SHARE = 0.15
"""Maximum share of the prompt's token budget that the verdict may use."""
LEDGER_SHARE = 0.4
"""Maximum share of the summary's tokens for the debaters' positions."""

# Chinese function words, longest first, and all other characters outside Han and Katakana
_BETWEEN = re.compile(
    "|".join(
        sorted(filter(text_terms.is_unspaced, text_terms.QUESTION_WORDS), key=lambda word: (-len(word), word))
    )
    + "|[^\u3005\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
)


class JudgedResult(NamedTuple):
    """Result of a judged debate as text."""

    decision: str
    """Decision in one line. It names the winner if nothing was decided."""
    text: str
    """The verdict as Markdown."""


@dataclass(frozen=True)
class QuestionPrompt:
    """Prompt for a question about a debate, including the messages selected for it."""

    question: str
    prompt: Prompt
    messages: Quoted
    remaining: int
    """Number of prompt tokens that are available for messages of the debate."""
    unknown: tuple[str, ...]
    """Words in the question that do not occur in the transcript."""
    failure: str = ""
    """Error message of the embedding model, or `""` if the embedding succeeded."""
    result: JudgedResult | None = None
    """Verdict that the prompt shows, or `None` if the debate is not judged."""


def question_prompt(
    state: ConversationState,
    config: DebateConfig,
    question: str,
    index: EvidenceIndex,
    count: TokenCounter,
    *,
    budget: int | None = None,
    result: JudgedResult | None = None,
) -> QuestionPrompt:
    """Return the prompt for a question, including the summary, the verdict and relevant messages.

    The messages are selected for the question until the budget is full. A question about the whole transcript
    also gets the summary and the most recent messages. A question about certain messages gets more of them
    instead, because the summary and the most recent messages seldom answer it. If all messages fit, the
    summary is shown too.
    """
    from moot.retrieval import concentration, probabilities, read_question, select_evidence

    total = config.memory.budget.total if budget is None else budget
    parsed_question, failure = read_question(index, question), ""
    try:
        chances = probabilities(index, parsed_question)
    except Exception as error:  # a failing embedding service must not fail the answer
        if index.vectors is None:
            raise
        failure = f"{type(error).__name__}: {error}"
        chances = probabilities(index, parsed_question, semantic=False)
    share = int(total * FRAME_SHARE)
    question_text = QUESTION.render(
        question=templates.fenced(truncate_middle(question, max(8, share - 60), count), config.fence)
    )
    turn_suffix = truncation.Block(
        "turn_suffix",
        truncation.cut_message({"role": "user", "content": question_text}, share, count),
        label="question",
    )
    lines = entry_lines(state, config, count)
    lines.share_counts(index)
    frame: WireMessage = {"role": "user", "content": lines.block("")}

    def remaining_beside(prefix: Sequence[truncation.Block]) -> int:
        fixed_messages = (*(block.message for block in prefix), frame, turn_suffix.message)
        return total - REPLY_PRIMING - sum(message_tokens(message, count) for message in fixed_messages)

    shared_prefix = _shared_prefix(state, config, total, count, result)
    remaining = remaining_beside(shared_prefix)
    has_overview = lines.fit(index, remaining) or concentration(index, chances) < FOCUS
    if not has_overview:
        shared_prefix = _shared_prefix(state, config, total, count, result, summarize=False)
        remaining = remaining_beside(shared_prefix)
    recent = recent_seqs(state, lines, total) if has_overview else []
    pins = (entry["seq"] for entry in truncation.pinned_entries(state))
    mentioned_seqs = named_seqs(question, len(state["full_transcript"]))
    select = partial(
        select_evidence,
        index,
        parsed_question,
        chances=chances,
        costs=lines.key_cost,
        must_keep=lines.keys(recent),
        mentioned_seqs=lines.keys([*_seqs_asked_for(state, index, parsed_question, mentioned_seqs), *pins]),
    )
    quoted = _fill_remaining(select, lines, remaining)
    messages: WireMessage = {"role": "user", "content": lines.block(quoted.text)}
    message_blocks = (
        [truncation.Block("messages", messages, ids=quoted.ids, label="messages")] if len(index) else []
    )
    verdict_texts = [_VERDICT, *result] if result else []
    unknown = unsaid_words(
        parsed_question, config.names(), others=[*map(entry_types.entry_id, mentioned_seqs), *verdict_texts]
    )
    prompt = truncation.truncate_blocks([*shared_prefix, *message_blocks, turn_suffix], total, count)
    if (summary := str(state.get("rolling_summary", {}).get("text", ""))) and not has_overview:
        note: Omission = {"what": "summary", "why": NOT_BROAD, "tokens": count(summary), "count": 1}
        prompt = replace(prompt, omitted=(*prompt.omitted, note))
    return QuestionPrompt(
        question,
        prompt,
        quoted,
        remaining,
        unknown,
        failure,
        result,
    )


def _seqs_asked_for(
    state: ConversationState,
    index: EvidenceIndex,
    parsed_question: RetrievalQuestion,
    mentioned_seqs: Sequence[int],
) -> set[int]:
    """Return the numbers of the messages to which a question refers.

    A question refers to the messages that it names by id. If the question also names a speaker, all messages
    of that speaker are included. Changes of position on the question's subject are included, each with the
    earlier position and the message it answers.
    """
    transcript, ledger = state["full_transcript"], ledger_of(state)
    speakers = {index.speakers[number] for number in parsed_question.speakers}
    seqs = set(mentioned_seqs)
    if mentioned_seqs and speakers:
        seqs |= {entry["seq"] for entry in transcript if entry["speaker"] in speakers}
    for change in ledger.changes:
        events = [change.event, *([change.before] if change.before else [])]
        claim = ledger.claims.get(change.event["claim"])
        words = text_terms.term_set(
            " ".join([claim["text"] if claim else "", *(each["quote"] for each in events)])
        )
        if words & parsed_question.terms.keys() and (not speakers or change.event["debater"] in speakers):
            event_seqs = list(entry_types.seqs_of(each["message_id"] for each in events))
            seqs |= {*event_seqs, max(1, event_seqs[0] - 1)}
    return seqs


def named_seqs(question: str, entries: int) -> list[int]:
    """Return the numbers of the existing messages whose ids occur in a question."""
    mentioned_seqs = map(entry_types.seq_of, entry_types.ids_in(question.lower()))
    return [seq for seq in dict.fromkeys(mentioned_seqs) if seq is not None and seq < entries]


def _fill_remaining(select: Callable[..., SelectedEvidence], lines: EntryLines, remaining: int) -> Quoted:
    """Quote as many selected messages as fit in `remaining` tokens.

    The function `select` selects them.
    """
    evidence = select(budget=remaining)
    if evidence.oversize is not None:
        return quote_cut(evidence.oversize, lines, remaining)
    if evidence.omitted and any(lines.is_part(key) or lines.has_source_time(key) for key in evidence.seqs):
        # Passages side by side cost less than the sum of their single costs.
        saved_tokens = evidence.tokens - lines.size(lines.passages(evidence.seqs))
        more_evidence = select(budget=remaining + max(0, saved_tokens))
        evidence = more_evidence if lines.size(lines.passages(more_evidence.seqs)) <= remaining else evidence
    return quote(evidence.seqs, lines, remaining)


def entry_lines(state: ConversationState, config: DebateConfig, count: TokenCounter) -> EntryLines:
    """Return a renderer that formats a debate's messages for a question-answering prompt."""
    splitting = Splitting.within(config.memory.budget.total)
    return EntryLines(state["full_transcript"], config, count, splitting)


def ask_index(
    indexes: Indexes, debate: str, state: ConversationState, config: DebateConfig, embeddings: Any = None
) -> EvidenceIndex:
    """Return a search index over the passages of all messages, for answering questions about a debate."""
    splitting = Splitting.within(config.memory.budget.total)
    use = f"ask {splitting.long}"
    return indexes.of(
        debate, use, state["full_transcript"], config.names(), embeddings, split=splitting.chunks
    )


def _shared_prefix(
    state: ConversationState,
    config: DebateConfig,
    total: int,
    count: TokenCounter,
    result: JudgedResult | None,
    *,
    summarize: bool = True,
) -> list[truncation.Block]:
    """Return the first messages of a prompt for a question about a debate.

    The messages contain the instruction and, if available, the debaters' positions, the summary and the
    verdict.

    `summarize=False` omits the summary.
    """
    share = int(total * FRAME_SHARE)
    speakers = sanitize_line(", ".join(dict.fromkeys(debater.name for debater in config.debaters)))
    text = ASK.render(
        topic=templates.fenced(truncate_middle(state["topic"], share // 3, count), config.fence),
        speakers=truncate_middle(speakers, share // 3, count),
        verdict=_VERDICT if result else "",
        fence=config.fence,
        times=_TIMES if any(map(truncation.source_time, state["full_transcript"])) else "",
    )
    message = truncation.cut_message(templates.system_message(text, config.fence), share, count)
    shared_prefix = [truncation.Block("system", message, label="instruction")]

    share, names = int(total * SUMMARY_SHARE), config.names()
    max_tokens = int((share - 16) * LEDGER_SHARE)
    board = render_blackboard(state, "", max_tokens=max_tokens, count=count, names=names)
    size = share - 16 - count(board) - 8 - 2 * templates.FENCE_TOKENS
    summary = _summary_text(state, size, names, count) if summarize else ""
    text = "\n\n".join(
        filter(
            None,
            [
                templates.fenced(summary, config.fence, "# Summary") if summary else "",
                templates.fenced_section(board, config.fence),
            ],
        )
    )
    if text:
        message = truncation.cut_message({"role": "user", "content": text}, share, count)
        shared_prefix.append(
            truncation.Block("summary", message, truncation.SUMMARY, label="summary and ledger")
        )
    if result:
        verdict: WireMessage = {
            "role": "user",
            "content": templates.fenced(result.text, config.fence, _VERDICT_HEADING),
        }
        max_tokens = int(total * VERDICT_SHARE)
        shared_prefix.append(
            truncation.Block("verdict", truncation.cut_message(verdict, max_tokens, count), label="verdict")
        )
    return shared_prefix


def _summary_text(
    state: ConversationState, remaining: int, names: Mapping[str, str], count: TokenCounter
) -> str:
    """Return the rolling summary in at most `remaining` tokens."""
    summary = state.get("rolling_summary", {})
    text = str(summary.get("text", ""))
    if not text or remaining <= 0 or count(text) <= remaining:
        return text if remaining > 0 else ""
    points: Any = summary.get("points")
    if points and str(summary.get("method", "")).startswith("rule-based"):
        return _summary_shortener(points, names, count)(remaining)
    return truncate_middle(text, remaining, count)


@entry_types.memoize_by_identity(8)  # all questions about a state show the same summary
def _summary_shortener(
    points: SummaryPoints, names: Mapping[str, str], count: TokenCounter
) -> Callable[[int], str]:
    """Return a function that shortens a rule-based summary to a given number of tokens."""

    @lru_cache(maxsize=8)
    def shorten(remaining: int) -> str:
        return render(layout_points(points, max_tokens=remaining, count=count, names=names), names)

    return shorten


def recent_seqs(state: ConversationState, lines: EntryLines, total: int) -> list[int]:
    """Return the newest messages that fit in the prompt's share for them.

    The values are message numbers. The share is `RECENT_SHARE` of the prompt's tokens.
    """
    remaining, seqs = int(total * RECENT_SHARE), list[int]()
    for entry in reversed(state["full_transcript"]):
        if entry["tokens"] > remaining or not entry_types.traits_of(entry).in_prompts:
            break
        remaining -= lines.cost(entry["seq"])
        if remaining < 0:
            break
        seqs.append(entry["seq"])
    return seqs


def unsaid_words(
    question: RetrievalQuestion, names: Mapping[str, str], *, others: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the content words of a question that occur in no known text.

    Known texts are the transcript, the speakers' `names` and `others`, such as the verdict.

    For Chinese and Katakana, which have no spaces between words, the result holds each stretch of characters
    of which no adjacent pair occurs in the transcript. Other scripts without spaces give no result, because
    word limits are unknown.
    """
    name_terms = frozenset(
        text_terms.terms(
            " ".join([*names, *names.values(), *truncation.PEOPLE, *truncation.PEOPLE.values(), *others])
        )
    )
    unknown = frozenset(question.unknown) - name_terms - text_terms.question_word_terms()
    words: dict[str, None] = {}
    for run in map(str.casefold, text_terms.spellings(question.text)):
        if not text_terms.is_unspaced(run):
            if len(run) > 1 and not unknown.isdisjoint(text_terms.terms(run)):
                words[run] = None
            continue
        # Split text without spaces at known pairs of characters.
        pairs = [place for place in range(len(run) - 1) if run[place : place + 2] not in unknown]
        known = {*pairs, *(place + 1 for place in pairs)}
        rest = "".join(" " if place in known else character for place, character in enumerate(run))
        words |= dict.fromkeys(part for part in _BETWEEN.sub(" ", rest).split() if len(part) > 1)
    return tuple(words)


PASSAGE = Splitting(long=48, passage=48)
"""Limits for splitting messages into short passages of two or three sentences."""
MOST_PASSAGES = 5
"""Maximum number of passages that answer a question if no model is configured."""
NO_MODEL = "No model is configured. These are the most relevant passages."
NOTHING = "No model is configured, and no message shares a word with the question."
QUOTE_TRUNCATION_MARK = "[…]"


class AskAnswer(BaseModel):
    """A model's structured answer to a question about a debate."""

    reasoning: str = Field(
        description="Facts about the question that are in the transcript, and facts that are missing from it."
    )
    answer: str = Field(description="The answer in Markdown, citing message ids in brackets.")
    citations: list[str] = Field(description="Ids of the messages that support the answer.")
    not_found: list[str] = Field(
        description="Parts of the question that the transcript does not answer. Empty if there are none."
    )


ANSWER_SCHEMA = narrow_schema(AskAnswer, {"citations": citation_type(())})
"""Schema of the model's answer to a question about a debate that has no verdict. The message ids are omitted,
because a list of 200 takes 1,250 tokens of the prompt."""
JUDGED_SCHEMA = narrow_schema(AskAnswer, {"citations": citation_type((), [VERDICT_ID])})
"""Schema of the model's answer to a question about a judged debate. The answer can also cite the verdict."""


def answer_schema(shown_ids: Sequence[str], result: JudgedResult | None = None) -> type[AskAnswer]:
    """Return the schema of an answer that can cite only the messages in `shown_ids`.

    If there is a `result`, the answer can also cite the verdict.
    """
    others = [VERDICT_ID] if result else []
    return narrow_schema(AskAnswer, {"citations": citation_type(shown_ids, others)})


NO_ANSWER = AskAnswer(reasoning="", answer="", citations=[], not_found=["the model did not answer"])


@dataclass(frozen=True)
class DebateAnswer:
    """Answer to a person's question about a debate."""

    text: str
    """Text of the answer as Markdown, or `""` if the transcript contains no answer."""
    citations: tuple[str, ...]
    """Ids of the existing messages that the answer cites, in order. `verdict` stands for the verdict."""
    not_found: tuple[str, ...]
    """Parts of the question that the transcript does not answer."""
    dropped: int
    """Number of citations that were removed from the answer because the cited message does not exist."""
    model: str
    usage: Mapping[str, Any]
    placeholder: bool = False
    """True if no model answered, so that the answer only quotes passages."""
    receipt: Mapping[str, Any] = field(default_factory=dict)
    """Record of what the prompt contains, such as its message ids and the tokens per section. The record
    also lists omissions with reasons, unknown terms, and errors of the embedding model."""

    def to_markdown(self) -> str:
        """Return the answer as Markdown, including its citations and any unanswered parts of the question."""
        unsaid = "\n".join(["Not in the transcript:", *(f"- {each}" for each in self.not_found)])
        cited = f"From {', '.join(self.citations)}." if self.citations and not self.placeholder else ""
        return "\n\n".join(filter(None, [self.text, cited, unsaid if self.not_found else ""]))

    def to_json(self) -> entry_types.JsonObject:
        """Return the answer as JSON-compatible data for a JSON file or an API response."""
        return {
            "answer": self.text,
            "citations": list(self.citations),
            "not_found": list(self.not_found),
            "dropped_citations": self.dropped,
            "model": self.model,
            **({"placeholder": True} if self.placeholder else {}),
            "usage": dict(self.usage),
            "receipt": dict(self.receipt),
        }


def ask(
    state: ConversationState,
    config: DebateConfig,
    request: QuestionPrompt,
    schema: type[AskAnswer] = ANSWER_SCHEMA,
) -> CallGenerator[DebateAnswer]:
    """Answer a question about the debate with one model call.

    Raises:
        ModelError: no model answered.
    """
    params, length = model_params(config, config.judge), config.memory.budget.reply
    (reply,) = yield [make_call(params, "ask", request.prompt, schema=schema, reply=length)]
    data = reply.require().data
    response = AskAnswer.model_validate(data) if data else NO_ANSWER
    transcript, prompt = state["full_transcript"], request.prompt
    others = [VERDICT_ID] if request.result else []
    citations, dropped = check_citations(response.citations, len(transcript), others)
    text, not_found = response.answer.strip(), response.not_found
    if reply.placeholder:
        not_found = list(request.unknown)
        quoted_entries = [transcript[seq] for seq in (*request.messages.full_seqs, *request.messages.cut)]
        mentioned_seqs = named_seqs(request.question, len(transcript))
        text, citations = extract_for(
            request.question, sorted(quoted_entries, key=itemgetter("seq")), config.names(), mentioned_seqs
        )
        text = f"The verdict: {request.result.decision}\n\n{text}" if request.result else text
    return DebateAnswer(
        text=text,
        citations=citations,
        not_found=tuple(filter(None, map(str.strip, not_found))),
        dropped=dropped,
        model=reply.model,
        usage=dict(reply.usage),
        placeholder=reply.placeholder,
        receipt={
            "budget": prompt.budget,
            "total_tokens": prompt.total_tokens,
            "sections": dict(prompt.sections),
            "message_ids": list(prompt.shown_ids),
            "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
            "messages_read": entry_types.message_count(entry_types.entries_of(prompt.shown_ids, transcript)),
            "messages_left_out": entry_types.message_count(request.messages.omitted(transcript)),
            "omitted": [*prompt.omitted, *request.messages.notes(transcript)],
            "unknown_terms": list(request.unknown),
            "embeddings_error": request.failure,
        },
    )


def check_citations(
    cited: Iterable[str], entries: int, others: Sequence[str] = ()
) -> tuple[tuple[str, ...], int]:
    """Return the cited ids that exist, and how many others were cited.

    Duplicates are removed. `others` are valid ids of something other than a transcript entry, such as the
    verdict.
    """
    cited_ids = [entry_types.cited_id(text) for text in cited]
    existing_ids = [
        key
        for key in cited_ids
        if key in others or ((seq := entry_types.seq_of(key)) is not None and seq < entries)
    ]
    return tuple(dict.fromkeys(existing_ids)), len(cited_ids) - len(existing_ids)


class Extract(NamedTuple):
    """Passages that answer a question, selected without a model and listed in transcript order."""

    text: str
    """Passages as a Markdown list that has one item per message."""
    ids: tuple[str, ...]


def extract_for(
    question: str,
    entries: Sequence[entry_types.Entry],
    names: Mapping[str, str],
    asked_for: Sequence[int] = (),
) -> Extract:
    """Return the passages that best match a question.

    `asked_for` holds the `seq` of messages that the question names by id. If there are any, the passages are
    from these messages alone, starting with the first if none matches.
    """
    from moot.retrieval import EvidenceIndex, read_question, retrieve

    # The importance of an entry does not affect the rank of its passages.
    candidates = [entry for entry in entries if not asked_for or entry["seq"] in asked_for]
    chunks: list[entry_types.Entry] = [
        {**chunk, "importance": 0} for entry in candidates for chunk in PASSAGE.chunks(entry)
    ]
    index = EvidenceIndex(chunks, names=names)
    parsed_question = read_question(index, question)
    speakers = {index.speakers[number] for number in parsed_question.speakers}
    excluded_seqs = {chunk["seq"] for chunk in chunks if speakers and chunk["speaker"] not in speakers}
    remaining = sum(index.tokens)
    keys = retrieve(
        index,
        parsed_question.text_to_embed,
        budget=remaining,
        exclude=excluded_seqs,
        top=MOST_PASSAGES,
        neighbours=0,
    ).seqs
    keys = keys or tuple(chunk["seq"] for chunk in chunks[: MOST_PASSAGES if asked_for else 0])
    by_key = {chunk["seq"]: chunk for chunk in chunks}
    lines, ids = list[str](), list[str]()
    for seq, parts in by_message(keys):
        # A mark shows each omission in a message.
        words, next_part = list[str](), 0
        for part in parts:
            words += [QUOTE_TRUNCATION_MARK] if part > next_part else []
            words.append(sanitize_line(by_key[key_of(Place(seq, part))]["content"]))
            next_part = part + 1
        words += [QUOTE_TRUNCATION_MARK] if key_of(Place(seq, next_part)) in by_key else []
        speaker = sanitize_line(
            truncation.display_name(by_key[key_of(Place(seq, parts[0]))]["speaker"], names)
        )
        lines.append(f"- [{entry_types.entry_id(seq)}] {speaker}: {' '.join(words)}")
        ids.append(entry_types.entry_id(seq))
    return Extract("\n".join([NO_MODEL, "", *lines]) if lines else NOTHING, tuple(ids))
