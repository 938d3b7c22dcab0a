"""What a model thinks aloud, kept apart from what it says."""

import re
from dataclasses import dataclass
from typing import Any

from moot.state.entries import JsonObject

_OPEN = re.compile(r"<(?:think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_OPEN_TAGS = ("<think>", "<thinking>")
_CLOSE_TAGS = ("</think>", "</thinking>")
_LONGEST = max(map(len, _CLOSE_TAGS))


@dataclass(frozen=True)
class Parted:
    """A text in its two parts."""

    text: str
    """What was said."""
    reasoning: str
    """What was thought aloud."""


class ThinkFilter:
    """Parts `<think>…</think>` from a text that arrives in pieces, tags split anywhere.

    What follows a tag that is never closed is reasoning. White space before the first word is dropped, so
    the pieces add up to what is shown. Linear in the length of the text.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._thinking = False
        self._begun = False

    def feed(self, piece: str) -> Parted:
        """Return what `piece` adds to the text and to the reasoning."""
        self._buffer += piece
        said: list[str] = []
        thought: list[str] = []
        while tag := (_CLOSE if self._thinking else _OPEN).search(self._buffer):
            (thought if self._thinking else said).append(self._buffer[: tag.start()])
            self._buffer = self._buffer[tag.end() :]
            self._thinking = not self._thinking
        # The end is held back where it may be the start of a tag.
        tags = _CLOSE_TAGS if self._thinking else _OPEN_TAGS
        end = self._buffer.rfind("<", max(0, len(self._buffer) - _LONGEST))
        if end < 0 or not any(tag.startswith(self._buffer[end:].lower()) for tag in tags):
            end = len(self._buffer)
        (thought if self._thinking else said).append(self._buffer[:end])
        self._buffer = self._buffer[end:]
        return self._part("".join(said), "".join(thought))

    def close(self) -> Parted:
        """Return what was held back because it looked like the start of a tag."""
        rest, self._buffer = self._buffer, ""
        return self._part("", rest) if self._thinking else self._part(rest, "")

    def _part(self, said: str, thought: str) -> Parted:
        if not self._begun:
            said = said.lstrip()
            self._begun = bool(said)
        return Parted(said, thought)


def part(text: str) -> Parted:
    """Part a whole text.

    A closing tag without an opening one ends reasoning too: some chat templates put the opening tag into the
    prompt, so the answer starts in mid-thought.
    """
    closing, opening = _CLOSE.search(text), _OPEN.search(text)
    lead = ""
    if closing and (opening is None or closing.start() < opening.start()):
        lead, text = text[: closing.start()], text[closing.end() :]
    splitter = ThinkFilter()
    pieces = (splitter.feed(text), splitter.close())
    said = "".join(piece.text for piece in pieces)
    thought = lead + "".join(piece.reasoning for piece in pieces)
    return Parted(said.strip(), thought.strip())


def content_parts(content: str | list[Any]) -> Parted:
    """Return the text and the reasoning of a message's content, a string or a list of typed blocks."""
    if isinstance(content, str):
        return Parted(content, "")
    said: list[str] = []
    thought: list[str] = []
    for block in content:
        if isinstance(block, str):
            said.append(block)
        elif block.get("type") == "text":
            said.append(str(block.get("text", "")))
        elif block.get("type") in ("thinking", "reasoning"):
            inner = block.get(block["type"], block.get("text", ""))
            thought.append(content_parts(inner).text if isinstance(inner, str | list) else "")
    return Parted("".join(said), "".join(thought))


def reasoning_field(fields: JsonObject) -> str:
    """Return the reasoning that a message carries beside its content, under either name in use."""
    for name in ("reasoning_content", "reasoning"):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    return ""
