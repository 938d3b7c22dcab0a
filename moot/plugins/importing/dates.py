"""Times in chats and transcripts: the pattern of a stamp in many locales, and its date in ISO 8601."""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

CLOCK = r"\d{0,2}(?::\d{2}){1,2}(?:[.,]\d+)?"
"""Pattern for a time of day, or for a position in a recording. Examples: `01:20`, `:57`, `01:10:43`."""
_HALF = r"(?:[ap]\.?\s?m\b\.?|[صم]|[오午上下][전후午]|μ\.?\s?μ\.?|π\.?\s?μ\.?)"
"""Pattern for AM or PM, in Latin, Arabic, Korean, Chinese, Japanese and Greek."""
TIME_OF_DAY = rf"(?:{_HALF}\s?)?\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?:[.,]\d{{1,6}})?(?:\s?{_HALF})?"
"""Pattern for a time of day. Seconds and AM or PM are optional."""
_YEAR_FIRST = r"\d{4}(?:\s?[./年년-]\s?)\d{1,2}(?:\s?[./月월-]\s?)\d{1,2}(?:\.|日|일)?"
DATE = rf"(?:{_YEAR_FIRST}|\d{{1,2}}[./-]\s?\d{{1,2}}[./-]\s?\d{{1,4}}\.?)"
"""Pattern for a numeric date, also with Chinese or Korean words for year, month and day."""
_BETWEEN = r"(?:[,،]?\s{1,3}(?:[^\W\d]{1,4}\.?\s)?|T)"
"""Pattern between date and time, such as `, ` or ` kl. `."""
STAMP = rf"{DATE}{_BETWEEN}{TIME_OF_DAY}(?:Z|[+-]\d{{2}}:\d{{2}})?"
"""Pattern for a date with a time."""
_PARTS = re.compile(rf"(?P<date>{DATE}){_BETWEEN}(?P<time>{TIME_OF_DAY})", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}T")
_IS_PM = re.compile(r"p|م|후|下|午後|μ\.?\s?μ", re.IGNORECASE)
HALF_DAY = re.compile(_HALF, re.IGNORECASE)
"""Pattern for AM or PM in many languages."""
_EARLIEST_YEAR, _LATEST_YEAR = 2005, 2099
"""Years in which chats are written. Other numbers show that the year stands elsewhere in the date."""
_ORDERS: tuple[Literal["ymd", "dmy", "mdy"], ...] = ("ymd", "dmy", "mdy")


def iso_times(stamps: Sequence[str]) -> list[str]:
    """Return stamps in ISO 8601 format, if the order of day and month is certain, or else as they are.

    The order is certain if the numbers allow only one, if the separator is a dot, or if the stamps are in
    order of time in only one of the two.
    """
    matches = [None if _ISO.match(stamp) else _PARTS.match(stamp) for stamp in stamps]
    certain = [
        [_moment(match, order) if match else None for match in matches]
        for order in _ORDERS
        if all(_moment(match, order) is not None for match in matches if match)
    ]
    if len(certain) > 1 and any(match and "." in match["date"] for match in matches):
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


def _moment(match: re.Match[str], order: str) -> datetime | None:
    """Return the time of a stamp with its numbers in an order, or `None` if they do not fit it."""
    numbers = [int(number) for number in re.findall(r"\d{1,4}", match["date"])]
    numbers_by_unit = dict(zip(order, numbers, strict=True))
    year_first = len(re.findall(r"\d{1,4}", match["date"])[0]) == 4
    if year_first != (order == "ymd"):
        return None
    hour, minute, second = [*map(int, re.findall(r"\d{1,6}", match["time"])), 0][:3]
    half = HALF_DAY.search(match["time"])
    if half:
        hour = hour % 12 + (12 if _IS_PM.search(half[0]) else 0)
    year = numbers_by_unit["y"] + (2000 if numbers_by_unit["y"] < 100 else 0)
    if not _EARLIEST_YEAR <= year <= _LATEST_YEAR or (half and not year_first and half[0] > "\u3000"):
        return None  # the year may come first
    try:
        return datetime(
            year, numbers_by_unit["m"], numbers_by_unit["d"], hour, minute, second
        )  # local time of a chat
    except ValueError:
        return None
