"""The one-page brief and the decision record."""

from __future__ import annotations

import re
from html import unescape
from typing import Any, Literal

import pytest
from markdown_it import MarkdownIt

from moot.documents import board_document, empty_document
from moot.reports import render_brief, render_brief_html, render_html, render_markdown
from moot.reports.markdown import BACKGROUND_CHARS, plain
from moot.state.entries import make_entry
from tests.support.ledger_state import stance_event
from tests.support.report_documents import VERDICT, Document, debate_document


def _council() -> Document:
    verdict = {**VERDICT, "winner": "synthesis", "solution_markdown": "## Modules\nKeep one release train."}
    return debate_document(protocol="council", verdict=verdict, solution=verdict["solution_markdown"])


def test_brief_shows_the_verdict_its_reasons_and_open_points() -> None:
    page = render_brief(debate_document(protocol="round-robin", verdict=VERDICT))
    assert "**Verdict: Ada Okafor wins**" in page
    assert "**Confidence:** 78 of 100" in page
    assert "| Modules first | chosen | One team can release alone. [2] |" in page
    assert "| Split along team lines | rejected | Nobody priced it. [3] |" in page
    assert "Gave figures." not in page  # a remark about the style of argument is no reason for the verdict
    assert "major: No audit trail" in page
    assert "Who owns the schema?" in page
    assert "**First step:** Cut the ledger out first" in page
    assert len(page.split()) < 500


def test_brief_of_a_council_begins_with_the_solution() -> None:
    page = render_brief(_council())
    assert page.index("Keep one release train.") < page.index("A synthesis of several")


def test_solution_of_a_council_follows_the_first_step() -> None:
    solution = "Keep one release train.\n\n" + "\n\n".join(
        ["Freeze the schema of the ledger first. " * 8] * 30
    )
    verdict = {**VERDICT, "decision": "Keep it.", "solution_markdown": solution}
    document = debate_document(protocol="council", verdict=verdict, solution=solution)
    for text in (render_brief(document), render_markdown(document)):
        step_at, solution_at = text.index("First step"), text.index("Keep one release train.")
        gap_at = text.index("No audit trail")
        assert step_at < solution_at < gap_at
    page = render_brief(document)
    assert "The rest is in the full report." in page
    assert len(page.split()) < 500


def test_a_decision_record_has_the_sections_of_madr_in_order() -> None:
    record = render_brief(_council(), "adr")
    headings = re.findall(r"^##+ (.+)$", record, re.MULTILINE)
    expected = [
        "Context and Problem Statement",
        "Decision Drivers",
        "Considered Options",
        "Decision Outcome",
        "Modules",
        "Consequences",
        "Confirmation",
        "Pros and Cons of the Options",
        "Modules first",
        "Split along team lines",
        "More Information",
        "Sources",
    ]
    assert headings == expected
    assert record.startswith("---\nstatus: proposed\n")
    assert "\n### Modules\n" in record
    assert "- Bad, because One release train for longer" in record
    assert "Chosen, because: One team can release alone. [2]" in record
    assert "- Bad, Cost: The database stays shared." in record
    assert "Rejected, because: Nobody priced it. [3]" in record


def test_a_brief_quotes_its_sources_for_readers_without_moot() -> None:
    brief = render_brief(debate_document(protocol="round-robin", verdict=VERDICT))
    assert re.search(r"^1\. (?:Ada Okafor|Grace Lindqvist): “.+”$", brief, re.MULTILINE)
    assert not re.search(r"\bm\d{6}\b", brief)


def test_a_brief_lists_what_to_check_before_deciding() -> None:
    brief = render_brief(debate_document(protocol="round-robin", verdict=VERDICT))
    row = "| Who owns the schema? | Ask the heads of the teams. | Ada | an hour | 1 May | Begin. | Wait. |"
    assert row in brief


@pytest.mark.parametrize("form", ["brief", "adr"])
def test_long_briefs_and_records_have_at_most_900_words(form: Literal["brief", "adr"]) -> None:
    long = " ".join(f"Sentence number {number} gives a figure." for number in range(200))
    verdict = {
        **VERDICT,
        "reasoning": long,
        "agreed": [long[:600]] * 9,
        "tradeoffs": ["A long line of words."] * 40,
    }
    text = render_brief(debate_document(verdict=verdict, topic=f"Split?\n{long}", solution=long), form)
    assert len(text.split()) <= 900


def test_a_shortened_solution_ends_with_no_empty_heading() -> None:
    figures = "A sentence about the costs of the gateway. " * 60
    solution = f"## Way\nUse the gateway.\n\n## Figures\n{figures}"
    text = render_brief(debate_document(verdict=VERDICT, solution=solution), "adr")
    assert "Use the gateway.\n\n*The rest is in the full report.*" in text


def test_reports_say_first_what_the_judge_did_not_read() -> None:
    verdict = {**VERDICT, "read": {"full": 15, "part": 6, "of": 30}}
    for text in (
        render_brief(debate_document(verdict=verdict)),
        render_brief(debate_document(verdict=verdict), "adr"),
        render_markdown(debate_document(verdict=verdict)),
        render_html(debate_document(verdict=verdict)),
    ):
        assert "The judge read 15 of 30 messages in full, and 6 in part." in text


