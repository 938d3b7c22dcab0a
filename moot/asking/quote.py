"""Quotations of messages and passages in the prompt for a question about a debate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from moot.config import DebateConfig
from moot.memory.passages import Place, Span, Splitting, by_message, key_of, place_of
from moot.prompts import templates, truncation
from moot.state import entries as entry_types
from moot.text.tokens import TRUNCATION_MARK, TokenCounter, truncate_middle

if TYPE_CHECKING:
    from moot.retrieval import EvidenceIndex

MESSAGES_HEADING = "# Messages"
LABEL_NAME_CHARS = 60
TOO_LONG = "too long: cut around what bears on the question"
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
        self._critiques = entry_types.critique_labels(transcript)
        self._whole: dict[tuple[int, str], str] = {}
        self._costs: dict[int, int] = {}
        self._spans: dict[int, list[Span]] = {}

    def share_counts(self, index: EvidenceIndex) -> None:
        """Reuse token counts and positions that earlier questions about the same transcript computed."""
        layout = self.fence, tuple(self.names.items()), self.count, self.splitting
        known = _COUNTS.setdefault(index, {})
        self._costs, self._spans = known.setdefault(layout, (self._costs, self._spans))

    def text(self, seq: int) -> str:
        """Return an entry as one paragraph, which alone begins with the fence."""
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
        """Return quoted messages, each with delimiters of its own, as one block under a heading."""
        return templates.fenced_items(text, self.fence, MESSAGES_HEADING)

    def size(self, text: str) -> int:
        """Return how many tokens `text` adds to a prompt, without the heading."""
        return self.count(self.block(text)) - self.count(self.block(""))

    def fit(self, index: EvidenceIndex, remaining: int) -> bool:
        """Return True if all passages fit in `remaining` tokens."""
        return self.total(index) <= remaining

    def total(self, index: EvidenceIndex) -> int:
        """Estimate the tokens of all passages, with labels as long as the newest message's."""
        if not len(index):
            return 0
        last = self.transcript[-1]
        label = max(0, self.cost(last["seq"]) - last["tokens"])
        return index.ends[-1] + label * len(index)

    def key_cost(self, key: int) -> int:
        """Return the number of tokens needed to quote only the passage with the given key."""
        if key not in self._costs:
            self._costs[key] = self.count(self.passages([key]))
        return self._costs[key]

    def is_part(self, key: int) -> bool:
        """Return True if `key` identifies only a part of a message."""
        return len(self.spans(place_of(key).seq)) > 1

    def has_source_time(self, key: int) -> bool:
        """Return True if a passage has its original time, other than the message above."""
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
        """Estimate how many tokens of a message the excerpt `quotation` leaves out."""
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
            self._labels[speaker] = truncation.speaker_label(speaker, self.names, LABEL_NAME_CHARS)
        notes = [truncation.critique_note(entry, self._critiques, self.names)]
        notes = [*filter(None, [truncation.room_note(entry, self.names), *notes])]
        label = " ".join([entry["id"], self._labels[speaker], *notes]) + time
        return templates.fenced_item(label, content.strip(), self.fence)


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
        """Return one note for each shortened message, and one for all omitted messages."""
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
    """Quote passages in at most `remaining` tokens, if necessary without the shortest ones."""
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
    """Quote one passage in at most `remaining` tokens, if necessary without its middle."""
    text = truncate_middle(lines.passages([key]), max(1, remaining), lines.count)
    seq = place_of(key).seq
    return Quoted(text, (), {seq: lines.lack(seq, text)})
