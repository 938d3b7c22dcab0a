"""Times in chats and transcripts: the pattern of a stamp in many locales, and its date in ISO 8601."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

CLOCK = r"\d{0,2}(?::\d{2}){1,2}(?:[.,]\d+)?"
"""Pattern for a time of day, or for a position in a recording. Examples: `01:20`, `:57`, `01:10:43`."""
_AM = r"(?:a\.?\s?m\b\.?|ص|오전|午前|上午|凌晨|清晨|早上|π\.?\s?μ\.?|पूर्वाह्न)"
_PM = r"(?:p\.?\s?m\b\.?|م|오후|午後|下午|中午|傍晚|晚上|μ\.?\s?μ\.?|अपराह्न)"
_HALF = rf"(?:{_AM}|{_PM})"
"""Pattern for AM or PM, in Latin, Arabic, Korean, Chinese, Japanese, Greek and Hindi."""
TIME_OF_DAY = rf"(?:{_HALF}\s?)?\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?:[.,]\d{{1,6}})?(?:\s?{_HALF})?"
"""Pattern for a time of day. Seconds and AM or PM are optional."""
_YEAR_FIRST = r"\d{4}(?:\s?[./年년-]\s?)\d{1,2}(?:\s?[./月월-]\s?)\d{1,2}(?:\.|日|일)?"
DATE = rf"(?:{_YEAR_FIRST}|\d{{1,2}}[./-]\s?\d{{1,2}}[./-]\s?\d{{1,4}}\.?)"
"""Pattern for a numeric date, also with Chinese or Korean words for year, month and day."""
_BETWEEN = r"(?:[,،]?\s{1,3}(?:[^\W\d]{1,4}\.?\s)?|T)"
"""Pattern between date and time, such as `, ` or ` kl. `."""
STAMP = rf"{DATE}{_BETWEEN}{TIME_OF_DAY}(?:Z|[+-]\d{{2}}:\d{{2}})?"
"""Pattern for a date with a time."""
LOOSE_STAMP = (
    rf"(?:{DATE}[^\d:]{{1,16}}{TIME_OF_DAY}[^\d:]{{0,16}}?|{TIME_OF_DAY}[^\d:]{{0,16}}?,[^\d:]{{1,3}}{DATE})"
)
"""Pattern for a date with a time, in either order, and any words beside the time. It needs a clear end."""
_DATE = re.compile(DATE)
_CLOCK_PART = re.compile(r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}T")
_IS_PM = re.compile(_PM, re.IGNORECASE)
HALF_DAY = re.compile(_HALF, re.IGNORECASE)
"""Pattern for AM or PM in many languages."""
_KNOWN_WORD = re.compile(rf"{_HALF}|\b(?:at|kl|klo|uhr|à|г|ч|z)\b", re.IGNORECASE)
"""Pattern for a word beside a time whose meaning is known."""
_EARLIEST_YEAR, _LATEST_YEAR = 2005, 2099
"""Years in which chats are written. Other numbers show that the year stands elsewhere in the date."""
_ORDERS: tuple[Literal["ymd", "dmy", "mdy"], ...] = ("ymd", "dmy", "mdy")


def iso_times(stamps: Sequence[str]) -> list[str]:
    """Return stamps in ISO 8601 format, if the order of day and month is certain, or else as they are.

    The order is certain if the numbers allow only one, if the separator is a dot, or if the stamps are in
    order of time in only one of the two. A word beside the time that is not known may stand for PM. Then the
    date is certain only if the hours go beyond 12.
    """
    matches = [_parts(stamp) for stamp in stamps]
    known = [match for match in matches if match]
    if any(each.has_unknown_word for each in known) and not any(each.clock[0] > 12 for each in known):
        return list(stamps)
    certain = [
        [_moment(match, order) if match else None for match in matches]
        for order in _ORDERS
        if all(_moment(match, order) is not None for match in matches if match)
    ]
    if len(certain) > 1 and any("." in each.date for each in known):
        certain = certain[:1]  # no locale writes the month first and separates it with a dot
    if len(certain) > 1:
        certain = [times for times in certain if _is_sorted(times)]
    if len(certain) > 1 and certain[0] != certain[1]:
        return list(stamps)
    times = certain[0] if certain else [None] * len(stamps)
    return [moment.isoformat() if moment else stamp for moment, stamp in zip(times, stamps, strict=True)]


def _is_sorted(times: Sequence[datetime | None]) -> bool:
    known = [time for time in times if time]
    return all(before <= after for before, after in pairwise(known))


@dataclass(frozen=True)
class _StampParts:
    """Parts of a stamp."""

    date: str
    clock: tuple[int, int, int]
    """Hour, minute and second as written."""
    half: str
    """The word for AM or PM, or `""`."""
    has_unknown_word: bool


def _parts(stamp: str) -> _StampParts | None:
    """Split a stamp into its parts. Return `None` if it has no date, or is in ISO 8601 format already."""
    date = None if _ISO.match(stamp) else _DATE.search(stamp)
    rest = f"{stamp[: date.start()]} {stamp[date.end() :]}" if date else ""
    if date is None or (clock := _CLOCK_PART.search(rest)) is None:
        return None
    hour, minute, second = [*map(int, re.findall(r"\d{1,2}", clock[0])), 0][:3]
    words = rest[: clock.start()] + " " + rest[clock.end() :]
    half = HALF_DAY.search(words)
    unknown = re.search(r"[^\W\d]", _KNOWN_WORD.sub("", words))
    return _StampParts(date[0], (hour, minute, second), half[0] if half else "", unknown is not None)


def _moment(parts: _StampParts, order: str) -> datetime | None:
    """Return the time of a stamp with its numbers in an order, or `None` if they do not fit it."""
    texts = re.findall(r"\d{1,4}", parts.date)
    numbers_by_unit = dict(zip(order, map(int, texts), strict=True))
    year_first = len(texts[0]) == 4
    if year_first != (order == "ymd"):
        return None
    hour, minute, second = parts.clock
    if parts.half and not (parts.half == "中午" and hour == 11):  # noon begins at 11
        hour = hour % 12 + (12 if _IS_PM.search(parts.half) else 0)
    year = numbers_by_unit["y"] + (2000 if numbers_by_unit["y"] < 100 else 0)
    if not _EARLIEST_YEAR <= year <= _LATEST_YEAR or (parts.half > "\u3000" and not year_first):
        return None  # the year may come first
    try:
        return datetime(
            year, numbers_by_unit["m"], numbers_by_unit["d"], hour, minute, second
        )  # local time of a chat
    except ValueError:
        return None