def test_dialogue_report_chooses_nothing_and_folds_long_lists() -> None:
    points = "\n".join(f"- Point {number}" for number in range(9))
    ended = debate_document(protocol="dialogue", verdict=VERDICT, solution=f"## Claims\n{points}")
    record = render_brief(ended, "adr")
    assert "Nothing is chosen: the debate shows what the choice depends on." in record
    assert "\nIn the report: claims (9).\n" in record
    page = render_html(ended)
    assert (
        '<li>Point 3</li>\n</ul>\n<details class="fold"><summary>5 more</summary>\n<ul>\n<li>Point 4' in page
    )
    assert page.count("<li>Point ") == 9


def test_brief_title_is_the_question_even_below_the_first_line() -> None:
    asked = debate_document(
        topic="We have one monolith.\nShould we split it?", protocol="round-robin", verdict=VERDICT
    )
    brief = render_brief(asked)
    assert brief.startswith("# Should we split it?\n")
    assert brief.index("**Verdict: ") < brief.index("## Background\n\n> We have one monolith.\n")


def test_brief_html_has_no_script_or_javascript_link() -> None:
    verdict = {**VERDICT, "dissent": ["<script>alert(1)</script> [x](javascript:1)"]}
    html = render_brief_html(debate_document(protocol="round-robin", verdict=verdict))
    assert "<script" not in html
    assert 'href="javascript' not in html


def test_brief_and_record_work_without_a_verdict() -> None:
    empty = empty_document()
    assert "**No verdict**" in render_brief(empty)
    assert "Nothing is chosen" in render_brief(empty, "adr")


def test_plain_escapes_text_so_that_markdown_shows_it_unchanged() -> None:
    text = "Costs > 3 & < 5 % of R&D for `x_y` in snake_case; see <b>here</b> or &amp; # not a heading"
    line = plain(text)
    assert line == (
        "Costs > 3 & < 5 % of R&D for \\`x_y\\` in snake_case; "
        "see &lt;b>here&lt;/b> or \\&amp; \\# not a heading"
    )
    assert plain("> quote") == "\\> quote"
    shown = MarkdownIt("commonmark").renderInline(line)
    assert unescape(re.sub("<.*?>", "", shown)) == text


def test_report_of_a_contest_shows_the_first_step_once() -> None:
    ended = debate_document(protocol="round-robin", verdict=VERDICT)
    for text in (render_markdown(ended), render_html(ended)):
        assert text.count("Cut the ledger out first") == 1


def test_considered_options_are_positions_and_never_debaters() -> None:
    positions = {"ada": "Keep one deployable, with modules.", "grace": "Keep one deployable, with modules."}
    record = render_brief(
        debate_document(verdict={**VERDICT, "considered": [], "final_position": positions}), "adr"
    )
    options = record.partition("## Considered Options")[2].partition("##")[0].strip()
    assert options == "- Keep one deployable, with modules. (argued by Ada Okafor, Grace Lindqvist)"
    nameless = debate_document(
        config={"debaters": [{"id": "ada", "name": "Ada Okafor"}]}, verdict=None, blackboard={}
    )
    assert "## Considered Options" not in render_brief(nameless, "adr")


def test_a_decision_record_quotes_whole_sentences_and_the_background() -> None:
    long = " ".join(f"Sentence number {number} gives a figure." for number in range(40))
    verdict = {key: value for key, value in VERDICT.items() if key != "considered"}
    document = debate_document(verdict=verdict, blackboard={})
    document["transcript"].append(make_entry(5, "user", "context", f"costs.md\n\n{long}"))
    record = render_brief(document, "adr")
    assert "figure. […]" in record
    assert "…" not in record.replace("[…]", "")
    assert "Background, costs.md:\n\n> Sentence number 0 gives a figure." in record


def test_interjections_are_part_of_the_context() -> None:
    document = debate_document(verdict=VERDICT)
    figures = "\n".join(f"- Figure {number} of the accounts: {number} euro" for number in range(60))
    document["transcript"].append(make_entry(5, "user", "context", f"costs.md\n\n# Costs\n{figures}"))
    document["transcript"].append(make_entry(6, "moderator", "interjection", "The budget is cut to 30 euro."))
    for form in ("brief", "adr"):
        text = render_brief(document, form)
        assert "> The budget is cut to 30 euro." in text
    assert "> Costs\n> - Figure 0 of the accounts: 0 euro\n> - Figure 1 " in text
    assert "euro […]\n" in text
    assert "Figure 59" not in text


def test_quoted_background_respects_its_limit_and_keeps_line_breaks() -> None:
    document = debate_document(verdict=VERDICT)
    lines = "\n".join(f"- {number:03}" for number in range(900))
    document["transcript"].append(make_entry(5, "user", "context", f"costs.md\n\n{lines}"))
    record = render_brief(document, "adr")
    quoted = re.findall(r"^> (- \d{3})", record, re.MULTILINE)
    assert BACKGROUND_CHARS - 6 < len("\n".join(quoted)) <= BACKGROUND_CHARS


