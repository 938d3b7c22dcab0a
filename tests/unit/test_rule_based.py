"""Rule-based rolling summary: budgets, shares of the speakers, and priorities of points."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from moot.memory.summarizers.rule_based import SummaryPoints, empty, fold, layout_points, render
from moot.state.entries import Entry, EntryKind, make_entry
from moot.text.plain_text import sanitize_line
from moot.text.tokens import counter

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


def test_entries_of_moot_itself_are_not_summarized() -> None:
    moot_entry = make_entry(1, "moot", "context", "Options:\n- B: everything in-house from 1 April")
    speech_entry = make_entry(2, "ada", "speech", "The covenant rules out seven own technicians.")
    summary = fold(None, [moot_entry, speech_entry], max_tokens=400, count=count_text, names=NAMES)
    assert render(summary, NAMES) == "Ada:\n- The covenant rules out seven own technicians. [m000002]"
    assert summary["covers_through_seq"] == 2


@st.composite
def debates(draw: st.DrawFn, speakers: Sequence[str] = tuple(NAMES)) -> list[Entry]:
    messages = draw(
        st.lists(
            st.tuples(st.sampled_from(speakers), TEXTS, st.sampled_from(get_args(EntryKind))), max_size=25
        )
    )
    return [
        make_entry(seq, who, kind, text, round=seq // 3) for seq, (who, text, kind) in enumerate(messages)
    ]


def speech(*said: tuple[str, str]) -> list[Entry]:
    return [make_entry(seq, who, "speech", text) for seq, (who, text) in enumerate(said)]


def summary_of(entries: Sequence[Entry], max_tokens: int = 1000, count: Counter = by_bytes) -> SummaryPoints:
    return fold(None, entries, max_tokens=max_tokens, count=count, names=NAMES)


@settings(deadline=None, max_examples=60)
@given(debates(), st.integers(0, 700), st.sampled_from(COUNTERS), st.integers(0, 25))
def test_a_summary_never_exceeds_its_budget(
    entries: list[Entry], budget: int, count: Counter, cut: int
) -> None:
    first = fold(None, entries[:cut], max_tokens=1000, count=count, names=NAMES)
    text = render(fold(first, entries[cut:], max_tokens=budget, count=count, names=NAMES), NAMES)
    assert text == "" or count(text) <= budget


@settings(deadline=None, max_examples=50)
@given(
    debates(),
    st.sampled_from(COUNTERS[::2]),
    st.dictionaries(st.sampled_from(tuple(NAMES)), st.text(max_size=80)),
)
def test_sixty_tokens_per_speaker_keep_every_speaker(
    entries: list[Entry], count: Counter, names: dict[str, str]
) -> None:
    spoke = {e["speaker"] for e in entries if sanitize_line(e["content"]) or e["kind"] == "tool_result"}
    summary = fold(None, entries, max_tokens=max(60 * len(spoke), 50), count=count, names=names)
    assert {point["speaker"] for point in summary["points"][: summary["shown"]]} == spoke


@settings(deadline=None, max_examples=60)
@given(debates(), st.integers(0, 25))
def test_a_summary_is_deterministic_and_survives_json(entries: list[Entry], cut: int) -> None:
    def run() -> SummaryPoints:
        half = json.loads(json.dumps(summary_of(entries[:cut])))
        return fold(half, entries[cut:], max_tokens=300, count=by_bytes, names=NAMES)

    assert run() == run()
    assert json.loads(json.dumps(run())) == run()


@settings(deadline=None, max_examples=60)
@given(debates())
def test_points_are_single_lines_that_cite_existing_messages(entries: list[Entry]) -> None:
    summary = summary_of(entries)
    known = {entry["id"] for entry in entries}
    for point in summary["points"]:
        assert set(point["message_ids"]) <= known
        assert len(point["message_ids"]) == 1
        assert len(point["text"].splitlines()) == 1
        assert not any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in point["text"])
    headings = {f"{name}:" for name in NAMES.values()}
    for line in render(summary, NAMES).splitlines():
        assert line in headings or re.match(r"- .* \[m\d{6}\]$", line)


def test_a_name_cannot_forge_a_heading_or_a_second_line() -> None:
    text = render(summary_of(speech(("ada", "Trains beat cars on cost."))), {"ada": "# Ada\nBen: \u2028- x"})
    assert text.splitlines()[1:] == ["- Trains beat cars on cost. [m000000]"]
    text = render(summary_of(speech(("ada", "Trains beat cars on cost."))), {"ada": "# Ada\n## Verdict"})
    assert text.splitlines()[0] == "Ada ## Verdict:"


def long_debate(turns: int, batch: int, max_tokens: int = 600) -> SummaryPoints:
    """Fold a debate in batches. Ada makes a new point in each message, and Ben only agrees."""
    plans = ("rail", "roads", "harbours", "airports", "bicycles", "canals", "parking")
    messages = [
        ("ada", f"LedgerLine {n} of {plans[n % 7]} needs the funding scheme {n * 7} and no other.")
        if n % 2
        else ("ben", "Okay, thank you. Right.")
        for n in range(turns)
    ]
    summary, entries = empty(), speech(*messages)
    for start in range(0, turns, batch):
        new = entries[start : start + batch]
        summary = fold(summary, new, max_tokens=max_tokens, count=by_bytes, names=NAMES)
    return summary


@pytest.mark.parametrize("batch", [1000, 50, 7])
def test_a_long_debate_is_covered_evenly_for_any_batch_size(batch: int) -> None:
    summary = long_debate(1000, batch)
    points = summary["points"][: summary["shown"]]
    fifths = [int(point["message_ids"][0][1:]) // 200 for point in points]
    assert min(fifths.count(n) for n in range(5)) >= 0.12 * len(points)


def test_a_summary_omits_mere_agreement() -> None:
    summary = long_debate(200, 50)
    agreements = [point for point in summary["points"][: summary["shown"]] if point["speaker"] == "ben"]
    assert len(agreements) == 1  # every speaker is kept
    assert summary["shown"] > 8


def test_a_summary_prefers_new_points_to_repetitions() -> None:
    again = [("ada", "Trains beat cars on cost per passenger and mile.")] * 9
    other = ("ada", "Ferries to the northern islands sank twice in winter storms.")
    summary = summary_of(speech(*again, other, *again), 70)
    text = render(summary, NAMES)
    assert text.count("Trains") == 1
    assert "northern islands" in text


def test_the_number_of_stored_points_is_bounded() -> None:
    summary = long_debate(2000, 50, 400)
    assert len(summary["points"]) <= 100
    assert len(json.dumps(summary)) < 40_000


def test_a_failed_tool_result_keeps_its_error() -> None:
    entry = make_entry(0, "ada", "tool_result", "$ make\nValueError: bad rate\nexit code 2")
    text = render(summary_of([entry]), NAMES)
    assert "ValueError: bad rate" in text
    assert "exit code 2" in text


def test_a_tiny_budget_gives_a_notice_and_a_zero_budget_gives_nothing() -> None:
    summary = summary_of(speech(*[("ada", "Trains are cheap to run."), ("ben", "Roads are not.")] * 60), 49)
    assert render(summary, NAMES) == "Earlier: 120 messages by Ada, Ben; omitted because of the token limit."
    assert render(layout_points(summary, max_tokens=0, count=by_bytes, names=NAMES), NAMES) == ""
    assert render(layout_points(summary, max_tokens=8, count=by_bytes, names=NAMES), NAMES).startswith(
        "Earlier: 120"
    )


def test_a_truncated_summary_is_restored_when_tokens_are_available_again() -> None:
    whole = summary_of(speech(("ada", "Trains beat cars on cost."), ("ben", "I doubt that figure, Ada.")))
    squeezed = fold(whole, [], max_tokens=20, count=by_bytes, names=NAMES)
    restored = fold(squeezed, [], max_tokens=1000, count=by_bytes, names=NAMES)
    assert render(restored, NAMES) == render(whole, NAMES)


def test_speakers_without_tokens_for_points_are_at_least_named() -> None:
    many = speech(*((f"p{n}", f"Speaker {n} wants a bridge over river {n * 11}.") for n in range(20)))
    text = render(fold(None, many, max_tokens=200, count=by_bytes, names={}), {})
    assert "Also spoke: " in text
    assert by_bytes(text) <= 200


@pytest.mark.parametrize(
    "script", ["核电站的安全性在过去十年提高了。", "👍🏽🎉", "Ядерная энергия безопаснее угля."]
)
def test_text_in_any_script_is_summarized(script: str) -> None:
    assert script[:2] in render(summary_of(speech(("chen", script)), 200, count_text), NAMES)


def test_the_time_of_a_fold_does_not_grow_with_the_debate() -> None:
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
        for seq in range(start, start + 120):
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
