"""Ids for the names of speakers."""

import re
from collections.abc import Iterable

from slugify import slugify

SLUG_LENGTH = 40
_RESERVED = frozenset({"moot", "user", "tie", "synthesis"})  # Moot's own speakers, and outcomes
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Map distinct display names to ids that never collide, in the order given.

    `python-slugify` spells them in ASCII, whatever the script, but for Chinese characters: it would read a
    Japanese name as if it were Chinese. A name of which nothing remains becomes `speaker-` and its position,
    from 1. What the library does not do is to keep the slugs of several names apart.
    """
    taken = set(_RESERVED)
    ids: dict[str, str] = {}
    for position, name in enumerate(dict.fromkeys(names), start=1):
        legible = _HAN.sub(" ", name)
        slug = slugify(legible, max_length=SLUG_LENGTH, entities=False, decimal=False, hexadecimal=False)
        slug = slug or f"speaker-{position}"
        chosen = slug = f"speaker-{slug}" if slug in _RESERVED else slug
        number = 1
        while chosen in taken:
            number += 1
            suffix = f"-{number}"
            chosen = slug[: SLUG_LENGTH - len(suffix)].rstrip("-") + suffix
        ids[name] = chosen
        taken.add(chosen)
    return ids
