"""Transcripts in CSV: `speaker,minute,text`, with other delimiters, orders and headers."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moot.graph.importing.parse_result import (
    CLOCK,
    CONTENT_KEYS,
    SPEAKER_KEYS,
    TIME_KEYS,
    ParsedSpeech,
    ParsedTranscript,
)
from moot.state.errors import InputError

_NUMBER = r"\d+(?:[.,]\d+)?"


@dataclass(frozen=True)
class _Columns:
    speaker: int
    text: int
    time: int | None
    width: int
    """How many there are; a last text may hold unquoted delimiters, which make a row look wider."""


def read_csv(text: str) -> ParsedTranscript:
    """Read a table whose columns are told by their header, else by what they hold.

    The delimiter is the one that makes a header of the first line, else the one most at home in all lines.
    """
    headers = {mark: header for mark in ",;\t" if (header := header_of(text, mark))}
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    at_home = max(",;\t", key=lambda mark: (sum(mark in line for line in lines), mark == ","))
    delimiter = next(iter(headers), at_home)
    rows = list(_rows(text, delimiter))
    if not rows:
        return ParsedTranscript([])
    columns = headers.get(delimiter)
    if columns is None:
        columns = _columns_by_content(rows)
    else:
        rows = rows[1:]
    return ParsedTranscript([_utterance(number, row, columns, delimiter) for number, row in rows])


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank with the line on which it begins."""
    csv.field_size_limit(2**31 - 1)  # the default refuses a speech of more than 131,072 characters
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"line {line}: {error}; a text with quotes needs them doubled and quotes around it"
        raise InputError(message) from error


def header_of(text: str, delimiter: str = ",") -> _Columns | None:
    """Return the columns that the first line names, `None` where it is no header."""
    cells = text.lstrip().partition("\n")[0].split(delimiter)
    names = [cell.strip().strip('"').casefold() for cell in cells]
    speaker, said = _place(names, SPEAKER_KEYS), _place(names, CONTENT_KEYS)
    if speaker is None or said is None:
        return None
    return _Columns(speaker, said, _place(names, TIME_KEYS), len(names))


def _place(names: Sequence[str], keys: Sequence[str]) -> int | None:
    return next((names.index(key.casefold()) for key in keys if key.casefold() in names), None)


def _columns_by_content(rows: Sequence[tuple[int, list[str]]]) -> _Columns:
    """Tell the columns by what they hold: the first of words is the speaker, the longest other the text.

    Clock times are the time wherever they stand, plain numbers where they come before the text.
    """
    line, narrowest = min(rows, key=lambda numbered: len(numbered[1]))
    columns = [[row[index].strip() for _, row in rows] for index in range(len(narrowest))]
    filled = [index for index, cells in enumerate(columns) if any(cells)]
    if len(filled) < 2:
        raise InputError(f"line {line}: one column only; give `speaker,minute,text`, separated by commas")

    def holding(form: str) -> list[int]:
        return [i for i in filled if all(re.fullmatch(form, cell) for cell in columns[i] if cell)]

    clocks, numbers = holding(CLOCK), holding(_NUMBER)
    words = [index for index in filled if index not in clocks + numbers]
    timeless = [index for index in filled if index not in clocks]
    # Speakers may be numbers and speeches times, where nothing else is left for them.
    speaker, *others = next(found for found in (words, timeless, filled) if len(found) > 1)
    text = max(others, key=lambda index: sum(map(len, columns[index])))
    widest = max(len(row) for _, row in rows)
    if text not in words and widest > len(narrowest):
        raise InputError(
            f"line {line}: {len(narrowest)} columns where other lines have {widest}; fill them in"
        )
    times = [i for i in (*clocks, *numbers) if i not in (speaker, text) and (i in clocks or i < text)]
    return _Columns(speaker, text, times[0] if times else None, len(narrowest))


def _utterance(number: int, row: list[str], columns: _Columns, delimiter: str) -> ParsedSpeech:
    needed = max(columns.speaker, columns.text, columns.time or 0) + 1
    if len(row) < needed:
        raise InputError(
            f"line {number}: {len(row)} columns instead of {needed}; separate them with {delimiter!r}"
        )
    beyond = row[columns.width :]
    if columns.text == columns.width - 1:
        row = [*row[: columns.text], delimiter.join(row[columns.text :])]
    elif any(cell.strip() for cell in beyond):
        raise InputError(
            f"line {number}: {len(row)} columns instead of {columns.width}; "
            f"put quotes around a text that holds {delimiter!r}"
        )
    if not row[columns.speaker].strip():
        raise InputError(f"line {number}: no speaker; fill column {columns.speaker + 1} in")
    return ParsedSpeech(
        row[columns.speaker], row[columns.text], row[columns.time].strip() if columns.time is not None else ""
    )
