"""Who spoke: names, colours and monograms for the ids of a debate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from moot.graph.reports.fields import as_dict, as_dicts, as_text

COLOURS = 8
"""Colours of the palette; the ninth debater shares the first one's and is told apart by its monogram."""

_HOUSE = {"moot": "Moot", "user": "Person", "moderator": "Moderator", "tools": "Tools"}


@dataclass(frozen=True)
class Person:
    """One speaker, as the report shows it."""

    id: str
    name: str
    tone: str
    """CSS class of its colour: `d0` … `d7`, or `house` for those who do not debate."""
    monogram: str
    """One to three letters, different for each debater, so that colour is never the only cue."""
    role: str = ""
    stance: str = ""
    turns: int = 0
    words: int = 0


class People:
    """The debaters in their order, and a name for every other id."""

    def __init__(self, document: dict[str, Any]) -> None:
        transcript = as_dicts(document.get("transcript"))
        listed = as_dicts(as_dict(document.get("config")).get("debaters"))
        found = _with_an_id(listed) or _speakers(transcript)
        taken: set[str] = set()
        self._debaters: dict[str, Person] = {}
        for index, (key, fields) in enumerate(found.items()):
            name = as_text(fields.get("name")).strip() or key
            person = Person(key, name, f"d{index % COLOURS}", _monogram(name, taken))
            role, stance = as_text(fields.get("role")), as_text(fields.get("stance"))
            self._debaters[key] = replace(person, role=role, stance=stance)
        self._count(transcript)

    def _count(self, transcript: Iterable[dict[str, Any]]) -> None:
        turns: dict[str, int] = {}
        words: dict[str, int] = {}
        for entry in transcript:
            speaker = as_text(entry.get("speaker"))
            turns[speaker] = turns.get(speaker, 0) + 1
            words[speaker] = words.get(speaker, 0) + len(as_text(entry.get("content")).split())
        for key, person in self._debaters.items():
            self._debaters[key] = replace(person, turns=turns.get(key, 0), words=words.get(key, 0))

    def __iter__(self) -> Iterator[Person]:
        return iter(self._debaters.values())

    def __len__(self) -> int:
        return len(self._debaters)

    def __contains__(self, key: str) -> bool:
        return key in self._debaters

    def __getitem__(self, key: Any) -> Person:
        """Return the debater with this id or display name, or a stand-in that carries the id as its name."""
        text = as_text(key)
        if text in self._debaters:
            return self._debaters[text]
        for person in self._debaters.values():
            if person.name == text:
                return person
        name = _HOUSE.get(text, text or "Unknown")
        return Person(text, name, "house", name[:1].upper())


def _with_an_id(debaters: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    keyed = ((as_text(fields.get("id")) or as_text(fields.get("name")), fields) for fields in debaters)
    return {key: fields for key, fields in keyed if key}


def _speakers(transcript: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    ids = (as_text(entry.get("speaker")) for entry in transcript)
    return {key: {} for key in ids if key and key not in _HOUSE}


def _monogram(name: str, taken: set[str]) -> str:
    """Return initials that nobody has yet; a number is added where the letters are used up."""
    words = [word for word in "".join(c if c.isalnum() else " " for c in name).split() if word]
    letters = "".join(words) or "?"
    initials = "".join(word[0] for word in words[:2]) or "?"
    options = [initials, letters[:2], *(letters[0] + letter for letter in letters[1:])]
    options += [f"{letters[0]}{number}" for number in range(1, 10_000)]
    chosen = next(option.upper()[:3] for option in options if option.upper()[:3] not in taken)
    taken.add(chosen)
    return chosen
