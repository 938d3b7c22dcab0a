"""Defects of a judge's response that make it no verdict, or that a reader must know."""

import re
from collections.abc import Mapping

from moot.state.verdict import VERDICT_FIELDS, Verdict
from moot.text.plain_text import clip, count_noun

MIN_REPEATED_WORDS = 4
"""Minimum length of a text whose repetition is noted, in words. Short texts may repeat, such as "none"."""
REPEATED_FIELDS = 3
"""Number of fields with one text that is noted. Two fields, such as decision and solution, can be equal."""
QUOTED_CHARS = 80
"""Maximum length of a text that is quoted in a note, in characters."""
_TEMPLATE = re.compile(r"\W*\[(?![mkp]\d)[^\[\]]{2,60}\]\W*")


def defect_of(verdict: Verdict) -> str:
    """Return why a verdict is defective, because most scores were dropped, or `""`."""
    usable, dropped = sum(map(len, verdict["scores"].values())), verdict["dropped_scores"]
    if dropped <= usable:
        return ""
    return f"the verdict is defective: {dropped} of {count_noun(usable + dropped, 'score')} cannot be used"


def text_notes(data: Mapping[str, object]) -> list[str]:
    """Return notes about texts in a judge's response that say nothing.

    Such a text stands in several fields, or repeats a placeholder of the instruction, such as
    `[Your Position]`.
    """
    fields_by_text: dict[str, list[str]] = {}
    for name, value in data.items():
        label = VERDICT_FIELDS[name].label if name in VERDICT_FIELDS else name
        for text in dict.fromkeys(_texts(value)):
            fields_by_text.setdefault(text, []).append(label)
    return [
        f"The judge gave one text in several fields ({', '.join(labels)}): {clip(text, QUOTED_CHARS)}"
        for text, labels in fields_by_text.items()
        if len(labels) >= REPEATED_FIELDS and len(text.split()) >= MIN_REPEATED_WORDS
    ] + [
        f"The judge left a placeholder in {', '.join(labels)}: {text}"
        for text, labels in fields_by_text.items()
        if _TEMPLATE.fullmatch(text)
    ]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [" ".join(value.split())] if value.strip() else []
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]
