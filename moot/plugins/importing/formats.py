"""Parsers for transcripts in CSV, JSON, JSON lines, plain text and Markdown."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from markdown_it import MarkdownIt

from moot.importers import ParsedMessage, ParsedTranscript
from moot.memory.tool_results import make_tool_use
from moot.state.errors import InputError
from moot.text.terms import question_in, split_sentences

SPEAKER_KEYS = ("speaker", "name", "author", "agentId", "agent", "from", "who", "role")
CONTENT_KEYS = ("content", "text", "message", "utterance", "speech", "body", "value")
TIME_KEYS = ("at", "minute", "time", "timestamp", "start", "created_at")
CLOCK = r"\d{0,2}(?::\d{2}){1,2}(?:[.,]\d+)?"
"""Pattern for a time of day or a position in a recording, such as `01:20`, `:57` or `01:10:43`."""


TOOL_SPEAKER = "tools"
"""Speaker id of imported tool results."""


_NUMBER = r"\d+(?:[.,]\d+)?"


@dataclass(frozen=True)
class _Columns:
    speaker: int
    text: int
    time: int | None
    width: int
    """Number of columns in the CSV table. A row has more columns if its last text contains unquoted
    delimiters."""


def read_csv(text: str) -> ParsedTranscript:
    """Read messages from a CSV table, and detect which columns contain speakers, texts and times.

    The delimiter is the one that gives a valid header, otherwise the one that occurs in most lines.
    """
    headers = {mark: header for mark in ",;\t" if (header := header_of(text, mark))}
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    commonest = max(",;\t", key=lambda mark: (sum(mark in line for line in lines), mark == ","))
    delimiter = next(iter(headers), commonest)
    rows = list(_rows(text, delimiter))
    if not rows:
        return ParsedTranscript([])
    columns = headers.get(delimiter)
    if columns is None:
        _check_header(rows, delimiter)
        columns = _columns_by_content(rows)
    else:
        rows = rows[1:]
    return ParsedTranscript([_message(number, row, columns, delimiter) for number, row in rows])


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each non-blank row of a CSV table with the number of its first line."""
    csv.field_size_limit(2**31 - 1)  # the default limit rejects fields with more than 131,072 characters
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"line {line}: {error}; put quotes around the text and double the quotes in it"
        raise InputError(message) from error


def header_of(text: str, delimiter: str = ",") -> _Columns | None:
    """Return the positions of speaker, text and time in a CSV header, or `None` if there is no header."""
    cells = text.lstrip().partition("\n")[0].split(delimiter)
    names = [cell.strip().strip('"').casefold() for cell in cells]
    speaker, text_column = _place(names, SPEAKER_KEYS), _place(names, CONTENT_KEYS)
    if speaker is None or text_column is None:
        return None
    return _Columns(speaker, text_column, _place(names, TIME_KEYS), len(names))


def _check_header(rows: Sequence[tuple[int, list[str]]], delimiter: str) -> None:
    """Raise an error if a table has a header but no columns for the speaker and the text.

    The first row is a header if none of its cells occurs again below it, and if the cells are lower-case
    words, include a known column name, or stand above a column of numbers.

    Raises:
        InputError: the first row is a header of other columns. The message names them.
    """
    (line, first), *other_rows = rows
    names = [cell.strip().casefold() for cell in first]
    lower_cells = [
        {cell for _, row in other_rows if index < len(row) and (cell := row[index].strip().casefold())}
        for index in range(len(names))
    ]
    is_wordlike = all(re.fullmatch(r"[^\W\d]\w*(?:[ -]\w+)?", name) for name in names)
    if not is_wordlike or any(name in cells for name, cells in zip(names, lower_cells, strict=True)):
        return
    known_names = {key.casefold() for key in (*SPEAKER_KEYS, *CONTENT_KEYS, *TIME_KEYS)}
    number = re.compile(f"{CLOCK}|{_NUMBER}")
    has_numbers = any(cells and all(map(number.fullmatch, cells)) for cells in lower_cells)
    column_names = [cell.strip() for cell in first]
    if (
        has_numbers
        or known_names & {*names}
        or all(cell.islower() and " " not in cell for cell in column_names)
    ):
        example = f"speaker{delimiter}text".replace("\t", " and ")
        raise InputError(
            f"line {line}: the table has the columns {', '.join(column_names)}, but its header must name a "
            f"speaker column and a text column, as in `{example}`"
        )


