"""Rendering of untrusted Markdown as safe HTML, and formats for numbers and times."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from moot.state.entries import ENTRY_ID, clean_text
from moot.text.plain_text import clip

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TO_CLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MOST = 2.0**63
_SECRET = re.compile(r"(?i)(api[_-]?key|secret|password|passwd|authorization|credential|headers)$")


def clean_strings(value: object) -> object:
    """Make every string in a JSON value safe to show on a page.

    Return a copy. NUL, lone surrogates and control characters are removed; tabs and newlines stay. Strings in
    lists are stripped, and empty ones removed. Numbers that are not finite or exceed 2**63 become `None`.
    """
    if isinstance(value, str):
        if not _TO_CLEAN.search(value):
            return value
        return _CONTROLS.sub("", clean_text(value).replace("\r\n", "\n").replace("\r", "\n"))
    if isinstance(value, int | float) and not abs(value) < _MOST:  # also catches NaN
        return None
    if isinstance(value, dict):
        return {clean_strings(str(key)): clean_strings(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [item.strip() if isinstance(item, str) else item for item in map(clean_strings, value)]
        return [item for item in items if item != ""]
    return value


def group_digits(number: float | None) -> str:
    """Format a number with thousands separators and at most two decimal places. `None` becomes a dash."""
    return "–" if number is None else f"{number:,.2f}".rstrip("0").rstrip(".")


def one_decimal(score: float | None) -> str:
    """Format a score with one decimal place. `None` becomes a dash."""
    return "–" if score is None else f"{score:.1f}"


def clock(timestamp: str, length: int = 16) -> str:
    """Format an ISO 8601 time, such as `2026-01-31 14:05 UTC`, for a report."""
    zone = " UTC" if timestamp.endswith(("Z", "+00:00")) else ""
    return timestamp[:length].replace("T", " ") + zone


def shorten(text: str, limit: int) -> str:
    """Return the first line of `text`, truncated to `limit` characters."""
    return clip(" ".join(text.strip().partition("\n")[0].split()), limit)


def as_json(value: object) -> str:
    """Format a configuration as indented JSON with its secrets masked."""
    return json.dumps(_without_secrets(value), ensure_ascii=False, indent=2, default=str)


def _without_secrets(value: object) -> object:
    if isinstance(value, dict):
        return {k: "***" if v and _SECRET.search(k) else _without_secrets(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value


PLAIN_ABOVE = 20_000
"""Maximum length of a text that is shown with Markdown formatting, in characters."""

_CODE = re.compile(r"`([^`\n]+)`")
_SAFE_LINK = re.compile(r"(?i)(?:https?://|mailto:)[^\s\\]+\Z")
_FLAT_LIST = re.compile(r"<ul>\n((?:<li>[^\n]*</li>\n)+)</ul>")
LINK_REL = "noopener noreferrer nofollow"
"""Relation of every link in a model's text. The target learns nothing, and search engines ignore the link."""


def parser() -> MarkdownIt:
    """Return a Markdown parser with tables. It escapes all text, so all tags are the renderer's own."""
    options = {"html": False, "xhtmlOut": False}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


