"""Judging a stored debate again: earlier, current and failed verdicts."""

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
from moot.calls.model_calls import ModelCall, Reply
from moot.cli.show_parts import verdict_parts
from moot.config.config_files import make_config
from moot.reports import render_html, render_markdown
from moot.reports.html import Report
from tests.support.fakes import FakeModel, fake_reply
from tests.support.schema_answers import criteria_of, fill_schema

TOPIC = "Should freight leave the harbour?"
RESULT_START = "No claims: "


@pytest.fixture
def debates(tmp_path: Path) -> Iterator[Debates]:
    with open_debates(str(tmp_path / "moot.sqlite")) as opened:
        yield opened


def _reply_with_solution(call: ModelCall) -> Reply:
    """Reply with the smallest valid data, and with a solution if the schema has one."""
    if call.schema is None:
        return fake_reply(call)
    fields = {"winner": "tie", "confidence": 0, "solution_markdown": "Leave by 2030."}
    response = call.schema.model_validate(fill_schema(call.schema.model_json_schema(), fields))
    return Reply(data=response.model_dump(mode="json"), model=call.model)


def test_dialogue_result_stays_if_a_later_panel_writes_no_solution(tmp_path: Path) -> None:
    ada, bo = ({"name": name, "flip_conditions": ["a count of lorries"]} for name in ("Ada", "Bo"))
    dialogue = {"aspects": ["cost"], "minirounds": 1}
    config = make_config({"protocol": "dialogue", "seed": 1, "debaters": [ada, bo], "dialogue": dialogue})
    with open_debates(
        str(tmp_path / "s.sqlite"), environment=FakeModel(_reply_with_solution).environment()
    ) as debates:
        document = debates.start(TOPIC, config).run()
        result = document["solution"][document["solution"].index(RESULT_START) :]
        debate = debates.get(document["id"])
        assert debate.judge(panel=2).verdict["solution_markdown"] == ""
        assert debate.document()["solution"] == result


def test_every_output_labels_a_placeholder_verdict(debates: Debates) -> None:
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


def _judge_model() -> FakeModel:
    """Return a model that judges as `JUDGE_REPLIES` says. Calls of other judges fail."""

    def reply(call: ModelCall) -> Reply:
        if call.purpose != "judge":
            return fake_reply(call)
        if call.model not in JUDGE_REPLIES:
            return Reply(error="no opinion", model=call.model)
        winner, scores = JUDGE_REPLIES[call.model]
        response = {
            "reasoning": f"Words of {call.model}.",
            "scores": [
                {"debater": debater, "criterion": each, "reason": "so", "citations": [], "score": score}
                for debater, score in scores.items()
                for each in criteria_of(call)
            ],
            "winner": winner,
            "confidence": 80,
        }
        return Reply(data=response, model=call.model)

    return FakeModel(reply)


JUDGE_REPLIES: dict[str, tuple[str, dict[str, float]]] = {
    "level": ("tie", {"Advocate": 6, "Skeptic": 6}),
    "torn": ("tie", {"Advocate": 7, "Skeptic": 6}),
    "close": ("Advocate", {"Advocate": 7, "Skeptic": 6}),
    "sure": ("Advocate", {"Advocate": 9, "Skeptic": 3}),
}


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Debate]:
    """A finished debate with a panel of three judges: two ties and one win of the advocate."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    judges = [{"id": each, "model": each} for each in ("level", "close")]
    config = make_config(
        {"turns": 2, "model": "m", "judge": {"panel": [*judges, {"id": "third", "model": "level"}]}}
    )
    with open_debates(str(tmp_path / "p.sqlite"), environment=_judge_model().environment()) as debates:
        yield debates.get(debates.start(TOPIC, config).run()["id"])


def _judges(views: Any) -> list[str]:
    return [prompt.judge for prompt in views]


def test_verdicts_record_the_number_of_their_judging(judged: Debate) -> None:
    judged.judge(panel=["sure", "close"])
    document = judged.document()
    assert [verdict["judging"] for verdict in document["verdicts"]] == [1, 1, 1, 2, 2]
    assert document["verdict"]["judging"] == 2
    panel = Report(document).panel
    assert (_judges(panel.verdicts), _judges(panel.earlier)) == (
        ["sure", "close"],
        ["level", "close", "third"],
    )


def test_failed_judgings_keep_the_verdict_of_the_earlier_panel(judged: Debate) -> None:
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


def test_without_judging_numbers_the_last_verdicts_form_the_panel(judged: Debate) -> None:
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


def test_panel_scores_are_means_with_the_reason_of_each_judge(judged: Debate) -> None:
    verdict = judged.document()["verdict"]
    score = verdict["scores"]["advocate"]["clarity"]
    assert score["score"] == 6.3
    assert score["reason"] == "level: so\nclose: so\nthird: so"
    assert verdict["totals"] == verdict["outcome"]["mean_scores"]
    assert verdict["flip"]["flipped"] is None
    assert verdict["model"] == "level, close"


def test_every_output_explains_a_result_that_no_judge_named(judged: Debate) -> None:
    judged.judge(panel=["torn", "torn", "level"], rule="mean")
    document = judged.document()
    assert (document["verdict"]["winner"], document["verdict"]["confidence"]) == ("advocate", None)
    for page in (render_markdown(document), _plain_text(render_html(document)), _terminal_text(document)):
        page = page.replace("\\", "")
        assert "No judge named this outcome. It is the result of the rule 'mean'." in page
        assert re.search(r"Rule mean, mean total score: Advocate 63 · Skeptic 55.6", page)
        assert "Dissenting judges: level (a tie), torn (a tie), torn-2 (a tie)" in page
        assert re.search(r"(Reasons by|[Ww]ords of|reasons of) torn", page)


def test_report_shows_agreement_figures_that_are_zero(judged: Debate) -> None:
    document = judged.document()
    document["agreement"] = {**document["verdict"]["agreement"], "kappa": 0.0, "alpha": 0.0, "failed": 0}
    panel = Report(document).panel
    assert panel.alpha == 0
    assert panel.others == (("Mean pairwise κ of the judges", "0.00"), ("Unanimous", "no"))
    assert "Mean pairwise κ of the judges: 0.00." in render_markdown(document)


def test_report_uses_the_rubric_of_a_later_judging(judged: Debate) -> None:
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
    assert "Fairness to others" in _terminal_text(document)


def test_terminal_verdict_shows_the_token_count_of_each_debater(judged: Debate) -> None:
    lengths = judged.document()["verdict"]["lengths"]
    row = rf"tokens said +{lengths['advocate']} +{lengths['skeptic']}"
    assert re.search(row, _terminal_text(judged.document()))


def _terminal_text(document: Mapping[str, Any]) -> str:
    console = Console(record=True, width=200, file=StringIO())
    console.print(*verdict_parts(document), sep="\n")
    return console.export_text()


def _plain_text(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())
