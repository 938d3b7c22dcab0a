"""Messages as a question's view quotes them: whole, or chosen passages of a long one with visible marks.

A message of thousands of tokens says many things: taken as one text it resembles no question, and whole it
has no room. An index for questions therefore holds each passage of a long message as an entry of its own,
whose `seq` is a *key*: it says which message it is of and which part, and keys sort as passages were said.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from moot.nodes.prompts.rendering import speaker_label
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.tokens import CUT, TokenCounter, cut_middle
from moot.state.entries import Entry, JsonObject, entry_id, kind_of

HEADING = "# Messages\n"
NAME_CHARS = 60
TOO_LONG = "too long: cut around what bears on the question"
_LIKE_A_MESSAGE = re.compile(r"\n(?=[^\S\n]*\[?m\d)")
LONG_SHARE, LONG_TOKENS = 8, 1_000
"""A message is long beyond one eighth of the view, and beyond so many tokens in any view."""
PASSAGES, LEAST_TOKENS = 4, 32
"""A message that is just long has so many passages; tokens that a passage has at least."""
PARTS = 1 << 20
"""Passages that a message may have."""


class Place(NamedTuple):
    """What a key stands for."""

    seq: int
    """Of the message."""
    part: int
    """Number of the passage in it, from 0."""


class Span(NamedTuple):
    """Where a passage stands in its message's content."""

    start: int
    end: int


def key_of(place: Place) -> int:
    """Return the key of a passage."""
    return place.seq * PARTS + place.part


def place_of(key: int) -> Place:
    """Return what a key stands for."""
    return Place(*divmod(key, PARTS))


