"""A debate as Markdown, each form a template of its own: the whole report, one page, a decision record."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from markupsafe import escape

from moot.graph.reports.cast import Person
from moot.graph.reports.contents import Report
from moot.graph.reports.html import template_environment
from moot.graph.reports.markdown_quotes import block_quote, plain, section
from moot.graph.reports.prose import Prose
from moot.nodes.blackboard.board_words import board_text
from moot.state.verdict import Reason

STRONGEST = 3
"""Reasons for a side that a page has room for."""
REASON_CHARS, MOST_CITED = 240, 4
TOPIC_CHARS = 600
"""Of a topic that is longer than its title: half a dozen lines."""


@dataclass(frozen=True)
class Option:
    """One debater's answer, and what speaks for it and against it, the strongest first."""

    person: Person
    pros: Sequence[Reason]
    cons: Sequence[Reason]
    remarks: Sequence[Reason]
    """What the judge says of how it was argued, where it says nothing of the matter."""


def render_markdown(document: Mapping[str, object]) -> str:
    """Render a report as Markdown: the same contents as the page, without charts.

    What was said stands in block quotes in its own Markdown, with HTML, images and odd links defused;
    names and other short texts are escaped. Citations link to the message's anchor.

    Args:
        document: a debate in the format `moot.debate/1`; any key may be missing.

    Returns:
        The file's text, ending in a line end.
    """
    report = Report(document)

    def cite(message_id: str) -> str:
        anchor = report.anchors.get(message_id)
        return f"[{plain(message_id)}](#{quote(anchor)})" if anchor else plain(message_id)

    # The output is Markdown: each text goes through `plain` or `quoted`, which escape for both languages.
    environment = template_environment(plain=plain, quoted=block_quote, cite=cite, attribute=escape)
    text = environment.get_template("report.md.j2").render(report=report)
    return _tidy(text)


def render_brief(document: Mapping[str, object], form: Literal["brief", "adr"] = "brief") -> str:
    """Render one page (`brief`), or an architecture decision record as MADR lays it out (`adr`), as Markdown.

    Args:
        document: a debate in the format `moot.debate/1`; any key may be missing.
        form: which of the two.
    """
    return _brief(Report(document), form)


def _brief(report: Report, form: Literal["brief", "adr"]) -> str:
    environment = template_environment(plain=plain, quoted=block_quote, section=section, cited=_reason_text)
    options = [_option(report, person) for person in report.people.values()]
    text = environment.get_template(f"{form}.md.j2").render(
        report=report,
        options=options,
        most=STRONGEST,
        asked=board_text(report.topic.removeprefix(report.title), TOPIC_CHARS),  # beyond the title
    )
    return _tidy(text)


def render_brief_html(document: Mapping[str, object]) -> str:
    """Render the one page as self-contained HTML."""
    report = Report(document)
    return as_page(_brief(report, "brief"), report.title)


def as_page(text: str, title: str, kicker: str = "In brief") -> str:
    """Render Markdown as a self-contained HTML page: `title` for its first line, `kicker` above it."""
    body = Prose({}).block(text.partition("\n")[2], base=2)
    return template_environment().get_template("brief.html.j2").render(title=title, body=body, kicker=kicker)


def _option(report: Report, person: Person) -> Option:
    """Return an answer with its judge's reasons, else with what the ledger holds of it, in its own words."""
    verdict = report.verdict
    if verdict and (case := verdict.cases.get(person.id)):
        return Option(person, case["pros"], case["cons"], ())
    scores = [
        (row.name, score)
        for row in (verdict.criteria if verdict else ())
        for score in row.scores
        if score.person.id == person.id and score.reasoning
    ]
    remarks = [
        Reason(text=f"{name}: {board_text(score.reasoning, REASON_CHARS)}", citations=list(score.citations))
        for name, score in sorted(scores, key=lambda each: -each[1].share)
    ]
    pros: list[Reason] = []
    cons: list[Reason] = []
    for standing in report.standings:
        for holding in standing.holdings if standing.person.id == person.id else ():
            pros += [Reason(text=board_text(text, REASON_CHARS), citations=[]) for text in holding.evidence]
            cons += [Reason(text=board_text(text, REASON_CHARS), citations=[]) for text in holding.challenged]
    return Option(person, pros, cons, remarks)


def _reason_text(reason: Reason) -> str:
    """Return a reason with the first messages that show it."""
    shown = f" ({plain(', '.join(reason['citations'][:MOST_CITED]))})" if reason["citations"] else ""
    return plain(reason["text"]) + shown


def _tidy(text: str) -> str:
    """Return what a template made without its spare empty lines; those of what was said carry a `>`."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
