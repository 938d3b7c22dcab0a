"""Transcript entries: one utterance each, as plain JSON dicts."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from moot.state.errors import InputError

JsonObject = dict[str, Any]
"""What one reader alone knows the shape of, who is named beside it."""

EntryKind = Literal[
    "topic",  # what the debate is about, as given by the user
    "context",  # a context document
    "speech",  # a turn in the long form, an opening, a take, a reply, a closing
    "proposal",
    "critique",
    "refinement",
    "question",  # a clarification question
    "answer",  # a person's answer to one
    "interjection",  # said from the floor by a person
    "tool_call",
    "tool_result",
    "notice",  # Moot's own note: a missing critique, a skipped floor
]


Gift = Literal["", "topic", "document", "answer", "remark"]


@dataclass(frozen=True)
class Kind:
    """What is true of every entry of one kind."""

    by: Literal["debater", "person", "tools", "moot"] = "debater"
    argues: bool = False
    """Whether it argues for something: it counts for its speaker on the blackboard and before a judge."""
    takes_turn: bool = False
    """Whether a debater's turn is over with it; a notice stands for a floor that failed."""
    proposes: bool = False
    """Whether its speaker puts forward what is to be done."""
    gift: Gift = ""
    """What people gave the debate with it; an answer's question goes with it."""
    pair: Literal["", "opens", "closes"] = ""
    """Whether the next entry that targets it belongs to it, or it to the one that it targets."""
    tool: bool = False
    importance: int = 1
    """What it is rated at least, 1–10."""

    @property
    def shown(self) -> bool:
        """Whether it is a message in views: the topic is not, for their rules hold it."""
        return self.gift != "topic"

    @property
    def spoken(self) -> bool:
        """Whether somebody said it to the others: no document, no call of a tool, no note of Moot's."""
        return self.argues or self.gift == "answer"

    @property
    def mechanical(self) -> bool:
        """Whether tools or Moot itself made it."""
        return self.tool or self.by == "moot"


KINDS: Mapping[str, Kind] = {
    "topic": Kind(by="person", gift="topic", importance=6),
    "context": Kind(by="person", gift="document"),
    "speech": Kind(argues=True, takes_turn=True),
    "proposal": Kind(argues=True, takes_turn=True, proposes=True, importance=6),
    "critique": Kind(argues=True, takes_turn=True),
    "refinement": Kind(argues=True, takes_turn=True, proposes=True, importance=6),
    "question": Kind(gift="answer", pair="opens", importance=7),
    "answer": Kind(by="person", argues=True, gift="answer", pair="closes", importance=7),
    "interjection": Kind(by="person", argues=True, gift="remark", importance=8),
    "tool_call": Kind(pair="opens", tool=True),
    "tool_result": Kind(by="tools", pair="closes", tool=True),
    "notice": Kind(by="moot", takes_turn=True, importance=6),
}
"""The kinds of entries: whoever treats some of them differently asks this table, by `kind_of`."""


class EntryUsage(TypedDict, total=False):
    """Tokens that one model call used, as the provider reported or Moot counted them."""

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost_usd: float
    recounted: int
    """Calls that Moot counted because the provider reported what cannot be."""


def tokens_of(usage: Mapping[str, Any]) -> int:
    """Return the tokens of calls, prompts and answers, from what they used."""
    return int(usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0))


class ToolUse(TypedDict):
    """A call of a tool, as its result's record."""

    name: str
    about: str
    """Path, command or query of the call, at most 80 characters, `""` for none."""
    failed: bool


class Entry(TypedDict):
    """One utterance of the transcript. JSON types only; never changed once appended."""

    id: str
    """`m000123`: "m" and the six-digit `seq`; wider past 999,999."""
    seq: int
    """Position in the transcript, from 0, without gaps."""
    speaker: str
    """Slug id of who spoke; `user` for the person who opened the debate, `moot` for notices."""
    kind: EntryKind
    """What sort of utterance it is."""
    phase: str
    """Phase of the protocol, such as `propose`; `""` before the first."""
    round: int
    """Round of the protocol, from 1; 0 before the first."""
    room: str
    """Crux room id, `""` on the main floor."""
    targets: list[str]
    """What it answers: ids of debaters or of entries."""
    content: str
    """The words, cleaned of NUL and lone surrogates."""
    tokens: int
    """Exact tokens of `content` alone, counted once, when the entry is born."""
    importance: int
    """1–10, as `record` rates it; 7 and above is always worth retrieving."""
    at: str
    """UTC time, ISO 8601."""
    model: str
    """Model that wrote it, `""` for a person or Moot itself."""
    usage: EntryUsage
    """Tokens of the call that produced it, `{}` where there was none."""
    tool: NotRequired[ToolUse]
    """Of what a tool returned: the call that it answers."""


