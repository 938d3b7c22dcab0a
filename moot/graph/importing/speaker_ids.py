"""Ids for the names of speakers."""

from collections.abc import Iterable

from moot.state.config.debaters import SLUG_LENGTH, slug

_RESERVED = frozenset({"moot", "user", "tie", "synthesis"})  # Moot's own speakers, and outcomes


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Map distinct display names to ids that never collide, in the order given.

    A name of which nothing remains becomes `speaker-` and its position, from 1.
    """
    taken = set(_RESERVED)
    ids: dict[str, str] = {}
    for position, name in enumerate(dict.fromkeys(names), start=1):
        wanted = slug(name) or f"speaker-{position}"
        chosen = wanted = f"speaker-{wanted}" if wanted in _RESERVED else wanted
        number = 1
        while chosen in taken:
            number += 1
            suffix = f"-{number}"
            chosen = wanted[: SLUG_LENGTH - len(suffix)].rstrip("-") + suffix
        ids[name] = chosen
        taken.add(chosen)
    return ids
