"""The one page and the decision record."""

from __future__ import annotations

import re
from html import unescape

from markdown_it import MarkdownIt

from moot.graph.reports import render_brief, render_brief_html
from moot.graph.reports.markdown_quotes import plain
from tests.support.report_documents import DEBATERS, VERDICT, Document, debate


def _council() -> Document:
    verdict = {**VERDICT, "winner": "synthesis", "solution_markdown": "## Modules\nKeep one release train."}
    return debate(protocol="council", verdict=verdict, solution=verdict["solution_markdown"])


def test_a_page_says_what_was_decided_why_and_what_is_missing() -> None:
    page = render_brief(debate(protocol="round-robin", verdict=VERDICT))
    assert "**Verdict: Ada Okafor wins**, confidence 78 of 100" in page
    assert "- Gave figures. (m000001)" in page
    assert "**major:** No audit trail" in page
    assert "Who owns the schema?" in page
    assert len(page.split()) < 500


def test_what_was_asked_for_leads_a_page() -> None:
    page = render_brief(_council())
    assert page.index("Keep one release train.") < page.index("A synthesis of several")


def test_a_decision_record_has_the_sections_of_madr_in_order() -> None:
    record = render_brief(_council(), "adr")
    headings = re.findall(r"^##+ (.+)$", record.replace("## Modules\n", ""), re.MULTILINE)
    wanted = [
        "Context and Problem Statement",
        "Decision Drivers",
        "Considered Options",
        "Decision Outcome",
        "Consequences",
        "Pros and Cons of the Options",
        *(each["name"] for each in DEBATERS),
        "More Information",
    ]
    assert headings == wanted
    assert record.startswith("---\nstatus: proposed\n")
    assert "- Bad, because One release train for longer" in record


def test_a_page_runs_nothing_that_was_said() -> None:
    verdict = {**VERDICT, "open_questions": ["<script>alert(1)</script> [x](javascript:1)"]}
    html = render_brief_html(debate(protocol="round-robin", verdict=verdict))
    assert "<script" not in html
    assert 'href="javascript' not in html


def test_a_debate_without_a_verdict_has_a_page_too() -> None:
    empty: Document = {}
    assert "**No verdict**" in render_brief(empty)
    assert "Nothing is chosen" in render_brief(empty, "adr")


def test_a_decision_record_is_plain_markdown() -> None:
    said = "Costs > 3 & < 5 % of R&D for `x_y` in snake_case; see <b>here</b> or &amp; # not a heading"
    line = plain(said)
    assert line == (
        "Costs > 3 & < 5 % of R&D for \\`x_y\\` in snake_case; "
        "see &lt;b>here&lt;/b> or \\&amp; \\# not a heading"
    )
    assert plain("> quote") == "\\> quote"
    shown = MarkdownIt("commonmark").renderInline(line)
    assert unescape(re.sub("<.*?>", "", shown)) == said
