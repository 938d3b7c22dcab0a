"""Calibration on human-judged debates: a synthetic file always, the published data where it is at hand."""

from __future__ import annotations

import json
import os
from itertools import combinations
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.nodes.judging.agreement import krippendorff_alpha
from moot.nodes.judging.calibration import (
    PUBLISHED,
    Calibration,
    Session,
    agreement_with_panel,
    benchmark,
    calibrate,
    human_calibration,
    panel_choice,
    read_sessions,
)
from moot.state.errors import InputError

DATA = Path(
    os.environ.get("MOOT_HUMAN_DEBATES")
    or Path(__file__).parents[3] / "shared" / "data" / "human-judged-debates.jsonl"
)
needs_data = pytest.mark.skipif(
    not DATA.is_file(), reason=f"no human-judged debates at {DATA}: set MOOT_HUMAN_DEBATES to the file"
)


def row(name: str, correct: int, final: list[float] | None, **changes: Any) -> dict[str, Any]:
    later: dict[str, list[float]] = changes.pop("later", {})
    sides: tuple[int, ...] = changes.pop("sides", (0, 1))
    speeches = [
        {"kind": "speech", "round": 1, "side": s, "speaker": f"e{s}", "text": f"for {s}"} for s in sides
    ]
    live = [
        {
            "kind": "judge",
            "round": 2,
            "speaker": "live",
            "dist": final or [0.5, 0.5],
            "text": "",
            "end": bool(final),
        }
    ]
    offline = [
        {"kind": "offline", "round": 3, "speaker": judge, "dist": dist} for judge, dist in later.items()
    ]
    base = {
        "name": name,
        "question": f"about {name.rpartition('-')[0]}?",
        "answers": ["yes", "no"],
        "correct": correct,
        "setting": {"isHuman": True, "isDebate": len(sides) > 1},
        "in_paper": True,
        "status": "Complete",
        "final": final,
        "turns": [*speeches, *live, *offline],
    }
    return {**base, **changes}


@pytest.fixture
def sessions(tmp_path: Path) -> list[Session]:
    rows = [
        row("the-sea-1", 0, [0.9, 0.1], later={"ann": [0.8, 0.2], "bea": [0.3, 0.7]}),
        row("the-sea-2", 1, [0.6, 0.4], later={"ann": [0.6, 0.4]}, answers=["no", "yes"]),
        row("the-hill-1", 1, [0.2, 0.8], sides=(0,)),
        row("the-hill-2", 0, [0.5, 0.5], sides=(0,), later={"ann": [0.5, 0.5]}),
        row("the-moor-1", 0, None, status="InProgress", in_paper=False),
    ]
    path = tmp_path / "judged.jsonl"
    path.write_text("\n\n".join(json.dumps(one) for one in rows) + "\n", encoding="utf-8")
    return read_sessions(path)


def select(sessions: list[Session], **wanted: bool | None) -> list[Session]:
    """Return the sessions with these attributes; `None` matches any."""
    return [
        session
        for session in sessions
        if all(value is None or getattr(session, key) == value for key, value in wanted.items())
    ]


def of_all_judges(sessions: list[Session]) -> Calibration:
    return calibrate([s.probability_right(judgement) for s in sessions for judgement in s.judgements])


class InterJudge(NamedTuple):
    """How far people agree who judged the same."""

    units: int
    agreeing: int
    pairs: int
    unanimous: int
    alpha: float


def inter_judge(sessions: list[Session], unit: str = "session") -> InterJudge:
    """Compare choices on the same session, or on the same question and answers.

    Even splits are no choice; a judge who met a question in several sessions counts once, with the first.
    """
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for session in sessions:
        ordered, story = sorted(session.answers), session.name.rpartition("-")[0]
        key = (session.name,) if unit == "session" else (story, session.question, *ordered)
        for judgement in session.judgements:
            if judgement.choice is not None:
                answer = session.answers[judgement.choice]
                place = judgement.choice if unit == "session" else ordered.index(answer)
                found.setdefault(key, {}).setdefault(judgement.judge, place)
    choices = [list(of_unit.values()) for of_unit in found.values() if len(of_unit) > 1]
    pairs = [a == b for of_unit in choices for a, b in combinations(of_unit, 2)]
    unanimous = sum(len(set(of_unit)) == 1 for of_unit in choices)
    return InterJudge(
        len(choices), sum(pairs), len(pairs), unanimous, round(krippendorff_alpha(choices) or 0, 4)
    )


def counts(found: Calibration) -> tuple[int, int]:
    return found["accuracy"]["k"], found["accuracy"]["n"]


