"""Transcript entries as plain JSON dicts, the table of entry kinds, and a cache by argument identity."""

import hashlib
import re
import string
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, Literal, NotRequired, TypeVar

from typing_extensions import TypedDict

from moot.state.errors import InputError

JsonObject = dict[str, Any]
"""JSON object whose structure is defined elsewhere."""
JsonMapping = Mapping[str, Any]
"""Read-only JSON object whose structure is defined elsewhere, such as a `DebateDocument`."""


class ModelFacts(TypedDict, total=False):
    """What a model's replies and errors have shown about it. Later requests follow these facts."""

    limit: int
    """Size of the model's context in tokens of its own tokenizer, as its server or its errors state it."""
    ratio: float
    """Largest ratio of the model's tokens to Moot's count of them, from 1 to 4."""
    max_reply: int
    """Maximum number of reply tokens that the server accepts."""
    settings: JsonObject
    """Fields of `ModelSettings` that the server made necessary, such as `{"seed": false}`."""
    told: list[str]
    """Changes of requests, as a user reads them."""


EntryKind = Literal[
    "topic",  # the topic, as the user wrote it
    "context",  # a context document
    "speech",  # any other message of a debater
    "proposal",
    "critique",
    "refinement",
    "question",  # a clarification question
    "answer",  # a person's answer to a clarification question
    "interjection",  # a person's message to a running debate
    "tool_call",
    "tool_result",
    "notice",  # Moot's remark on a missing critique or a skipped turn
]


UserInputKind = Literal["", "topic", "document", "answer", "interjection"]


@dataclass(frozen=True)
class EntryTraits:
    """Properties shared by all transcript entries of one kind."""

    by: Literal["debater", "person", "tools", "moot"] = "debater"
    argues: bool = False
    """True if entries of this kind argue for a position. Claim extraction and judges read such entries."""
    ends_turn: bool = False
    """True if an entry of this kind completes a debater's turn. A notice completes a failed turn."""
    proposes: bool = False
    """True if entries of this kind propose an answer to the topic."""
    user_input: UserInputKind = ""
    """Kind of user input in entries of this kind, or `""` if there is none. Questions count together with
    their answers."""
    pair: Literal["", "opens", "closes"] = ""
    """Whether entries of this kind open or close a pair, such as a question and its answer. `opens`: the
    first entry of the pair. `closes`: the second entry, which targets the first. `""`: the entry belongs to
    no pair."""
    tool: bool = False
    importance: int = 1
    """Default importance of entries of this kind, from 1 (low) to 10 (high). Retrieval adds the weight of the
    entry's claims."""

    @property
    def in_prompts(self) -> bool:
        """Return True if prompts show such entries as messages. The topic is part of the rules."""
        return self.user_input != "topic"

    @property
    def is_message(self) -> bool:
        """Return True if such entries, unlike documents and tool calls, are messages."""
        return self.argues or self.user_input == "answer"

    @property
    def automatic(self) -> bool:
        """Return True if entries of this kind are written by a tool or by Moot itself."""
        return self.tool or self.by == "moot"


ENTRY_KINDS: Mapping[str, EntryTraits] = {
    "topic": EntryTraits(by="person", user_input="topic", importance=6),
    "context": EntryTraits(by="person", user_input="document"),
    "speech": EntryTraits(argues=True, ends_turn=True),
    "proposal": EntryTraits(argues=True, ends_turn=True, proposes=True, importance=6),
    "critique": EntryTraits(argues=True, ends_turn=True),
    "refinement": EntryTraits(argues=True, ends_turn=True, proposes=True, importance=6),
    "question": EntryTraits(user_input="answer", pair="opens", importance=7),
    "answer": EntryTraits(by="person", argues=True, user_input="answer", pair="closes", importance=7),
    "interjection": EntryTraits(by="person", argues=True, user_input="interjection", importance=8),
    "tool_call": EntryTraits(pair="opens", tool=True),
    "tool_result": EntryTraits(by="tools", pair="closes", tool=True),
    "notice": EntryTraits(by="moot", ends_turn=True, importance=6),
}
"""Properties of each kind of transcript entry, keyed by the name of the kind. `traits_of` reads them."""


