"""Built-in tools: files of the context folder, and search in the transcript."""

import re
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from moot.state.entries import traits_of
from moot.text.plain_text import count_noun, excerpt, positions_ignoring_case
from moot.tools.tool import MAX_FILE_BYTES, AccessRefused, Tool, ToolContext, ToolFailed

MAX_HITS = 20
MAX_LISTED = 200
MAX_SEARCHED_BYTES = 50_000_000
"""Maximum number of bytes that one search reads in total."""
LINES = 200
"""Maximum number of lines that one call to `read_file` returns."""
LINE_CHARS = 300
"""Maximum number of characters per line in a tool result."""


Query = Annotated[str, Field(min_length=1, max_length=200, description="Words to search for, in any order.")]
Pattern = Annotated[str, Field(max_length=200, description="Pattern for file paths, such as *.md.")]


def query_words(query: str) -> list[str]:
    """Return the distinct lower-case words of a query. A query without words is a `ToolFailed`."""
    words = list(dict.fromkeys(re.findall(r"\w+", query.casefold())))
    if not words:
        raise ToolFailed("the query has no words")
    return words


def matches_text(query: str, number: int, lines: Sequence[str]) -> str:
    """Format search results as text that starts with the number of matches."""
    if not number:
        return f"no matches for {query!r}"
    return "\n".join([f"{count_noun(number, 'match')} for {query!r}", *lines])


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path.rsplit("/", 1)[-1], pattern)


class Search(Tool):
    """Tool that searches files for lines that contain the words of a query.

    Lines with the most words come first.
    """

    name = "search"
    description = (
        "Search the text files of the context folder. Returns lines with their file and line number."
    )
    needs_context = True

    query: Query
    files: Pattern = "*"

    def run(self, context: ToolContext) -> str:
        """Return the lines in the context folder's text files that match the most query words."""
        words, sandbox, remaining_bytes = query_words(self.query), context.folder(), MAX_SEARCHED_BYTES
        hit_count, hits = 0, defaultdict[int, list[str]](list)  # keyed by the number of matching words
        for file in sandbox.files():
            if not _fits(file.path, self.files) or file.size > min(remaining_bytes, MAX_FILE_BYTES):
                continue
            remaining_bytes -= file.size
            try:
                lines = sandbox.read(file.path).splitlines()
            except (AccessRefused, OSError):
                continue
            for line_number, line in enumerate(lines, 1):
                folded = line.casefold()
                if match_count := sum(word in folded for word in words):
                    hit_count += 1
                    if len(hits[match_count]) < MAX_HITS:
                        hits[match_count].append(f"{file.path}:{line_number}: {line.strip()[:LINE_CHARS]}")
        best = [line for count in sorted(hits, reverse=True) for line in hits[count]]
        return matches_text(self.query, hit_count, best[:MAX_HITS])


class ReadFile(Tool):
    """Tool that reads a file and returns its lines with line numbers."""

    name = "read_file"
    description = f"Read a text file of the context folder, at most {LINES} lines at once."
    needs_context = True

    path: str = Field(min_length=1, max_length=500, description="Path of the file within the context folder.")
    start: int = Field(1, ge=1, description="Number of the first line to read, counted from 1.")
    lines: int = Field(LINES, ge=1, le=LINES, description="Maximum number of lines to read.")

    def run(self, context: ToolContext) -> str:
        """Return the requested lines of the file with their numbers, and the file's number of lines."""
        lines = context.folder().read(self.path).splitlines()
        end = min(len(lines), self.start - 1 + self.lines)
        numbered_lines = enumerate(lines[self.start - 1 : end], self.start)
        text = "\n".join(f"{number}: {line[:LINE_CHARS]}" for number, line in numbered_lines)
        return f"{self.path}, lines {self.start} to {end} of {len(lines)}\n{text}"


class ListFiles(Tool):
    """Tool that lists all files in a folder and its subfolders."""

    name = "list_files"
    description = "List the files of the context folder, with their sizes."
    needs_context = True

    path: str = Field(".", max_length=500, description="Path of a folder within the context folder.")
    files: Pattern = "*"

    def run(self, context: ToolContext) -> str:
        """Return the path and size of each file in the folder and its subfolders."""
        files = [each for each in context.folder().files(self.path) if _fits(each.path, self.files)]
        listing = "\n".join(f"{each.path} ({each.size:,} bytes)" for each in files[:MAX_LISTED])
        return f"{len(files)} files\n{listing}" if files else "no files"


MAX_DEBATE_HITS = 10
HIT_CHARS = 300


class SearchDebate(Tool):
    """Tool that searches the messages of the debate for the words of a query.

    Messages with the most words come first, and newer messages before older ones.
    """

    name = "search_debate"
    description = "Search the messages of this debate. Returns excerpts with message ids."

    query: Query

    def run(self, context: ToolContext) -> str:
        """Return excerpts from the messages that match the most words of the query."""
        words = query_words(self.query)
        hits = []
        for entry in context.transcript:
            word_positions = positions_ignoring_case(entry["content"], words)
            positions = [position for position in word_positions if position >= 0]
            if positions and traits_of(entry).by != "tools":
                passage = excerpt(entry["content"], HIT_CHARS, min(positions))
                hits.append((len(positions), entry["seq"], f"{entry['speaker']} [{entry['id']}]: {passage}"))
        best = [line for _, _, line in sorted(hits, reverse=True)[:MAX_DEBATE_HITS]]
        return matches_text(self.query, len(hits), best)
