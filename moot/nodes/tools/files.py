"""`search`, `read_file` and `list_files`: the context folder."""

import re
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from moot.nodes.text.plain import amount
from moot.nodes.tools.sandbox import MAX_FILE_BYTES, Refused
from moot.nodes.tools.tool import Surroundings, Tool, ToolFailed

MAX_HITS = 20
MAX_LISTED = 200
MAX_SEARCHED_BYTES = 50_000_000
"""Bytes that one search reads."""
LINES = 200
"""Lines that `read_file` gives at once."""
LINE_CHARS = 300
"""Characters of one line that are shown."""


Query = Annotated[str, Field(min_length=1, max_length=200, description="Words to look for, in any order.")]
Pattern = Annotated[str, Field(max_length=200, description="Only files whose path fits, such as *.md.")]


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


class Search(Tool):
    """Lines that hold the query's words, those with most of them first."""

    name = "search"
    about = "Search the text files of the context folder. Returns lines with their file and line number."
    needs_context = True

    query: Query
    files: Pattern = "*"

    def run(self, around: Surroundings) -> str:
        """Return the best lines."""
        words, sandbox, left = query_words(self.query), around.folder(), MAX_SEARCHED_BYTES
        number, kept = 0, defaultdict[int, list[str]](list)  # by how many of the words they hold
        for listed in sandbox.files():
            if not _fits(listed.path, self.files) or listed.size > min(left, MAX_FILE_BYTES):
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
        return matches_text(self.query, number, best[:MAX_HITS])


class ReadFile(Tool):
    """A file's lines, numbered."""

    name = "read_file"
    about = f"Read a text file of the context folder, at most {LINES} lines at once."
    needs_context = True

    path: str = Field(min_length=1, max_length=500, description="Path within the context folder.")
    start: int = Field(1, ge=1, description="First line, from 1.")
    lines: int = Field(LINES, ge=1, le=LINES, description="How many lines.")

    def run(self, around: Surroundings) -> str:
        """Return the lines asked for and how many there are."""
        lines = around.folder().read(self.path).splitlines()
        end = min(len(lines), self.start - 1 + self.lines)
        chosen = enumerate(lines[self.start - 1 : end], self.start)
        shown = "\n".join(f"{number}: {line[:LINE_CHARS]}" for number, line in chosen)
        return f"{self.path}, lines {self.start} to {end} of {len(lines)}\n{shown}"


class ListFiles(Tool):
    """The files below a folder."""

    name = "list_files"
    about = "List the files of the context folder, with their sizes."
    needs_context = True

    path: str = Field(".", max_length=500, description="Folder within the context folder.")
    files: Pattern = "*"

    def run(self, around: Surroundings) -> str:
        """Return paths and sizes."""
        files = [each for each in around.folder().files(self.path) if _fits(each.path, self.files)]
        shown = "\n".join(f"{each.path} ({each.size:,} bytes)" for each in files[:MAX_LISTED])
        return f"{len(files)} files\n{shown}" if files else "no files"