class EntryUsage(TypedDict, total=False):
    """Token usage of one or more model calls, reported by the provider or counted by Moot."""

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost_usd: float
    recounted: int
    """Number of calls whose tokens Moot counted itself. The provider reported implausible numbers for
    them."""


def tokens_of(usage: Mapping[str, Any]) -> int:
    """Return the total number of prompt and completion tokens in a usage record."""
    return int(usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0))


class ToolUse(TypedDict):
    """Details of the tool call that produced a tool result."""

    name: str
    about: str
    """Path, command or query given to the tool, truncated to 80 characters. Empty if the tool received
    none of these."""
    failed: bool


class Entry(TypedDict):
    """Transcript entry of a debate, such as a message or a tool result. Entries are never changed."""

    id: str
    """Id of the entry, such as `m000123`. The id consists of "m" and the `seq` with at least six digits.
    Prompts and people refer to the entry by this id."""
    message_id: NotRequired[str]
    """Id that a client gave to the entry's message in `messages`. Missing if the client gave none. Other ids
    are made by the function `message_id`."""
    seq: int
    """Position of the entry in the transcript, starting at 0. Positions have no gaps."""
    speaker: str
    """Slug that identifies the author of the entry. `user` stands for the person who started the debate, and
    `moot` for notices."""
    kind: EntryKind
    """Kind of entry, such as `speech` or `proposal`."""
    phase: str
    """Protocol phase of the entry, such as `propose`, or `""` before the first phase."""
    round: int
    """Protocol round in which the entry was written, starting at 1. The value is 0 before the first round."""
    room: str
    """Id of the side discussion in which the entry was written, or `""` if there is none. Such a side
    discussion is called a crux room."""
    targets: list[str]
    """Ids of the debaters or earlier entries to which this entry replies."""
    content: str
    """Text of the entry, without NUL characters or lone surrogates."""
    tokens: int
    """Exact number of tokens in `content`. They are counted once, when the entry is written."""
    importance: int
    """Importance of the entry, from 1 (low) to 10 (high). Retrieval always considers entries with an
    importance of 7 or more."""
    at: str
    """UTC time at which the entry was written, in ISO 8601 format. A dated entry has the time in the
    format of its source."""
    dated: NotRequired[bool]
    """True if the source of an imported entry states when it was written. Prompts show the time."""
    model: str
    """Name of the model that wrote the entry, or `""` if no model wrote it."""
    usage: EntryUsage
    """Token usage of the model call that produced the entry, or `{}` if no model was called."""
    tool: NotRequired[ToolUse]
    """Details of the tool call if the entry contains a tool result."""
    placeholder: NotRequired[bool]
    """True if the entry's content is a placeholder written by the offline model."""
    answer: NotRequired[str]
    """Answer to the debate's question that a model call read from the content. Missing if no call was needed
    or the message gives no answer."""
    counts_as: NotRequired[str]
    """Normalised form of an earlier answer that says the same as this entry's, according to a model call."""


ENTRY_DETAILS: dict[str, Callable[[Entry], str]] = {
    "model": lambda entry: entry.get("model", ""),
    "tokens": lambda entry: (
        f"{entry['tokens']:,} token{'s' * (entry['tokens'] != 1)}" if entry["tokens"] else ""
    ),
    "answer": lambda entry: f"answer “{entry['answer']}”, read by a call" if "answer" in entry else "",
}
"""Details of an entry that the command line, the reports and the live page show beside its text, keyed by
name. Each function returns the detail, or `""` if the entry has none."""


def entry_details(entry: Entry, *, hidden: Container[str] = ()) -> list[str]:
    """Return the details of an entry in the order of `ENTRY_DETAILS`, without those named in `hidden`."""
    return [text for name, show in ENTRY_DETAILS.items() if name not in hidden and (text := show(entry))]