def _place(names: Sequence[str], keys: Sequence[str]) -> int | None:
    return next((names.index(key.casefold()) for key in keys if key.casefold() in names), None)


def _columns_by_content(rows: Sequence[tuple[int, list[str]]]) -> _Columns:
    """Detect which columns contain speakers, texts and times by looking at their contents.

    The first column with words is the speaker, and the longest other column is the text. A column of clock
    times is the time. A column of plain numbers is the time only if it precedes the text.
    """
    line, narrowest = min(rows, key=lambda numbered: len(numbered[1]))
    columns = [[row[index].strip() for _, row in rows] for index in range(len(narrowest))]
    filled = [index for index, cells in enumerate(columns) if any(cells)]
    if len(filled) < 2:
        raise InputError(
            f"line {line}: the row has only one column; write the columns `speaker,minute,text`, separated "
            "by commas"
        )

    def holding(form: str) -> list[int]:
        return [i for i in filled if all(re.fullmatch(form, cell) for cell in columns[i] if cell)]

    clocks, numbers = holding(CLOCK), holding(_NUMBER)
    words = [index for index in filled if index not in clocks + numbers]
    timeless = [index for index in filled if index not in clocks]
    # Without other columns, speakers may be numbers and texts may be times.
    speaker, *others = next(candidates for candidates in (words, timeless, filled) if len(candidates) > 1)
    text = max(others, key=lambda index: sum(map(len, columns[index])))
    widest = max(len(row) for _, row in rows)
    if text not in words and widest > len(narrowest):
        raise InputError(
            f"line {line}: the row has {len(narrowest)} columns, but other rows have {widest}; add "
            "the missing columns"
        )
    times = [i for i in (*clocks, *numbers) if i not in (speaker, text) and (i in clocks or i < text)]
    return _Columns(speaker, text, times[0] if times else None, len(narrowest))


def _message(number: int, row: list[str], columns: _Columns, delimiter: str) -> ParsedMessage:
    min_width = max(columns.speaker, columns.text, columns.time or 0) + 1
    if len(row) < min_width:
        raise InputError(
            f"line {number}: the row has {len(row)} columns instead of {min_width}; separate columns "
            f"with {delimiter!r}"
        )
    extra_cells = row[columns.width :]
    if columns.text == columns.width - 1:
        row = [*row[: columns.text], delimiter.join(row[columns.text :])]
    elif any(cell.strip() for cell in extra_cells):
        raise InputError(
            f"line {number}: the row has {len(row)} columns instead of {columns.width}; put quotes around "
            f"any text that contains {delimiter!r}"
        )
    if not row[columns.speaker].strip():
        raise InputError(f"line {number}: the row has no speaker; fill in column {columns.speaker + 1}")
    return ParsedMessage(
        row[columns.speaker], row[columns.text], row[columns.time].strip() if columns.time is not None else ""
    )


_TOPIC_KEYS = ("topic", "problem", "motion", "question", "title")
_TEXT_KEYS = (*CONTENT_KEYS, "description")
_LIST_KEYS = ("transcript", "utterances", "messages", "turns", "entries", "debate")
_INSTRUCTIONS = frozenset({"system", "developer"})
_TOOL_ROLES = frozenset({"tool", "function"})


