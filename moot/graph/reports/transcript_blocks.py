"""The transcript in foldable blocks: rounds, or about a hundred messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.graph.reports.cast import People, Person
from moot.graph.reports.fields import as_count, as_dict, as_dicts, as_list, as_number, as_text, grouped
from moot.graph.reports.prose import CITATION

BLOCK = 100
"""Messages that one block holds at most: about what a browser lays out without a pause."""
MAX_ROUND_BLOCKS = 40
"""Rounds up to which each gets a block of its own."""
OPEN_UP_TO = 24
"""Messages up to which the whole transcript is shown unfolded."""
LAZY_ABOVE = 300
"""Messages above which blocks wait in templates until they are opened."""
LAZY_CHARACTERS = 1_000_000
"""The same in characters."""


@dataclass(frozen=True)
class Message:
    """One entry of the transcript."""

    anchor: str
    label: str
    person: Person
    kind: str
    phase: str
    new_phase: bool
    """Whether its phase differs from that of the message before it in its block."""
    room: str
    targets: tuple[tuple[str, str], ...]
    """(name, anchor) of what it answers; the anchor is empty for a debater."""
    content: str
    at: str
    model: str
    tokens: int
    view: str
    """Tokens of the prompt behind it against its budget, where there is a receipt."""


@dataclass(frozen=True)
class Block:
    """Consecutive messages under one fold."""

    title: str
    span: str
    messages: tuple[Message, ...]
    people: tuple[Person, ...]


@dataclass(frozen=True)
class Transcript:
    """The whole transcript; `lazy` where its blocks wait in templates."""

    blocks: tuple[Block, ...]
    count: int
    lazy: bool
    open: bool


def anchors_of(entries: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Map each entry's id to the id of its element: itself where it is well-formed, else by position."""
    anchors: dict[str, str] = {}
    for position, entry in enumerate(entries):
        key = as_text(entry.get("id"))
        anchors.setdefault(key, key if CITATION.fullmatch(key) else f"e{position}")
    return anchors


def read_transcript(document: dict[str, Any], people: People, anchors: dict[str, str]) -> Transcript:
    """Build the blocks of a document's transcript."""
    entries = as_dicts(document.get("transcript"))
    reader = _Reader(people, anchors, as_dicts(document.get("receipts")))
    used: set[str] = set()
    chunks = _chunks(entries)
    titled = zip(_titles(chunks), chunks, strict=True)
    blocks = tuple(reader.block(title, chunk, used) for title, chunk in titled)
    characters = sum(len(as_text(entry.get("content"))) for entry in entries)
    return Transcript(
        blocks=blocks,
        count=len(entries),
        lazy=len(entries) > LAZY_ABOVE or characters > LAZY_CHARACTERS,
        open=len(entries) <= OPEN_UP_TO,
    )


def _chunks(entries: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Split at rounds; rounds are cut at `BLOCK` messages, and packed up to it where they are many."""
    rounds: list[list[dict[str, Any]]] = []
    for entry in entries:
        if not rounds or as_count(rounds[-1][0].get("round")) != as_count(entry.get("round")):
            rounds.append([])
        rounds[-1].append(entry)
    pieces = [run[start : start + BLOCK] for run in rounds for start in range(0, len(run), BLOCK)]
    if len(rounds) <= MAX_ROUND_BLOCKS:
        return pieces
    packed: list[list[dict[str, Any]]] = []
    for piece in pieces:
        if packed and len(packed[-1]) + len(piece) <= BLOCK:
            packed[-1].extend(piece)
        else:
            packed.append(list(piece))
    return packed


class _Reader:
    def __init__(self, people: People, anchors: dict[str, str], receipts: list[dict[str, Any]]) -> None:
        self._people = people
        self._anchors = anchors
        self._views = {as_text(receipt.get("entry_id")): _view(receipt) for receipt in receipts}

    def block(self, title: str, entries: list[dict[str, Any]], used: set[str]) -> Block:
        messages: list[Message] = []
        before = ""
        for entry in entries:
            messages.append(self.message(entry, before, used))
            before = messages[-1].phase
        people = {message.person.id: message.person for message in messages}
        span = messages[0].label if len(messages) == 1 else f"{messages[0].label} – {messages[-1].label}"
        return Block(title, span, tuple(messages), tuple(people.values()))

    def message(self, entry: dict[str, Any], phase_before: str, used: set[str]) -> Message:
        key = as_text(entry.get("id"))
        anchor = self._anchors.get(key, "")
        first = anchor not in used
        used.add(anchor)
        phase = as_text(entry.get("phase"))
        return Message(
            anchor=anchor if first else "",
            label=key or anchor,
            person=self._people[entry.get("speaker")],
            kind=as_text(entry.get("kind")).replace("_", " "),
            phase=phase,
            new_phase=bool(phase) and phase != phase_before,
            room=as_text(entry.get("room")),
            targets=tuple(self._target(as_text(target)) for target in as_list(entry.get("targets"))),
            content=as_text(entry.get("content")),
            at=as_text(entry.get("at"))[:19].replace("T", " "),
            model=as_text(entry.get("model")),
            tokens=as_count(entry.get("tokens")),
            view=self._views.get(key, ""),
        )

    def _target(self, target: str) -> tuple[str, str]:
        if target in self._anchors:
            return target, self._anchors[target]
        return self._people[target].name, ""


def _view(receipt: dict[str, Any]) -> str:
    total = as_number(receipt.get("total_tokens"))
    budget = as_dict(receipt.get("budget")).get("total", receipt.get("budget"))
    return "" if total is None else f"{grouped(total)} of {grouped(budget)}"


def _titles(chunks: list[list[dict[str, Any]]]) -> list[str]:
    """Name each block by its rounds, or by its messages where the transcript knows no rounds."""
    titles: list[str] = []
    before = 0
    in_rounds = any(as_count(entry.get("round")) for chunk in chunks for entry in chunk)
    for chunk in chunks:
        name = _rounds(chunk) if in_rounds else f"Messages {before + 1}–{before + len(chunk)}"
        continued = bool(titles) and titles[-1].removesuffix(", continued") == name
        titles.append(f"{name}, continued" if continued else name)
        before += len(chunk)
    return titles


def _rounds(entries: list[dict[str, Any]]) -> str:
    first, last = (as_count(entries[index].get("round")) for index in (0, -1))
    if first != last:
        return f"Rounds {first}–{last}" if first else f"Opening and rounds 1–{last}"
    return f"Round {first}" if first else "Opening"
