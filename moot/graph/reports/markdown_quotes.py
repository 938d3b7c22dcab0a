"""Words of models and people inside a Markdown file, where they must not become structure."""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt

from moot.graph.reports.prose import PLAIN_ABOVE, is_safe_link, parser, place_headings

_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<!\S)#")
"""What would begin something: an underscore within a word, `a < b` and `R&D` are read as they stand."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINE_START = re.compile(r"^(\s*)([-+=>]|\d{1,9}[.)](?=\s|$))")


def plain(text: str) -> str:
    """Return `text` on one line with everything escaped that Markdown or HTML would read."""
    line = " ".join(text.split())
    # A tag is none even for a reader of Markdown that knows no backslash before it.
    line = _SPECIAL.sub(lambda mark: "&lt;" if mark[0] == "<" else f"\\{mark[0]}", line)
    start = _LINE_START.match(line)
    return f"{line[: start.end() - 1]}\\{line[start.end() - 1 :]}" if start else line


def block_quote(text: str) -> str:
    """Return Markdown as a block quote: its own headings, lists and fences end where the quote ends.

    HTML in it is escaped outside fences, images become links, and where a link leads anywhere but to the
    web (or a link target is defined for the rest of the file), all brackets are escaped.
    """
    return "\n".join(f"> {line}".rstrip() for line in defuse(text).split("\n"))


def section(text: str, base: int) -> str:
    """Return Markdown, defused, whose headings join a file's outline from level `base` on, none skipped."""
    text = defuse(text)
    lines, tokens = text.split("\n"), parser().parse(text)
    place_headings(tokens, base)
    for opening, words in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            first, end = opening.map
            title = " ".join(words.content.split("\n"))
            lines[first:end] = [f"{'#' * int(opening.tag[1:])} {title}", *[""] * (end - first - 1)]
    return "\n".join(lines)


def defuse(text: str) -> str:
    """Return Markdown without HTML, images and links that lead anywhere but to the web."""
    if len(text) > PLAIN_ABOVE:
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}text\n{text}\n{fence}"
    if "<" not in text and "[" not in text:
        return text
    # A fence that no list or quote contains is shown as it stands.
    tokens = _inspector().parse(text)
    fences = [token.map for token in tokens if token.type == "fence" and token.level == 0 and token.map]
    fenced = {number for start, end in fences for number in range(start, end)}
    text = _outside(fenced, text, lambda line: _TAG.sub("&lt;", line).replace("![", "&#33;["))
    # Looked at only now: a tag that is none any more may be what makes a link of the brackets around it.
    if _leads_astray(text):
        text = _outside(fenced, text, lambda line: line.replace("[", "&#91;").replace("]", "&#93;"))
    return text


def _outside(fenced: set[int], text: str, change: Callable[[str], str]) -> str:
    # Changes are to entities, not backslashes: one that stands before already would undo an escape.
    lines = enumerate(text.split("\n"))
    return "\n".join(line if number in fenced else change(line) for number, line in lines)


@cache
def _inspector() -> MarkdownIt:
    markdown = parser()
    markdown.validateLink = lambda url: True  # type: ignore[method-assign]  # it must see bad links to report them
    return markdown


def _leads_astray(text: str) -> bool:
    """Tell whether a text has a link that is not to the web, or defines targets for the whole file."""
    environment: dict[str, Any] = {}
    tokens = _inspector().parse(text, environment)
    for token in tokens:  # which grow
        tokens += token.children or ()
    targets = (token.attrGet(key) for token in tokens for key in ("href", "src"))
    astray = any(target is not None and not is_safe_link(str(target)) for target in targets)
    return astray or bool(environment.get("references"))
