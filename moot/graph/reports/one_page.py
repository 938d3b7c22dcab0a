"""A debate for whoever must decide: one page, or a decision record; Markdown, each a template of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from moot.graph.reports.cast import Person
from moot.graph.reports.contents import Report, read
from moot.graph.reports.html import TEMPLATES, template_environment
from moot.graph.reports.markdown import tidy
from moot.graph.reports.markdown_quotes import defused, plain, quoted
from moot.graph.reports.prose import Prose
from moot.nodes.blackboard.bounds import noted

STRONGEST = 3
"""Reasons for a side that a page has room for."""
REASON_CHARS = 240


@dataclass(frozen=True)
class Reason:
    """One reason for a side or against it, as the judge or the ledger has it."""

    text: str
    citations: tuple[str, ...]
    share: int
    """How well it was scored, in percent of the scale."""


def render_brief(document: Mapping[str, object], form: Literal["brief", "adr"] = "brief") -> str:
    """Render one page (`brief`), or an architecture decision record as MADR lays it out (`adr`), as Markdown.

    Args:
        document: a debate in the format `moot.debate/1`; any key may be missing.
        form: which of the two.
    """
    report = read(document)
    environment = template_environment(plain=plain, quoted=quoted, defused=defused)
    sides = [(person, reasons_of(report, person)) for person in report.people]
    text = environment.get_template(f"{form}.md.j2").render(report=report, sides=sides, most=STRONGEST)
    return tidy(text)


def render_brief_html(document: Mapping[str, object]) -> str:
    """Render the one page as self-contained HTML."""
    return as_page(render_brief(document), read(document).title)


def as_page(text: str, title: str, kicker: str = "In brief") -> str:
    """Render Markdown as a self-contained HTML page: `title` for its first line, `kicker` above it."""
    rest = text.partition("\n")[2]
    style = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704  # our own file
    page = template_environment().get_template("brief.html.j2")
    body = Prose({}).section(rest, base=2)
    return page.render(title=title, style=style, body=body, kicker=kicker)


def reasons_of(report: Report, person: Person) -> list[Reason]:
    """Return what counts for a side, the strongest first: the judge's reasons, else the side's evidence."""
    rows = report.verdict.criteria if report.verdict else ()
    scores = [score for row in rows for score in row.scores if score.person.id == person.id]
    judged = [
        Reason(noted(score.reasoning, REASON_CHARS), score.citations, score.share)
        for score in sorted(scores, key=lambda score: -score.share)
        if score.reasoning
    ]
    standing = next((each for each in report.standings if each.person.id == person.id), None)
    shown = [text for holding in (standing.holdings if standing else ()) for text in holding.evidence]
    return judged or [Reason(noted(text, REASON_CHARS), (), 100) for text in shown]
