"""Reports on a debate, as one HTML page or one Markdown file."""

from moot.reports.argdown import render_argdown
from moot.reports.html import render_html
from moot.reports.markdown import render_brief, render_brief_html, render_markdown

__all__ = ["render_argdown", "render_brief", "render_brief_html", "render_html", "render_markdown"]
