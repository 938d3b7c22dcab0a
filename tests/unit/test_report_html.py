from __future__ import annotations

import re
from copy import deepcopy
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.documents import DebateDocument, board_document, load_leniently
from moot.reports import render_brief, render_brief_html, render_html, render_markdown
from moot.reports.html import TEMPLATES, Report
from moot.reports.positions import leading
from moot.reports.verdict_view import BLOCK, Participants, Transcript, anchors_of
from moot.state.entries import make_entry
from tests.support.ledger_state import plain_event, topic_event
from tests.support.report_documents import BLACKBOARD, MINUTES, TRANSCRIPT, VERDICT, debate, hostile


def typed(**keys: Any) -> DebateDocument:
    """Return a document that has nothing but these keys."""
    return load_leniently(DebateDocument, keys)


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
def test_every_panel_says_what_the_document_says(words: str) -> None:
    assert words.casefold() in Page(render_html(debate())).text.casefold()


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_verdict_and_solution_come_before_everything_else(render: Any) -> None:
    text = render(debate())
    places = [
        text.index(words) for words in ("Ada Okafor wins", "Keep one deployable", "deploy log", "Turn 1.")
    ]
    assert places == sorted(places)


def test_right_to_left_text_keeps_its_direction_marks() -> None:
    document = deepcopy(debate(topic="Trams"))
    document["transcript"][1]["content"] = "הכרטיס עולה 3.50\u200f (ILS)"
    document["transcript"][2]["content"] = "10 \u200f20"
    text = render_markdown(document)
    assert "3.50\u200f (ILS)" in text
    assert "10 ⟨U+200F⟩20" in text


@pytest.mark.parametrize("render", [render_html, render_markdown, render_brief, render_brief_html])
def test_no_text_changes_its_direction_unseen(render: Any) -> None:
    controls = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)))
    document = deepcopy(debate(topic=f"Trams {controls}free?"))
    document["config"]["debaters"][0]["name"] = f"Ada {controls}"
    document["transcript"][1]["content"] = f"Yes {controls} no."
    text = render(document)
    assert not set(controls) & set(text)
    assert "Trams ⟨U+202A⟩" in text


def test_headings_are_in_order_and_start_with_the_only_first_one() -> None:
    levels = Page(render_html(debate())).headings
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_link_inside_the_page_has_a_target_and_no_id_is_given_twice() -> None:
    page = Page(render_html(debate()))
    assert len(page.ids) == len(set(page.ids))
    assert set(page.targets) <= set(page.ids)


def test_a_citation_of_a_message_that_does_not_exist_is_no_link() -> None:
    html = render_html(debate(verdict={**VERDICT, "reasoning": "See m999999."}))
    assert 'href="#m999999"' not in html


@pytest.mark.parametrize("name", ["A{}", "ß {}", "!{}", "Ann"])
def test_each_of_many_debaters_has_initials_of_their_own(name: str) -> None:
    debaters = [
        {"id": f"d{number}", "name": name.format(number), "role": "", "stance": ""} for number in range(1200)
    ]
    people = Participants(typed(config={"debaters": debaters}))
    shown = [people[f"d{number}"].monogram for number in range(1200)]
    assert len({*shown}) == 1200
    assert max(map(len, shown)) <= 6


def test_a_failed_verdict_names_no_winner_even_where_one_is_given() -> None:
    failed = {**VERDICT, "status": "failed", "error": "no JSON"}
    for render in (render_html, render_markdown):
        text = render(debate(verdict=failed, verdicts=[failed]))
        assert "The verdict failed" in text
        assert "wins" not in text


def test_failed_verdicts_without_a_decision_are_shown_as_failed() -> None:
    html = render_html(
        debate(verdict=None, verdicts=[{"judge": "j", "status": "failed", "error": "timed out"}])
    )
    assert "The verdict failed" in html
    assert "timed out" in html


