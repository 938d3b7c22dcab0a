"""Converters of Word, Excel, PDF and HTML documents to Markdown. They need the `documents` extra."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import BadZipFile

import mammoth  # type: ignore[import-untyped]
from bs4 import BeautifulSoup
from markdownify import MarkdownConverter
from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException
from pypdf import PdfReader
from pypdf.errors import PyPdfError

from moot.state.errors import InputError

FAILURES = (
    *(BadZipFile, InvalidFileException, PyPdfError, OSError, ValueError, KeyError, TypeError, IndexError),
    *(AttributeError, RecursionError, NotImplementedError, SyntaxError),
)
"""Exceptions with which the libraries answer a damaged document. `SyntaxError` includes invalid XML."""
MAX_CELLS = 500_000
"""Maximum number of cells in an Excel file, including the empty cells before the last one of a row. A cell in
the last column makes a row of 16,384 cells."""


def html_text(page: str) -> str:
    """Return a web page as Markdown, without its scripts and styles."""
    soup = BeautifulSoup(page, "html.parser")
    for element in soup(["script", "style"]):
        element.extract()
    try:
        return str(MarkdownConverter(heading_style="atx").convert_soup(soup.body or soup)).strip()
    except RecursionError as error:
        raise InputError("the page is nested too deeply: save it as plain text") from error


def _word_text(path: Path) -> str:
    with path.open("rb") as file:
        return html_text(mammoth.convert_to_html(file, convert_image=_no_image).value)


def _no_image(_: object) -> list[object]:
    return []  # a picture would become text in base64


def _excel_text(path: Path) -> str:
    """Return the sheets as tables in Markdown.

    Raises:
        InputError: the file has more than `MAX_CELLS` cells.
    """
    book, parts, cells = load_workbook(path, read_only=True, data_only=True), list[str](), 0
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # the stated size may be far too large
        lines: list[str] = []
        for row in sheet.iter_rows(values_only=True):
            cells += 1 + len(row)
            if cells > MAX_CELLS:
                raise InputError(f"the file has more than {MAX_CELLS:,} cells: save the needed part as CSV")
            values = ["" if value is None else " ".join(str(value).split()) for value in row]
            while values and not values[-1]:
                values.pop()
            if values:
                lines.append(f"| {' | '.join(value.replace('|', chr(92) + '|') for value in values)} |")
                if len(lines) == 1:
                    lines.append(f"|{' --- |' * len(values)}")
        if lines:
            parts.append("\n".join([f"## {sheet.title}", *lines]))
    return "\n\n".join(parts)


def _pdf_text(path: Path) -> str:
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it writes of repairs to stderr
    return "\n\n".join(page.extract_text() for page in PdfReader(path).pages)


CONVERTERS: Mapping[str, Callable[[Path], str]] = {
    "Word": _word_text,
    "Excel": _excel_text,
    "PDF": _pdf_text,
}
"""Converters, keyed by the kind of document. Each takes the file and returns its text as Markdown."""