def parse_json(text: str, line: int = 0) -> object:
    """Parse JSON, and raise an error with the line number if the JSON is invalid.

    `line` overrides that number.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"line {line or error.lineno}: the text is not valid JSON ({error.msg}, column {error.colno}); "
            "correct the JSON, or set the format"
        ) from error
    except RecursionError as error:
        raise InputError(
            f"line {line or 1}: the JSON is nested too deeply: write the content of messages as text"
        ) from error
    except ValueError as error:  # a number has too many digits
        raise InputError(f"line {line or 1}: the text is not valid JSON ({error})") from error


def read_json(value: object) -> ParsedTranscript:
    """Read messages from a JSON transcript that is already parsed."""
    topic = solution = ""
    if isinstance(value, list):
        items = value
    elif not isinstance(value, dict):
        raise InputError(
            "line 1: a JSON transcript must be a list of messages or an object that contains a list of "
            "messages"
        )
    else:
        topic = _first_text(value, _TOPIC_KEYS)
        if isinstance(rounds := value.get("rounds"), list):
            items = _contributions(rounds)
            solution = _dialectic_solution(value.get("finalSolution"))
        else:
            items = _messages_of(value)
    messages = _messages({f"entry {number}": item for number, item in enumerate(items, start=1)})
    return ParsedTranscript(messages, topic or _first_request(items), solution)


_CONTRIBUTION_KINDS: Mapping[str, Literal["proposal", "critique", "refinement"]] = {
    "proposal": "proposal",
    "critique": "critique",
    "refinement": "refinement",
}
"""Moot's entry kind for each contribution type of the program dialectic."""


def _contributions(rounds: list[object]) -> list[object]:
    """Return all contributions in a debate file with their round numbers.

    The file was written by the program dialectic.
    """
    return [
        {**contribution, "round": number} if isinstance(contribution, dict) else contribution
        for number, debate_round in enumerate(rounds, start=1)
        if isinstance(debate_round, dict)
        and isinstance(contributions := debate_round.get("contributions"), list)
        for contribution in contributions
    ]


def _dialectic_solution(final: object) -> str:
    """Convert the solution in a debate file of the program dialectic to Markdown text."""
    if not isinstance(final, dict):
        return _first_text({"text": final}, _TEXT_KEYS)
    parts = [_first_text(final, _TEXT_KEYS)]
    for key, title in (("tradeoffs", "Trade-offs"), ("recommendations", "Recommendations")):
        items = final.get(key)
        if points := [str(each) for each in items if each] if isinstance(items, list) else []:
            parts.append(f"## {title}\n\n" + "\n".join(f"- {point}" for point in points))
    return "\n\n".join(filter(None, parts))


def read_jsonl(text: str) -> ParsedTranscript:
    """Read messages from JSON Lines, one message object per line."""
    lines = enumerate(text.split("\n"), start=1)
    items = {f"line {number}": parse_json(line, number) for number, line in lines if line.strip()}
    return ParsedTranscript(_messages(items), _first_request(items.values()))


def _first_request(items: Iterable[object]) -> str:
    """Return the question in a chat's first user message, or else that message's first sentence.

    Return `""` if the chat has no user message.
    """
    for number, item in enumerate(items, start=1):
        if isinstance(item, dict) and item.get("role") == "user" and not item.get("speaker"):
            title = question_in(_text_of(_content(item), f"entry {number}"))
            sentences = split_sentences(title)
            return sentences[0].text if sentences else title
    return ""


def _messages_of(document: dict[str, object]) -> list[object]:
    """Find the list of messages in a JSON object. A list under a key such as `messages` is preferred.

    Raises:
        InputError: The document has no list of messages, or more than one.
    """
    for key in _LIST_KEYS:
        if isinstance(messages := document.get(key), list):
            return messages
    message_lists: dict[str, list[object]] = {}
    pending_items: list[tuple[str, object]] = list(document.items())
    for key, value in pending_items:  # the list grows
        if isinstance(value, dict):
            pending_items += [(f"{key}.{inner}", each) for inner, each in value.items()]
        elif isinstance(value, list) and value and all(map(_is_message, value)):
            message_lists[key] = value
    if len(message_lists) == 1:
        return next(iter(message_lists.values()))
    problem = (
        f"several lists of messages ({', '.join(message_lists)})" if message_lists else "no list of messages"
    )
    raise InputError(
        f"line 1: the JSON object has {problem}; put the messages in a list under one of the keys "
        f"{', '.join(_LIST_KEYS)}"
    )


def _is_message(item: object) -> bool:
    return (
        isinstance(item, dict)
        and bool(_first_text(item, SPEAKER_KEYS))
        and any(key in item for key in CONTENT_KEYS)
    )


