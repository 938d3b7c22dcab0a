"""What the offline model makes of a prompt: who said what, on which topic, and what it is asked for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from moot.nodes.models.offline.words import focus, sentences

_ID = re.compile(r"(?<!\w)m\d{6,9}(?!\w)")
_TOPIC = re.compile(
    r"^(?:#+[ \t]*(?:the[ \t]+)?topic[ \t]*:?\s+|\**topic\**[ \t]*:[ \t]*)([^\n#]+)", re.I | re.M
)
_NAME = re.compile(r"\bYou are ([^\n.,:]{1,60})")
_STANCE = re.compile(r"\bYour stance: ([^\n.][^\n]{0,200}?)\.?$", re.M)
_AGAINST = re.compile(
    r"\b(?:against|con|no|oppos\w*|sceptic\w*|skeptic\w*|critic\w*|negative|reject\w*|anti|doubt\w*)\b", re.I
)
_FOR = re.compile(
    r"\b(?:for|pro|yes|in favou?r|support\w*|affirmative|advocate\w*|optimis\w*|proponent)\b", re.I
)
_NOBODY = frozenset(
    {"user", "moot", "note", "moderator", "topic", "person", "the person who opened the debate"}
)

HEADER_CHARS = 80
TEXT_CHARS = 4_000
"""Characters of one utterance that are looked at."""
LAST = 16
"""Utterances that an answer may take up."""
TAIL_CHARS = 6_000

_PHASES: tuple[tuple[str, str], ...] = (
    ("steelman", "steelman"),
    ("critique", "critique|criticis|criticiz|weakness"),
    ("refine", "refine|revise your"),
    ("propose", "propos"),
    ("clarify", "clarif"),
    ("summary", "summar"),
    ("closing", r"\bclos(?:e|ing)\b|final statement"),
    ("opening", r"\bopen(?:ing)?\b"),
)


@dataclass(frozen=True)
class Utterance:
    """One thing that somebody said, as the prompt shows it."""

    who: str
    """The name it stands under."""
    text: str
    speaker: str = ""
    """Slug, where the message carries one."""
    id: str = ""
    """Entry id, where it is shown."""

    def by(self, name: str) -> bool:
        """Whether `name` means who said it."""
        return bool(name) and name.casefold() in (self.who.casefold(), self.speaker.casefold(), self.id)


@dataclass(frozen=True)
class Reading:
    """A prompt, read; every choice of the answer is drawn from it."""

    digest: bytes
    """Hash of the seed and the whole prompt."""
    topic: str
    phase: str
    purpose: str
    name: str
    """Who speaks, as shown to others; `""` where unknown."""
    speaker: str
    stance: str
    targets: tuple[str, ...]
    debaters: tuple[str, ...]
    """Everybody who may be named in a structured answer."""
    said: tuple[Utterance, ...]
    """Everything that the prompt shows as said, oldest first."""
    ids: tuple[str, ...]
    """Entry ids that the prompt shows, in order."""
    instruction: str
    hints: Mapping[str, Any] = field(default_factory=dict)

    def dice(self, *labels: object) -> int:
        """Return a large number that depends on the prompt, the seed and the labels alone."""
        return number(self.digest, *labels)

    @cached_property
    def focus(self) -> tuple[str, ...]:
        """The topic's words, or those of the aspect that is being debated."""
        aspect = self.hints.get("aspect")
        return focus(str(aspect)) if aspect else focus(self.topic)

    @cached_property
    def others(self) -> tuple[Utterance, ...]:
        """What others said, oldest first."""
        own = (self.speaker, self.name)
        return tuple(
            item
            for item in self.said[-LAST:]
            if not any(map(item.by, own))
            and item.who.casefold() not in _NOBODY
            and item.speaker not in _NOBODY
        )

    @cached_property
    def recent(self) -> str:
        """The last things said, in one text: what an answer should not repeat."""
        return "\n".join(item.text for item in self.said[-LAST:])

    @cached_property
    def side(self) -> int:
        """1 for, -1 against, 0 in between: from the stance's words, else by the speaker's name."""
        if bool(_AGAINST.search(self.stance)) != bool(_FOR.search(self.stance)):
            return -1 if _AGAINST.search(self.stance) else 1
        return (1, -1, 0)[number(b"side", self.speaker or self.name, self.topic) % 3]

    def addressed(self) -> Utterance | None:
        """Return what the answer is to: something of a target's, else the last thing that another said."""
        for target in self.targets:
            for item in reversed(self.others):
                if item.by(target) and sentences(item.text, 1):
                    return item
        usable = [item for item in self.others[-3:] if sentences(item.text, 1)]
        if not usable:
            return None
        return usable[-1] if self.dice("addressed") % 4 else usable[0]


