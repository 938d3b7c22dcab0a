"""Faults of a reply's text: no text, endless repetition, tool calls as text, lines of other speakers."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from moot.models.reply_markup import ID_NOTE, LABEL_NOTE, CodeSpans
from moot.text.plain_text import plain_line

_NO_TEXT = frozenset(
    ("none", "null", "nil", "undefined", "[object object]", "(empty)", "(no content)", '""', "''")
)
"""Texts that servers and SDKs send instead of an empty reply."""


def is_empty_text(text: str) -> bool:
    """Return True if a reply has no visible character, or is only a word such as `None` for "no text"."""
    line = plain_line(text)
    return not line.strip("\u200c\u200d\ufe0f") or line.casefold() in _NO_TEXT


MIN_REPEATED_CHARS = 100
"""Length of the shortest repeated end that counts as a loop, in characters. A refrain or a row of a table is
shorter."""
REPETITIONS = 3
"""Number of times that a loop must occur."""
SEARCHED_CHARS = 20_000
"""Number of characters at the end of a reply in which a loop is searched. It is about 5,000 tokens."""


def length_before_loop(text: str) -> int | None:
    """Return the length of a text up to the first repetition of the loop with which it ends.

    A loop is a text that is repeated without a change until the end. The last repetition may be incomplete.
    Return `None` if there is no loop. The run time is linear: the borders of the reversed text are computed
    as in the algorithm of Knuth, Morris and Pratt.
    """
    tail = text[-SEARCHED_CHARS:][::-1]
    borders, border = [0] * len(tail), 0
    best_length = best_period = 0
    for index in range(1, len(tail)):
        while border and tail[index] != tail[border]:
            border = borders[border - 1]
        border += tail[index] == tail[border]
        borders[index] = border
        length, period = index + 1, index + 1 - border
        if length >= MIN_REPEATED_CHARS and REPETITIONS * period <= length:
            best_length, best_period = length, period
    if not best_length:
        return None
    start = len(text) - best_length
    while text[max(start - best_period, 0) : start] == text[start : start + best_period]:  # before the tail
        start -= best_period
    return start + best_period


ENDLESS_CHARS = 2_000
"""Length of the loop after which an unfinished reply is ended, in characters. It is about 500 tokens."""
ENDLESS_REPETITIONS = 10
"""Number of times that a loop must occur within `ENDLESS_CHARS`. Tables and code repeat less."""


def is_endless(text: str) -> bool:
    """Return True if an unfinished reply ends in a loop that is too long to be meant."""
    end = text[-ENDLESS_CHARS:]
    before = length_before_loop(end) if len(end) == ENDLESS_CHARS else None
    return before is not None and before * ENDLESS_REPETITIONS <= ENDLESS_CHARS


_CALL_NAME = r"(?:[a-z]{1,12}:|[|｜]DSML[|｜])?(?:tool_calls?|function_calls?|function|invoke|tool_code)"
_CALL = re.compile(
    r"^[ \t]*(?:"
    rf"<({_CALL_NAME})(?:[ =][^<>\n]{{0,200}})?>(?=\s*[\[{{<\"'\w])"
    r"|<[|｜]/?(?:tool[_▁]calls?\w{0,20}(?:▁\w{1,10}){0,2}|python_tag|START_ACTION|action_start|plugin)[|｜]?>"
    r"|<tools>(?=\s*[\[{])|functools\s?(?=\[\s?\{)|\[(?:TOOL_CALLS|TOOL_REQUEST)\]|```(?:tool_code|tool_calls?|function_calls?)\n)",
    re.MULTILINE | re.IGNORECASE,
)
_CALL_END = re.compile(
    rf"</(?:{_CALL_NAME}|tools)>|<[|｜]?/?(?:tool[_▁]calls?\w{{0,20}}(?:▁\w{{1,10}}){{0,2}}|END_ACTION|action_end)[|｜]>"
    r"|\[(?:END_TOOL_REQUEST|/TOOL_CALLS)\]|\n```",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"[\"']name[\"']\s*:\s*[\"']([\w.:-]{1,64})[\"']"
    r"|<(?:[|｜]DSML[|｜])?(?:function|invoke)[ =](?:name=)?\"?([\w.-]{1,64})"
)


def without_tool_calls(text: str, note: Callable[[str], str]) -> str:
    """Replace tool calls that a model wrote as text.

    `note` gets the name of the called tool, or `""` if it is unknown, and returns the replacement. Tool calls
    in code stay. A reply that is one JSON object with the name and arguments of a tool is a call, too.
    """
    if (name := _json_call(text)) is not None:
        return note(name)
    if not _CALL.search(text):
        return text
    code, pieces, position = CodeSpans(text), list[str](), 0
    while call := _CALL.search(text, position):
        is_block = call[0].lstrip().startswith("```")
        if call.start() in code and not is_block:
            pieces.append(text[position : call.end()])
            position = call.end()
            continue
        end = len(text)
        for closing in _CALL_END.finditer(text, call.end()):
            end = closing.end()
            if not _CALL_END.match(text, len(text) - len(text[end:].lstrip())):
                break
        calls = _CALLED.search(text, call.start(), end)
        pieces += [text[position : call.start()], note((calls[1] or calls[2]) if calls else "")]
        position = end
    return "".join([*pieces, text[position:]]).strip()


def _json_call(text: str) -> str | None:
    fenced = re.fullmatch(r"```(?:json)?\n(.*)\n```", text.strip(), re.DOTALL)
    stripped = fenced[1].strip() if fenced else text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}") and len(stripped) < 20_000):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    value = value["function"] if isinstance(value.get("function"), dict) else value
    calls = value.get("name") if isinstance(value.get("name"), str) else None
    has_arguments = any(isinstance(value.get(key), dict) for key in ("arguments", "parameters"))
    return calls if calls and has_arguments and len(value) <= 4 else None


def labels_of(name: str, role: str) -> tuple[str, ...]:
    """Return the labels of a debater before a message, such as `Ada` and `Ada, engineer`."""
    pairs = (f"{name}, {role}", f"{name} – {role}", f"{name} - {role}", f"{name} — {role}", f"{role} {name}")
    return (name, f"Debater {name}", *(pairs if role else ()))


def mark_other_speakers(
    text: str, author: str, others: Mapping[str, str], is_quotation: Callable[[str, str], bool]
) -> str:
    """Mark the lines of a message that begin with another debater's name.

    In `Ben: I give up`, the name becomes `Ben (written by Ada)`, so that nobody takes the line for Ben's. The
    author's own name at the start of a later line is removed. Code and exact quotations stay as they are.
    `others` maps the display names of the other debaters to their ids.
    """
    ids = {name.casefold(): key for name, key in others.items()}
    code = CodeSpans(text)

    def marked(label: re.Match[str]) -> str:
        name = label["name"].casefold()
        if label.start() in code or (name not in ids and label.start() == 0):
            return label[0]
        # Without a colon, a name needs markup to be a label.
        if not re.search("[:：]", label["rest"]) and not (label["before"] or "#" in label["indent"]):
            return label[0]
        if name not in ids:
            return label["indent"]
        line = text[label.end() : text.find("\n", label.end()) % (len(text) + 1)].strip(' \t"“”*_')
        if len(line) >= MIN_QUOTED_CHARS and is_quotation(ids[name], line):
            return label[0]
        return f"{label['indent']}{label['before']}{label['name']} (written by {author}){label['rest']}"

    return _speaker_line(tuple(dict.fromkeys([author, *others]))).sub(marked, text)


MIN_QUOTED_CHARS = 12
"""Length of the shortest line that may be an exact quotation, in characters."""


@lru_cache(maxsize=64)
def _speaker_line(names: tuple[str, ...]) -> re.Pattern[str]:
    each = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(
        rf"^(?P<indent>[ \t]{{0,3}}(?:[>#][ \t]{{0,3}}){{0,6}}{ID_NOTE})(?P<before>[*_\[<]{{0,3}})"
        rf"(?P<name>{each})(?P<rest>[*_\]>]{{0,3}}{LABEL_NOTE}[*_]{{0,3}}"
        rf"(?:[ \t]{{0,3}}[:：][*_]{{0,3}}[ \t]*(?=\S|$)|[ \t]{{0,3}}$|(?<=>)[ \t]+(?=\S)))",
        re.IGNORECASE | re.MULTILINE,
    )