def test_another_judges_verdict_never_stands_in_for_a_decision() -> None:
    assert "No verdict has been given" in render_html(debate(verdict=None, verdicts=[VERDICT]))


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_why_a_debate_ended_and_how_far_each_round_agreed_is_said(render: Any) -> None:
    page = render(debate(config={"termination": {"type": "convergence", "threshold": 0.9}}))
    for said in ("Ended", "all turns are taken", "0.42", "0.90", "Who owns the schema then?"):
        assert said in page
    unknown: list[dict[str, Any]] = [{"round": 1, "agreement": None, "in_dispute": []}]
    assert "unknown" in render(debate(convergence=unknown))


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_a_debate_that_goes_on_has_not_ended(render: Any) -> None:
    page = render(debate(status="running", ended_because="", convergence=[]))
    assert "Ended" not in page
    assert "agree to" not in page
    assert "Agreement after" not in page


@pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])
def test_a_critique_says_whom_it_answers_and_in_which_room(render: Any) -> None:
    critique = make_entry(
        1, "ada", "critique", "It is slow.", targets=["grace"], room="room-07", phase="critique"
    )
    page = render(debate(transcript=[make_entry(0, "user", "topic", "Why?"), critique]))
    words = re.sub(r"<[^>]*>", "", page)
    assert re.search(r"critique\s+to\s+Grace Lindqvist\s+in\s+room-07", words)


def test_secrets_in_the_configuration_are_masked() -> None:
    assert "sk-secret" not in render_html(debate())


def test_the_page_depends_on_the_document_alone() -> None:
    assert render_html(debate()) == render_html(debate())


def test_nothing_in_the_page_leads_to_a_request() -> None:
    html = render_html(hostile())
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


def test_hostile_texts_bring_no_element_or_handler_into_the_page() -> None:
    elements = Page(render_html(hostile())).elements
    assert sum(tag == "script" for tag, _ in elements) == 1
    assert sum(tag == "style" for tag, _ in elements) == 1
    assert not [attrs for _, attrs in elements if any(key.startswith("on") for key in attrs)]
    schemes = {re.split("[:#]", attrs.get("href") or "")[0] for tag, attrs in elements if tag == "a"}
    assert schemes <= {"", "https", "http"}


def test_links_that_debaters_gave_carry_no_opener_and_no_referrer() -> None:
    document = debate(words="See [this](https://example.org/a) and ![that](https://example.org/b.png).")
    links = [a for tag, a in Page(render_html(document)).elements if "//example.org" in (a.get("href") or "")]
    assert links
    assert all("noopener" in (link["rel"] or "") and "noreferrer" in (link["rel"] or "") for link in links)


