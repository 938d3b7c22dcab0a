"""`search`, `read_file` and `list_files`: the context folder."""

import re
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import ClassVar

from pydantic import Field

from moot.nodes.text.plain import amount
from moot.nodes.tools.sandbox import MAX_FILE_BYTES, Refused, Sandbox
from moot.nodes.tools.tool import Arguments, Surroundings, ToolFailed

MAX_HITS = 20
MAX_LISTED = 200
MAX_SEARCHED_BYTES = 50_000_000
"""Bytes that one search reads."""
LINES = 200
"""Lines that `read_file` gives at once."""
LINE_CHARS = 300
"""Characters of one line that are shown."""


class QueryArguments(Arguments):
    """Of `search_debate`, and with files of `search`."""

    query: str = Field(min_length=1, max_length=200, description="Words to look for, in any order.")


class SearchArguments(QueryArguments):
    """Of `search`."""

    files: str = Field("*", max_length=200, description="Only files whose path fits, such as *.md.")


class ReadArguments(Arguments):
    """Of `read_file`."""

    path: str = Field(min_length=1, max_length=500, description="Path within the context folder.")
    start: int = Field(1, ge=1, description="First line, from 1.")
    lines: int = Field(LINES, ge=1, le=LINES, description="How many lines.")


class ListArguments(Arguments):
    """Of `list_files`."""

    path: str = Field(".", max_length=500, description="Folder within the context folder.")
    files: str = Field("*", max_length=200, description="Only files whose path fits, such as *.md.")


def sandbox_of(around: Surroundings) -> Sandbox:
    """Return the context folder.

    Raises:
        ToolFailed: there is none.
    """
    sandbox = around.sandbox()
    if sandbox is None:
        raise ToolFailed("there is no context folder")
    return sandbox


def query_words(query: str) -> list[str]:
    """Return the different words of a query, folded.

    Raises:
        ToolFailed: there is none.
    """
    words = list(dict.fromkeys(re.findall(r"\w+", query.casefold())))
    if not words:
        raise ToolFailed("the query has no words")
    return words


def matches_text(query: str, number: int, lines: Sequence[str]) -> str:
    """Return how many matches a query has, and the best of them, a line each."""
    if not number:
        return f"no matches for {query!r}"
    return "\n".join([f"{amount(number, 'match')} for {query!r}", *lines])


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path.rsplit("/", 1)[-1], pattern)


class Search:
    """Lines that hold the query's words, those with most of them first."""

    name: ClassVar[str] = "search"
    about: ClassVar[str] = (
        "Search the text files of the context folder. Returns lines with their file and line number."
    )
    arguments: ClassVar[type[Arguments]] = SearchArguments
    needs_context: ClassVar[bool] = True

    def run(self, given: SearchArguments, around: Surroundings) -> str:
        """Return the best lines."""
        words, sandbox, left = query_words(given.query), sandbox_of(around), MAX_SEARCHED_BYTES
        number, kept = 0, defaultdict[int, list[str]](list)  # by how many of the words they hold
        for listed in sandbox.files():
            if not _fits(listed.path, given.files) or listed.size > min(left, MAX_FILE_BYTES):
                continue
            left -= listed.size
            try:
                lines = sandbox.read(listed.path).splitlines()
            except (Refused, OSError):
                continue
            for at, line in enumerate(lines, 1):
                folded = line.casefold()
                if held := sum(word in folded for word in words):
                    number += 1
                    if len(kept[held]) < MAX_HITS:
                        kept[held].append(f"{listed.path}:{at}: {line.strip()[:LINE_CHARS]}")
        best = [line for held in sorted(kept, reverse=True) for line in kept[held]]
        return matches_text(given.query, number, best[:MAX_HITS])


class ReadFile:
    """A file's lines, numbered."""

    name: ClassVar[str] = "read_file"
    about: ClassVar[str] = f"Read a text file of the context folder, at most {LINES} lines at once."
    arguments: ClassVar[type[Arguments]] = ReadArguments
    needs_context: ClassVar[bool] = True

    def run(self, given: ReadArguments, around: Surroundings) -> str:
        """Return the lines asked for and how many there are."""
        lines = sandbox_of(around).read(given.path).splitlines()
        end = min(len(lines), given.start - 1 + given.lines)
        chosen = enumerate(lines[given.start - 1 : end], given.start)
        shown = "\n".join(f"{number}: {line[:LINE_CHARS]}" for number, line in chosen)
        return f"{given.path}, lines {given.start} to {end} of {len(lines)}\n{shown}"


class ListFiles:
    """The files below a folder."""

    name: ClassVar[str] = "list_files"
    about: ClassVar[str] = "List the files of the context folder, with their sizes."
    arguments: ClassVar[type[Arguments]] = ListArguments
    needs_context: ClassVar[bool] = True

    def run(self, given: ListArguments, around: Surroundings) -> str:
        """Return paths and sizes."""
        files = [each for each in sandbox_of(around).files(given.path) if _fits(each.path, given.files)]
        shown = "\n".join(f"{each.path} ({each.size:,} bytes)" for each in files[:MAX_LISTED])
        return f"{len(files)} files\n{shown}" if files else "no files"
