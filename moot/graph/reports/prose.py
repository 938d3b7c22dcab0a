"""Words of models and people as safe HTML: Markdown without HTML, remote images or odd links."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from moot.state.entries import ENTRY_ID

PLAIN_ABOVE = 20_000
"""Characters from which on a text is shown as it is: Markdown's worst cases are quadratic."""

_SAFE_LINK = re.compile(r"(?i)(?:https?://|mailto:)[^\s\\]+\Z")
_TAGS = "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul"
_FLAT_LIST = re.compile(r"<ul>\n((?:<li>[^\n]*</li>\n)+)</ul>")
_CLEANER = nh3.Cleaner(
    tags=set(_TAGS.split()),
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    allowed_classes={"a": {"cite"}, "p": {"heading"}},
    url_schemes={"http", "https", "mailto"},
    url_relative=lambda url: url if url.startswith("#") else None,
    link_rel="noopener noreferrer nofollow",
)


def parser() -> MarkdownIt:
    """Return the Markdown parser of the reports: CommonMark and tables, HTML shown as text."""
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


class Prose:
    """Turns texts into HTML, with citations of message ids linked to their anchors."""

    def __init__(self, anchors: Mapping[str, str]) -> None:
        self._anchors = anchors
        self._markdown = parser()

    def block(self, text: str, base: int | None = None) -> Markup:
        """Render Markdown whose headings join the page's outline from level `base` on, none skipped.

        Without `base` they are none of the page's: they become emphasised paragraphs.
        """
        if len(text) > PLAIN_ABOVE:
            return Markup('<div class="verbatim">{}</div>').format(text)
        tokens = self._markdown.parse(text)
        place_headings(tokens, base)
        for token in tokens:
            if token.children:
                token.children = self._inline_tokens(token.children)
        html = self._markdown.renderer.render(tokens, self._markdown.options, {})
        return Markup(_CLEANER.clean(html))  # noqa: S704  # sanitised by nh3

    def folded(self, text: str, most: int, base: int) -> Markup:
        """Render Markdown like `block`; of each flat list all after the first `most` points folds away."""

        def fold(found: re.Match[str]) -> str:
            points = found[1].splitlines()
            if len(points) <= most:
                return found[0]
            head, rest = "\n".join(points[:most]), "\n".join(points[most:])
            summary = f"<summary>{len(points) - most} more</summary>"
            return f'<ul>\n{head}\n</ul>\n<details class="fold">{summary}\n<ul>\n{rest}\n</ul></details>'

        return Markup(_FLAT_LIST.sub(fold, self.block(text, base)))  # noqa: S704  # sanitised

    def inline(self, text: str) -> Markup:
        """Escape plain text and link the citations in it."""
        parts = self._parts(text)
        return Markup().join(self.link(part) if is_citation else escape(part) for part, is_citation in parts)

    def link(self, message_id: str) -> Markup:
        """Link a message id to its anchor; an id that the transcript lacks is marked as such."""
        anchor = self._anchors.get(message_id)
        if anchor is None:
            missing = '<span class="cite gone" title="not in the transcript">{}</span>'
            return Markup(missing).format(message_id)  # noqa: S704  # a constant; format() escapes
        return Markup('<a class="cite" href="#{}">{}</a>').format(anchor, message_id)  # format() escapes

    def _inline_tokens(self, children: Sequence[Token]) -> list[Token]:
        out: list[Token] = []
        links: list[bool] = []
        for child in children:
            if child.type == "link_open":
                links.append(is_safe_link(str(child.attrGet("href") or "")))
                out += [child] if links[-1] else []
            elif child.type == "link_close":
                out += [child] if links.pop() else []
            elif child.type == "image":
                # A reader's browser would fetch it: a link to it stands for it.
                source = str(child.attrGet("src") or "")
                label = f"Image: {child.content.strip() or 'untitled'}"
                is_linked = _SAFE_LINK.match(source) and not any(links)
                out += _link(source, label, "") if is_linked else [_text(label)]
            elif child.type == "text" and not any(links):
                for part, is_citation in self._parts(child.content):
                    out += _link(f"#{self._anchors[part]}", part, "cite") if is_citation else [_text(part)]
            else:
                out.append(child)
        return out

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield the parts of a text in order, and whether each is the id of a message that there is."""
        done = 0
        for match in ENTRY_ID.finditer(text):
            if match[0] in self._anchors:
                yield text[done : match.start()], False
                yield match[0], True
                done = match.end()
        yield text[done:], False


def place_headings(tokens: Sequence[Token], base: int | None) -> None:
    """Turn headings into paragraphs, or move them to levels from `base` on, one step deeper at a time."""
    above: list[str] = []
    tag = "p"
    for token in tokens:
        if token.type == "heading_open":
            while above and above[-1] >= token.tag:
                above.pop()
            above.append(token.tag)
            tag = "p" if base is None else f"h{min(6, base + len(above) - 1)}"
            if base is None:
                token.attrSet("class", "heading")
            token.tag = tag
        elif token.type == "heading_close":
            token.tag = tag


def is_safe_link(target: str) -> bool:
    """Tell whether a link leads to the web, to an address, or to a message of the same report."""
    return bool(_SAFE_LINK.match(target) or (target[:1] == "#" and ENTRY_ID.fullmatch(target[1:])))


def _link(href: str, label: str, css_class: str) -> list[Token]:
    attributes: dict[str, Any] = {"href": href, **({"class": css_class} if css_class else {})}
    return [Token("link_open", "a", 1, attrs=attributes), _text(label), Token("link_close", "a", -1)]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
