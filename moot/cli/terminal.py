"""Output of results on stdout, messages on stderr, and files; tables of results."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import typer

from moot.state.entries import Entry, JsonMapping
from moot.state.errors import InputError, file_error_reason
from moot.state.settings import redact

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

    from moot.state.verdict import Rate


_REORDERING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff{_REORDERING}\ud800-\udfff]")


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def safe(text: str) -> str:
    """Make the control characters in a text visible.

    Bidirectional overrides become visible too. Line breaks and tabs are kept. The result contains no terminal
    escape sequence. Parts of a text can be processed separately.
    """
    return _UNSAFE.sub(_visible, redact(text).replace("\r\n", "\n"))


def one_line(text: str, width: int) -> str:
    """Return a text on one line, truncated to `width` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def local_time(timestamp: str) -> str:
    """Format an ISO 8601 time in the local time zone, such as `2026-01-31 18:05 CET`."""
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M %Z")
    except ValueError:
        return one_line(timestamp, 20)


def json_text(value: object) -> str:
    """Format a value as indented JSON, and escape only control characters."""
    text = redact(json.dumps(value, ensure_ascii=False, indent=2))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text.replace("\x7f", "\\u007f"))


def entry_label(entry: Entry, names: Mapping[str, str]) -> str:
    """Return an entry's label with its kind or phase, addressees and crux room."""
    kind, room = entry["kind"].replace("_", " "), entry["room"]
    label = entry["phase"] or kind if kind == "speech" else kind
    targets = ", ".join(names.get(target, target) for target in entry["targets"])
    answering = f" → {targets}" if targets else ""
    return one_line(f"{label}{answering}{f' · in {room}' if room else ''}", 160)


def debater_names(config: JsonMapping, width: int = 40) -> dict[str, str]:
    """Return each debater's display name, truncated to `width` characters, keyed by debater id."""
    return {each["id"]: one_line(each["name"], width) for each in config.get("debaters", [])}


FORMATS = {".json": "json", ".md": "md", ".html": "html"}
"""Mapping from file suffix to output format."""
PLAIN_WIDTH = 100
"""Width of printed output, in columns, if no terminal is attached."""
STDOUT = Path("-")
"""Path that stands for stdout."""


@dataclass(frozen=True)
class MarkdownText:
    """Markdown text that a model wrote. A terminal shows formatted text, a file or pipe gets plain text."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield formatted Markdown on a terminal, and plain text elsewhere."""
        from rich.text import Text

        words = safe(self.text)
        if not console.is_terminal:
            yield Text(words)
            return
        from rich.markdown import Markdown

        from moot.reports.markdown_html import parser

        markdown = Markdown(words, hyperlinks=False)
        markdown.parsed = parser().parse(words)  # rich's own parser drops HTML tags
        yield markdown


def _console(stream: TextIO) -> Console:
    """Return a rich console that writes to a stream and does not interpret markup."""
    from rich.console import Console

    width = None if stream.isatty() else _piped_width()
    return Console(stderr=stream is sys.stderr, markup=False, highlight=False, emoji=False, width=width)


def _piped_width() -> int:
    """Return the terminal's width for output that is piped to a program such as `less`."""
    for descriptor in (sys.__stderr__, sys.__stdin__):
        with suppress(OSError, ValueError, AttributeError):
            if columns := os.get_terminal_size(descriptor.fileno()).columns:  # type: ignore[union-attr]  # suppressed
                return columns
    return PLAIN_WIDTH


def err_console() -> Console:
    """Return a rich console that prints to stderr."""
    return _console(sys.stderr)


def print_result(*parts: RenderableType) -> None:
    """Print a result on stdout. Its parts can be texts and tables."""
    console = _console(sys.stdout)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    sys.stdout.flush()


def print_json(value: object) -> None:
    """Print a value as one JSON document on stdout."""
    readable = "utf" in (sys.stdout.encoding or "").lower()
    sys.stdout.write((json_text(value) if readable else redact(json.dumps(value, indent=2))) + "\n")
    sys.stdout.flush()


