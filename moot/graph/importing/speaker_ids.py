"""Ids for the names of speakers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

SLUG_LENGTH = 40
_RESERVED = frozenset({"moot", "user", "tie", "synthesis"})  # Moot's own speakers, and outcomes
_LATIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i", "ħ": "h", "ŋ": "ng"}
)
_SPOKEN_NAME = re.compile(r"(?:HANGUL SYLLABLE|(?:HIRAGANA|KATAKANA) LETTER(?: SMALL)?) ([A-Z]+)")


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Map distinct display names to ids that never collide, in the order given.

    Latin letters lose their marks, Hangul and kana are spelled as Unicode names them; a name of which
    nothing remains becomes `speaker-` and its position, from 1.
    """
    taken = set(_RESERVED)
    ids: dict[str, str] = {}
    for position, name in enumerate(dict.fromkeys(names), start=1):
        slug = _ascii(name) or f"speaker-{position}"
        slug = f"speaker-{slug}" if slug in _RESERVED else slug
        ids[name] = _unused(slug, taken)
        taken.add(ids[name])
    return ids


def _unused(slug: str, taken: set[str]) -> str:
    chosen, number = slug, 1
    while chosen in taken:
        number += 1
        suffix = f"-{number}"
        chosen = slug[: SLUG_LENGTH - len(suffix)].rstrip("-") + suffix
    return chosen


def _ascii(name: str) -> str:
    letters = unicodedata.normalize("NFKC", name).casefold().translate(_LATIN)
    spelled = "".join(_spelled(letter) for letter in letters)
    plain = unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:SLUG_LENGTH].strip("-")


def _spelled(letter: str) -> str:
    spoken = _SPOKEN_NAME.match(unicodedata.name(letter, ""))
    if spoken:
        return spoken[1].lower()
    return letter if letter.isalpha() or letter.isdigit() or unicodedata.combining(letter) else " "