def test_a_session_knows_who_judged_and_who_argued_what(sessions: list[Session]) -> None:
    first = sessions[0]
    assert (first.name, first.debate) == ("the-sea-1", True)
    assert [(judgement.judge, judgement.live) for judgement in first.judgements] == [
        ("live", True),
        ("ann", False),
        ("bea", False),
    ]
    assert [speech.text for speech in first.speeches] == ["for 0", "for 1"]
    assert [(s.correct, s.speeches[0].side) for s in sessions[2:4]] == [(1, 0), (0, 0)]


def test_an_unfinished_session_has_no_judgement(sessions: list[Session]) -> None:
    assert sessions[4].judgements == ()


def test_sessions_are_selected_by_setting(sessions: list[Session]) -> None:
    assert [s.name for s in select(sessions, human=True, debate=False)] == ["the-hill-1", "the-hill-2"]
    assert len(select(sessions, in_paper=True)) == 4


def test_an_even_split_is_not_right(sessions: list[Session]) -> None:
    assert counts(human_calibration(select(sessions, debate=False))) == (1, 2)


def test_judges_who_came_later_count_where_asked_for(sessions: list[Session]) -> None:
    debates = select(sessions, debate=True)
    assert counts(human_calibration(debates)) == (1, 2)
    assert counts(of_all_judges(debates)) == (2, 5)


def test_judges_are_compared_within_a_session(sessions: list[Session]) -> None:
    found = inter_judge(sessions)
    assert (found.units, found.unanimous) == (2, 1)
    assert (found.agreeing, found.pairs) == (2, 4)


def test_judges_are_compared_over_sessions_on_a_question_whatever_the_order_of_its_answers(
    sessions: list[Session],
) -> None:
    found = inter_judge(sessions, "question")
    # live and ann said "yes", bea "no" on the same question; each counts once.
    assert (found.units, found.agreeing, found.pairs) == (1, 1, 3)


def test_a_judge_is_measured_beside_the_people(sessions: list[Session]) -> None:
    found = benchmark({"the-sea-1": (0.7, 0.3), "the-hill-1": (0.9, 0.1), "unknown": (1, 0)}, sessions)
    assert found["sessions"] == 2
    assert counts(found["judge"]) == (1, 2)
    assert counts(found["humans"]) == (2, 2)
    assert found["panel"]["agreement"]["k"] == 1


def test_an_undecided_panel_is_left_out(sessions: list[Session]) -> None:
    assert panel_choice(sessions[3]) is None
    found = agreement_with_panel({"the-hill-2": 0, "the-sea-1": None, "the-sea-2": 0}, sessions)
    assert (found["agreement"]["n"], found["undecided"]) == (1, 2)


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@settings(deadline=None)
@given(ps=probabilities)
def test_scores_are_their_definitions(ps: list[float]) -> None:
    found = calibrate(ps)
    n = len(ps)
    assert found["brier"] == pytest.approx(sum((p - 1) ** 2 for p in ps) / n)
    assert found["log_score"] == pytest.approx(sum(log2(1 / max(p, 1e-6)) for p in ps) / n)
    assert sum(one["n"] for one in found["bins"]) == n
    assert 0 <= (found["ece"] or 0) <= 0.5 + 0.5


@settings(deadline=None)
@given(ps=probabilities, bins=st.integers(1, 12))
def test_the_calibration_error_is_that_of_a_naive_binning(ps: list[float], bins: int) -> None:
    edges = [0.5 + at / (2 * bins) for at in range(bins + 1)]
    found = calibrate(ps, bins)
    error = 0.0
    for one, low in zip(found["bins"], edges, strict=False):
        assert one["low"] == pytest.approx(low)
        if one["confidence"] is None or one["accuracy"] is None:
            assert one["n"] == 0
            continue
        assert one["low"] - 1e-9 <= one["confidence"] <= one["high"] + 1e-9
        error += one["n"] * abs(one["accuracy"] - one["confidence"]) / len(ps)
    assert found["ece"] == pytest.approx(error)


def test_a_judge_who_is_as_sure_as_it_is_right_is_calibrated() -> None:
    assert calibrate([0.8] * 80 + [0.2] * 20)["ece"] == pytest.approx(0)


def test_a_judge_who_is_sure_and_wrong_is_not() -> None:
    found = calibrate([0.0, 0.0])
    assert (found["ece"], found["brier"]) == (1, 1)
    assert found["log_score"] == pytest.approx(log2(1e6))


def test_no_judgements_have_no_score() -> None:
    found = calibrate([])
    assert (found["brier"], found["log_score"], found["ece"], found["accuracy"]["rate"]) == (None,) * 4


