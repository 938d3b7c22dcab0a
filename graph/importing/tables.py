"""Transcripts in CSV: `speaker,minute,text`, with other delimiters, orders and headers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph.importing.parsed import CLOCK, CONTENT_KEYS, SPEAKER_KEYS, TIME_KEYS, Parsed, Said
from state.errors import InputError


@dataclass(frozen=True)
class _Columns:
    speaker: int
    text: int
    time: int | None


def read_csv(text: str) -> Parsed:
    """Read a table whose columns are told by their header, else by what they hold."""
    delimiter = _delimiter(text)
    rows = list(_rows(text, delimiter))
    if not rows:
        return Parsed([])
    header = header_of(text, delimiter)
    if header is None:
        header = _guessed([row for _, row in rows])
    else:
        rows = rows[1:]
    return Parsed([_row_said(number, row, header, delimiter) for number, row in rows])


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


def _delimiter(text: str) -> str:
    """Return the delimiter that makes a header of the first line, else the one most at home in all lines."""
    first = text.lstrip().partition("\n")[0]
    known = [mark for mark in ",;\t" if header_of(first, mark)]
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    return (
        known[0]
        if known
        else max(",;\t", key=lambda mark: (sum(mark in line for line in lines), mark == ","))
    )


def header_of(text: str, delimiter: str = ",") -> _Columns | None:
    """Return the columns that the first line names, `None` where it is no header."""
    cells = text.lstrip().partition("\n")[0].split(delimiter)
    names = [cell.strip().strip('"').casefold() for cell in cells]
    speaker, said = _place(names, SPEAKER_KEYS), _place(names, CONTENT_KEYS)
    if speaker is None or said is None:
        return None
    return _Columns(speaker, said, _place(names, TIME_KEYS))


def _place(names: Sequence[str], keys: Sequence[str]) -> int | None:
    return next((names.index(key.casefold()) for key in keys if key.casefold() in names), None)


def _guessed(rows: list[list[str]]) -> _Columns:
    """Take the first column for the speaker, the longest other for the text, clock times for the time."""
    width = max(len(row) for row in rows)
    if width < 2:
        raise InputError("line 1: one column only; give `speaker,minute,text`, separated by commas")

    def column(index: int) -> list[str]:
        return [row[index].strip() for row in rows if index < len(row)]

    times = [i for i in range(1, width) if all(re.fullmatch(CLOCK, cell) for cell in column(i) if cell)]
    texts = [i for i in range(1, width) if i not in times] or [width - 1]
    longest = max(texts, key=lambda index: sum(map(len, column(index))))
    return _Columns(0, longest, next((i for i in times if i != longest), None))


def _row_said(number: int, row: list[str], columns: _Columns, delimiter: str) -> Said:
    needed = max(columns.speaker, columns.text, columns.time or 0) + 1
    if len(row) < needed:
        raise InputError(
            f"line {number}: {len(row)} columns instead of {needed}; separate them with {delimiter!r}"
        )
    if len(row) > needed and columns.text == needed - 1:
        row = [*row[: columns.text], delimiter.join(row[columns.text :])]
    if not row[columns.speaker].strip():
        raise InputError(f"line {number}: no speaker; fill the first column in")
    return Said(
        row[columns.speaker], row[columns.text], row[columns.time].strip() if columns.time is not None else ""
    )