def number(*labels: object) -> int:
    """Return a 64-bit number that depends on the labels alone."""
    text = b"\x1f".join(label if isinstance(label, bytes) else str(label).encode() for label in labels)
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def read(messages: Sequence[BaseMessage], hints: Mapping[str, Any], seed: int) -> Reading:
    """Read a prompt in one pass; linear in its length."""
    texts = [_text(message) for message in messages]
    said = list(_utterances(messages, texts))
    # What was said comes before the tail, so the last message is read for the instruction, not as a speech.
    tail = texts[-1][-TAIL_CHARS:] if texts else ""
    speaker = str(hints.get("speaker") or "")
    name = str(hints.get("name") or _found(_NAME, tail) or _shown(speaker, said))
    seen = dict.fromkeys(item.who for item in said if item.who.casefold() not in _NOBODY)
    return Reading(
        digest=_digest(messages, texts, hints, seed),
        topic=str(hints.get("topic") or _topic(texts, said)),
        phase=str(hints.get("phase") or _phase(tail)),
        purpose=str(hints.get("purpose") or ""),
        name=name,
        speaker=speaker,
        stance=str(hints.get("stance") or _found(_STANCE, tail)),
        targets=_names(hints.get("targets")),
        debaters=_names(hints.get("debaters")) or tuple(seen) or _names(hints.get("targets")),
        said=tuple(said),
        ids=tuple(dict.fromkeys(found for text in texts for found in _marks(text).ids)),
        instruction=tail,
        hints=hints,
    )


def _text(message: BaseMessage) -> str:
    return message.content if isinstance(message.content, str) else message.text


def _digest(
    messages: Sequence[BaseMessage], texts: Sequence[str], hints: Mapping[str, Any], seed: int
) -> bytes:
    who = [str(hints.get(key) or "") for key in ("purpose", "phase", "speaker")]
    state = hashlib.sha256("\x1f".join((str(seed), *who)).encode("utf-8", "replace"))
    for message, text in zip(messages, texts, strict=True):
        state.update(f"\x1e{message.type}\x1f{message.name or ''}\x1f".encode("utf-8", "replace"))
        state.update(text.encode("utf-8", "replace"))
    return state.digest()


def _utterances(messages: Sequence[BaseMessage], texts: Sequence[str]) -> Iterable[Utterance]:
    for message, text in zip(messages, texts, strict=True):
        slug, headers = message.name or "", _marks(text).headers
        for index, header in enumerate(headers):
            end = headers[index + 1].line if index + 1 < len(headers) else len(text)
            said = text[header.end : min(end, header.end + TEXT_CHARS)].strip()
            yield Utterance(header.who, said, slug, header.id)
        if headers or isinstance(message, SystemMessage) or not text:
            continue
        if slug or isinstance(message, AIMessage):
            yield Utterance(slug, text[:TEXT_CHARS], slug)


@dataclass(frozen=True)
class _Header:
    """`Name [m000012]:` or `[m000012] name:` at the start of a line."""

    who: str
    id: str
    line: int
    """Offset of the line."""
    end: int
    """Offset of what was said."""


@dataclass(frozen=True)
class _Marks:
    """Where a text names entries."""

    headers: tuple[_Header, ...]
    ids: tuple[str, ...]


@lru_cache(maxsize=1024)  # a window shows the same messages turn after turn
def _marks(text: str) -> _Marks:
    found = list(_ID.finditer(text))
    headers = (_header(text, match.start(), match.end()) for match in found)
    return _Marks(tuple(filter(None, headers)), tuple(match.group() for match in found))


def _header(text: str, start: int, end: int) -> _Header | None:
    line = text.rfind("\n", max(0, start - HEADER_CHARS), start) + 1
    if line == 0 and start > HEADER_CHARS:
        return None
    before, after = text[line:start].strip(" \t-*#(["), text[end : end + HEADER_CHARS]
    if before and after.startswith(("]:", "]**:", "):")):
        return _Header(before, text[start:end], line, end + after.index(":") + 1)
    who, colon, _ = after[1:].partition(":")
    if not before and after.startswith("]") and colon and "\n" not in who and who.strip(" *"):
        return _Header(who.strip(" *"), text[start:end], line, end + len(who) + 2)
    return None


def _topic(texts: Sequence[str], said: Sequence[Utterance]) -> str:
    for text in texts[:2]:
        if found := _TOPIC.search(text):
            return found.group(1).strip()
    for item in said:
        if item.who.casefold() in _NOBODY or item.speaker in _NOBODY:
            return item.text[:400]
    last = texts[-1] if texts else ""
    return next((line.strip() for line in last.splitlines() if line.strip()), "the question")[:400]


def _phase(tail: str) -> str:
    asked = tail[-400:].lower()
    return next((phase for phase, pattern in _PHASES if re.search(pattern, asked)), "speech")


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group(1).strip() if match else ""


def _shown(speaker: str, said: Sequence[Utterance]) -> str:
    return next((item.who for item in reversed(said) if speaker and item.speaker == speaker), speaker)


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable):
        return ()
    found = (item.get("id", "") if isinstance(item, Mapping) else str(item) for item in value)
    return tuple(name for name in found if name)
