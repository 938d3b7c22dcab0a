"""Judging a stored debate again: kept verdicts, replaced verdicts, and verdicts that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from moot.api import Debate, Debates, open_debates
from moot.calls.effects import ModelCall, Reply
from moot.cli.show_parts import verdict_parts
from moot.reports import render_html, render_markdown
from moot.reports.html import Report
from moot.state.config.config_files import make_config
from tests.support.fakes import FakeModel, answer
from tests.support.schema_answers import criteria_of, filled

TOPIC = "Should freight leave the harbour?"
BROUGHT = "No claims: "


@pytest.fixture
def debates(tmp_path: Path) -> Iterator[Debates]:
    with open_debates(str(tmp_path / "moot.sqlite")) as opened:
        yield opened


def _solves(call: ModelCall) -> Reply:
    """Answer with the smallest instance, and write a solution where one can be written."""
    if call.schema is None:
        return answer(call)
    fields = {"winner": "tie", "confidence": 0, "solution_markdown": "Leave by 2030."}
    said = call.schema.model_validate(filled(call.schema.model_json_schema(), fields))
    return Reply(data=said.model_dump(mode="json"), model=call.model)


def test_what_a_dialogue_brought_outlives_judges_who_are_asked_for_no_solution(tmp_path: Path) -> None:
    ada, bo = ({"name": name, "flip_conditions": ["a count of lorries"]} for name in ("Ada", "Bo"))
    dialogue = {"aspects": ["cost"], "minirounds": 1}
    config = make_config({"protocol": "dialogue", "seed": 1, "debaters": [ada, bo], "dialogue": dialogue})
    with open_debates(str(tmp_path / "s.sqlite"), environment=FakeModel(_solves).environment()) as debates:
        document = debates.start(TOPIC, config).run()
        brought = document["solution"][document["solution"].index(BROUGHT) :]
        debate = debates.get(document["id"])
        assert debate.judge(panel=2).verdict["solution_markdown"] == ""
        assert debate.document()["solution"] == brought


def test_a_placeholder_says_so_wherever_a_winner_would_stand(debates: Debates) -> None:
    debate = debates.get(debates.start(TOPIC, make_config({"turns": 2})).run()["id"])
    verdict = debate.judge(panel=2).verdict
    assert verdict["placeholder"]
    assert (verdict["winner"], verdict["confidence"]) == ("tie", None)
    document = debate.document()
    assert all(each["placeholder"] for each in (document["verdict"], *document["verdicts"]))
    screen = StringIO()
    Console(file=screen).print(*verdict_parts(document))
    for shown in (screen.getvalue(), render_markdown(document), unescape(render_html(document))):
        assert re.search("placeholder: no model judged this", shown, re.IGNORECASE)
        assert "a tie" not in shown.lower()


def _bench() -> FakeModel:
    """Judges who give each debater one score on everything and name a winner; a model without any fails."""

    def reply(call: ModelCall) -> Reply:
        if call.purpose != "judge":
            return answer(call)
        if call.model not in SAYS:
            return Reply(error="no opinion", model=call.model)
        winner, scores = SAYS[call.model]
        opinion = {
            "reasoning": f"Words of {call.model}.",
            "scores": [
                {"debater": who, "criterion": each, "reason": "so", "citations": [], "score": score}
                for who, score in scores.items()
                for each in criteria_of(call)
            ],
            "winner": winner,
            "confidence": 80,
        }
        return Reply(data=opinion, model=call.model)

    return FakeModel(reply)


SAYS: dict[str, tuple[str, dict[str, float]]] = {
    "level": ("tie", {"Advocate": 6, "Skeptic": 6}),
    "torn": ("tie", {"Advocate": 7, "Skeptic": 6}),
    "close": ("Advocate", {"Advocate": 7, "Skeptic": 6}),
    "sure": ("Advocate", {"Advocate": 9, "Skeptic": 3}),
}


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Debate]:
    """A debate that a panel of three judged as it was held: two ties, one for the advocate."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    seats = [{"id": each, "model": each} for each in ("level", "close")]
    config = make_config(
        {"turns": 2, "model": "m", "judge": {"panel": [*seats, {"id": "third", "model": "level"}]}}
    )
    with open_debates(str(tmp_path / "p.sqlite"), environment=_bench().environment()) as debates:
        yield debates.get(debates.start(TOPIC, config).run()["id"])


def _judges(views: Any) -> list[str]:
    return [prompt.judge for prompt in views]