def test_brief_shows_agreed_points_and_counts_the_omitted_ones() -> None:
    agreed = [f"Agreed point {number}." for number in range(10)]
    brief = render_brief(debate_document(verdict={**VERDICT, "agreed": agreed}), "brief")
    assert "## Agreed\n\n- Agreed point 0." in brief
    assert "- 2 more in the report" in brief


@pytest.mark.parametrize("kind", ["adr", "brief"])
def test_short_report_names_the_command_for_the_full_report(
    kind: Literal["adr", "brief"],
) -> None:
    short = render_brief(debate_document(protocol="round-robin", verdict=VERDICT), kind)
    shown = debate_document(protocol="round-robin")["id"][:8]
    assert f"moot report {shown}" in short


def test_decision_record_lists_options_and_who_gave_them_up() -> None:
    chosen = [("ada", "buy"), ("grace", "build"), ("grace", "buy")]
    events = [
        stance_event(number, who, "asserts", "p000", option=option)
        for number, (who, option) in enumerate(chosen, 1)
    ]
    transcript = [make_entry(0, "user", "topic", "Build, or buy?")]
    transcript += [
        make_entry(number, who, "speech", option) for number, (who, option) in enumerate(chosen, 1)
    ]
    state: Any = {"topic": "Build, or buy?", "claim_events": events, "full_transcript": transcript}
    verdict: Any = {**VERDICT, "considered": []}
    document = debate_document(verdict=verdict, blackboard=board_document(state))
    document["transcript"].append(make_entry(5, "moot", "context", "Options:\n\n- build\n- buy"))
    record = render_brief(document, "adr")
    options = record.partition("## Considered Options")[2].partition("##")[0].split("\n")
    assert [line for line in options if line] == [
        "- buy (argued by Ada Okafor, Grace Lindqvist)",
        "- build (given up by Grace Lindqvist)",
    ]
    assert "Background, Options" not in record


def _open_question(chosen: list[tuple[str, str, str]], **verdict: Any) -> Document:
    """Return a debate on an open question, from each event's debater, kind and option."""
    events = [
        stance_event(number, who, kind, "p000", **({"option": option} if option else {}))  # type: ignore[arg-type]
        for number, (who, kind, option) in enumerate(chosen, 1)
    ]
    transcript = [make_entry(0, "user", "topic", "Build, or buy?")]
    transcript += [make_entry(number, who, "speech", kind) for number, (who, kind, _) in enumerate(chosen, 1)]
    state: Any = {"topic": "Build, or buy?", "claim_events": events, "full_transcript": transcript}
    return debate_document(verdict={**VERDICT, "considered": [], **verdict}, blackboard=board_document(state))


def _section(record: str, title: str) -> list[str]:
    return [line for line in record.partition(f"## {title}\n")[2].partition("\n## ")[0].split("\n") if line]


def test_options_of_a_record_name_who_argued_for_them_or_gave_them_up() -> None:
    positions = {"ada": "Repair it within the year.", "grace": "Repair it once more."}
    events = [("ada", "asserts", "buy"), ("grace", "asserts", "build"), ("grace", "withdraws", "")]
    record = render_brief(
        _open_question([*events, ("ada", "asserts", "repair it")], final_position=positions), "adr"
    )
    assert _section(record, "Considered Options") == [
        "- buy (given up by Ada Okafor)",
        "- build (given up by Grace Lindqvist)",
        "- repair it (argued by Ada Okafor)",
        "- Repair it once more. (argued by Grace Lindqvist)",
    ]


def test_the_chosen_answer_is_among_the_considered_options() -> None:
    events = [("ada", "asserts", "buy"), ("grace", "asserts", "buy")]
    record = render_brief(_open_question(events, decision="Buy two, and build the third."), "adr")
    assert _section(record, "Considered Options") == [
        "- buy (argued by Ada Okafor, Grace Lindqvist)",
        "- Buy two, and build the third. (the judge's decision)",
    ]
    same = render_brief(_open_question(events, decision="buy"), "adr")
    assert _section(same, "Considered Options") == ["- buy (argued by Ada Okafor, Grace Lindqvist)"]


def test_a_report_does_not_call_a_final_position_withdrawn() -> None:
    positions = {"ada": "Repair it within the year."}
    events = [("ada", "asserts", "build"), ("ada", "withdraws", "")]
    for render in (render_markdown, render_html):
        text = render(_open_question(events, final_position=positions))
        assert "gave up “build”" in text
        assert (
            "withdrawn" not in text.partition("Positions of the debaters")[2].partition("Positions over")[0]
        )


def test_a_decision_record_lists_options_that_nobody_chose() -> None:
    question = {"question": "Build, or buy?", "options": ["A: buy", "B: build"], "criteria": []}
    record = render_brief(
        debate_document(verdict={**VERDICT, "considered": []}, state={"question": question}), "adr"
    )
    options = record.partition("## Considered Options")[2].partition("##")[0].split("\n")
    assert [line for line in options if line][:2] == ["- A: buy", "- B: build"]
