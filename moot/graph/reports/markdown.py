"""A debate as one Markdown file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import escape

from moot.graph.documents import Json
from moot.graph.reports.contents import read
from moot.graph.reports.html import TEMPLATES, WRITTEN
from moot.graph.reports.markdown_quotes import plain, quoted

_GAPS = re.compile(r"\n{3,}")


def render_markdown(document: Mapping[str, Json]) -> str:
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
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=False,  # noqa: S701  # see above
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(WRITTEN, plain=plain, quoted=quoted, cite=cite, attribute=escape)
    return _without_gaps(environment.get_template("report.md.j2").render(report=report))


def _without_gaps(text: str) -> str:
    """Shrink runs of empty lines; quoted ones carry a `>` and stay as they were said."""
    return _GAPS.sub("\n\n", text).strip() + "\n"