class InputEntry(TypedDict):
    """Entry from an earlier transcript that a new debate continues. Missing fields get default values."""

    speaker: str
    """Slug of the person or debater who wrote the message."""
    content: str
    """Text of the message."""
    kind: NotRequired[EntryKind]
    """Kind of transcript entry, such as `speech`, `proposal` or `question`. The default is `speech`."""
    phase: NotRequired[str]
    """Phase of the protocol in which the message was written."""
    round: NotRequired[int]
    """Protocol round in which the message was written, starting at 1. The value is 0 before the first
    round."""
    room: NotRequired[str]
    """Id of the side discussion in which the message was written. Such a side discussion is called a crux
    room."""
    importance: NotRequired[int]
    """Importance of the message, from 1 (low) to 10 (high)."""
    at: NotRequired[str]
    """Time at which the message was written, in any format. Prompts show this text."""
    model: NotRequired[str]
    """Name of the model that wrote the message."""
    id: NotRequired[str]
    """Id that later entries use in `targets` to refer to this entry. The new debate gives the entry another
    id."""
    targets: NotRequired[list[str]]
    """Id of the tool call that produced this tool result. Other kinds of entries ignore this field."""
    tool: NotRequired[ToolUse]
    """Details of the tool call that produced a tool result. Missing keys are read from the entry's
    content."""


ENTRY_ID = re.compile(r"\bm[0-9]{6,12}\b")
"""Regular expression that finds entry ids in a text."""
ORIGIN_CHARS = 12
"""Length of the suffix that makes a message id unique, in characters. The suffix identifies the debate and
the checkpoint, so that the id is unique across debates and branches. With 12 hexadecimal digits, the
probability that any two of a million branches share an id is 1 in 500."""
_MESSAGE_ID = re.compile(rf"(m\d{{6,}})-[0-9a-f]{{{ORIGIN_CHARS}}}")
_NUMBER = re.compile(r"m?0*(\d{1,9})")


def entry_id(seq: int) -> str:
    """Return the id of the transcript entry at position `seq`."""
    return f"m{seq:06d}"


def message_id(reference: str, *origin: str) -> str:
    """Return a message id that is unique across debates and branches, such as `m000123-5f0c1d2e3a4b`.

    Args:
        reference: id of the message's entry, or another name that is unique within one branch.
        origin: ids of the debate and of the checkpoint from which the message is written.
    """
    digest = hashlib.sha256("\n".join(origin).encode()).hexdigest()
    return f"{reference}-{digest[:ORIGIN_CHARS]}"


def entry_with_message(message_or_entry_id: str, transcript: Sequence[Entry]) -> Entry | None:
    """Return the transcript entry with this message id or entry id, or None."""
    for entry in transcript:
        if message_or_entry_id in (entry.get("message_id"), entry["id"]):
            return entry
    match = _MESSAGE_ID.fullmatch(message_or_entry_id)
    return next(iter(entries_of([match[1]], transcript)), None) if match else None


def traits_of(entry: Mapping[str, object]) -> EntryTraits:
    """Return the properties of an entry's kind. Kinds that a protocol defines count as `speech`."""
    return ENTRY_KINDS.get(str(entry.get("kind")), ENTRY_KINDS["speech"])


def ends_turn(entry: Mapping[str, object], debaters: Container[object]) -> bool:
    """Return True if this entry completes a debater's turn."""
    kind = traits_of(entry)
    return kind.ends_turn and (kind.by == "moot" or entry["speaker"] in debaters)


def turns_taken(entries: Iterable[Mapping[str, object]], debaters: Container[object]) -> int:
    """Count the debaters' completed turns in entries. `turn_count` holds the number for a debate."""
    return sum(ends_turn(entry, debaters) for entry in entries)


PASSES = {"person": "(passes)", "model": "[passes: would not answer]"}
"""Texts of passed turns: of a person who sent an empty reply, and of a model that refused to reply. The
debate's errors contain the model's reason."""


def is_passed(entry: Mapping[str, object]) -> bool:
    """Return True for a turn that its debater passed, or whose call failed."""
    return traits_of(entry).by == "moot" or entry["content"] in PASSES.values()


def user_provided_in(entries: Iterable[Entry]) -> list[int]:
    """Return the positions of all entries with user input other than the topic."""
    return [entry["seq"] for entry in entries if traits_of(entry).user_input not in ("", "topic")]


@lru_cache(maxsize=8192)  # called many times per turn for the messages in the window
def seq_of(message_id: str) -> int | None:
    """Return the transcript position of an entry id, or None for any other text."""
    return int(message_id[1:]) if ENTRY_ID.fullmatch(message_id) else None


