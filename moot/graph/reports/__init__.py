"""Reports on a debate: one HTML page or one Markdown file, as pure functions of its document."""

from moot.graph.reports.html import render_html
from moot.graph.reports.markdown import render_brief, render_brief_html, render_markdown

__all__ = ["render_brief", "render_brief_html", "render_html", "render_markdown"]
