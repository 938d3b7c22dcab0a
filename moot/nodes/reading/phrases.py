"""What the readers by rule share: a sentence without its quotations, its stems, its negations."""

import re
from functools import lru_cache

from moot.nodes.text.terms import term_set


def any_of(*alternatives: str) -> re.Pattern[str]:
    """Return the pattern of any of these, a line each; in spaced scripts each begins where a word does."""
    lines = [line.strip() for text in alternatives for line in text.splitlines() if line.strip()]
    anywhere = re.compile(r"[^\x00-\x7f]|[\^\[]")
    return re.compile(
        "|".join(line if anywhere.match(line) else rf"\b(?:{line})" for line in lines), re.IGNORECASE
    )


HYPOTHETICAL = any_of(
    r"""
    (?:if|unless|whether|until|suppose|imagine|before i)\b
    (?:wenn|falls|ob|si|cuando)\b
    如果|もし|إذا
    """
)
NEGATION = any_of(
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
def unquoted(sentence: str) -> str:
    """Return a sentence with quoted speech blanked, every place kept, its apostrophes plain."""
    return _QUOTED.sub(lambda found: " " * len(found.group()), sentence.replace("’", "'"))


@lru_cache(maxsize=1024)
def stems(text: str) -> frozenset[str]:
    """Return the beginnings of a text's terms, which inflection leaves alone."""
    return frozenset(term[:4] for term in term_set(text))


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
