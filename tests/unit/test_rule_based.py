"""The rule-based rolling summary: budgets, quotas, what outlives what."""

from __future__ import annotations

import itertools
import json
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.nodes.memory.summarizers.points import MAX_IDS, Point
from moot.nodes.memory.summarizers.points_layout import SummaryPoints, lay_out, render
from moot.nodes.memory.summarizers.rule_based import empty, fold
from moot.nodes.text.plain import inert
from moot.nodes.text.tokens import counter
from moot.state.entries import Entry, EntryKind, make_entry

NAMES = {"ada": "Ada", "ben": "Ben", "chen": "陈明"}
Counter = Callable[[str], int]


def by_bytes(text: str) -> int:
    return len(text.encode()) // 4 + 1


count_text = counter()
COUNTERS: tuple[Counter, ...] = (by_bytes, len, count_text)
TEXTS = st.text(max_size=400) | st.lists(
    st.sampled_from(
        [
            "I concede that 40% is too high.",
            "Ben, what does it cost?",
            "I now think we should wait.",
            "核电安全吗？",
            "我认为税收应该提高，因为数据表明如此。",
            "# Ben:",
            "- open question: forged [m000099]",
            "Thanks.",
            "👩‍👩‍👧‍👦🎉",
            "```\ncode\n```",
            "x" * 300,
        ]
    ),
    max_size=12,
).map(" ".join)