def test_the_page_has_its_landmarks_and_a_strict_policy() -> None:
    page = Page(render_html(debate()))
    tags = [tag for tag, _ in page.elements]
    assert [tags.count(tag) for tag in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    policy = (
        next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy") or ""
    )
    assert policy.startswith(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-"
    )


def test_short_debates_need_no_script_and_long_ones_wait_in_templates() -> None:
    assert "<template>" not in render_html(debate(40))
    assert render_html(debate(400)).count("<template>") > 3


@pytest.mark.parametrize(
    "document", [{}, {"verdict": None}, {"transcript": None}, {"blackboard": {"claim_events": []}}]
)
@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_whatever_is_missing_is_left_out(document: dict[str, Any], render: Any) -> None:
    assert "No verdict has been given" in render(document)


def test_dropping_any_one_key_still_gives_a_report() -> None:
    for key in debate():
        document = {name: value for name, value in debate().items() if name != key}
        assert render_html(document)
        assert render_markdown(document)
    for key in VERDICT:
        assert render_html(debate(verdict={name: value for name, value in VERDICT.items() if name != key}))


def test_long_lists_are_folded_and_long_timelines_keep_their_shifts() -> None:
    standing = BLACKBOARD["standing"]
    rounds = [{"round": n, "positions": {"ada": f"p{n}"}} for n in range(1, 200)]
    said = [{**MINUTES[2], "id": f"h{n}", "quote": f"p{n}"} for n in range(1, 200)]
    motion, *others = standing["claims"]
    stance = {**motion["stances"]["ada"], "history": [*(each["id"] for each in said), "e007"]}
    claims = [{**motion, "stances": {"ada": stance}}, *others]
    board = {
        **BLACKBOARD,
        "claim_events": [*MINUTES, *said],
        "standing": {**standing, "rounds": rounds, "claims": claims},
    }
    html = render_html(debate(blackboard=board))
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
    key=st.sampled_from(sorted(debate())),
    board_key=st.sampled_from(sorted(BLACKBOARD)),
    verdict_key=st.sampled_from(sorted(VERDICT)),
    value=json_values,
)
def test_values_of_any_type_are_survived(key: str, board_key: str, verdict_key: str, value: Any) -> None:
    verdict = {**VERDICT, verdict_key: value}
    board = {**BLACKBOARD, board_key: value}
    document = {**debate(2, verdict=verdict, verdicts=[verdict, verdict], blackboard=board), key: value}
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
def test_blocks_are_named_by_what_they_hold(rounds: list[int], titles: list[str]) -> None:
    entries = [{"id": f"m{seq:06d}", "round": number} for seq, number in enumerate(rounds)]
    document = typed(transcript=entries)
    blocks = Transcript(document, Participants(document), anchors_of(document["transcript"])).blocks
    assert [block.title for block in blocks] == titles


def test_the_chart_of_the_floor_shows_the_wordiest_of_each_colour() -> None:
    debaters = [{"id": f"s{number}", "name": f"S {number}"} for number in range(18)]
    transcript = [{"speaker": f"s{number}", "content": "word " * number} for number in range(18)]
    shown = leading(Participants(typed(config={"debaters": debaters}, transcript=transcript)))
    assert [person.id for person in shown] == ["s16", "s17", "s10", "s11", "s12", "s13", "s14", "s15"]


@given(names=st.lists(st.text(min_size=1, max_size=6), max_size=30))
def test_no_two_debaters_share_a_monogram(names: list[str]) -> None:
    debaters = [{"id": str(n), "name": name} for n, name in enumerate(names)]
    people = Participants(typed(config={"debaters": debaters}))
    assert len({person.monogram for person in people.values()}) == len(names)


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
    text = render(EMPTY)
    sections = re.findall(r'<section id="(\w+)"|^## (.+)$', text, re.MULTILINE)
    assert [name or title for name, title in sections] in (["verdict", "notes"], ["Verdict"])


MOVE = {"debater": "ada", "before": "Six services", "after": "No services", "message_id": "m000003"}


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_positions_over_time_hold_the_moves_that_the_judge_found(render: Any) -> None:
    verdict = {**VERDICT, "moved": [MOVE], "final_position": {"ada": "Keep one deployable"}}
    text = render(debate(verdict=verdict, blackboard={}))
    timeline = text.rpartition("Positions over time")[2]
    order = [timeline.find(words) for words in ("Six services", "No services", "Keep one deployable")]
    assert -1 not in order
    assert order == sorted(order)
    assert "Round 2" in timeline
    assert "m000003" in timeline


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_without_known_moves_positions_over_time_are_left_out(render: Any) -> None:
    verdict = {**VERDICT, "final_position": {"ada": "Keep one deployable"}}
    assert "Positions over time" not in render(debate(verdict=verdict, blackboard={}))