def test_verdicts_and_decision_say_which_judging_they_belong_to(judged: Debate) -> None:
    judged.judge(panel=["sure", "close"])
    document = judged.document()
    assert [verdict["judging"] for verdict in document["verdicts"]] == [1, 1, 1, 2, 2]
    assert document["verdict"]["judging"] == 2
    panel = Report(document).panel
    assert (_judges(panel.verdicts), _judges(panel.earlier)) == (
        ["sure", "close"],
        ["level", "close", "third"],
    )


def test_judgings_that_failed_leave_the_panel_of_the_verdict_in_force(judged: Debate) -> None:
    assert judged.judge(panel=["broken", "gone"]).failed
    assert judged.judge(panel=["gone"]).failed
    document = judged.document()
    panel = Report(document).panel
    assert _judges(panel.verdicts) == ["level", "close", "third"]
    assert panel.earlier == ()
    assert _judges(panel.later) == ["broken", "gone", "gone"]
    for page in (render_markdown(document), render_html(document)):
        assert "Later judgings that failed" in page
        assert "Earlier verdicts" not in page


def test_without_numbers_the_last_judges_are_the_panel(judged: Debate) -> None:
    judged.judge(panel=["sure", "close"])
    document = judged.document()
    for verdict in (*document["verdicts"], document["verdict"]):
        del verdict["judging"]
    panel = Report(document).panel
    assert (_judges(panel.verdicts), _judges(panel.earlier)) == (
        ["sure", "close"],
        ["level", "close", "third"],
    )
    document["verdicts"].append({**document["verdicts"][-1], "judging": 1, "judge": "new"})
    panel = Report(document).panel
    assert (_judges(panel.verdicts), _judges(panel.later)) == (["sure", "close"], ["new"])


def test_a_panel_s_scores_are_the_means_of_its_judges_each_reason_under_its_judge(judged: Debate) -> None:
    verdict = judged.document()["verdict"]
    given = verdict["scores"]["advocate"]["clarity"]
    assert given["score"] == 6.3
    assert given["reason"] == "level: so\nclose: so\nthird: so"
    assert verdict["totals"] == verdict["outcome"]["mean_scores"]
    assert verdict["flip"]["flipped"] is None
    assert verdict["model"] == "level, close"


def test_an_outcome_that_no_judge_named_is_explained_wherever_it_is_shown(judged: Debate) -> None:
    judged.judge(panel=["torn", "torn", "level"], rule="mean")
    document = judged.document()
    assert (document["verdict"]["winner"], document["verdict"]["confidence"]) == ("advocate", None)
    for page in (render_markdown(document), _words(render_html(document)), _screen(document)):
        page = page.replace("\\", "")
        assert "No judge named this outcome. It is the result of the rule 'mean'." in page
        assert re.search(r"Rule mean, mean total score: Advocate 63 · Skeptic 55.6", page)
        assert "Dissenting judges: level (a tie), torn (a tie), torn-2 (a tie)" in page
        assert re.search(r"(Reasons by|[Ww]ords of|reasons of) torn", page)


def test_figures_of_agreement_are_shown_when_they_are_0(judged: Debate) -> None:
    document = judged.document()
    document["agreement"] = {**document["verdict"]["agreement"], "kappa": 0.0, "alpha": 0.0, "failed": 0}
    panel = Report(document).panel
    assert panel.alpha == 0
    assert panel.others == (("Mean pairwise κ of the judges", "0.00"), ("Unanimous", "no"))
    assert "Mean pairwise κ of the judges: 0.00." in render_markdown(document)


def test_a_rubric_given_for_one_judging_is_known_to_the_report(judged: Debate) -> None:
    ends = {"scale_min": 1, "scale_max": 5}
    judged.judge(
        rubric={"name": "own", "criteria": [{"id": "fair_play", "name": "Fairness to others", **ends}]},
        panel=["close"],
    )
    document = judged.document()
    prompt = Report(document).verdict
    assert prompt is not None
    (row,) = prompt.criteria
    assert (row.name, [score.share for score in row.scores]) == ("Fairness to others", [100, 100])
    assert "Fairness to others" in _screen(document)


def test_length_stands_beside_the_score_on_the_screen(judged: Debate) -> None:
    lengths = judged.document()["verdict"]["lengths"]
    row = rf"tokens said +{lengths['advocate']} +{lengths['skeptic']}"
    assert re.search(row, _screen(judged.document()))


def _screen(document: Mapping[str, Any]) -> str:
    console = Console(record=True, width=200, file=StringIO())
    console.print(*verdict_parts(document), sep="\n")
    return console.export_text()


def _words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())