def _messages(items: Mapping[str, object]) -> list[ParsedMessage]:
    """Read messages, tool calls and tool results from JSON objects.

    The keys are the positions of the messages, for error messages.
    """
    messages: list[ParsedMessage] = []
    calls_by_id: dict[str, tuple[str, object]] = {}
    for position, item in items.items():
        if not isinstance(item, dict):
            kind = type(item).__name__
            raise InputError(
                f"{position}: the message must be an object with speaker and content, not a value of "
                f"type {kind}"
            )
        if item.get("role") in _INSTRUCTIONS and not item.get("speaker"):
            continue
        if item.get("role") in _TOOL_ROLES and not item.get("speaker"):
            messages.append(_tool_result(item, position, calls_by_id))
            continue
        name = _first_text(item, SPEAKER_KEYS)
        calls = _tool_calls(item)
        if not name:
            raise InputError(f"{position}: the message has no speaker; add the key `speaker`")
        if not any(key in item for key in CONTENT_KEYS) and not calls:
            raise InputError(f"{position}: the message from {name!r} has no content; add the key `content`")
        time = _first_text(item, TIME_KEYS)
        message = ParsedMessage(name, _text_of(_content(item), position), time)
        contribution_kind, number = _CONTRIBUTION_KINDS.get(str(item.get("type"))), item.get("round")
        if contribution_kind and isinstance(number, int):
            target = str(item.get("targetAgentId") or "")
            message = replace(message, kind=contribution_kind, round=number, target=target)
        messages.append(message)
        for call_id, tool, arguments in calls:
            calls_by_id[call_id] = (tool, arguments)
            messages.append(
                ParsedMessage(name, f"{tool} {json.dumps(arguments)}", time, "tool_call", call_id)
            )
    return messages


