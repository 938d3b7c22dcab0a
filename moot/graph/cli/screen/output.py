"""Results on stdout, files, and remarks on stderr."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, TextIO

from moot.graph.cli.screen.terminal_text import json_text, one_line, safe
from moot.state.errors import InputError
from moot.state.redaction import redact

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


FORMATS = {".json": "json", ".md": "md", ".html": "html"}
"""What a file's ending asks for."""
PLAIN_WIDTH = 100
"""Columns where there is no terminal."""
STDOUT = Path("-")
"""The file that stands for stdout."""


@dataclass(frozen=True)
class MarkdownText:
    """Words of models as Markdown: laid out on a terminal, as they stand into a file or pipe."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is shown."""
        from rich.text import Text

        words = safe(self.text)
        if not console.is_terminal:
            yield Text(words)
            return
        from rich.markdown import Markdown

        from moot.graph.reports.prose import parser

        shown = Markdown(words, hyperlinks=False)
        shown.parsed = parser().parse(words)  # rich's own takes tags for HTML, and shows none of them
        yield shown


def _console(stream: TextIO) -> Console:
    """Return a console that takes no text for markup."""
    from rich.console import Console

    width = None if stream.isatty() else _piped_width()
    return Console(stderr=stream is sys.stderr, markup=False, highlight=False, emoji=False, width=width)


def _piped_width() -> int:
    """Return the columns of the terminal that a pipe may end at, by `less` or `head`."""
    for descriptor in (sys.__stderr__, sys.__stdin__):
        with suppress(OSError, ValueError, AttributeError):
            if columns := os.get_terminal_size(descriptor.fileno()).columns:  # type: ignore[union-attr]  # suppressed
                return columns
    return PLAIN_WIDTH


def err_console() -> Console:
    """Return a console on stderr."""
    return _console(sys.stderr)


def print_result(*parts: RenderableType) -> None:
    """Print a result on stdout."""
    console = _console(sys.stdout)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    sys.stdout.flush()


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    readable = "utf" in (sys.stdout.encoding or "").lower()
    sys.stdout.write((json_text(value) if readable else redact(json.dumps(value, indent=2))) + "\n")
    sys.stdout.flush()


def print_answer(data: object, *parts: RenderableType, as_json: bool) -> None:
    """Print a result on stdout, as JSON for programs or in parts for people."""
    if as_json:
        print_json(data)
    else:
        print_result(*parts)


def acknowledge(data: object, words: str, *, as_json: bool) -> None:
    """Say what was done: to programs as JSON on stdout, to people on stderr."""
    if as_json:
        print_json(data)
    else:
        remark(words)


def print_text(text: str) -> None:
    """Print a whole document on stdout; as it is into a file or pipe, made safe on a terminal."""
    text = (safe(text) if sys.stdout.isatty() else redact(text)).removesuffix("\n") + "\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def remark(text: str) -> None:
    """Say something on stderr, safe for a terminal."""
    print(wrap_for_terminal(safe(text), sys.stderr), file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Say on stderr what went wrong."""
    remark(f"moot: {message}")


def consents(question: str, without: str, *, yes: bool) -> bool:
    """Return whether who types agrees; `yes` where that was said beforehand.

    Raises:
        InputError: nobody can be asked, so that what `without` says is so.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError(f"{without}: add --yes where nobody can be asked")
    import typer

    return typer.confirm(question, err=True)


def ring(words: str) -> None:
    """Ring a terminal's bell and put some words into its title; elsewhere do nothing."""
    if sys.stderr.isatty():
        print(f"\x1b]0;moot: {one_line(words, 80)}\x07\x07", end="", file=sys.stderr, flush=True)


def wrap_for_terminal(text: str, stream: TextIO) -> str:
    """Return text wrapped between words for a terminal; a line with a command to paste stays one."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = [
        [line] if re.search(r"(^|[ /`])moot ", line) else textwrap.wrap(line, width, break_long_words=False)
        for line in text.split("\n")
    ]
    return "\n".join("\n".join(each) for each in lines)


def columns() -> int:
    """Return how wide a result is printed."""
    return _console(sys.stdout).width


def format_of(path: Path) -> str:
    """Return the format that a file's ending asks for, after checking that the file can be written.

    Raises:
        InputError: unknown ending, or no such folder.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"output file {str(path)!r}: use an ending of {', '.join(FORMATS)}")
    check_folder(path)
    return FORMATS[path.suffix.lower()]


def check_folder(path: Path) -> None:
    """Refuse, before anything is paid, a file that could not be written; `-` is stdout.

    Raises:
        InputError: its folder does not exist, or it is a folder itself.
    """
    if path != STDOUT and (path.is_dir() or not path.resolve().parent.is_dir()):
        raise InputError(f"output file {str(path)!r}: it is a folder, or its folder does not exist")


def render(document: Mapping[str, object], form: str) -> str:
    """Return a debate's document as `json`, `md` or `html`."""
    if form == "json":
        return json_text(document) + "\n"
    from moot.graph.reports import render_html, render_markdown

    return render_markdown(document) if form == "md" else render_html(document)


def write_file(path: Path, text: str) -> None:
    """Write a file whole or not at all, for its owner alone to read; `-` is stdout.

    Raises:
        InputError: it cannot be written.
    """
    if path == STDOUT:
        return print_text(text)
    draft: Path | None = None
    try:
        # A new name that nobody can know beforehand, readable by its owner alone.
        with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            draft = Path(file.name)
            file.write(redact(text).encode("utf-8", "replace"))
        draft.replace(path)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise InputError(f"cannot write {str(path)!r}: {error}") from error
