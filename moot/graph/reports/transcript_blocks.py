"""The transcript in foldable blocks: rounds, or about a hundred messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from moot.graph.documents import DebateDocument
from moot.graph.reports.cast import People, Person
from moot.graph.reports.wording import group_digits
from moot.state.entries import ENTRY_ID, Entry

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

    entry: Entry
    anchor: str
    label: str
    person: Person
    new_phase: bool
    """Whether its phase differs from that of the message before it in its block."""
    targets: tuple[tuple[str, str], ...]
    """(name, anchor) of what it answers; the anchor is empty for a debater."""
    view: str
    """Tokens of the prompt behind it against its budget, where there is a receipt."""


class Fold:
    """Consecutive messages under one fold."""

    def __init__(self, title: str, messages: Sequence[Message]) -> None:
        self.title, self.messages = title, messages
        first, last = messages[0].label, messages[-1].label
        self.span = first if len(messages) == 1 else f"{first} – {last}"
        """The first and the last message."""
        self.people = list({message.person.id: message.person for message in messages}.values())
        """Who speaks in it."""


class Transcript:
    """The whole transcript."""

    def __init__(self, document: DebateDocument, people: People, anchors: Mapping[str, str]) -> None:
        entries = document["transcript"]
        self.count = len(entries)
        characters = sum(len(entry["content"]) for entry in entries)
        self.lazy = self.count > LAZY_ABOVE or characters > LAZY_CHARACTERS
        """Whether its blocks wait in templates."""
        self.open = self.count <= OPEN_UP_TO
        self.blocks: list[Fold] = []
        views = {}
        for receipt in document["receipts"]:
            tokens, budget = group_digits(receipt["total_tokens"]), group_digits(receipt["budget"])
            views[receipt["entry_id"]] = f"{tokens} of {budget}"
        chunks, used = _chunks(entries), set[str]()
        for title, chunk in zip(_titles(chunks), chunks, strict=True):
            messages: list[Message] = []
            for entry in chunk:
                anchor = anchors[entry["id"]]
                message = Message(
                    entry=entry,
                    anchor="" if anchor in used else anchor,
                    label=entry["id"] or anchor,
                    person=people[entry["speaker"]],
                    new_phase=entry["phase"] not in ("", messages[-1].entry["phase"] if messages else ""),
                    targets=tuple(
                        (target, anchors[target]) if target in anchors else (people[target].name, "")
                        for target in entry["targets"]
                    ),
                    view=views.get(entry["id"], ""),
                )
                messages.append(message)
                used.add(anchor)
            self.blocks.append(Fold(title, messages))


def anchors_of(entries: Sequence[Entry]) -> dict[str, str]:
    """Map each entry's id to the id of its element: itself where it is well-formed, else by position."""
    anchors: dict[str, str] = {}
    for position, entry in enumerate(entries):
        key = entry["id"]
        anchors.setdefault(key, key if ENTRY_ID.fullmatch(key) else f"e{position}")
    return anchors


def _chunks(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split at rounds; rounds are cut at `BLOCK` messages, and packed up to it where they are many."""
    rounds = [list(run) for _, run in groupby(entries, key=lambda entry: entry["round"])]
    pieces = [run[start : start + BLOCK] for run in rounds for start in range(0, len(run), BLOCK)]
    if len(rounds) <= MAX_ROUND_BLOCKS:
        return pieces
    packed: list[list[Entry]] = []
    for piece in pieces:
        if packed and len(packed[-1]) + len(piece) <= BLOCK:
            packed[-1].extend(piece)
        else:
            packed.append(list(piece))
    return packed


def _titles(chunks: Sequence[Sequence[Entry]]) -> list[str]:
    """Name each block by its rounds, or by its messages where the transcript knows no rounds."""
    titles: list[str] = []
    before = 0
    in_rounds = any(entry["round"] for chunk in chunks for entry in chunk)
    for chunk in chunks:
        first, last = chunk[0]["round"], chunk[-1]["round"]
        if not in_rounds:
            name = f"Messages {before + 1}–{before + len(chunk)}"
        elif first == last:
            name = f"Round {first}" if first else "Opening"
        else:
            name = f"Rounds {first}–{last}" if first else f"Opening and rounds 1–{last}"
        continued = bool(titles) and titles[-1].removesuffix(", continued") == name
        titles.append(f"{name}, continued" if continued else name)
        before += len(chunk)
    return titles