class GivenEntry(TypedDict):
    """One utterance of a transcript to continue; what is left out is made."""

    speaker: str
    """Slug id of who spoke."""
    content: str
    """The words."""
    kind: NotRequired[EntryKind]
    """`speech` where it is left out."""
    phase: NotRequired[str]
    """Of the protocol, when it was said."""
    round: NotRequired[int]
    """Of the protocol, from 1; 0 before the first."""
    room: NotRequired[str]
    """Id of the crux room in which it was said."""
    importance: NotRequired[int]
    """From 1 to 10."""
    at: NotRequired[str]
    """UTC time, ISO 8601."""
    model: NotRequired[str]
    """Whose words they are, where a model's."""


ENTRY_ID = re.compile(r"\bm\d{6,}\b")
"""An entry's id, wherever it stands in a text."""
_NUMBER = re.compile(r"m?0*(\d{1,9})")


def entry_id(seq: int) -> str:
    """Return the id of the entry at `seq`."""
    return f"m{seq:06d}"


def kind_of(entry: Mapping[str, object]) -> Kind:
    """Return what is true of an entry's kind; one that a protocol brings of its own is a speech."""
    return KINDS.get(str(entry.get("kind")), KINDS["speech"])


def takes_turn(entry: Mapping[str, object], debaters: Container[object]) -> bool:
    """Return whether a debater's turn is over with an entry."""
    kind = kind_of(entry)
    return kind.takes_turn and (kind.by == "moot" or entry["speaker"] in debaters)


def turns_taken(entries: Iterable[Mapping[str, object]], debaters: Container[object]) -> int:
    """Return how many turns debaters have taken in entries: what `turn_count` counts."""
    return sum(takes_turn(entry, debaters) for entry in entries)


def gifts_in(entries: Iterable[Entry]) -> list[int]:
    """Return the `seq` of each entry with which people gave the debate something beside its topic."""
    return [entry["seq"] for entry in entries if kind_of(entry).gift not in ("", "topic")]


@lru_cache(maxsize=8192)  # of a window's messages it is asked many times a turn
def seq_of(message_id: str) -> int | None:
    """Return the `seq` that an entry id stands for, `None` where it is no entry id."""
    digits = message_id[1:]
    if not message_id.startswith("m") or len(digits) < 6 or not digits.isdecimal():
        return None
    return int(digits)


def seqs_of(ids: Iterable[str]) -> Iterator[int]:
    """Yield the `seq` that each of these ids stands for, where it is an entry's."""
    return (seq for seq in map(seq_of, ids) if seq is not None)


def ids_in(text: str) -> list[str]:
    """Return the entry ids that stand in a text, in order."""
    return ENTRY_ID.findall(text)


def cited_id(said: str) -> str:
    """Return the id that a model means by `[m000012]`, `#m000012` or `12`; its words where it means none."""
    bare = said.strip(" []()#")
    number = _NUMBER.fullmatch(bare)
    return next(iter(ids_in(said)), entry_id(int(number[1])) if number else bare)


def entries_of(ids: Iterable[str], transcript: Sequence[Entry]) -> list[Entry]:
    """Return the entries of these ids, in their order; one that there is not is passed over."""
    return [transcript[seq] for seq in seqs_of(ids) if seq < len(transcript)]


def round_of(message_id: str, transcript: Sequence[Entry]) -> int:
    """Return the round in which an entry was said, 0 for one that there is not."""
    return next((entry["round"] for entry in entries_of([message_id], transcript)), 0)


def clean_text(text: str) -> str:
    """Return `text` without NUL and lone surrogates, which neither JSON nor databases carry."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def topic_text(given: str | None) -> str:
    """Return a topic as it is stored, `""` where there is none.

    Raises:
        InputError: it is no text.
    """
    said: object = given or ""
    if not isinstance(said, str):
        raise InputError(f"the topic is {said!r}: give words")
    return clean_text(said).strip()


def make_entry(
    seq: int,
    speaker: str,
    kind: EntryKind,
    content: str,
    *,
    id: str = "",
    phase: str = "",
    round: int = 0,
    room: str = "",
    targets: Sequence[str] = (),
    tokens: int = 0,
    importance: int | None = None,
    at: str = "",
    model: str = "",
    usage: EntryUsage | None = None,
) -> Entry:
    """Build an entry with defaults for what is not given; `content` is cleaned."""
    return {
        "id": id or entry_id(seq),
        "seq": seq,
        "speaker": speaker,
        "kind": kind,
        "phase": phase,
        "round": round,
        "room": room,
        "targets": list(targets),
        "content": clean_text(content),
        "tokens": tokens,
        "importance": kind_of({"kind": kind}).importance if importance is None else importance,
        "at": at,
        "model": model,
        "usage": usage or {},
    }
