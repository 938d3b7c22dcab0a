from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from moot.documents import DebateDocument, board_document
from moot.reports import render_brief, render_brief_html, render_html, render_markdown
from moot.reports.html import TEMPLATES, Report
from moot.reports.verdict_view import BLOCK, Participants, Transcript, anchors_of
from moot.state.entries import make_entry
from moot.state.errors import InputError
from tests.support.ledger_state import new_claim_events, stance_event
from tests.support.report_documents import (
    BLACKBOARD,
    CLAIM_EVENTS,
    TRANSCRIPT,
    VERDICT,
    debate_document,
    hostile_document,
)
from tests.support.typed_dicts import completed


def typed(**keys: Any) -> DebateDocument:
    """Return a complete document with these keys. Its other keys are empty."""
    document: DebateDocument = completed(DebateDocument, keys)
    return document


class Page(HTMLParser):
    """Elements, ids and heading levels of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def headings(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.elements if re.fullmatch("h[1-6]", tag)]

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] or "" for _, attrs in self.elements if "id" in attrs]

    @property
    def targets(self) -> list[str]:
        links = [attrs.get("href") or "" for tag, attrs in self.elements if tag == "a"]
        return [link[1:] for link in links if link.startswith("#")]


@pytest.mark.parametrize(
    "words",
    [
        "Ada Okafor wins",
        "confidence",
        "No audit trail",
        "Who owns the schema?",
        "Keep one deployable",
        "0.61",
        "25 %",
        "no JSON, twice",
        "Modules first, ledger now",
        "Cheaper",
        "deploy log",
        "A split doubles incidents.",
        "in crux room",
        "Does a split double incidents?",
        "A calm quarter.",
        "They differ on order.",
        "2,400 → 310",
        "80 %",
        "$0.5000",
        "111 %",
        "older than the window",
        "A summary was over-long.",
        "Turn 4.",
    ],
)
def test_page_shows_the_contents_of_the_document(words: str) -> None:
    assert words.casefold() in Page(render_html(debate_document())).text.casefold()


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_verdict_and_solution_come_before_everything_else(render: Any) -> None:
    text = render(debate_document())
    places = [
        text.index(words) for words in ("Ada Okafor wins", "Keep one deployable", "deploy log", "Turn 1.")
    ]
    assert places == sorted(places)


def test_right_to_left_text_keeps_its_direction_marks() -> None:
    document = deepcopy(debate_document(topic="Trams"))
    document["transcript"][1]["content"] = "הכרטיס עולה 3.50\u200f (ILS)"
    document["transcript"][2]["content"] = "10 \u200f20"
    text = render_markdown(document)
    assert "3.50\u200f (ILS)" in text
    assert "10 ⟨U+200F⟩20" in text


@pytest.mark.parametrize("render", [render_html, render_markdown, render_brief, render_brief_html])
def test_direction_control_characters_are_shown_escaped(render: Any) -> None:
    controls = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)))
    document = deepcopy(debate_document(topic=f"Trams {controls}free?"))
    document["config"]["debaters"][0]["name"] = f"Ada {controls}"
    document["transcript"][1]["content"] = f"Yes {controls} no."
    text = render(document)
    assert not set(controls) & set(text)
    assert "Trams ⟨U+202A⟩" in text


def test_page_has_one_h1_and_skips_no_heading_level() -> None:
    levels = Page(render_html(debate_document())).headings
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_links_inside_the_page_have_targets_and_ids_are_unique() -> None:
    page = Page(render_html(debate_document()))
    assert len(page.ids) == len(set(page.ids))
    assert set(page.targets) <= set(page.ids)


def test_citation_of_an_unknown_message_is_not_a_link() -> None:
    html = render_html(debate_document(verdict={**VERDICT, "reasoning": "See m999999."}))
    assert 'href="#m999999"' not in html


@example(names=[f"A{number}" for number in range(1200)])
@example(names=[f"ß {number}" for number in range(1200)])
@example(names=[f"!{number}" for number in range(1200)])
@example(names=["Ann"] * 1200)
@settings(deadline=None)
@given(names=st.lists(st.text(min_size=1, max_size=6), max_size=30))
def test_monograms_of_up_to_1200_debaters_are_unique_and_short(names: list[str]) -> None:
    debaters = [{"id": f"d{number}", "name": name} for number, name in enumerate(names)]
    people = Participants(typed(config={"debaters": debaters}))
    shown = [person.monogram for person in people.values()]
    assert len({*shown}) == len(shown) == len(names)
    assert max(map(len, shown), default=0) <= 6


def test_failed_verdict_shows_no_winner() -> None:
    failed = {**VERDICT, "status": "failed", "error": "no JSON"}
    for render in (render_html, render_markdown):
        text = render(debate_document(verdict=failed, verdicts=[failed]))
        assert "The verdict failed" in text
        assert "wins" not in text


def test_failed_verdicts_without_a_decision_are_shown_as_failed() -> None:
    html = render_html(
        debate_document(verdict=None, verdicts=[{"judge": "j", "status": "failed", "error": "timed out"}])
    )
    assert "The verdict failed" in html
    assert "timed out" in html


def test_verdict_of_one_judge_does_not_replace_a_missing_decision() -> None:
    assert "No verdict has been given" in render_html(debate_document(verdict=None, verdicts=[VERDICT]))


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_report_shows_the_end_reason_and_the_agreement_of_rounds(render: Any) -> None:
    page = render(debate_document(config={"termination": {"type": "convergence", "threshold": 0.9}}))
    for text in ("Ended", "all turns are taken", "0.42", "0.90", "Who owns the schema then?"):
        assert text in page
    unknown: list[dict[str, Any]] = [{"round": 1, "agreement": None, "in_dispute": []}]
    assert "unknown" in render(debate_document(convergence=unknown))


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_report_of_a_running_debate_shows_no_end(render: Any) -> None:
    page = render(debate_document(status="running", ended_because="", convergence=[]))
    assert "Ended" not in page
    assert "agree to" not in page
    assert "Agreement after" not in page


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_critique_shows_its_target_and_room(render: Any) -> None:
    critique = make_entry(
        1, "ada", "critique", "It is slow.", targets=["grace"], room="room-07", phase="critique"
    )
    page = render(debate_document(transcript=[make_entry(0, "user", "topic", "Why?"), critique]))
    words = re.sub(r"<[^>]*>", "", page)
    assert re.search(r"critique\s+to\s+Grace Lindqvist\s+in\s+room-07", words)


def test_secrets_in_the_configuration_are_masked() -> None:
    assert "sk-secret" not in render_html(debate_document())


def test_page_rendering_is_deterministic() -> None:
    assert render_html(debate_document()) == render_html(debate_document())


def test_page_loads_no_external_resources() -> None:
    html = render_html(hostile_document())
    loading = [
        (tag, attrs)
        for tag, attrs in Page(html).elements
        if tag in ("img", "iframe", "object", "embed", "video", "audio", "base", "form", "image", "use")
        or (
            tag != "a"
            and any("//" in (attrs.get(key) or "") for key in ("src", "href", "xlink:href", "srcset"))
        )
    ]
    assert loading == []
    assert "url(" not in html.partition("</style>")[0]


def test_hostile_text_adds_no_script_style_or_handler() -> None:
    elements = Page(render_html(hostile_document())).elements
    assert sum(tag == "script" for tag, _ in elements) == 1
    assert sum(tag == "style" for tag, _ in elements) == 1
    assert not [attrs for _, attrs in elements if any(key.startswith("on") for key in attrs)]
    schemes = {re.split("[:#]", attrs.get("href") or "")[0] for tag, attrs in elements if tag == "a"}
    assert schemes <= {"", "https", "http"}


def test_external_links_have_noopener_and_noreferrer() -> None:
    document = debate_document(
        words="See [this](https://example.org/a) and ![that](https://example.org/b.png)."
    )
    links = [a for tag, a in Page(render_html(document)).elements if "//example.org" in (a.get("href") or "")]
    assert links
    assert all("noopener" in (link["rel"] or "") and "noreferrer" in (link["rel"] or "") for link in links)


def test_page_has_landmarks_and_a_strict_content_security_policy() -> None:
    page = Page(render_html(debate_document()))
    tags = [tag for tag, _ in page.elements]
    assert [tags.count(tag) for tag in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    policy = (
        next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy") or ""
    )
    assert policy.startswith(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-"
    )


def test_only_long_debates_are_rendered_into_templates() -> None:
    assert "<template>" not in render_html(debate_document(40))
    assert render_html(debate_document(400)).count("<template>") > 3


@pytest.mark.parametrize("document", [{}, {"verdict": None}, {"blackboard": {"claim_events": []}}])
@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_empty_document_is_rendered_without_a_verdict(document: dict[str, Any], render: Any) -> None:
    assert "No verdict has been given" in render(typed(**document))


def test_long_lists_are_collapsed_and_timelines_keep_changes() -> None:
    standing = BLACKBOARD["standing"]
    rounds = [{"round": n, "positions": {"ada": f"p{n}"}} for n in range(1, 200)]
    quotes = [{**CLAIM_EVENTS[2], "id": f"h{n}", "quote": f"p{n}"} for n in range(1, 200)]
    main_question, *others = standing["claims"]
    stance = {**main_question["stances"]["ada"], "history": [*(each["id"] for each in quotes), "e007"]}
    claims = [{**main_question, "stances": {"ada": stance}}, *others]
    board = {
        **BLACKBOARD,
        "claim_events": [*CLAIM_EVENTS, *quotes],
        "standing": {**standing, "rounds": rounds, "claims": claims},
    }
    html = render_html(debate_document(blackboard=board))
    timeline = html.partition('id="positions"')[2].partition("</section>")[0]
    assert "All 199 rounds" in html
    assert "p150" not in timeline
    assert "changed position" in timeline


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(
    key=st.sampled_from(sorted(debate_document())),
    board_key=st.sampled_from(sorted(BLACKBOARD)),
    verdict_key=st.sampled_from(sorted(VERDICT)),
    value=json_values,
)
def test_any_values_are_rendered_or_refused(key: str, board_key: str, verdict_key: str, value: Any) -> None:
    verdict = {**VERDICT, verdict_key: value}
    board = {**BLACKBOARD, board_key: value}
    document = {
        **debate_document(2, verdict=verdict, verdicts=[verdict, verdict], blackboard=board),
        key: value,
    }
    with suppress(InputError):
        render_html(document).encode("utf-8")
        render_markdown(document).encode("utf-8")


@settings(max_examples=60, deadline=None)
@given(rounds=st.lists(st.integers(0, 60), max_size=260))
def test_blocks_hold_every_message_once_in_order_and_at_most_a_hundred(rounds: list[int]) -> None:
    entries = [{"id": f"m{seq:06d}", "round": number} for seq, number in enumerate(rounds)]
    document = typed(transcript=entries)
    blocks = Transcript(document, Participants(document), anchors_of(document["transcript"])).blocks
    assert [message.anchor for block in blocks for message in block.messages] == [
        entry["id"] for entry in entries
    ]
    assert all(len(block.messages) <= BLOCK for block in blocks)


@pytest.mark.parametrize(
    ("rounds", "titles"),
    [
        ([0, 1, 1, 2], ["Opening", "Round 1", "Round 2"]),
        ([0] * 150, ["Messages 1–100", "Messages 101–150"]),
        ([1] * 150, ["Round 1", "Round 1, continued"]),
        (list(range(120)), ["Opening and rounds 1–99", "Rounds 100–119"]),
    ],
    ids=["rounds", "no rounds", "a long round", "many rounds"],
)
def test_block_titles_describe_their_messages(rounds: list[int], titles: list[str]) -> None:
    entries = [{"id": f"m{seq:06d}", "round": number} for seq, number in enumerate(rounds)]
    document = typed(transcript=entries)
    blocks = Transcript(document, Participants(document), anchors_of(document["transcript"])).blocks
    assert [block.title for block in blocks] == titles


def _luminance(colour: str) -> float:
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_colours_reach_the_contrast_of_wcag_aa(theme: int) -> None:
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    block = re.findall(r":root \{(.*?)\n\s*\}", css, re.S)[theme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    inks = ["ink", "muted", "accent", "bad", "house", *(f"d{number}" for number in range(8))]
    pairs = [(ink, ground) for ink in inks for ground in ("bg", "surface", "here")]
    pairs += [
        ("good", "good-bg"),
        ("bad", "bad-bg"),
        ("open", "open-bg"),
        ("ink", "open-bg"),
        ("ink", "sunk"),
    ]
    pairs += [("on", ink) for ink in inks[4:]]
    low = {pair: round(_contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}


EMPTY = {"config": {"debaters": [{"id": "ada", "name": "Ada"}]}, "topic": "Should we split?"}


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_an_empty_debate_has_no_empty_sections(render: Any) -> None:
    text = render(typed(**EMPTY))
    sections = re.findall(r'<section id="(\w+)"|^## (.+)$', text, re.MULTILINE)
    assert [name or title for name, title in sections] in (["verdict", "notes"], ["Verdict"])


MOVE = {
    "debater": "ada",
    "before": "Six services",
    "after": "No services",
    "stated_in": "m000003",
    "caused_by": "",
}


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_positions_over_time_show_the_moves_named_by_the_judge(render: Any) -> None:
    verdict = {**VERDICT, "moved": [MOVE], "final_position": {"ada": "Keep one deployable"}}
    text = render(debate_document(verdict=verdict, blackboard={}))
    timeline = text.rpartition("Positions over time")[2]
    order = [timeline.find(words) for words in ("Six services", "No services", "Keep one deployable")]
    assert -1 not in order
    assert order == sorted(order)
    assert "Round 2" in timeline
    assert "m000003" in timeline


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_positions_over_time_are_omitted_without_moves(render: Any) -> None:
    verdict = {**VERDICT, "final_position": {"ada": "Keep one deployable"}}
    assert "Positions over time" not in render(debate_document(verdict=verdict, blackboard={}))


@pytest.mark.parametrize(("claim", "shown"), [("p000", 1), ("p001", 2)])
def test_judges_move_is_merged_only_with_a_change_on_the_main_question(claim: str, shown: int) -> None:
    first = next(each for each in CLAIM_EVENTS if each["type"] == "event" and each["debater"] == "ada")
    asserted = {**first, "claim": claim, "message_id": "m000001", "quote": "Yes."}
    denied = {**asserted, "id": "e099", "kind": "denies", "message_id": "m000004", "quote": "No."}
    claims = [each for each in CLAIM_EVENTS if each["type"] == "claim"]
    state: Any = {"topic": "Should we split?", "claim_events": [*claims, asserted, denied]}
    board = {**BLACKBOARD, **board_document({**state, "full_transcript": TRANSCRIPT})}
    document = debate_document(verdict={**VERDICT, "moved": [MOVE]}, blackboard=board)
    (ada, _) = Report(document).standings
    assert len([each for each in ada.moments if each.kind in ("shift", "move")]) == shown
    side_claim = next(each["text"] for each in claims if each["id"] == "p001").removesuffix(".")
    named = [each.claim for each in ada.moments if each.kind == "shift"]
    assert named == [side_claim] * (shown - 1)
    text = render_markdown(document)
    assert (f"Round 2: on “{side_claim}”, from" in text) == (claim == "p001")


def test_judges_wording_wins_for_a_change_in_the_same_message() -> None:
    verdict = {**VERDICT, "moved": [MOVE]}
    (ada, _) = Report(debate_document(verdict=verdict)).standings
    assert [each.text for each in ada.moments if each.message_id == "m000003"] == ["No services"]


def _blackboard_of(*events: Any) -> Any:
    state: Any = {"topic": "Should we split?", "claim_events": [*new_claim_events("p001"), *events]}
    return {**BLACKBOARD, **board_document({**state, "full_transcript": TRANSCRIPT})}


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_undisputed_claim_is_not_listed_as_disputed(render: Any) -> None:
    events = [
        stance_event(1, "ada", "asserts"),
        stance_event(2, "grace", "conditional", condition="if it pays", condition_id="k001"),
    ]
    text = render(debate_document(blackboard=_blackboard_of(*events)))
    assert "Conditional or withdrawn claims" in text
    assert "Disputed claims" not in text


def test_different_condition_is_not_a_disagreement() -> None:
    events = [
        stance_event(1, "ada", "asserts"),
        stance_event(2, "grace", "conditional", condition="if it pays", condition_id="k001"),
    ]
    (ada, _) = Report(debate_document(blackboard=_blackboard_of(*events))).standings
    assert (len(ada.conditional), ada.disagreements, ada.agreements) == (1, [], [])
    assert "if it pays" in ada.conditional[0]


def test_move_is_placed_at_the_movers_message_after_its_cause() -> None:
    caused = {**MOVE, "stated_in": "", "caused_by": "m000002"}
    (ada, _) = Report(debate_document(verdict={**VERDICT, "moved": [caused]}, blackboard={})).standings
    (move,) = [each for each in ada.moments if each.kind == "move"]
    assert (move.message_id, move.cause, move.when) == ("m000003", "m000002", "Round 2")
    text = render_markdown(debate_document(verdict={**VERDICT, "moved": [caused]}, blackboard={}))
    assert "“No services” ([m000003](#m000003)) after [m000002](#m000002)" in text
    assert "to “No services”, after ([m000002](#m000002))" in text


def test_a_move_is_not_dated_at_a_criticism_or_before_its_cause_was_read() -> None:
    speakers = ["ada", "grace", "ada", "grace", "ada", "ada"]
    document = debate_document(
        verdict={**VERDICT, "moved": [{**MOVE, "caused_by": "m000004"}]}, blackboard={}
    )
    entries = [
        {**TRANSCRIPT[1], "id": f"m{n:06d}", "seq": n, "speaker": s} for n, s in enumerate(speakers, 1)
    ]
    entries[4]["kind"] = "critique"
    entries.insert(4, {**entries[0], "id": "m000004-x"})  # written at the same time as its cause
    entries[4] |= {"id": "m000007", "seq": 7}
    steps = {"m000004": 3, "m000007": 3}
    receipts = [{**document["receipts"][0], "entry_id": key, "step": step} for key, step in steps.items()]
    (ada, _) = Report({**document, "transcript": [TRANSCRIPT[0], *entries], "receipts": receipts}).standings
    assert [each.message_id for each in ada.moments if each.kind == "move"] == ["m000006"]


def test_no_debater_moves_in_its_opening() -> None:
    caused = {**MOVE, "debater": "grace", "stated_in": "", "caused_by": "m000001"}
    (_, grace) = Report(debate_document(verdict={**VERDICT, "moved": [caused]}, blackboard={})).standings
    assert [each.message_id for each in grace.moments if each.kind == "move"] == ["m000004"]


def test_a_move_in_the_movers_own_message_names_no_cause() -> None:
    (ada, _) = Report(debate_document(verdict={**VERDICT, "moved": [MOVE]}, blackboard={})).standings
    assert [each.cause for each in ada.moments if each.kind == "move"] == [""]
    assert "after [m000003]" not in render_markdown(debate_document(verdict={**VERDICT, "moved": [MOVE]}))


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_new_condition_is_not_shown_as_a_changed_position(render: Any) -> None:
    events = [
        stance_event(1, "ada", "asserts"),
        stance_event(3, "ada", "conditional", condition="if it pays", condition_id="k001"),
    ]
    document = debate_document(blackboard=_blackboard_of(*events))
    (ada, _) = Report(document).standings
    assert [each.kind for each in ada.moments if each.kind in ("shift", "conditions")] == ["conditions"]
    timeline = render(document).rpartition("Positions over time")[2]
    assert "added a condition" in timeline
    assert "changed position" not in timeline
    assert "from “ada asserts”" not in timeline


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_report_presents_no_placeholder_as_a_judgement(render: Callable[[Any], str]) -> None:
    placeholder = {**VERDICT, "placeholder": True}
    report = render(debate_document(verdict=placeholder, verdicts=[placeholder]))
    assert "The built-in offline model wrote this text" in report
    for text in ("Judged by", VERDICT["reasoning"], "in both orders of presentation"):
        assert text not in report


def test_strip_shows_each_answer_and_the_message_that_turned_it() -> None:
    events = [
        stance_event(1, "ada", "asserts", "p000"),
        stance_event(2, "grace", "denies", "p000"),
        stance_event(3, "ada", "conditional", "p000", condition="if it pays", condition_id="k001"),
    ]
    html = render_html(debate_document(blackboard=_blackboard_of(*events)))
    strips = html.partition('<figure class="strips">')[2].partition("</figure>")[0]
    assert "<title>Round 1: yes</title>" in strips
    assert "<title>Round 2: yes, on a condition</title>" in strips
    assert strips.count('class="answer-no"') == 2
    assert strips.count('href="#m000003"') == 1
    assert html.index('class="headline') < html.index('<figure class="strips">') < html.index('id="sides"')


def test_strip_of_a_debate_without_claims_invents_no_answer() -> None:
    html = render_html(debate_document(verdict={**VERDICT, "moved": [MOVE]}, blackboard={}))
    strips = html.partition('<figure class="strips">')[2].partition("</figure>")[0]
    assert "the answers are unknown" in strips
    assert 'href="#m000003"' in strips
    assert not re.search('class="answer-(yes|no|conditional|open)"', strips)


def test_map_of_a_claim_shows_who_supports_and_attacks_it_with_quotations() -> None:
    html = render_html(debate_document())
    claim_map = html.partition('class="map"')[2].partition("</svg>")[0]
    words = Page(claim_map).text
    assert "A split doubles incidents." in html
    assert "supports" in words or "attacks" in words
    assert "“" in words
    assert set(Page(claim_map).targets) <= {f"m{seq:06d}" for seq in range(5)}


def test_marks_of_code_are_rendered_in_single_lines() -> None:
    verdict = {**VERDICT, "decision": "Keep `main` <b>", "first_step": "Run `make <x>`."}
    html = render_html(debate_document(verdict=verdict))
    assert "<code>make &lt;x&gt;</code>" in html