@pytest.mark.parametrize("ps", [[1.1], [float("nan")]])
def test_what_is_no_probability_is_refused(ps: list[float]) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        calibrate(ps)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"text"',
        json.dumps({"name": "x-1"}),
        json.dumps(row("x-1", 2, None)),
        json.dumps(row("x-1", 0, [1.0])),
    ],
    ids=["torn", "list", "text", "no fields", "third answer", "one probability"],
)
def test_a_line_that_is_no_session_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "judged.jsonl"
    path.write_text(json.dumps(row("fine-1", 0, None)) + "\n" + line, encoding="utf-8")
    with pytest.raises(InputError, match=r"judged\.jsonl:2: not a human-judged debate"):
        read_sessions(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_sessions(tmp_path / "nothing.jsonl")


@pytest.fixture(scope="module")
def published() -> list[Session]:
    return read_sessions(DATA)


@needs_data
def test_the_data_hold_the_sessions_that_the_figures_below_come_from(published: list[Session]) -> None:
    assert len(published) == 421
    settings = [(human, debate) for human in (True, False) for debate in (True, False)]
    sizes = [len(select(published, human=human, debate=debate, in_paper=True)) for human, debate in settings]
    assert sizes == [104, 64, 59, 49]


@needs_data
@pytest.mark.parametrize(
    ("setting", "in_paper", "k", "n"),
    [
        ("debate", True, 86, 104),
        ("consultancy", True, 49, 64),
        ("debate", None, 126, 148),
        ("consultancy", None, 54, 73),
    ],
)
def test_live_judges_of_people_reach_the_published_accuracy(
    published: list[Session], setting: str, in_paper: bool | None, k: int, n: int
) -> None:
    # The paper has 155 debates and more consultancies; this is the part of them that the file holds, so the
    # published figure has to lie in the interval, and within 3 points.
    found = human_calibration(select(published, human=True, debate=setting == "debate", in_paper=in_paper))
    accuracy = found["accuracy"]
    assert counts(found) == (k, n)
    assert accuracy["low"] < PUBLISHED[setting] < accuracy["high"]
    assert accuracy["rate"] == pytest.approx(PUBLISHED[setting], abs=0.03)


@needs_data
def test_all_judges_of_the_papers_debates_reach_eighty_four_percent(published: list[Session]) -> None:
    found = of_all_judges(select(published, human=True, debate=True, in_paper=True))
    assert counts(found) == (145, 173)
    assert round(found["accuracy"]["rate"] or 0, 2) == PUBLISHED["debate"]


@needs_data
def test_live_judges_of_all_consultancies_reach_seventy_four_percent(published: list[Session]) -> None:
    found = human_calibration(select(published, human=True, debate=False))
    assert round(found["accuracy"]["rate"] or 0, 2) == PUBLISHED["consultancy"]


@needs_data
def test_debate_is_better_judged_than_consultancy_by_every_score(published: list[Session]) -> None:
    debate, consultancy = (
        human_calibration(select(published, human=True, debate=d, in_paper=True)) for d in (True, False)
    )
    figures = [
        [round(found[key] or 0, 4) for key in ("brier", "log_score", "ece")]
        for found in (debate, consultancy)
    ]
    assert figures == [[0.152, 0.8462, 0.1401], [0.1845, 0.8883, 0.1514]]


@needs_data
@pytest.mark.parametrize(
    ("only", "unit", "expected"),
    [
        ({"in_paper": True}, "session", (71, 58, 82, 51, 0.439)),
        ({"in_paper": True, "human": True, "debate": True}, "session", (63, 52, 74, 45, 0.4235)),
        ({"in_paper": True}, "question", (87, 215, 309, 55, 0.4331)),
        ({}, "session", (122, 106, 142, 91, 0.4958)),
    ],
    ids=["paper", "paper's human debates", "paper, by question", "all"],
)
def test_human_judges_agree_moderately(published: list[Session], only: Any, unit: Any, expected: Any) -> None:
    assert inter_judge(select(published, **only), unit) == expected


@needs_data
def test_the_recorded_choices_are_those_of_the_final_probabilities(published: list[Session]) -> None:
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    recorded = {one["name"]: one["judges"] for one in rows if "judges" in one}
    for session in published:
        mine = {"online" if j.live else j.judge: j.choice for j in session.judgements if j.choice is not None}
        theirs = recorded.get(session.name, {})
        assert all(theirs[judge] == choice for judge, choice in mine.items() if theirs)


def test_what_nobody_said_is_none_and_not_0() -> None:
    (low, high) = calibrate([0.9], bins=2)["bins"]
    assert (low["n"], low["confidence"], low["accuracy"]) == (0, None, None)
    assert (high["n"], high["confidence"], high["accuracy"]) == (1, 0.9, 1.0)
