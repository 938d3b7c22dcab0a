"""A debate as one Markdown file."""

import re
from collections.abc import Mapping
from urllib.parse import quote

from markupsafe import escape

from moot.graph.reports.contents import read
from moot.graph.reports.html import template_environment
from moot.graph.reports.markdown_quotes import plain, quoted


def render_markdown(document: Mapping[str, object]) -> str:
    """Render a report as Markdown: the same contents as the page, without charts.

    What was said stands in block quotes in its own Markdown, with HTML, images and odd links defused;
    names and other short texts are escaped. Citations link to the message's anchor.

    Args:
        document: a debate in the format `moot.debate/1`; any key may be missing.

    Returns:
        The file's text, ending in a line end.
    """
    report = read(document)

    def cite(message_id: str) -> str:
        anchor = report.anchors.get(message_id)
        return f"[{plain(message_id)}](#{quote(anchor)})" if anchor else plain(message_id)

    # The output is Markdown: each text goes through `plain` or `quoted`, which escape for both languages.
    environment = template_environment(plain=plain, quoted=quoted, cite=cite, attribute=escape)
    text = environment.get_template("report.md.j2").render(report=report)
    return tidy(text)


def tidy(text: str) -> str:
    """Return what a template made without its spare empty lines; those of what was said carry a `>`."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
