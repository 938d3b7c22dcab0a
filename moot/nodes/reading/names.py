"""Who is meant: debaters' names in running text, in any script."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from moot.nodes.text.plain import word_set
from moot.nodes.text.terms import UNSPACED

_TITLES = word_set(
    "the a an mr mrs ms miss dr prof professor sir dame lady lord senator president vice governor "
    "secretary judge justice chair team agent debater speaker herr frau monsieur madame señor señora"
)
_UNSPACED_NAME = re.compile(f"[{UNSPACED}]")


def mentions(text: str, names: Mapping[str, str], but: str = "") -> list[str]:
    """Return the ids of the debaters named in `text`, in order of first mention, without the id `but`.

    A debater goes by its display name, by the first or last word of it where nobody else has that word, or by
    `@id`. Case counts: the verb "will" is not the debater Will.
    """
    pattern, owners = _finder(tuple(sorted(names.items())))
    if pattern is None:
        return []
    found = dict.fromkeys(owners[match.group()] for match in pattern.finditer(text))
    return [who for who in found if who != but]


@lru_cache(maxsize=64)
def _finder(names: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    claims = Counter(alias for who, name in names for alias in _aliases(who, name))
    owners = {
        alias: who
        for who, name in names
        for alias in _aliases(who, name)
        if claims[alias] == 1 or alias == name
    }
    if not owners:
        return None, {}
    longest_first = sorted(owners, key=lambda alias: (-len(alias), alias))
    return re.compile("|".join(map(_bounded, longest_first))), owners


def _aliases(who: str, name: str) -> set[str]:
    words = name.split()
    parts = {word.strip(".,") for word in words[:1] + words[-1:]}
    usable = {part for part in parts if len(part) >= 3 and part.casefold() not in _TITLES}
    spelled = {name, name[:1].upper() + name[1:], *usable, *(part[:1].upper() + part[1:] for part in usable)}
    return {alias for alias in spelled if _is_name(alias)} | {f"@{who}"}


def _is_name(alias: str) -> bool:
    return bool(alias.strip()) and any(map(str.isalnum, alias))


def _bounded(alias: str) -> str:
    if _UNSPACED_NAME.search(alias):
        return re.escape(alias)
    return rf"(?<!\w){re.escape(alias)}(?!\w)"


def debaters_among(targets: Iterable[str], names: Mapping[str, str], but: str = "") -> list[str]:
    """Return those of an entry's `targets` that are debaters, without the id `but`."""
    return [target for target in dict.fromkeys(targets) if target in names and target != but]
