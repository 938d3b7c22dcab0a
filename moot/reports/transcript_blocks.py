"""The participants and the transcript of a report, in foldable blocks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from moot.documents import DebateDocument
from moot.documents.read_document import DocumentDebater, document_config
from moot.reports.markdown_html import group_digits
from moot.state.entries import ENTRY_ID, Entry
from moot.state.verdict import NO_WINNER

COLOURS = 8
"""Number of colors that distinguish the debaters in a report. Further debaters reuse a color; monograms tell
them apart."""

_SYSTEM_SPEAKERS = {"moot": "Moot", "user": "Person", "moderator": "Moderator", "tools": "Tools"}


@dataclass(frozen=True)
class Participant:
    """A speaker of the debate in a report."""

    id: str
    name: str
    tone: str
    """CSS class of the speaker's color, `d0` to `d7` for debaters and `house` for all other speakers."""
    monogram: str
    """Up to three letters that identify the speaker without color, unique among debaters."""
    role: str = ""
    stance: str = ""
    turns: int = 0
    words: int = 0


class Participants(dict[str, Participant]):
    """Mapping from debater id to debater, in the configured order.

    Looking up an unknown id adds a participant.
    """

    def __init__(self, document: DebateDocument) -> None:
        super().__init__()
        turns, words = Counter[str](), Counter[str]()
        for entry in document["transcript"]:
            turns[entry["speaker"]] += 1
            words[entry["speaker"]] += len(entry["content"].split())
        listed = {each["id"] or each["name"]: each for each in document_config(document)["debaters"]}
        listed.pop("", None)
        spoke = [key for key in turns if key and key not in _SYSTEM_SPEAKERS]
        unknown = DocumentDebater(id="", name="", role="", stance="")
        taken: set[str] = set()
        for index, (key, known) in enumerate((listed or dict.fromkeys(spoke, unknown)).items()):
            name = known["name"].strip() or key
            self[key] = Participant(
                key,
                name,
                f"d{index % COLOURS}",
                _monogram(name, taken),
                known["role"],
                known["stance"],
                turns[key],
                words[key],
            )
        self._by_name = {person.name: person for person in reversed(self.values())}

    def __missing__(self, key: str) -> Participant:
        """Return the debater with this display name, or else a new participant with the key as its name."""
        name = _SYSTEM_SPEAKERS.get(key, key or "Unknown")
        return self._by_name.get(key) or Participant(key, name, "house", name[:1].upper())

    def choice(self, key: str) -> str:
        """Return the display text for a judge's choice of a debater, a tie or no winner."""
        return NO_WINNER.get(key) or (self[key].name if key in self else key)


def _monogram(name: str, taken: set[str]) -> str:
    """Return unique initials for a debater, with a number appended if necessary."""
    words = [word for word in "".join(c if c.isalnum() else " " for c in name).split() if word]
    letters = "".join(words) or "?"
    initials = "".join(word[0] for word in words[:2]) or "?"
    first = [initials, letters[:2], *(letters[0] + letter for letter in letters[1:])]
    options = chain(first, (f"{letters[0]}{number}" for number in range(1, 10_000)))
    chosen = next(option.upper()[:3] for option in options if option.upper()[:3] not in taken)
    taken.add(chosen)
    return chosen


BLOCK = 100
"""Maximum number of messages in one block, chosen so that a browser lays out a block without delay."""
MAX_ROUND_BLOCKS = 40
"""Maximum number of rounds in a transcript for which every round gets its own block."""
OPEN_UP_TO = 24
"""Maximum number of messages in a transcript that is shown with all blocks open."""
LAZY_ABOVE = 300
"""Number of messages above which a transcript's blocks are rendered only when a reader opens them."""
LAZY_CHARACTERS = 1_000_000
"""Number of characters above which a transcript's blocks are rendered only when a reader opens them."""


@dataclass(frozen=True)
class Message:
    """A transcript entry with all data that is needed to render it."""

    entry: Entry
    anchor: str
    label: str
    person: Participant
    new_phase: bool
    """True if the message starts a new phase within its block."""
    targets: tuple[tuple[str, str], ...]
    """Name and anchor of each message that this message replies to. For a debater as the target, the anchor
    is empty."""
    view: str
    """Number of tokens in the message's prompt and the token budget, such as `900 of 4,000`. Empty without a
    receipt."""


class Fold:
    """A block of consecutive messages that readers can fold."""

    def __init__(self, title: str, messages: Sequence[Message]) -> None:
        self.title, self.messages = title, messages
        first, last = messages[0].label, messages[-1].label
        self.span = first if len(messages) == 1 else f"{first} – {last}"
        """Ids of the first and the last message in the block, as one string."""
        self.people = list({message.person.id: message.person for message in messages}.values())
        """Speakers in this block, in order of appearance."""


class Transcript:
    """The whole transcript, split into foldable blocks of messages."""

    def __init__(self, document: DebateDocument, people: Participants, anchors: Mapping[str, str]) -> None:
        entries = document["transcript"]
        self.count = len(entries)
        characters = sum(len(entry["content"]) for entry in entries)
        self.lazy = self.count > LAZY_ABOVE or characters > LAZY_CHARACTERS
        """True if the transcript's blocks are stored in `<template>` elements."""
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
    """Return the HTML element id of each transcript entry, keyed by entry id.

    A valid entry id maps to itself, an invalid id to `e` plus the position of the entry.
    """
    anchors: dict[str, str] = {}
    for position, entry in enumerate(entries):
        key = entry["id"]
        anchors.setdefault(key, key if ENTRY_ID.fullmatch(key) else f"e{position}")
    return anchors


def _chunks(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split transcript entries into blocks by round.

    A long round is split at `BLOCK` messages. If there are many short rounds, several rounds share a block.
    """
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
    """Return a title for each block, made from its rounds or its message numbers."""
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
