"""Ids for the names of speakers."""

from collections.abc import Iterable

from moot.state.config.debaters import RESERVED_IDS, free_id, slug

_RESERVED = RESERVED_IDS - {"judge", "moderator"}
"""A transcript's judge and moderator are a debate's: neither argues."""


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Map distinct display names to ids that never collide, in the order given.

    A name of which nothing remains becomes `speaker-` and its position, from 1.
    """
    ids: dict[str, str] = {}
    for position, name in enumerate(dict.fromkeys(names), start=1):
        wanted = slug(name) or f"speaker-{position}"
        ids[name] = free_id(f"speaker-{wanted}" if wanted in _RESERVED else wanted, ids.values())
    return ids
