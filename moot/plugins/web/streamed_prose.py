"""Markdown of a text that a model is still writing, rendered as it arrives."""

import re

from typing_extensions import TypedDict

from moot.reports.markdown_html import Prose
from moot.text.plain_text import show_reordering

MAX_OPEN_CHARS = 2000
"""Length from which a paragraph that is still being written is divided, in characters. The open part is
rendered again with each batch of tokens, which takes 1 ms for 300 characters and 30 ms for 10,000."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_HALF_MARK = re.compile(r"(?:\A|\n)[ \t]*(?:[`~*]{1,2}|[-+>=]+|#{1,6}|\d{1,3}[.)])\Z")
"""Last line with only the mark of a block. It would be an empty item, or make the line above a heading."""
_CODE = re.compile(r"`[^`]*`")
_BULLET = re.compile(r"^\s*\* ", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?]\s+(?=\S)|\n(?=\S)")


class ProseUpdate(TypedDict):
    """New HTML of a text that is still being written."""

    settled: str
    """HTML of the blocks that are complete since the last update. It does not change any more."""
    open: str
    """HTML of the block that is being written. It replaces that of the last update."""


class StreamedProse:
    """Renderer of a text that grows. Complete blocks are rendered once."""

    def __init__(self) -> None:
        self._prose, self._open = Prose({}), ""

    def add(self, text: str) -> ProseUpdate:
        """Add the next part of the text, and return the HTML that it changes."""
        self._open += text
        place = _settled_chars(self._open)
        settled, self._open = self._open[:place], self._open[place:]
        return {
            "settled": self._html(settled),
            "open": self._html(_closed(self._open)),
        }

    def _html(self, text: str) -> str:
        return show_reordering(str(self._prose.block(text, base=3)))


def _settled_chars(text: str) -> int:
    """Return the length of the part of a text that later text does not change."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    end = fences[-1] if len(fences) % 2 else len(text)  # a code block that is still open
    inside = list(zip(fences[::2], fences[1::2], strict=False))
    for match in reversed(list(re.finditer(r"\n[^\S\n]*\n(?=\S)", text[:end]))):
        if not any(first < match.start() < last for first, last in inside):
            return match.end()
    if len(text) > MAX_OPEN_CHARS and not fences:
        return max((match.end() for match in _SENTENCE_END.finditer(text)), default=0)
    return 0


def _closed(text: str) -> str:
    """Close the marks of emphasis and code that the last paragraph leaves open. An empty mark is removed."""
    if len(_FENCE.findall(text)) % 2:
        return text  # the renderer closes a code block
    text = _HALF_MARK.sub("", text.rstrip())
    rest = _BULLET.sub("", _CODE.sub("", text.rpartition("\n\n")[2]))
    for mark in ("`", "**", "*"):
        if rest.count(mark) % 2:
            text = text.removesuffix(mark) if text.endswith(mark) else text + mark
        if mark == "`" and "`" in rest:
            break  # the open code has no other marks
        rest = rest.replace(mark, "")
    return _HALF_MARK.sub("", text.rstrip())