def print_answer(data: object, *parts: RenderableType, as_json: bool) -> None:
    """Print a result on stdout as JSON or as formatted text."""
    if as_json:
        print_json(data)
    else:
        print_result(*parts)


def acknowledge(data: object, words: str, *, as_json: bool) -> None:
    """Tell the user what was changed, on stderr or as JSON on stdout."""
    if as_json:
        print_json(data)
    else:
        print_note(words)


def print_text(text: str) -> None:
    """Print a document on stdout, and make control characters visible if stdout is a terminal."""
    text = (safe(text) if sys.stdout.isatty() else redact(text)).removesuffix("\n") + "\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def print_note(text: str) -> None:
    """Print a message on stderr. Control characters are made visible."""
    print(wrap_for_terminal(safe(text), sys.stderr), file=sys.stderr, flush=True)


def print_error(message: str) -> None:
    """Print an error message on stderr, with the prefix `moot:`."""
    print_note(f"moot: {message}")


def confirm(question: str, refusal: str, *, yes: bool) -> bool:
    """Ask the user for confirmation, and return True if the user agrees.

    With `yes`, return True without asking. `refusal` is the start of the error message.

    Raises:
        InputError: stdin is not a terminal, so the user cannot be asked.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError(f"{refusal}, because stdin is not a terminal: add --yes to confirm")
    return typer.confirm(question, err=True)


def ring(words: str) -> None:
    """Ring the terminal's bell and set the terminal's title to `words`. Without a terminal, do nothing."""
    if sys.stderr.isatty():
        print(f"\x1b]0;moot: {one_line(words, 80)}\x07\x07", end="", file=sys.stderr, flush=True)


_COMMAND_LINE = re.compile(r"(?P<label>.*?(?::\s|\s\s)|\s*)(?P<command>(?:\S*/)?moot\s.*)")
"""Pattern for a line of output that ends with a `moot` command. A label before the command ends with a colon
or two spaces."""


def wrap_for_terminal(text: str, stream: TextIO) -> str:
    """Wrap text between words to fit the terminal's width.

    A `moot` command is never wrapped. If its label and the command do not fit on one line, the command gets
    a line of its own. Words between backticks stay together.
    """
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for line in text.split("\n"):
        match = _COMMAND_LINE.fullmatch(line)
        if match and len(line) > width:
            lines += [*_wrapped(match["label"].rstrip(), width), f"  {match['command']}"]
        else:
            lines += [line] if match else _wrapped(line, width)
    return "\n".join(lines)


def _wrapped(line: str, width: int) -> list[str]:
    quoted = re.sub(r"`[^`]*`", lambda code: code.group().replace(" ", "\xa0"), line)
    return [
        each.replace("\xa0", " ") for each in textwrap.wrap(quoted, width, break_long_words=False) or [""]
    ]


def is_terminal() -> bool:
    """Return True if results are printed on a terminal."""
    return sys.stdout.isatty()


def columns() -> int:
    """Return how many columns of text fit on a line of printed results."""
    return _console(sys.stdout).width


def format_of(path: Path) -> str:
    """Return the format of a path's suffix. An unknown one or no folder is an `InputError`."""
    if path.suffix.lower() not in FORMATS:
        raise suffix_error(path, FORMATS)
    check_folder(path)
    return FORMATS[path.suffix.lower()]


def suffix_error(path: Path, suffixes: Iterable[str]) -> InputError:
    """Return the error for an output file with the wrong suffix."""
    suffix_list = [*suffixes]
    choice = "one of " if len(suffix_list) > 1 else ""
    return InputError(
        f"the name of the output file {str(path)!r} must end in {choice}{', '.join(suffix_list)}"
    )


def check_folder(path: Path) -> None:
    """Check that an output file is in an existing folder.

    The check runs before any model is called. The path `-` stands for stdout.

    Raises:
        InputError: the path is a folder, or is in a folder that does not exist.
    """
    if path != STDOUT and (path.is_dir() or not path.resolve().parent.is_dir()):
        raise InputError(
            f"output file {str(path)!r} is a folder, or its folder does not exist: give the path of a file "
            "in an existing folder"
        )


