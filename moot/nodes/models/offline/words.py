"""The words a topic or a sentence turns on, in any script."""

from __future__ import annotations

import re
from functools import lru_cache

_UNSPACED = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
_LETTER = rf"[^\W_{_UNSPACED}]"
# Of Japanese the kanji and the katakana: particles and endings are written in hiragana.
_CHUNK = re.compile(
    r"(?P<unspaced>[\u3400-\u9fff]{2,8}|[\u30a0-\u30ff]{2,12}|[\u0e00-\u0eff]{3,16})"
    rf"|(?P<word>{_LETTER}(?:(?:{_LETTER}|[’'-])*{_LETTER})?)"
)
_CLAUSE = re.compile(r"[,;:.!?，；：。！？、()]")
_LEAD = re.compile(r"^(?:and|but|so|or|yet|hence|because|which|while|that)\s+", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?。！？\n]{12,400}[.!?。！？]?")

_STOP = frozenset(
    re.findall(
        r"\w+",
        """
    a about above after again all also although am an and any are as at be because been before being
    best better between both but by can could did do does doing done each either else ever every few for
    from get given gets go had has have having her here hers him his how i if in into is it its just
    less let like made make makes making many may me might more most much must my need needs new no nor
    not of off on once one only or other our out over own per perhaps put rather same shall she should
    since so some such than that the their them then there these they this those through to too under
    until up upon us use used uses using very was we were what when where whether which while who whom
    whose why will with within without would yes yet you your adopt allow ban become build change choose
    create decide design ensure give keep pay replace require stop take topic debate question free good
    bad fair cheap worth necessary possible important right wrong old big small large
    """,
    )
)
_COMMON = ("the budget", "public trust", "the status quo", "the first year")
MAX_FOCUS = 8
TOPIC_CHARS = 2_000
MIN_QUOTE, MAX_QUOTE = 4, 10
"""Words of the shortest and the longest quotation, where the script has words."""


@lru_cache(maxsize=64)
def focus(topic: str) -> tuple[str, ...]:
    """Return up to eight phrases of one or two words that a topic turns on, at least one."""
    phrases: list[str] = []
    end = -1
    joined = False
    for match in _CHUNK.finditer(topic[:TOPIC_CHARS]):
        word = match.group()
        if match.group("word") and (len(word) < 3 or word.casefold() in _STOP):
            continue
        adjacent = match.start() == end + 1 and topic[end] == " " and match.group("word")
        if adjacent and phrases and not joined:
            phrases[-1], joined = f"{phrases[-1]} {word}", True
        else:
            phrases.append(word)
            joined = False
        end = match.end()
    unique = [phrase[:40] for phrase in dict.fromkeys(phrases)][:MAX_FOCUS]
    return tuple(unique) or _COMMON[:1]


def around(topic: str) -> tuple[str, ...]:
    """Return what any topic touches, beside its own words."""
    return (*focus(topic), *_COMMON)


def short(text: str, chars: int = 70) -> str:
    """Return the beginning of a text on one line, cut at a word where it is long."""
    line = " ".join(text[: 4 * chars].split()).rstrip("?!.。？！ ")
    if len(line) <= chars:
        return line
    cut = line[:chars].rsplit(" ", 1)[0]
    return f"{cut.rstrip(',;:')}…"


def sentences(text: str, limit: int = 12) -> list[str]:
    """Return the first sentences of a text that say something: no headings, no quotations of others."""
    found: list[str] = []
    for match in _SENTENCE.finditer(text[:4_000]):
        sentence = match.group().strip(" -*>\t")
        if len(sentence) >= 12 and sentence[0] != "#" and not {"“", "”"} & set(sentence):
            found.append(sentence)
            if len(found) == limit:
                break
    return found


def snippet(sentence: str, pick: int) -> str:
    """Return a quotable clause of a sentence, the one that `pick` chooses; the start of a long one."""
    clauses = [_LEAD.sub("", clause.strip(" *_`'\"“”‘’")) for clause in _CLAUSE.split(sentence)]
    whole = [clause for clause in clauses if MIN_QUOTE <= len(clause.split()) <= MAX_QUOTE]
    if whole:
        return whole[pick % len(whole)]
    longest = max(clauses, key=len)
    parts = longest.split()[:MAX_QUOTE]
    if len(parts) <= 2:  # a script without spaces
        return " ".join(parts)[:24]
    while len(parts) > MIN_QUOTE and parts[-1].casefold() in _STOP:
        parts.pop()
    return " ".join(parts)[:90]


def telling(text: str) -> list[str]:
    """Return the longer words of a text that carry meaning, mostly nouns."""
    words = re.findall(r"\w{5,}", text)
    return [word for word in words if word.casefold() not in _STOP and not word.endswith(("ed", "ing", "ly"))]
