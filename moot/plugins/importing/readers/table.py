"""Tables with columns of speakers and texts: CSV with any common delimiter, and tables in Markdown."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moot.importers import ParsedMessage, ParsedTranscript, Source
from moot.plugins.importing.dates import CLOCK, DATE, STAMP, TIME_OF_DAY
from moot.plugins.importing.names import why_implausible
from moot.state.errors import InputError

_DELIMITERS = ",;\t|"
_SPEAKER_NAMES = (
    *("speaker", "speaker name", "name", "author", "agentid", "agent", "from", "who", "user", "username"),
    *("user name", "sender", "participant", "role"),
    *("sprecher", "sprecherin", "redner", "intervenant", "locuteur", "hablante", "orador", "interlocutor"),
    *("parlante", "relatore", "spreker", "talare", "mówca", "話者", "発言者", "发言人", "화자"),
)
_TEXT_NAMES = (
    *("content", "text", "message", "utterance", "speech", "body", "value", "transcript", "sentence"),
    *("comment", "message body"),
    *("inhalt", "beitrag", "nachricht", "texte", "texto", "testo", "mensaje", "mensagem", "messaggio"),
    *("tekst", "bericht", "発言", "内容", "본문"),
)
_TIME_NAMES = (
    *("at", "minute", "time", "timestamp", "start", "start time", "created at", "date", "datetime"),
    *("timecode",),
)
_NUMBER = r"\d+(?:[.,]\d+)?|\+\d[\d ().-]{4,20}"
"""Pattern for a number, or for a telephone number."""
_TIME = rf"{CLOCK}|{STAMP}|{DATE}|{TIME_OF_DAY}"
_SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)
"""Pattern for the first line with which Excel names the delimiter."""
_MARKDOWN_RULE = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?\s*)?\|?")
Row = tuple[int, list[str]]
"""Row of a table with the number of its first line."""


@dataclass(frozen=True)
class _Columns:
    speaker: int
    text: int
    time: int | None
    width: int
    """Number of columns in the table. A row has more columns if its last text contains unquoted
    delimiters."""


def read_table(source: Source) -> ParsedTranscript:
    """Read messages from a table, and detect which columns contain speakers, texts and times.

    The delimiter is the one that the first line names, or that gives a valid header, or that occurs in most
    lines. A row without a speaker continues the message of the row before it.

    Raises:
        InputError: The table is invalid, or its columns are unknown. The message names the line.
    """
    text, delimiter_line, first_line = _without_separator_line(source.text)
    marks = delimiter_line or _DELIMITERS
    headers = {mark: header for mark in marks if (header := header_of(text, mark))}
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    commonest = max(marks, key=lambda mark: (sum(mark in line for line in lines), mark == ","))
    delimiter = next(iter(headers), commonest)
    rows = [(number + first_line, row) for number, row in _rows(text, delimiter)]
    if not rows:
        return ParsedTranscript([])
    columns = headers.get(delimiter)
    if columns is None:
        if lower := next((number for number, row in rows if _header(row)), 0):
            raise InputError(f"line {lower}: the header must be the first row: move it to the top")
        _check_header(rows, delimiter)
        columns = _columns_by_content(rows)
        messages = _messages(rows, columns, delimiter)
        if reason := why_implausible(messages, may_be_numbers=True) if len(rows) > 3 else "":
            raise InputError(
                f"line {rows[0][0]}: the table has no header, and its columns are unclear: {reason}. Add the "
                f"header `speaker{delimiter}text`"
            )
        return ParsedTranscript(messages)
    (_, titles), *rows = rows
    if any(row == titles for _, row in rows):
        raise InputError("line 1: the header occurs again below: remove it, or import each table by itself")
    return ParsedTranscript(_messages(rows, columns, delimiter))


def _without_separator_line(text: str) -> tuple[str, str, int]:
    """Return a table without Excel's line, the delimiter in it, and the number of lines removed."""
    first, _, rest = text.partition("\n")
    match = _SEPARATOR_LINE.fullmatch(first.strip("\r\n "))
    return (rest, match[1], 1) if match else (text, "", 0)


def is_table(source: Source) -> bool:
    """Return True if the text begins with the header of a table, or with Excel's line about the delimiter."""
    text, delimiter_line, _ = _without_separator_line(source.text)
    return bool(delimiter_line) or any(header_of(text, mark) for mark in _DELIMITERS)


def _rows(text: str, delimiter: str) -> Iterator[Row]:
    """Yield each non-blank row of a table with the number of its first line."""
    if delimiter == "|":
        for number, piped in enumerate(text.split("\n"), start=1):
            if piped.strip() and not _MARKDOWN_RULE.fullmatch(piped.strip()):
                yield number, [cell.strip() for cell in _pipe_cells(piped)]
        return
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