def _tool_calls(item: dict[str, object]) -> list[tuple[str, str, object]]:
    """Return the id, name and arguments of each tool call in a message.

    The message has OpenAI's chat format.
    """
    calls: list[tuple[str, str, object]] = []
    raw_calls = item.get("tool_calls")
    for call in raw_calls if isinstance(raw_calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            with suppress(ValueError, RecursionError):  # arguments that are not JSON stay text
                arguments = json.loads(arguments)
        calls.append((str(call.get("id", "")), function["name"], arguments))
    return calls


def _tool_result(
    item: dict[str, object], position: str, calls_by_id: Mapping[str, tuple[str, object]]
) -> ParsedMessage:
    call_id, time = str(item.get("tool_call_id") or ""), _first_text(item, TIME_KEYS)
    tool, arguments = calls_by_id.get(call_id, (_first_text(item, ("name",)), {}))
    text = _text_of(_content(item), position)
    failed = True if item.get("status") == "error" or item.get("is_error") is True else None
    tool_use = make_tool_use(tool, arguments, text, failed=failed)
    return ParsedMessage(
        TOOL_SPEAKER, f"{tool}: {text}" if tool else text, time, "tool_result", call_id, tool_use
    )


def _first_text(item: dict[str, object], keys: Iterable[str]) -> str:
    values = (item.get(key) for key in keys)
    texts = (str(v).strip() for v in values if isinstance(v, str | int | float) and not isinstance(v, bool))
    return next((text for text in texts if text), "")


def _content(item: dict[str, object]) -> object:
    """Return the content of a message object, or `None` if it has no content."""
    return next((item[key] for key in _TEXT_KEYS if item.get(key) is not None), None)


def _text_of(value: object, position: str) -> str:
    """Convert the content of a message to text.

    Null and parts without text, such as images, are empty.

    Raises:
        InputError: The content has another type. The message starts with `position`.
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_text_of(each, position) for each in value)))
    if isinstance(value, dict) and ((inner := _content(value)) is not None or "type" in value):
        return _text_of(inner, position)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InputError(
        f"{position}: the content of the message must be text, not {json.dumps(value)[:60]}; put quotes "
        "around it"
    )


SpeakerLines = Mapping[int, ParsedMessage]
"""Messages, keyed by the index of the line on which they start. The first line has the index 0."""

_HEAD = (
    rf"(?:[\[(](?P<before>{CLOCK})[\])]\s*)?"
    r"(?P<name>[^\s:：*#>|`-](?:(?!\*\*)[^:：]){0,59}?)(?<!\s)"
    rf"(?:\s*[\[(](?P<after>{CLOCK})[\])])?"
)
_LINE = re.compile(
    # A colon without a space must not belong to a URL, a path, a time, a ratio or a smiley.
    rf"{_HEAD}(?:\s*[:：](?=\s|$)|(?<!\s)(?P<tight>[:：])(?![/\\:：]|(?<=\d[:：])\d|[()|DP]\s*$))\s*(?P<text>.*)"
)
_BOLD = (
    rf"(?P<time>[\[(]{CLOCK}[\])]\s*)?\*\*(?P<name>[^*\n]{{1,60}}?)"
    r"(?:[:：]\*\*|\*\*(?P<aside>\s*[\[(][^()\[\]\n]{1,60}[\])])?\s*[:：])\s*(?P<text>.*)"
)
BOLD = re.compile(_BOLD)
BOLD_LIST_ITEM = re.compile(rf"(?:[-*+]|\d+[.)])\s+{_BOLD}")
_DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
TIME_STAMP = re.compile(
    rf"[\[(]?(?:{_DATE}(?:,?\s+|T))?\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:\.\d+)?Z?(?:\s?[AP]\.?M\.?)?[\])]?"
    r"(?:\s+[-–])?\s+(?=[^\s:][^:]{0,59}:)",
    re.IGNORECASE,
)
"""Pattern for the time stamp before the speaker's name in an exported chat."""
_LABEL = re.compile(
    r"(?i)topic|title|motion|questions?|answers?|notes?|examples?|summary|conclusion|first|second|third|finally"
    r"|however|yes|no|so|but|and|also|remember|warning|ps|sources?|evidence|result|update|date|todo|re"
    r"|議題|テーマ|主題|主题|议题|辩题|题目|問題|问题|質問|回答|答|問|问|結論|结论|理由|原因|例|例如|注|注意"
)
"""Pattern for words before a colon that are not speakers' names, such as "question"."""
_TOPIC = re.compile(
    r"(?i)^(?:#+\s+|(?:topic|title|motion|question|議題|テーマ|主題|主题|议题|辩题|题目)\s*[:：]\s*)"
)
_REPORTED = re.compile(r"[\d\"“「『]")
"""Pattern for text after a colon that is probably not a speaker's message. Such text begins with a digit or a
quotation mark."""
_CASELESS = 12
"""Maximum number of characters in a word of a speaker's name. It applies to words without letter case, such
as Chinese words. Names that occur repeatedly may be longer."""
_PARTICLE = re.compile(r"d[aeiou]|dos|del|der|den|van|von|l[ae]|el|al|bin|ibn|y|e|of|the|and")


def read_txt(text: str) -> ParsedTranscript:
    """Read messages from text in which each message starts with a name and a colon.

    A time in brackets may follow the name.
    """
    lines = text.split("\n")
    return _messages_under(lines, _speaker_lines(lines), "NAME: text")


def _speaker_lines(lines: Sequence[str]) -> SpeakerLines:
    """Find the lines that name a speaker, and return the message on each line, keyed by line index.

    Names that occur repeatedly are checked less strictly.
    """
    matches = {index: match for index, line in enumerate(lines) if (match := _LINE.match(line))}
    matches = {index: match for index, match in matches.items() if not _LABEL.fullmatch(match["name"])}
    counts = Counter(match["name"] for match in matches.values())
    first_speaker = next(iter(counts), "")
    heads = {}
    for index, match in matches.items():
        is_known = counts[match["name"]] > 1 or match["name"] == first_speaker
        is_setting = match["tight"] == ":" and match["name"][0].islower()  # `color:red`
        is_reported = match["tight"] and not is_known and _REPORTED.match(match["text"])
        if not (is_setting or is_reported) and _is_name(match["name"], known=is_known):
            heads[index] = ParsedMessage(
                match["name"], match["text"], match["before"] or match["after"] or ""
            )
    return heads


_BRACKETED = re.compile(r"[(（][^)）]*+([)）]?)")
"""Pattern for text in brackets. Its group is empty if the closing bracket is missing."""


def _is_name(text: str, *, known: bool) -> bool:
    """Return True if a text looks like a speaker's name.

    The text stands before a colon. A name that is `known` is checked less strictly.
    """
    words = _BRACKETED.sub(lambda match: " " if match[1] else match[0], text).split()
    if (
        not words
        or len(words) > 6
        or re.search(r"[;!?\"“”、。，！？；「」『』]|(?<![^.\s])[^.\s]{6,}+\.(?:\s|$)", text)
    ):
        return False
    if not known and any(word.lower() == word.upper() and len(word) > _CASELESS for word in words):
        return False
    capital = [not word[0].islower() or bool(_PARTICLE.fullmatch(word)) for word in words]
    return all(capital) or (known and (capital[-1] or len(words) == 1))


def read_md(text: str) -> ParsedTranscript:
    """Read messages from Markdown.

    Each message starts with a heading or a bold name.

    `markdown-it-py` finds headings and fences. Bold names are found line by line, because most transcripts
    have no blank lines between messages.
    """
    # Dashes below a message and tags before it must not start a new block.
    parser = MarkdownIt("commonmark").disable(["lheading", "html_block"])
    parser.core.ruler.disable("inline")
    lines, blocks = text.split("\n"), parser.parse(text)
    fenced_lines = {
        index for token in blocks if token.type == "fence" and token.map for index in range(*token.map)
    }
    headings = {
        token.map[0]: (token.tag, inline.content)
        for token, inline in pairwise(blocks)
        if token.type == "heading_open" and token.level == 0 and token.map
    }
    level = min((tag for tag, _ in headings.values() if tag != "h1"), default="")
    names = {index: name for index, (tag, name) in headings.items() if tag == level}
    has_repeats = len(set(names.values())) < len(names)
    # List items and a single heading count only if no other form names speakers.
    if not has_repeats and any(map(BOLD.match, lines)):
        return _messages_under(lines, _bold_speaker_lines(BOLD, lines, fenced_lines), "**NAME:** text")
    if not has_repeats and len(names) < 2 and is_listed(lines):
        return _messages_under(
            lines, _bold_speaker_lines(BOLD_LIST_ITEM, lines, fenced_lines), "- **NAME**: text"
        )
    if names:
        return _messages_under(
            lines, {index: _markdown_message(name, "") for index, name in names.items()}, "## NAME"
        )
    return read_txt(text)


def is_listed(lines: Sequence[str]) -> bool:
    """Return True if a transcript names its speakers in list items.

    The names are bold, and no other line starts with a name and a colon.
    """
    return any(map(BOLD_LIST_ITEM.match, lines)) and not _speaker_lines(lines)


def _bold_speaker_lines(
    form: re.Pattern[str], lines: Sequence[str], fenced_lines: Container[int]
) -> SpeakerLines:
    matches = {
        index: match
        for index, line in enumerate(lines)
        if (match := form.match(line)) and index not in fenced_lines
    }
    return {
        index: _markdown_message(f"{match['time'] or ''}{match['name']}{match['aside'] or ''}", match["text"])
        for index, match in matches.items()
    }


def _markdown_message(head: str, text: str) -> ParsedMessage:
    """Read a message's speaker and time from a Markdown heading or bold name."""
    match = re.fullmatch(_HEAD, head.strip())
    if match is None:
        return ParsedMessage(head, text)
    return ParsedMessage(match["name"], text, match["before"] or match["after"] or "")


def _messages_under(lines: Sequence[str], heads: SpeakerLines, form: str) -> ParsedTranscript:
    """Split a transcript into messages.

    The lines in `heads` start the messages. Errors quote `form` to show how to write a message.
    """
    if not heads:
        for number, line in enumerate(lines, start=1):
            if stamp := TIME_STAMP.match(line):
                raise InputError(
                    f"line {number}: the line begins with a time stamp in an unknown form, "
                    f"{stamp[0].strip()!r}; remove the time stamps, or write each message as "
                    f"`[09:41] {form}`"
                )
        raise InputError(f"line 1: no speaker was found; write each message as `{form}`")
    starts = [*heads, len(lines)]
    messages = [
        ParsedMessage(head.speaker, "\n".join([head.content, *lines[start + 1 : end]]).strip(), head.time)
        for (start, head), end in zip(heads.items(), starts[1:], strict=True)
    ]
    topic_lines = (_TOPIC.sub("", line.strip()) for line in lines[: starts[0]])
    return ParsedTranscript(messages, " ".join(filter(None, topic_lines)))