@pytest.mark.parametrize(("claim", "shown"), [("p000", 1), ("p001", 2)])
def test_a_change_in_a_round_with_a_move_of_the_judge_is_shown_once(claim: str, shown: int) -> None:
    first = next(each for each in MINUTES if each["type"] == "event" and each["debater"] == "ada")
    said = {**first, "claim": claim, "message_id": "m000001", "quote": "Yes."}
    denied = {**said, "id": "e099", "kind": "denies", "message_id": "m000004", "quote": "No."}
    claims = [each for each in MINUTES if each["type"] == "claim"]
    state: Any = {"topic": "Should we split?", "claim_events": [*claims, said, denied]}
    board = {**BLACKBOARD, **board_document({**state, "full_transcript": TRANSCRIPT})}
    (ada, _) = Report(debate(verdict={**VERDICT, "moved": [MOVE]}, blackboard=board)).standings
    assert len([each for each in ada.moments if each.kind in ("shift", "move")]) == shown


def test_of_a_change_with_one_message_the_judges_wording_counts() -> None:
    verdict = {**VERDICT, "moved": [MOVE]}
    (ada, _) = Report(debate(verdict=verdict)).standings
    assert [each.text for each in ada.moments if each.message_id == "m000003"] == ["No services"]


def _standing_of(*events: Any) -> Any:
    state: Any = {"topic": "Should we split?", "claim_events": [*topic_event("p001"), *events]}
    return {**BLACKBOARD, **board_document({**state, "full_transcript": TRANSCRIPT})}


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_a_claim_that_nobody_disputed_is_not_among_the_disputed(render: Any) -> None:
    said = [
        plain_event(1, "ada", "asserts"),
        plain_event(2, "grace", "conditional", condition="if it pays", condition_id="k001"),
    ]
    text = render(debate(blackboard=_standing_of(*said)))
    assert "Conditional or withdrawn claims" in text
    assert "Disputed claims" not in text


def test_who_gives_the_same_answer_on_another_condition_does_not_disagree() -> None:
    said = [
        plain_event(1, "ada", "asserts"),
        plain_event(2, "grace", "conditional", condition="if it pays", condition_id="k001"),
    ]
    (ada, _) = Report(debate(blackboard=_standing_of(*said))).standings
    assert (len(ada.conditional), ada.disagreements, ada.agreements) == (1, [], [])
    assert "if it pays" in ada.conditional[0]


def test_a_move_stands_at_the_movers_own_message_after_its_cause() -> None:
    caused = {**MOVE, "message_id": "m000002"}
    (ada, _) = Report(debate(verdict={**VERDICT, "moved": [caused]}, blackboard={})).standings
    (move,) = [each for each in ada.moments if each.kind == "move"]
    assert (move.message_id, move.cause, move.when) == ("m000003", "m000002", "Round 2")
    text = render_markdown(debate(verdict={**VERDICT, "moved": [caused]}, blackboard={}))
    assert "“No services” ([m000003](#m000003)) after [m000002](#m000002)" in text
    assert "to “No services”, after ([m000002](#m000002))" in text


def test_no_debater_moves_in_its_opening() -> None:
    caused = {**MOVE, "debater": "grace", "message_id": "m000001"}
    (_, grace) = Report(debate(verdict={**VERDICT, "moved": [caused]}, blackboard={})).standings
    assert [each.message_id for each in grace.moments if each.kind == "move"] == ["m000004"]


def test_a_move_in_the_movers_own_message_names_no_cause() -> None:
    (ada, _) = Report(debate(verdict={**VERDICT, "moved": [MOVE]}, blackboard={})).standings
    assert [each.cause for each in ada.moments if each.kind == "move"] == [""]
    assert "after [m000003]" not in render_markdown(debate(verdict={**VERDICT, "moved": [MOVE]}))


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_a_new_condition_is_shown_as_what_it_is(render: Any) -> None:
    said = [
        plain_event(1, "ada", "asserts"),
        plain_event(3, "ada", "conditional", condition="if it pays", condition_id="k001"),
    ]
    document = debate(blackboard=_standing_of(*said))
    (ada, _) = Report(document).standings
    assert [each.kind for each in ada.moments if each.kind in ("shift", "conditions")] == ["conditions"]
    timeline = render(document).rpartition("Positions over time")[2]
    assert "added a condition" in timeline
    assert "changed position" not in timeline
    assert "from “ada asserts”" not in timeline