def _pipe_cells(line: str) -> list[str]:
    """Return the cells of a row with pipes, which Markdown also writes at both ends."""
    line = line.strip()
    line = line.removeprefix("|").removesuffix("|") if line.startswith("|") else line
    return line.split("|")


def header_of(text: str, delimiter: str = ",") -> _Columns | None:
    """Return the positions of speaker, text and time in a header, or `None` if there is no header."""
    line = text.lstrip().partition("\n")[0]
    return _header(_pipe_cells(line) if delimiter == "|" else line.split(delimiter))


def _header(cells: Sequence[str]) -> _Columns | None:
    names = [_normal(cell) for cell in cells]
    speaker, text_column = _place(names, _SPEAKER_NAMES), _place(names, _TEXT_NAMES)
    if speaker is None or text_column is None or speaker == text_column:
        return None
    return _Columns(speaker, text_column, _place(names, _TIME_NAMES), len(names))


def _normal(cell: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", cell).split()).casefold()


def _check_header(rows: Sequence[Row], delimiter: str) -> None:
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
    known_names = {*_SPEAKER_NAMES, *_TEXT_NAMES, *_TIME_NAMES}
    number = re.compile(f"{CLOCK}|{_NUMBER}")
    has_numbers = any(cells and all(map(number.fullmatch, cells)) for cells in lower_cells)
    column_names = [cell.strip() for cell in first]
    if (
        has_numbers
        or known_names & {*names}
        or all(cell.islower() and " " not in cell for cell in column_names)
        or _is_above_repeats(first, other_rows)
    ):
        example = f"speaker{delimiter}text".replace("\t", " and ")
        raise InputError(
            f"line {line}: the table has the columns {', '.join(column_names)}, but its header must name a "
            f"speaker column and a text column, as in `{example}`"
        )


def _is_above_repeats(first: Sequence[str], rows: Sequence[Row]) -> bool:
    """Return True if the first row stands above a column in which every value repeats, such as names."""
    for index in range(len(first)):
        counts = Counter(row[index].strip() for _, row in rows if index < len(row))
        if 1 < len(counts) < len(rows) and min(counts.values()) > 1:
            return True
    return False


def _place(names: Sequence[str], keys: Sequence[str]) -> int | None:
    return next((names.index(key) for key in keys if key in names), None)


def _columns_by_content(rows: Sequence[Row]) -> _Columns:
    """Detect which columns contain speakers, texts and times by looking at their contents.

    The column with the longest words is the text. The speaker is the other column with words, or of several
    the one whose words recur. A column of times is the time. A column of plain numbers is the time only if it
    precedes the text.
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

    clocks, numbers = holding(_TIME), holding(_NUMBER)
    words = [index for index in filled if index not in clocks + numbers]
    timeless = [index for index in filled if index not in clocks]
    # Without other columns, speakers may be numbers and texts may be times.
    candidates = next(each for each in (words, timeless, filled) if len(each) > 1)
    text = max(candidates[1:], key=lambda index: sum(map(len, columns[index])))
    others = [index for index in candidates if index != text]
    recurring = [index for index in others if len(set(filter(None, columns[index]))) < len(rows)]
    if (len(others) > 1 and len(recurring) != 1) or (others[0] in clocks and timeless):
        raise InputError(
            f"line {line}: the table has no header, and several columns may be the speakers: add a "
            "header that names the columns `speaker` and `text`"
        )
    speaker = recurring[0] if len(others) > 1 else others[0]
    widest = max(len(row) for _, row in rows)
    if text not in words and widest > len(narrowest):
        raise InputError(
            f"line {line}: the row has {len(narrowest)} columns, but other rows have {widest}; add "
            "the missing columns"
        )
    times = [i for i in (*clocks, *numbers) if i not in (speaker, text) and (i in clocks or i < text)]
    return _Columns(speaker, text, times[0] if times else None, len(narrowest))


def _messages(rows: Sequence[Row], columns: _Columns, delimiter: str) -> list[ParsedMessage]:
    messages: list[ParsedMessage] = []
    for number, row in rows:
        messages.append(_message(number, row, columns, delimiter, messages[-1].speaker if messages else ""))
    return messages


def _message(
    number: int, row: list[str], columns: _Columns, delimiter: str, last_speaker: str
) -> ParsedMessage:
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
    speaker = row[columns.speaker].strip() or last_speaker
    if not speaker:
        raise InputError(f"line {number}: the row has no speaker; fill in column {columns.speaker + 1}")
    time = row[columns.time].strip() if columns.time is not None else ""
    return ParsedMessage(speaker, row[columns.text], time)