def render(document: Mapping[str, object], form: str) -> str:
    """Return a debate as `json`, or as `md` or `html` with the estimated cost."""
    if form == "json":
        return json_text(document) + "\n"
    from moot.debates.dry_run import with_plan
    from moot.reports import render_html, render_markdown

    return (render_markdown if form == "md" else render_html)(with_plan(document))


def write_file(path: Path, text: str) -> None:
    """Write a file atomically, or print the text on stdout if the path is `-`.

    A new file gets its permissions from the umask, an existing file keeps its permissions.

    Raises:
        InputError: the file cannot be written.
    """
    if path == STDOUT:
        return print_text(text)
    draft: Path | None = None
    try:
        # A random name prevents another user from creating the file first.
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        with draft.open("xb") as file:
            file.write(redact(text).encode("utf-8", "replace"))
        if path.exists():
            shutil.copymode(path, draft)
        draft.replace(path)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise InputError(f"cannot write {str(path)!r}: {file_error_reason(error)}") from error


CELL_CHARS = 40
"""Maximum number of characters in a table cell on the screen."""
Form = TypeVar("Form", bound=str)


@dataclass(frozen=True)
class Grid:
    """Table of text cells with a heading row."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[bool] | None = None
    """Which columns contain numbers. The screen aligns these columns right. `None`: all columns but the
    first."""

    def markdown(self) -> str:
        """Return the table as Markdown with special characters escaped."""
        lines = [self.heading, ["---"] * len(self.heading), *self.rows]
        return "".join(f"| {' | '.join(map(markdown_cell, line))} |\n" for line in lines)

    def screen(self) -> Table:
        """Return the table for display on the screen."""
        from rich.text import Text

        table = borderless_table()
        right = self.numeric or [False, *(True for _ in self.heading[1:])]
        for title, is_right in zip(self.heading, right, strict=True):
            table.add_column(Text(one_line(title, CELL_CHARS)), justify="right" if is_right else "left")
        for row in self.rows:
            table.add_row(*(Text(one_line(cell, CELL_CHARS)) for cell in row))
        return table


COLUMN_GAP = 2
"""Number of spaces after each column of a table."""


def borderless_table(*words: str, figures: Iterable[str] = ()) -> Table:
    """Return a table without borders, with `words` aligned left, `figures` right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0))
    for heading in words:
        table.add_column(Text(heading))
    for heading in figures:
        table.add_column(Text(heading), justify="right")
    return table


def markdown_cell(text: str) -> str:
    """Return a text escaped for use in a cell of a Markdown table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def form_of(
    requested_form: Form | None, output: Path | None, *, as_json: bool, forms: Sequence[Form]
) -> Form:
    """Return the format in which to write a result.

    The user's choice comes first, then the suffix of the output file, then the first of `forms`.

    Raises:
        InputError: the output file cannot be written.
    """
    if output is not None:
        check_folder(output)
    ending = output.suffix.lower().removeprefix(".") if output else ""
    form_name = "json" if as_json else requested_form or ending
    return next((form for form in forms if form == form_name), forms[0])


def write_or_print(
    form: str, output: Path | None, data: object, markdown: str, parts: Sequence[RenderableType]
) -> None:
    """Write a result to a file, or print it if no file is given."""
    if output is not None:
        write_file(output, json_text(data) + "\n" if form == "json" else markdown)
    elif form == "json":
        print_json(data)
    elif form == "md":
        print_text(markdown)
    else:
        print_result(*parts)


def rate(value: Rate) -> str:
    """Format a proportion with its confidence interval. An undefined proportion is `–`."""
    if value["rate"] is None:
        return "–"
    return f"{value['rate']:.2f} ({value['low']:.2f}–{value['high']:.2f}, n = {value['n']})"


def number(value: float | None) -> str:
    """Format a number with two decimals. `None` is `–`."""
    return "–" if value is None else f"{value:.2f}"
