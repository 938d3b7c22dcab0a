"""What looks like a speaker's name, and whether messages read from plain text are plausible."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from moot.importers import ParsedMessage
from moot.text.plain_text import clip, plain_line, quoted

LABEL = re.compile(
    r"(?i)topic|title|transcript|motion|questions?|answers?|notes?|examples?|summary|conclusion|first|second|third|finally"
    r"|however|yes|no|so|but|and|also|remember|warning|ps|sources?|evidence|result|update|date|todo|re"
    r"|議題|テーマ|主題|主题|议题|辩题|题目|問題|问题|質問|回答|答|問|问|結論|结论|理由|原因|例|例如|注|注意"
)
"""Pattern for words before a colon that are not speakers' names, such as "question"."""
FIELDS = re.compile(
    r"(?i)from|to|cc|bcc|subject|sent|reply-to|message-id|in-reply-to|references|return-path|received"
    r"|mime-version|content-[a-z-]+|x-[a-z-]+|re|fwd?|aw|wg|tr|https?|mailto|ftp"
    r"|place|location|venue|attendees|participants|status|started|ended"
    r"|trace|debug|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|alert|emerg(?:ency)?|fatal"
)
"""Pattern for header fields of e-mail (RFC 5322), marks of replies in a subject, schemes of addresses, fields
of minutes, and levels of log messages (RFC 5424)."""
_LABEL_CHARS = 4
"""Minimum length of a label at the end of a name. Shorter ones, such as `So` and `No`, are surnames too."""
_CASELESS = 12
"""Maximum number of characters in a word of a speaker's name. It applies to words without letter case, such
as Chinese words. Names that occur repeatedly may be longer."""
_PARTICLE = re.compile(r"d[aeiou]|dos|del|der|den|van|von|l[ae]|el|al|bin|ibn|y|e|of|the|and")
_BRACKETED = re.compile(r"[(（][^)）]*+([)）]?)")
"""Pattern for text in brackets. Its group is empty if the closing bracket is missing."""
_NO_NAME = re.compile(r"[;!?\"“”、。，！？；「」『』]|(?<![^.\s])[^.\s]{6,}+\.(?:\s|$)")


def is_label(name: str) -> bool:
    """Return True if a name is a label, or ends with one as `Meeting Title` does."""
    last = name.split()[-1] if name.split() else ""
    return bool(LABEL.fullmatch(name) or (len(last) >= _LABEL_CHARS and LABEL.fullmatch(last)))


def is_name(text: str, *, known: bool) -> bool:
    """Return True if a text looks like a speaker's name.

    A name that is `known`, because it occurs repeatedly, is checked less strictly.
    """
    words = _BRACKETED.sub(lambda match: " " if match[1] else match[0], text).split()
    if not words or len(words) > 6 or _NO_NAME.search(text):
        return False
    if not known and any(word.lower() == word.upper() and len(word) > _CASELESS for word in words):
        return False
    capital = [not word[0].islower() or bool(_PARTICLE.fullmatch(word)) for word in words]
    return all(capital) or (known and (capital[-1] or len(words) == 1))


MARKUP = re.compile(r"[<>{}\[\]=\\$%^`\"#*]|://|^['|]|\|$|\|.*\|")
"""Pattern for characters that no name contains. One bar may separate a name from a company."""
_NUMBERED = re.compile(r"\d")
_TIMED = re.compile(r"\d:\d\d\b")
_SERIES = re.compile(r"(?P<stem>.*?)(?<![\s_-])[\s_-]*+(?P<number>\d{1,4})")
_VALUE = re.compile(r"|\S*[^\s.!?。！？]")
_KEY = re.compile(r"[a-z][a-z0-9_.-]*")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*$")
_ONCE = 4
"""Number of speakers from which a text is implausible if nobody speaks twice."""


def _is_once_each(counts: Mapping[str, int]) -> bool:
    return len(counts) >= _ONCE and max(counts.values()) == 1


def _is_series(counts: Mapping[str, int]) -> bool:
    """Return True for names such as `Step 1`, `Step 2` and `Step 3`, each of which occurs once."""
    series = [_SERIES.fullmatch(name) for name in counts]
    if len(series) < _ONCE - 1 or max(counts.values()) > 1 or not all(series):
        return False
    numbers = [int(match["number"]) for match in series if match]
    stems = {match["stem"].casefold() for match in series if match}
    return len(stems) == 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]


def _are_settings(messages: Sequence[ParsedMessage]) -> bool:
    """Return True for `key: value` lines: the names are lower-case words, and each text is one bare word."""
    values = [each.content.split("\n")[0] for each in messages]
    return all(_KEY.fullmatch(each.speaker) for each in messages) and all(map(_VALUE.fullmatch, values))


def _are_records(messages: Sequence[ParsedMessage]) -> bool:
    """Return True for records of the same fields: the names recur in one order, and no text is a sentence.

    Two people who take turns have the same order, but they end sentences.
    """
    names = [message.speaker for message in messages]
    period = next((index for index in range(1, len(names)) if names[index] == names[0]), len(names))
    recurs = len(names) >= 2 * period >= 4 and len(names) % period == 0
    if not recurs or names != names[:period] * (len(names) // period):
        return False
    return not any(_SENTENCE_END.search(message.content) for message in messages)


_CHECKS: Sequence[tuple[str, Callable[[Mapping[str, int]], Sequence[str]]]] = (
    ("the names {} contain markup", lambda names: [name for name in names if MARKUP.search(name)]),
    ("the names {} contain times", lambda names: [name for name in names if _TIMED.search(name)]),
    ("the names {} begin with numbers", lambda names: [name for name in names if _NUMBERED.match(name)]),
    ("{} are fields, not names", lambda names: [name for name in names if FIELDS.fullmatch(name)]),
    ("{} are numbered parts, not names", lambda names: [*names] if _is_series(names) else []),
    ("each of the speakers {} speaks only once", lambda names: [*names] if _is_once_each(names) else []),
    ("{} is the only speaker", lambda names: [*names] if len(names) == 1 else []),
)
"""What makes names implausible, and a function that returns those to which it applies."""


def why_implausible(messages: Sequence[ParsedMessage], *, may_be_numbers: bool = False) -> str:
    """Return why messages read from plain text are implausible, or `""` if they are plausible.

    Args:
        messages: The messages.
        may_be_numbers: Whether a name may begin with a digit, as in a column of speakers.
    """
    if _are_settings(messages):
        return "the lines are settings with values"
    if _are_records(messages):
        return "the lines are records with the same fields"
    counts = Counter(message.speaker.casefold() for message in messages)
    display = {message.speaker.casefold(): message.speaker for message in messages}
    for reason, names_in in _CHECKS:
        if "begin with numbers" in reason and may_be_numbers:
            continue
        if names := names_in(counts):
            return reason.format(quoted(clip(plain_line(display[name]), 40) for name in names[:4]))
    return ""


def first_messages(messages: Sequence[ParsedMessage], count: int = 3) -> str:
    """Return the first messages as they are read, one a line, to show them to the user."""
    return "\n".join(
        f"  {clip(plain_line(each.speaker), 40)}: {clip(plain_line(each.content), 80)}"
        for each in messages[:count]
    )
