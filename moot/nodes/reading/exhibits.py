"""Evidence on the surface of a sentence: figures, percentages, sources, links, quotations."""

import re
from functools import lru_cache
from typing import Literal

EvidenceForm = Literal["link", "citation", "quote", "percent", "number", "case"]

_LONGEST_VALUE = 120  # characters
# Every repetition is bounded or unambiguous, so that each search is linear in the sentence.
_FORMS: dict[EvidenceForm, re.Pattern[str]] = {
    "link": re.compile(
        r"(?:https?://|www\.)[^\s<>\"'()\[\]「」（）]{3,400}|\bdoi:\s?10\.\d{4,9}/\S{1,100}"
        r"|\barxiv:\s?\d{4}\.\d{4,5}",
        re.IGNORECASE,
    ),
    "citation": re.compile(
        r"\[\d{1,3}(?:[,–-] ?\d{1,3}){0,8}\]|\([^()\d\n]{2,80}(?:19|20)\d\d[a-z]?\)"
        r"|\b[^\W\d_]{2,30}(?: et al\.?)? \((?:19|20)\d\d[a-z]?\)|《[^《》]{1,60}》"
        r"|\b(?:[Aa]ccording to|[Ll]aut|[Ss]elon|[Ss]egún|[Сс]огласно) [^,.;:!?\n]{3,80}"
    ),
    "quote": re.compile(
        r"“[^“”]{12,400}”|\"[^\"\n]{12,400}\"|«[^«»]{8,400}»|„[^„“]{8,400}“|「[^「」]{4,200}」|『[^『』]{2,200}』"
        r"|<quote>[^<]{4,400}</quote>"
    ),
    "percent": re.compile(
        r"\d[\d.,]{0,20} ?(?:[%％٪‰]|per ?cent\b|percentage point|Prozent|pour ?cent|por ciento|процент)"
        r"|百分之[\d零〇一二三四五六七八九十百点.]{1,12}|\d{1,3} ?パーセント"
    ),
    "number": re.compile(
        r"[$€£¥₹₽] ?\d[\d.,]{0,30}(?: ?(?:thousand|million|billion|trillion|bn|[mk]\b))?"
        r"|\d[\d.,]{0,30}\d(?: ?(?:thousand|million|billion|trillion|Millionen|Milliarden|millones|миллион))?"
        r"|\d ?(?:thousand|million|billion|trillion|times|万|萬|亿|億|倍|만|억)"
        r"|[零〇一二三四五六七八九十百千万萬亿億兆]{3,20}"
    ),
}


def find_evidence(sentence: str) -> dict[EvidenceForm, str]:
    """Return the first evidence of each form in `sentence` as it is written, the most telling form first.

    A bare one-digit number is none; digits count in every script.
    """
    matches = {form: pattern.search(sentence) for form, pattern in _FORMS.items()}
    return {form: each.group()[:_LONGEST_VALUE].rstrip(".,") for form, each in matches.items() if each}


_CASE = re.compile(
    r"\b(?:for (?:example|instance)|study|studies|survey|trial|report|panel|measured|counted|found that|data"
    r"|in (?:my|our) (?:city|town|country|school|hospital|office|street|house|team|company|class)"
    r"|where (?:it|the \w+) (?:was|has been|exists)|two|three|four|five|six|seven|eight|nine|ten|eleven"
    r"|twelve|thirteen|fourteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|half|a third"
    r"|a quarter|a fifth|double|twice|dozens?|hundreds|thousands|millions?|zum beispiel|studie"
    r"|par exemple|étude|por ejemplo|estudio)\b|例如|比如|研究|調査|例えば|دراسة|مثلا",
    re.IGNORECASE,
)
_TIMESTAMP = re.compile(r"\[?(?:crosstalk|inaudible)?\s*\d{2}:\d{2}(?::\d{2})*\]?", re.IGNORECASE)


@lru_cache(4096)
def shows_evidence(sentence: str) -> EvidenceForm | None:
    """Return the most telling form in which a sentence shows evidence, a case told included."""
    forms = list(find_evidence(_TIMESTAMP.sub(" ", sentence)))
    if forms:
        return forms[0]
    return "case" if _CASE.search(sentence) else None
