"""What the readers by rule share: a sentence without its quotations, its stems, its negations."""

import re
from functools import cached_property, lru_cache

from moot.nodes.text.terms import term_set


class Phrases:
    """Ways to say something, a line each; in spaced scripts each begins where a word does.

    The pattern is made when it is first asked for: all of them would take 40 ms as Moot is imported.
    """

    def __init__(self, *alternatives: str) -> None:
        self._alternatives = alternatives

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern that finds them."""
        anywhere = re.compile(r"[^\x00-\x7f]|[\^\[]")
        lines = [line.strip() for text in self._alternatives for line in text.splitlines() if line.strip()]
        spaced = "|".join(line for line in lines if not anywhere.match(line))
        # One look for where a word begins, not one a line: most places are none, and are left at once.
        begun = [rf"\b(?:{spaced})"] if spaced else []
        return re.compile("|".join([*begun, *filter(anywhere.match, lines)]), re.IGNORECASE)


HYPOTHETICAL = Phrases(
    r"""
    (?:if|unless|whether|until|suppose|imagine|before i)\b
    (?:wenn|falls|ob|si|cuando)\b
    如果|もし|إذا
    """
)
NEGATION = Phrases(
    r"""
    (?:not|no|never|none|nobody|nothing|neither|nor|without|hardly|cannot|\w+n't)\b
    (?:nicht|kein\w*|nie|ne|pas|jamais|aucun\w*|nunca|ningun\w*|tampoco)\b
    不|没|未|ない|ません|لا|لم|ليس|لن
    """
)
_QUOTED = re.compile(
    r"“[^“”]*”|\"[^\"\n]*\"|«[^«»]*»|„[^„“”]*[“”]|「[^「」]*」|『[^『』]*』|(?<!\w)'[^'\n]{3,200}'(?!\w)"
)
QUESTION = re.compile(r"[?？؟]")


@lru_cache(maxsize=1024)
def blank_quotes(sentence: str) -> str:
    """Return a sentence with quoted speech blanked, every place kept, its apostrophes plain."""
    return _QUOTED.sub(lambda found: " " * len(found.group()), sentence.replace("’", "'"))


@lru_cache(maxsize=1024)
def stems(text: str) -> frozenset[str]:
    """Return the beginnings of a text's terms, which inflection leaves alone."""
    return frozenset(term[:4] for term in term_set(text))


def negations(text: str) -> int:
    """Return how often a text says no."""
    return len(NEGATION.pattern.findall(text))


CLAUSE_END = re.compile(r"[;:,—–，；、]\s*|\s(?:but|because|since|while|whereas)\s")


def around(ends: re.Pattern[str], text: str, place: int) -> tuple[int, int]:
    """Return where the stretch of a text between two `ends` begins and ends that holds a place."""
    start, end = 0, len(text)
    for each in ends.finditer(text):
        if each.end() <= place:
            start = each.end()
        elif each.start() > place:
            end = each.start()
            break
    return start, end