def seqs_of(ids: Iterable[str]) -> Iterator[int]:
    """Yield the transcript position of each entry id, without texts that are none."""
    return (seq for seq in map(seq_of, ids) if seq is not None)


def is_program_note(entry: Entry) -> bool:
    """Return True for Moot's note about the question and options, which prompts show as a document."""
    return entry["speaker"] == "moot" and traits_of(entry).user_input == "document"


def ids_in(text: str) -> list[str]:
    """Return all entry ids found in a text, in order of appearance."""
    return ENTRY_ID.findall(text)


def cited_id(citation: str) -> str:
    """Return the id of the entry that a citation such as `[m000012]`, `#m000012` or `12` names."""
    bare = citation.strip(" []()#")
    number = _NUMBER.fullmatch(bare)
    return next(iter(ids_in(citation)), entry_id(int(number[1])) if number else bare)


def message_count(entries: Iterable[Entry]) -> int:
    """Count the entries that are messages to the participants.

    All outputs show this number. Messages are what debaters and people say to the participants, including
    questions, answers and interjections. The topic, documents, tool calls, tool results and notices are no
    messages. A judge's verdict is no transcript entry.
    """
    return sum(traits_of(entry).is_message for entry in entries)


def entries_of(ids: Iterable[str], transcript: Sequence[Entry]) -> list[Entry]:
    """Return the entries with the given ids, in the order of the ids, without unknown ones."""
    return [transcript[seq] for seq in seqs_of(ids) if seq < len(transcript)]


def round_of(message_id: str, transcript: Sequence[Entry]) -> int:
    """Return the round in which a message was written, or 0 if there is no such message."""
    return next((entry["round"] for entry in entries_of([message_id], transcript)), 0)


def critique_labels(transcript: Iterable[Entry]) -> dict[str, str]:
    """Return a short label such as `2A` for each critique, keyed by entry id.

    A notice that replaces a missing critique also has a label.

    The number is the round. Each label occurs only once in a debate, so that an answer that names it refers
    to only one critique, whichever proposal it is about.
    """
    labels: dict[str, str] = {}
    before: Counter[int] = Counter()
    for entry in transcript:
        is_missing = entry["phase"] == "critique" and entry["kind"] == "notice"
        if entry["kind"] == "critique" or is_missing:
            place = before[entry["round"]]
            letters = string.ascii_uppercase[place % 26] * (1 + place // 26)
            labels[entry["id"]] = f"{entry['round']}{letters}"
            before[entry["round"]] += 1
    return labels


def clean_text(text: str) -> str:
    """Return `text` without NUL characters and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def topic_text(topic: str | None) -> str:
    """Return a topic without invalid characters and outer whitespace. Other than text: `InputError`."""
    text: object = topic or ""
    if not isinstance(text, str):
        raise InputError(f"the topic {text!r} is not text: give the topic as text")
    return clean_text(text).strip()


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
    """Create a transcript entry with cleaned content. Missing fields get default values."""
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
        "importance": traits_of({"kind": kind}).importance if importance is None else importance,
        "at": at,
        "model": model,
        "usage": usage or {},
    }


T = TypeVar("T", bound=Callable[..., object])


def memoize_by_identity(maxsize: int = 64) -> Callable[[T], T]:
    """Return a decorator that caches a function's results by the identity of its arguments.

    The arguments must never change. Equal numbers may be different objects, so no argument may be a computed
    number. Hashing or comparing a configuration or an entry would take longer than most of the functions that
    use this decorator.
    """

    def remembering(function: T) -> T:
        cache: dict[tuple[int, ...], tuple[tuple[object, ...], object]] = {}

        def look_up(*arguments: object) -> object:
            key = tuple(map(id, arguments))
            cache_entry = cache.get(key)
            if cache_entry is None:
                if len(cache) >= maxsize:
                    cache.clear()
                cache_entry = cache[key] = arguments, function(*arguments)  # keeps the arguments' ids in use
            return cache_entry[1]

        return wraps(function)(look_up)  # type: ignore[return-value]  # the wrapper has the same signature

    return remembering