class Prose:
    """Renderer that converts Markdown to HTML and links message ids to their messages."""

    def __init__(self, anchors: Mapping[str, str]) -> None:
        self._anchors = anchors
        self._markdown = parser()

    def block(self, text: str, base: int | None = None) -> Markup:
        """Render Markdown with headings from level `base`, or as emphasized paragraphs."""
        if len(text) > PLAIN_ABOVE:
            return Markup('<div class="verbatim">{}</div>').format(text)
        tokens = self._markdown.parse(text)
        place_headings(tokens, base)
        for token in tokens:
            token.info = ""  # the renderer would make a class of it
            token.attrs.pop("style", None)  # a page's content security policy allows no inline style
            if token.children:
                token.children = self._inline_tokens(token.children)
        html = self._markdown.renderer.render(tokens, self._markdown.options, {})
        return Markup(html)  # noqa: S704  # the parser allows no HTML, and `_inline_tokens` only safe links

    def folded(self, text: str, max_items: int, base: int) -> Markup:
        """Render Markdown, and fold the items of flat lists after the first `max_items`."""

        def fold(match: re.Match[str]) -> str:
            points = match[1].splitlines()
            if len(points) <= max_items:
                return match[0]
            head, rest = "\n".join(points[:max_items]), "\n".join(points[max_items:])
            summary = f"<summary>{len(points) - max_items} more</summary>"
            return f'<ul>\n{head}\n</ul>\n<details class="fold">{summary}\n<ul>\n{rest}\n</ul></details>'

        return Markup(_FLAT_LIST.sub(fold, self.block(text, base)))  # noqa: S704  # sanitised

    def inline(self, text: str) -> Markup:
        """Render plain text as HTML, with links for message ids and with marks of code."""
        parts = self._parts(text)
        return Markup().join(
            self.link(part) if is_citation else Markup(_CODE.sub(r"<code>\1</code>", str(escape(part))))  # noqa: S704  # escaped
            for part, is_citation in parts
        )

    def link(self, message_id: str) -> Markup:
        """Return an HTML link to a message, or a mark that it is missing."""
        anchor = self._anchors.get(message_id)
        if anchor is None:
            missing = '<span class="cite gone" title="not in the transcript">{}</span>'
            return Markup(missing).format(message_id)  # noqa: S704  # a constant; format() escapes
        return Markup('<a class="cite" href="#{}">{}</a>').format(anchor, message_id)  # format() escapes

    def _inline_tokens(self, children: Sequence[Token]) -> list[Token]:
        tokens: list[Token] = []
        links: list[bool] = []
        for child in children:
            if child.type == "link_open":
                links.append(is_safe_link(str(child.attrGet("href") or "")))
                child.attrSet("rel", LINK_REL)
                tokens += [child] if links[-1] else []
            elif child.type == "link_close":
                tokens += [child] if links.pop() else []
            elif child.type == "image":
                # A link replaces the image, because the browser would fetch an image.
                source = str(child.attrGet("src") or "")
                label = f"Image: {child.content.strip() or 'untitled'}"
                is_linked = _SAFE_LINK.match(source) and not any(links)
                tokens += _link(source, label, "") if is_linked else [_text(label)]
            elif child.type == "text" and not any(links):
                for part, is_citation in self._parts(child.content):
                    tokens += _link(f"#{self._anchors[part]}", part, "cite") if is_citation else [_text(part)]
            else:
                tokens.append(child)
        return tokens

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """Split a text at message ids. Parts are flagged as ids of known messages or not."""
        position = 0
        for match in ENTRY_ID.finditer(text):
            if match[0] in self._anchors:
                yield text[position : match.start()], False
                yield match[0], True
                position = match.end()
        yield text[position:], False


def place_headings(tokens: Sequence[Token], base: int | None) -> None:
    """Shift headings to start at level `base`, or with `None` make them paragraphs."""
    open_tags: list[str] = []
    tag = "p"
    for token in tokens:
        if token.type == "heading_open":
            while open_tags and open_tags[-1] >= token.tag:
                open_tags.pop()
            open_tags.append(token.tag)
            tag = "p" if base is None else f"h{min(6, base + len(open_tags) - 1)}"
            if base is None:
                token.attrSet("class", "heading")
            token.tag = tag
        elif token.type == "heading_close":
            token.tag = tag


def is_safe_link(target: str) -> bool:
    """Return True if a link leads to a website, a mail address or a place in the report."""
    return bool(_SAFE_LINK.match(target) or (target[:1] == "#" and ENTRY_ID.fullmatch(target[1:])))


def _link(href: str, label: str, css_class: str) -> list[Token]:
    attributes: dict[str, Any] = {
        "href": href,
        **({"class": css_class} if css_class else {}),
        "rel": LINK_REL,
    }
    return [Token("link_open", "a", 1, attrs=attributes), _text(label), Token("link_close", "a", -1)]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
