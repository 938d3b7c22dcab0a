"""Whether a model's answer is a summary of what it was given.

Judged by what can be seen without understanding: what stands first, what it repeats, and which of the
original's terms, names, numbers and message ids it has. A summary that is rejected for nothing costs a
version made by rule; an excuse that is taken for one is kept as a note of messages that nobody reads again.
"""

import re
import unicodedata
from collections import Counter

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.memory.summarizers.summarizer import SummaryFailed
from moot.nodes.text.terms import terms
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.entries import ENTRY_ID

ECHO_SHARE = 0.8
"""An answer that repeats this share of its input's words in their order is an echo."""
ECHO_CHARS = 150
"""Shorter answers may repeat what they sum up."""
_PIECE = 40  # characters that are looked for as a whole

_MUCH, _VERY_MUCH = 12, 60  # distinct terms of an original of which a summary has one term, or two
_TELLING, _TELLING_ELSEWHERE = 30, 9  # so many terms, none shared: in another language; in another script
_LONG_EXCUSE = 200  # characters from which words of excuse may begin a summary that keeps to its original

_STRUCTURE = re.compile(
    r"(?:```\w*\s*)?(?:\{\s*[\"'}]|\[\s*[\"{]|<(?:!doctype|\?xml|html|head|body)\b)", re.I
)
_EXCUSE = re.compile(
    r"""[\W_]*
    (?:(?:here\ (?:is|are)\b[^:\n]{0,40}|the\ )?
       (?:summary|notes?|zusammenfassung|résumé|resumen|摘要|总结)\W*[:：][\W_]*)?
    (?:
      (?:(?:i'm|i\ am|we're|we\ are)\ )?(?:(?:really|very|so|truly|terribly)\ )?sorry\b
    | i\ apologi[sz]e\b | (?:my\ )?apologies\b | (?:unfortunately|regrettably)\W+(?:i|we)\b
    | as\ an?\ (?:ai|artificial\ intelligence|(?:large\ )?language\ model)\b
    | i(?:'m|\ am)\ (?:unable|not\ (?:able|allowed))\b
    | i\ (?:can't|cannot|can\ not|could\ not|couldn't|won't)\b
    | (?:\w+\ ?)?(?:error|exception)\b\s{0,2}[:(\d] | traceback\b
    | (?:http|status|code)\S*\s*[45]\d\d\b
    | [45]\d\d\W{1,3}(?:bad|internal|service|gateway|too\ many|unauthori[sz]ed|forbidden|not\ found|error)\b
    | (?:rate\ limit|quota)\S*\ (?:exceeded|reached|hit)\b | too\ many\ requests\b
    | internal\ server\ error\b | bad\ gateway\b | gateway\ time-?out\b
    | (?:the\ )?(?:service|server|model)\ (?:is\ )?(?:currently\ |temporarily\ )?(?:unavailable|overloaded)\b
    | (?:the\ )?(?:request|connection)\ (?:timed\ out|timeout|refused|reset|failed)\b
    | you(?:'ve|\ have)?\ exceeded\b | (?:invalid|incorrect|missing)\ api\ key\b
    | (?:很|非常|十分)?(?:抱歉|对不起|對不起|不好意思) | (?:大変|誠に)?申し訳 | すみません
    | (?:정말\ )?(?:죄송|미안)
    | es\ tut\ mir\ (?:sehr\ )?leid\b | leider\ (?:kann|bin|darf)\ ich\b | entschuldigung\b
    | (?:je\ suis\ )?(?:vraiment\ )?désolée?\b | malheureusement\W+je\b
    | lo\ siento\b | lamentablemente\b | mi\ dispiace\b | (?:me\ )?desculpe\b | lamento\b
    | извините\b | простите\b | к\ сожалению\W+я\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def check_summary(
    reply: Reply, call: ModelCall, room: int, count: TokenCounter, *, notes: bool = False
) -> str:
    """Return an answer's text within its room.

    Where `notes` were to be summarised, to keep most of them word by word is no echo.

    Raises:
        SummaryFailed: no answer, or one that is no summary.
    """
    if not reply.ok:
        raise SummaryFailed(reply.error)
    text = reply.text.strip()
    instructions, source = call.messages[0]["content"], call.messages[-1]["content"]
    if not any(map(str.isalnum, text)):
        raise SummaryFailed("the model's summary is empty")
    if _STRUCTURE.match(text):
        raise SummaryFailed("the model answered with JSON or HTML")
    if _is_excuse(text, source):
        raise SummaryFailed("the model answered with an excuse or an error's text")
    if count(text) > 4 * room:
        raise SummaryFailed("the model's summary is far longer than asked")
    if _is_echo(text, source, of=0.95 if notes or count(text) <= room else 0.5):
        raise SummaryFailed("the model echoed its input")
    if _has_nothing_of(text, source):
        raise SummaryFailed("the model's summary has nothing of what it was to sum up")
    if _repeats(_bare_words(text), _bare_words(instructions)):
        raise SummaryFailed("the model echoed its instructions")
    return cut_middle(text, room, count)


def _is_excuse(text: str, source: str) -> bool:
    """Whether a text begins as excuses and errors do, and does not go on as a summary does."""
    if not _EXCUSE.match(text.replace("’", "'")):
        return False
    if set(ENTRY_ID.findall(text)) & set(ENTRY_ID.findall(source)):
        return False
    told = set(terms(text))
    return len(text) < _LONG_EXCUSE or 2 * len(told & set(terms(source))) < len(told)


def _is_echo(text: str, source: str, *, of: float) -> bool:
    """Whether a text is its source again, the share `of` of it, or its beginning; a summary may quote."""
    folded, original = _bare_words(text), _bare_words(source)
    if len(folded) < ECHO_CHARS or len(original) < ECHO_CHARS:
        return False
    if original.startswith(folded):
        return True
    return len(folded) >= of * len(original) and _repeats(folded, original)


def _bare_words(text: str) -> str:
    """Return the words of a text alone: neither case, line breaks nor bullets hide an echo."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _repeats(text: str, source: str) -> bool:
    """Whether most of a text stands in `source` word by word."""
    pieces = [text[start : start + _PIECE] for start in range(0, len(text) - _PIECE, _PIECE)]
    return len(pieces) > 2 and sum(piece in source for piece in pieces) >= ECHO_SHARE * len(pieces)


def _has_nothing_of(text: str, source: str) -> bool:
    """Whether a text shares next to nothing with a long original and is too short to say it in other words.

    The original names every speaker and message, so that a summary in another language shares those.
    """
    told, known = frozenset(terms(text)), frozenset(terms(source))
    needed = (len(known) >= _MUCH) + (len(known) >= _VERY_MUCH)
    if len(told & known) >= needed:
        return False
    return len(told) < (_TELLING if _script(text) == _script(source) else _TELLING_ELSEWHERE)


def _script(text: str) -> str:
    """Return the script that most letters of a text's beginning are of."""
    letters = (unicodedata.name(letter, "?").split()[0] for letter in text[:2000] if letter.isalpha())
    return max(Counter(letters).items(), key=lambda item: (item[1], item[0]), default=("", 0))[0]