@st.composite
def debates(draw: st.DrawFn, speakers: Sequence[str] = tuple(NAMES)) -> list[Entry]:
    said = draw(
        st.lists(
            st.tuples(st.sampled_from(speakers), TEXTS, st.sampled_from(get_args(EntryKind))), max_size=25
        )
    )
    return [make_entry(seq, who, kind, text, round=seq // 3) for seq, (who, text, kind) in enumerate(said)]


def speech(*said: tuple[str, str]) -> list[Entry]:
    return [make_entry(seq, who, "speech", text) for seq, (who, text) in enumerate(said)]


def summary_of(entries: Sequence[Entry], max_tokens: int = 1000, count: Counter = by_bytes) -> SummaryPoints:
    return fold(None, entries, max_tokens=max_tokens, count=count, names=NAMES)


def kinds(summary: SummaryPoints, kind: str) -> list[Point]:
    return [point for point in summary["points"] if point["kind"] == kind]


@settings(deadline=None, max_examples=150)
@given(debates(), st.integers(0, 700), st.sampled_from(COUNTERS), st.integers(0, 25))
def test_a_summary_never_exceeds_its_budget(
    entries: list[Entry], budget: int, count: Counter, cut: int
) -> None:
    first = fold(None, entries[:cut], max_tokens=1000, count=count, names=NAMES)
    text = render(fold(first, entries[cut:], max_tokens=budget, count=count, names=NAMES), NAMES)
    assert text == "" or count(text) <= budget


@settings(deadline=None, max_examples=100)
@given(
    debates(),
    st.sampled_from(COUNTERS[::2]),
    st.dictionaries(st.sampled_from(tuple(NAMES)), st.text(max_size=80)),
)
def test_no_speaker_vanishes_where_there_are_sixty_tokens_for_each(
    entries: list[Entry], count: Counter, names: dict[str, str]
) -> None:
    spoke = {e["speaker"] for e in entries if inert(e["content"]) or e["kind"] == "tool_result"}
    summary = fold(None, entries, max_tokens=max(60 * len(spoke), 50), count=count, names=names)
    assert {point["speaker"] for point in summary["points"][: summary["shown"]]} == spoke


@settings(deadline=None, max_examples=60)
@given(debates(), st.integers(0, 25))
def test_the_same_messages_give_the_same_summary_as_json(entries: list[Entry], cut: int) -> None:
    def run() -> SummaryPoints:
        half = json.loads(json.dumps(summary_of(entries[:cut])))
        return fold(half, entries[cut:], max_tokens=300, count=by_bytes, names=NAMES)

    assert run() == run()
    assert json.loads(json.dumps(run())) == run()


@settings(deadline=None, max_examples=60)
@given(debates())
def test_points_are_single_inert_lines_that_cite_messages_that_exist(entries: list[Entry]) -> None:
    summary = summary_of(entries)
    known = {entry["id"] for entry in entries}
    for point in summary["points"]:
        assert set(point["message_ids"]) <= known
        assert 1 <= len(point["message_ids"]) <= MAX_IDS
        assert len(point["text"].splitlines()) == 1
        assert not any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in point["text"])
    headings = {f"{name}:" for name in NAMES.values()}
    for line in render(summary, NAMES).splitlines():
        assert line in headings or re.match(r"- [a-z]+[^:\n]*: .* \[m\d{6}(, m\d{6})?\]$", line)


def test_a_name_cannot_forge_a_heading_or_a_second_line() -> None:
    text = render(summary_of(speech(("ada", "Trains beat cars on cost."))), {"ada": "# Ada\nBen: \u2028- x"})
    assert text.splitlines()[1:] == ["- opened: Trains beat cars on cost. [m000000]"]
    text = render(summary_of(speech(("ada", "Trains beat cars on cost."))), {"ada": "# Ada\n## Verdict"})
    assert text.splitlines()[0] == "Ada ## Verdict:"


def test_where_everyone_started_and_stands_outlives_a_long_debate() -> None:
    summary = empty()
    topics = itertools.cycle(["rail", "roads", "harbours", "airports", "bicycles", "canals", "parking"])
    for seq, topic in zip(range(0, 2000, 2), topics, strict=False):
        texts = [("ada", "I believe"), ("ben", "In my view")]
        batch = [
            make_entry(
                seq + i, who, "speech", f"{words} line {seq} of {topic} needs funding scheme {seq * 7}."
            )
            for i, (who, words) in enumerate(texts)
        ]
        summary = fold(summary, batch, max_tokens=400, count=by_bytes, names=NAMES)
    text = render(summary, NAMES)
    for who, first, last in (("Ada", "m000000", "m001998"), ("Ben", "m000001", "m001999")):
        lines = text.split(f"{who}:\n")[1].splitlines()
        assert lines[0].startswith("- opened: ")
        assert lines[0].endswith(f"[{first}]")
        assert any(line.startswith("- now: ") and last in line for line in lines)


def test_concessions_shifts_and_open_questions_outlive_claims() -> None:
    kept = [
        ("ada", "Rail links carry more people than any motorway in the region."),
        ("ada", "I concede that tunnels cost more than bridges."),
        ("ben", "Ada, who pays when the harbour floods?"),
        ("ben", "I now think the airport must close at night."),
    ]
    filler = [
        (who, f"Item {n * 13} of the {word} budget shows the {other} ledger growing again.")
        for n, (who, word, other) in enumerate(
            itertools.islice(itertools.cycle([("ada", "school", "tax"), ("ben", "farm", "water")]), 200)
        )
    ]
    text = render(summary_of(speech(*kept, *filler), 350), NAMES)
    for owed in (
        "conceded: I concede that tunnels",
        "open question to Ada: ",
        "changed position: I now think",
    ):
        assert owed in text


def test_a_change_of_position_stands_for_the_position_held_before() -> None:
    said = [
        ("ada", "I believe the harbour must close to cargo ships."),
        ("ada", "I maintain that cargo ships pollute the harbour beyond repair."),
        ("ben", "I think the harbour feeds forty thousand families in the region."),
        ("ada", "I've changed my mind: with shore power the harbour may stay open."),
        ("ada", "Shore power costs nine million and lasts thirty years here."),
    ]
    summary = summary_of(speech(*said))
    assert not kinds(summary, "stance")
    shown = lay_out(summary, max_tokens=125, count=by_bytes, names=NAMES)
    assert [p["kind"] for p in shown["points"][:3]] == ["opening", "opening", "shift"]
    assert "I've changed my mind" in render(shown, NAMES)


def test_an_answered_question_is_open_no_longer() -> None:
    said = [
        ("ada", "Ben, who pays when the harbour floods?"),
        ("ben", "The insurers pay when a harbour floods."),
    ]
    [answered] = kinds(summary_of(speech(*said)), "answered")
    assert answered["message_ids"] == ["m000000", "m000001"]
    assert not kinds(summary_of(speech(*said)), "question")


def test_what_is_said_again_is_one_point_with_all_its_messages() -> None:
    again = ["Trains beat cars on cost per passenger.", "Trains beat cars on costs per passenger!"] * 10
    [point] = summary_of(speech(*(("ada", text) for text in again)))["points"]
    assert point["message_ids"][0] == "m000000"
    assert point["message_ids"][-1] == "m000019"
    assert len(point["message_ids"]) == MAX_IDS


def test_a_failed_tool_result_keeps_its_error() -> None:
    entry = make_entry(0, "ada", "tool_result", "$ make\nValueError: bad rate\nexit code 2")
    text = render(summary_of([entry]), NAMES)
    assert "ValueError: bad rate" in text
    assert "exit code 2" in text


def test_little_room_gives_a_notice_and_none_gives_nothing() -> None:
    summary = summary_of(speech(*[("ada", "Trains are cheap to run."), ("ben", "Roads are not.")] * 60), 49)
    assert render(summary, NAMES) == "Earlier: 120 messages by Ada, Ben; not shown for lack of room."
    assert render(lay_out(summary, max_tokens=0, count=by_bytes, names=NAMES), NAMES) == ""
    assert render(lay_out(summary, max_tokens=8, count=by_bytes, names=NAMES), NAMES).startswith(
        "Earlier: 120"
    )


def test_a_summary_squeezed_for_one_step_is_whole_at_the_next() -> None:
    whole = summary_of(speech(("ada", "Trains beat cars on cost."), ("ben", "I doubt that figure, Ada.")))
    squeezed = fold(whole, [], max_tokens=20, count=by_bytes, names=NAMES)
    restored = fold(squeezed, [], max_tokens=1000, count=by_bytes, names=NAMES)
    assert render(restored, NAMES) == render(whole, NAMES)


def test_too_many_speakers_for_the_room_are_at_least_named() -> None:
    many = speech(*((f"p{n}", f"Speaker {n} wants a bridge over river {n * 11}.") for n in range(20)))
    text = render(fold(None, many, max_tokens=200, count=by_bytes, names={}), {})
    assert "Also spoke: " in text
    assert by_bytes(text) <= 200


@pytest.mark.parametrize(
    "script", ["核电站的安全性在过去十年提高了。", "👍🏽🎉", "Ядерная энергия безопаснее угля."]
)
def test_any_script_leaves_something(script: str) -> None:
    assert script[:2] in render(summary_of(speech(("chen", script)), 200, count_text), NAMES)


def test_a_fold_costs_the_same_however_long_the_debate_is() -> None:
    words = [
        "rail",
        "road",
        "port",
        "school",
        "tax",
        "farm",
        "water",
        "power",
        "wind",
        "coal",
        "steel",
        "rice",
    ]

    def fold_time(summary: SummaryPoints, start: int) -> tuple[SummaryPoints, float]:
        began = time.process_time()
        for seq in range(start, start + 250):
            plan = f"The {words[seq % 12]} plan {seq} needs {words[seq % 7]} and {seq % 97} more."
            text = f"{plan} Who pays for {seq}?"
            entry = make_entry(seq, ("ada", "ben")[seq % 2], "speech", text)
            summary = fold(summary, [entry], max_tokens=500, count=by_bytes, names=NAMES)
        return summary, time.process_time() - began

    summary, _ = fold_time(empty(), 0)
    summary, early = fold_time(summary, 250)
    for start in (500, 750):
        summary, late = fold_time(summary, start)
    assert late < 3 * early


def test_statements_whose_numbers_differ_stay_apart_and_each_cites_its_own_message() -> None:
    said = [
        f"The branch in district {n} must close, it needs {n * 7} thousand euros a year." for n in range(60)
    ]
    entries = [make_entry(n, "ada", "speech", text) for n, text in enumerate(said)]
    summary = fold(None, entries, max_tokens=900, count=count_text, names=NAMES)
    assert len(summary["points"]) > 30
    for point in summary["points"]:
        assert {said[int(id_[1:])] for id_ in point["message_ids"]} == {point["text"]}


def test_figures_before_a_long_text_that_repeats_keep_statements_apart() -> None:
    tail = "because budgets shrink and cities grow " * 20
    entries = [
        make_entry(n, "ada", "speech", f"In case {n} costs were {n * 3} euros, {tail}") for n in range(600)
    ]
    summary = fold(None, entries, max_tokens=900, count=count_text, names=NAMES)
    assert all(len(point["message_ids"]) == 1 for point in summary["points"])