@dataclass(frozen=True)
class Splitting:
    """Which messages are split, and how finely."""

    long: int
    """Tokens up to which a message stays whole."""
    passage: int
    """Tokens of a passage, about."""

    @classmethod
    def within(cls, total: int) -> Splitting:
        """Return the splitting that suits views of `total` tokens."""
        long = min(LONG_TOKENS, total // LONG_SHARE)
        return cls(long, max(LEAST_TOKENS, long // PASSAGES))

    def spans(self, entry: Entry) -> list[Span]:
        """Return where the passages of an entry are: together they are its content.

        One ends where a sentence does, else at white space if there is any.
        """
        content, tokens = entry["content"], entry["tokens"]
        if tokens <= self.long:
            return [Span(0, len(content))]
        most = max(1, self.passage * len(content) // tokens)
        starts = [sentence.start for sentence in split_sentences(content)]
        spans, start = list[Span](), 0
        while len(content) - start > most:
            limit = start + most
            end = starts[bisect_right(starts, limit) - 1] if starts else 0
            if end <= start:
                end = max(content.rfind(" ", start, limit), content.rfind("\n", start, limit)) + 1
            end = end if end > start else limit
            spans.append(Span(start, end))
            start = end
        return [*spans, Span(start, len(content))]

    def pieces(self, entry: Entry) -> Iterable[Entry]:
        """Return an entry's passages as entries: each with its key for `seq` and its part of the tokens."""
        content = entry["content"]
        for part, (start, end) in enumerate(self.spans(entry)):
            tokens = entry["tokens"] * (end - start) // max(1, len(content))
            key = key_of(Place(entry["seq"], part))
            yield {**entry, "seq": key, "content": content[start:end], "tokens": tokens}


class EntryLines:
    """Entries as a question's view shows them, and what each costs."""

    def __init__(
        self, transcript: Sequence[Entry], names: Mapping[str, str], count: TokenCounter, splitting: Splitting
    ) -> None:
        self.transcript, self.names, self.count, self.splitting = transcript, names, count, splitting
        self._labels: dict[str, str] = {}
        self._spans: dict[int, list[Span]] = {}

    def text(self, seq: int) -> str:
        """Return an entry as one paragraph that no other can be mistaken for a part of."""
        return self._line(seq, self.transcript[seq]["content"])

    def cost(self, seq: int) -> int:
        """Return the tokens of an entry as shown."""
        return self.count(self.text(seq))

    def passages(self, keys: Iterable[int]) -> str:
        """Return the passages of `keys`, in order: one paragraph a message, a mark for each gap in it."""
        lines = []
        for seq, parts in by_message(keys):
            content, spans = self.transcript[seq]["content"], self.spans(seq)
            shown, end = list[str](), 0
            for start, after in (spans[part] for part in parts):
                shown += [CUT, content[start:after]] if start > end else [content[start:after]]
                end = after
            lines.append(self._line(seq, "".join([*shown, CUT.rstrip() if end < len(content) else ""])))
        return "".join(lines)

    def size(self, text: str) -> int:
        """Return the tokens that passages take under their heading."""
        return self.count(with_heading(text)) - self.count(HEADING)

    def key_cost(self, key: int) -> int:
        """Return the tokens of a passage where nothing beside it is shown."""
        return self.count(self.passages([key]))

    def is_part(self, key: int) -> bool:
        """Whether a key stands for less than its message."""
        return len(self.spans(place_of(key).seq)) > 1

    def keys(self, seqs: Iterable[int]) -> list[int]:
        """Return the keys of all passages of these messages."""
        return [key_of(Place(seq, part)) for seq in seqs for part in range(len(self.spans(seq)))]

    def spans(self, seq: int) -> list[Span]:
        """Return where the passages of a message are."""
        if seq not in self._spans:
            self._spans[seq] = self.splitting.spans(self.transcript[seq])
        return self._spans[seq]

    def lack(self, seq: int, shown: str) -> int:
        """Return the tokens of a message that what is shown of it lacks, about."""
        return max(0, self.transcript[seq]["tokens"] - self.count(shown))

    def _line(self, seq: int, content: str) -> str:
        entry = self.transcript[seq]
        who = entry["speaker"]
        if who not in self._labels:
            self._labels[who] = speaker_label(who, self.names, NAME_CHARS)
        said = content.strip()
        if "\n" in said:
            said = _LIKE_A_MESSAGE.sub("\n> ", said)
        return f"{entry['id']} {self._labels[who]}: {said}\n"


def with_heading(text: str) -> str:
    """Return passages as the message that a view shows."""
    return f"{HEADING}{text}".rstrip("\n")


def by_message(keys: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield `seq` and the numbers of the passages of each message that `keys`, in order, are of."""
    for seq, group in groupby(keys, key=lambda key: key // PARTS):
        yield seq, [key % PARTS for key in group]


@dataclass(frozen=True)
class Quoted:
    """The messages of a view."""

    text: str
    whole: tuple[int, ...]
    """`seq` of the messages shown in full."""
    cut: Mapping[int, int]
    """`seq` of those shown in part → tokens that they lack, about."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all of them, in order."""
        return tuple(map(entry_id, sorted((*self.whole, *self.cut))))

    def left_out(self, transcript: Sequence[Entry]) -> list[Entry]:
        """Return the entries of which nothing is shown."""
        shown = {*self.whole, *self.cut}
        return [e for e in transcript if e["seq"] not in shown and kind_of(e).shown]

    def notes(self, transcript: Sequence[Entry]) -> list[JsonObject]:
        """Return what is not there and why, for the receipt: `{what, why, tokens, count}` each."""
        notes: list[JsonObject] = [
            {"what": entry_id(seq), "why": TOO_LONG, "tokens": tokens, "count": 1}
            for seq, tokens in self.cut.items()
        ]
        gone = [entry["tokens"] for entry in self.left_out(transcript)]
        if gone:
            notes.append({"what": "messages", "why": "no room", "tokens": sum(gone), "count": len(gone)})
        return notes


def quote(keys: Sequence[int], lines: EntryLines, room: int) -> Quoted:
    """Return the messages and passages of `keys`, which are in order, within `room` tokens."""
    kept = list(keys)
    text = lines.passages(kept)
    while kept and lines.size(text) > room:  # joined lines may count a token more than each
        kept.remove(min(kept, key=lines.key_cost))
        text = lines.passages(kept)
    whole, cut = list[int](), dict[int, int]()
    for seq, parts in by_message(kept):
        if len(parts) == len(lines.spans(seq)):
            whole.append(seq)
        else:
            cut[seq] = lines.lack(seq, lines.passages(key_of(Place(seq, part)) for part in parts))
    return Quoted(text, tuple(whole), cut)


def quote_cut(key: int, lines: EntryLines, room: int) -> Quoted:
    """Return one passage cut in its middle, for where not even one has room."""
    text = cut_middle(lines.passages([key]), max(1, room), lines.count)
    seq = place_of(key).seq
    return Quoted(text, (), {seq: lines.lack(seq, text)})
