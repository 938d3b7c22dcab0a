"""Contents of reports: every decision, score, claim and card of the debate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debates, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.config.rubrics import shipped_rubrics
from moot.documents import DebateDocument
from moot.reports import render_html, render_markdown
from moot.reports.html import Report
from moot.reports.markdown import plain
from tests.support.fakes import FakeModel, fake_reply
from tests.support.personas import STATEMENTS, ScriptedDebaters, scripted_debaters
from tests.support.schema_answers import criteria_of

TOPIC = "Should freight leave the harbour? Night trains, barges, levy and dredging are in dispute."
DEBATE = shipped_rubrics()["debate"]


def _run_debate(debates: Debates, **config: Any) -> DebateDocument:
    return debates.start(TOPIC, make_config({"seed": 1, **config})).run()


@pytest.fixture
def debates(tmp_path: Path) -> Any:
    with open_debates(str(tmp_path / "moot.sqlite")) as opened:
        yield opened


@pytest.fixture
def run_judged_debate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., DebateDocument]:
    """Return a function that runs a debate whose judge model names the given winner."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")

    def run(winner: str, **config: Any) -> DebateDocument:
        def reply(call: ModelCall) -> Reply:
            if call.purpose != "judge":
                return fake_reply(call)
            details = {"reason": "so it was", "citations": ["m000001"]}
            scores = [
                {"debater": debater, "criterion": each, "score": score, **details}
                for debater, score in (("Advocate", 4.5), ("Skeptic", 3.25))
                for each in criteria_of(call)
            ]
            response = {"reasoning": "weighed", "scores": scores, "winner": winner, "confidence": 70}
            response["despite_scores"] = "" if winner == "Advocate" else "Its last point outweighed the rest."
            return Reply(data=response, model=call.model)

        environment = FakeModel(reply).environment()
        with open_debates(str(tmp_path / "judged.sqlite"), environment=environment) as debates:
            return _run_debate(debates, model="m", **config)

    return run


@pytest.mark.parametrize("winner", ["Advocate", "Skeptic", "tie", "synthesis"])
def test_reports_show_the_judges_decision(
    run_judged_debate: Callable[..., DebateDocument], winner: str
) -> None:
    document = run_judged_debate(winner, turns=4)
    verdict = document["verdict"]
    assert verdict["winner"] == winner.lower()
    names = {"advocate": "Advocate wins", "skeptic": "Skeptic wins", "tie": "A tie"}
    expected = {**names, "synthesis": "A synthesis of several"}[verdict["winner"]]
    view = Report(document).verdict
    assert view is not None
    assert view.headline == expected
    assert view.flipped is verdict["flip"]["flipped"]
    for page in (render_markdown(document), render_html(document)):
        assert expected in page
        assert f"{verdict['totals']['advocate']:,.2f}".rstrip("0").rstrip(".") in page
        for criterion in DEBATE.criteria:
            assert criterion.name in page


def test_scores_are_listed_by_criterion_on_the_rubrics_scale(
    run_judged_debate: Callable[..., DebateDocument],
) -> None:
    ends = {"scale_min": 1, "scale_max": 5}
    rubric = {"name": "own", "criteria": [{"id": "fair_play", "name": "Fairness", **ends}]}
    document = run_judged_debate("tie", turns=2, judge={"rubric": rubric})
    view = Report(document).verdict
    assert view is not None
    (row,) = view.criteria
    assert row.name == "Fairness"
    for score in row.scores:
        recorded = document["verdict"]["scores"][score.person.id]["fair_play"]
        assert score.value == recorded["score"]
        assert score.citations == tuple(recorded["citations"])
        assert score.reasoning == recorded["reason"] != ""
        assert score.share == round(100 * (recorded["score"] - 1) / 4)


def test_the_panel_lists_earlier_verdicts_separately(debates: Debates) -> None:
    document = _run_debate(debates, turns=2, judge={"panel": [{"id": "one"}, {"id": "two"}, {"id": "three"}]})
    panel = Report(document).panel
    assert [one.judge for one in panel.verdicts] == ["one", "two", "three"]
    assert panel.earlier == ()
    debate = debates.get(document["id"])
    debate.judge(panel=2)
    report = Report(debate.document())
    assert len(report.panel.verdicts) == 2
    assert [one.judge for one in report.panel.earlier] == ["one", "two", "three"]
    page = render_html(debate.document())
    assert "3 from earlier judgings" in page
    assert "## Earlier verdicts" in render_markdown(debate.document())


def test_a_dialogue_report_shows_claims_and_crux_cards(tmp_path: Path) -> None:
    pair = ("Ada Quay", "Bob", STATEMENTS[0])
    model = ScriptedDebaters({"respond": (pair,)}, resolved=frozenset({STATEMENTS[0]}))
    config: DebateConfig = scripted_debaters(3, dialogue={"aspects": ["freight"]})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        document = debates.start(TOPIC, config).run()
    names = {debater["id"]: debater["name"] for debater in document["config"]["debaters"]}
    (card,), standing = document["blackboard"]["cards"], document["blackboard"]["standing"]
    (claim,) = [each for each in standing["claims"] if each["was_disputed"] and each["id"] != "p000"]
    assert (card["resolved"], claim["status"], claim["card"]) == (True, "settled", card["id"])
    page = render_markdown(document)
    assert f"### {plain(card['question'])}\n\nResolved, {card['type']} (" in page
    for debater_id, side in card["sides"].items():
        assert f"- {names[debater_id]}: **{side['answer']}**." in page
    assert f"- **{plain(claim['text'])}** settled: yes; Ada Quay yes (" in page
    assert f"  - New dispute: {plain(claim['text'])}" in page


def test_reports_list_errors_with_step_and_node(debates: Debates) -> None:
    document = _run_debate(debates, turns=2)
    document["errors"] = [{"step": 3, "node": "extract", "error": "read by rule: no answer"}]
    assert "- Step 3, extract: read by rule: no answer" in render_markdown(document)
