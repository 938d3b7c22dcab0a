"""Who is meant: debaters' names in running text, in any script."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from moot.nodes.text.plain import word_set
from moot.nodes.text.terms import TITLES, UNSPACED_CHARACTER

_NO_NAMES = TITLES | word_set("the a an team agent debater speaker")
"""What a name may begin or end with by which nobody is called."""
_WORD = re.compile(r"\w")


def mentions(text: str, names: Mapping[str, str], but: str = "") -> list[str]:
    """Return the ids of the debaters named in `text`, in order of first mention, without the id `but`.

    A debater goes by its display name, by the first or last word of it where nobody else has that word, or by
    `@id`. Case counts: the verb "will" is not the debater Will.
    """
    owners, lengths, beginning = _alias_table(tuple(sorted(names.items())))
    mentioned: dict[str, None] = {}
    at = 0
    # From left to right the longest alias, none within another.
    while owners and (begun := beginning.search(text, at)):
        at = begun.start()
        spelled = (text[at : at + length] for length in lengths[text[at]])
        alias = next((each for each in spelled if each in owners and _is_whole(text, at, each)), "")
        if alias:
            mentioned[owners[alias]] = None
        at += len(alias) or 1
    return [who for who in mentioned if who != but]


@lru_cache(maxsize=64)
def _alias_table(
    names: tuple[tuple[str, str], ...],
) -> tuple[dict[str, str], dict[str, list[int]], re.Pattern[str]]:
    """Return owners by alias, aliases' lengths by first character, the longest first, and what those are.

    One pattern of all names is slow to make and slow to try where thousands speak.
    """
    claims = Counter(alias for who, name in names for alias in _aliases(who, name))
    owners = {
        alias: who
        for who, name in names
        for alias in _aliases(who, name)
        if claims[alias] == 1 or alias == name
    }
    lengths: dict[str, set[int]] = {}
    for alias in owners:
        lengths.setdefault(alias[0], set()).add(len(alias))
    first = re.compile("|".join(map(re.escape, sorted(lengths))))
    return owners, {char: sorted(known, reverse=True) for char, known in lengths.items()}, first


def _is_whole(text: str, at: int, alias: str) -> bool:
    """Return whether an alias that stands in a text is no part of a longer word."""
    around = text[max(at - 1, 0) : at] + text[at + len(alias) : at + len(alias) + 1]
    return bool(UNSPACED_CHARACTER.search(alias)) or not _WORD.search(around)


def _aliases(who: str, name: str) -> set[str]:
    words = name.split()
    parts = {word.strip(".,") for word in words[:1] + words[-1:]}
    usable = {part for part in parts if len(part) >= 3 and part.casefold() not in _NO_NAMES}
    spelled = {name, name[:1].upper() + name[1:], *usable, *(part[:1].upper() + part[1:] for part in usable)}
    return {alias for alias in spelled if any(map(str.isalnum, alias))} | {f"@{who}"}
