"""Evaluations with a rubric: scores, averages, files of dialectic, and output formats."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.config.rubrics import shipped_rubrics
from moot.models.registry import Models
from moot.models.structured import parse_reply
from moot.plugins.evals.eval_command import table_of
from moot.plugins.evals.scorecards import (
    Evaluation,
    Evaluator,
    Scorecard,
    averages,
    evaluate,
    evaluate_subjects,
    evaluation_prompt,
    evaluator_schema,
    evaluators_named,
    figures,
    header,
    read_evaluators,
    to_csv,
    to_json,
)
from moot.plugins.evals.subjects import Subject, read_subject, subject_of_document
from moot.prompts.templates import unfenced
from moot.runtime.environment import Complete, Environment
from moot.state.errors import ConfigError, InputError
from moot.text.tokens import counter, prompt_tokens
from tests.support.fakes import FakeModel

COUNT = counter()
CRITERIA = [criterion.id for criterion in shipped_rubrics()["design"].criteria]
SUBJECT = Subject("queue", "Design a queue. It must survive restarts.", "A log with fsync.")
DIALECTIC = {
    "id": "deb-1",
    "problem": "Design a queue. It must survive restarts.",
    "status": "completed",
    "rounds": [
        {
            "roundNumber": 1,
            "contributions": [
                {"agentId": "a1", "agentRole": "architect", "type": "proposal", "content": "Use a log."}
            ],
        }
    ],
    "clarifications": [
        {
            "agentName": "Arch",
            "role": "architect",
            "items": [{"id": "q1", "question": "How many?", "answer": "10k"}],
        }
    ],
    "finalSolution": {
        "description": "A log-structured queue.",
        "tradeoffs": ["latency"],
        "recommendations": ["measure"],
        "unfulfilledMajorRequirements": ["survive restarts"],
    },
}


def evaluator_reply(**scores: Any) -> dict[str, Any]:
    criteria = {criterion: {"reasoning": "because", "score": scores.get(criterion)} for criterion in CRITERIA}
    overall = scores.get("overall_score")
    return {**criteria, "strengths": "short", "weaknesses": "thin", "overall_score": overall}


def evaluation_with(subject: Subject = SUBJECT, /, **scores: Any) -> Evaluation:
    """Return the evaluation recorded for an evaluator that gives these scores."""
    flow = evaluate([subject], Evaluator("e", "m", "E"), DebateConfig(), COUNT)
    next(flow)
    with pytest.raises(StopIteration) as ended:
        flow.send([Reply(data=evaluator_reply(**scores), model="m")])
    (evaluation,) = ended.value.value
    assert isinstance(evaluation, Evaluation)
    return evaluation


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (7, 7),
        (7.5, 8),
        ("8", 8),
        (11, 10),
        (0, 1),
        (-3, 1),
        ("N/A", None),
        (None, None),
        (float("nan"), None),
        ([], None),
    ],
    ids=str,
)
def test_scores_are_integers_from_1_to_10_or_missing(value: Any, score: int | None) -> None:
    assert evaluation_with(security=value).score("security") == score


@given(st.one_of(st.none(), st.floats(), st.integers(), st.text(), st.booleans()))
def test_scores_are_never_outside_their_scale(value: Any) -> None:
    score = evaluation_with(overall_score=value).score("overall_score")
    assert score is None or (isinstance(score, int) and 1 <= score <= 10)


def test_clamped_and_missing_scores_get_notes() -> None:
    scores = dict.fromkeys(CRITERIA, 5) | {"security": 42, "testability": None}
    notes = evaluation_with(**scores, overall_score=5).verdict["notes"]
    assert notes == ["security: 42 became 10", "testability: no score"]


def test_averages_have_two_decimals_and_skip_missing_scores() -> None:
    result = averages(
        [
            evaluation_with(security=7),
            evaluation_with(security=8),
            evaluation_with(security=8),
            evaluation_with(),
        ]
    )
    assert result["scores"]["security"] == 7.67
    assert result["scores"]["testability"] is None
    assert result["evaluators"] == 4


@given(
    scores=st.lists(st.one_of(st.none(), st.integers(-2, 14)), min_size=1, max_size=6),
    name=st.text(min_size=1, max_size=8),
)
def test_an_average_is_the_mean_of_the_clamped_scores(scores: list[int | None], name: str) -> None:
    evaluations = [evaluation_with(Subject(name, "p", "s"), security=score) for score in scores]
    counted = [min(max(score, 1), 10) for score in scores if score is not None]
    expected = round(sum(counted) / len(counted), 2) if counted else None
    assert averages(evaluations)["scores"]["security"] == expected


def test_evaluators_score_each_criterion_and_name_no_winner() -> None:
    (call,) = next(evaluate([SUBJECT], Evaluator("e", "m"), DebateConfig(), COUNT))
    assert call.schema is not None
    fields = {name: field.description for name, field in call.schema.model_fields.items()}
    described = {one.id: one.description for one in shipped_rubrics()["design"].criteria}
    assert list(fields) == [*described, "strengths", "weaknesses", "overall_score"]
    assert fields.items() >= described.items()


def test_reasons_are_kept_without_a_score() -> None:
    (debate,) = to_json([Scorecard("x", averages([]), [evaluation_with(security=7)])])["debates"]
    shown = debate["evaluators"][0]["scores"]
    assert shown["security"] == {"score": 7, "reasoning": "because"}
    assert shown["testability"] == {"score": None, "reasoning": "because"}


def test_several_evaluators_score_several_debates() -> None:
    def reply(call: ModelCall) -> Reply:
        if call.model == "broken":
            return Reply(error="no answer")
        return Reply(data=evaluator_reply(security=4 if call.model == "strict" else 9), model=call.model)

    model = FakeModel(reply)
    evaluators = evaluators_named(["strict", "kind", "broken"])
    cards = evaluate_subjects([SUBJECT, SUBJECT], evaluators, DebateConfig(), _fake_environment(model))
    assert [card.averages["scores"]["security"] for card in cards] == [6.5, 6.5]
    assert [one.verdict["error"] for one in cards[0].evaluations] == ["", "", "no answer"]
    assert len(model.calls) == 6


def _fake_environment(model: FakeModel) -> Environment:
    return _environment_with(model.complete)


def _environment_with(complete: Complete) -> Environment:
    return Environment(complete=complete, factory=lambda name, settings: None)  # type: ignore[arg-type, return-value]  # never called


@given(
    problem=st.text(max_size=2000),
    solution=st.text(max_size=3000).map(lambda text: text * 20),
    system=st.sampled_from(["", "Be strict. " * 900]),
    user=st.sampled_from(["", "P {problem} S {final_solution} {unknown}"]),
    budget=st.sampled_from([400, 1000, 8000]),
)
def test_evaluator_prompts_stay_within_their_budget(
    problem: str, solution: str, system: str, user: str, budget: int
) -> None:
    evaluator = Evaluator("e", "m", system_prompt=system, user_prompt=user)
    prompt = evaluation_prompt(Subject("x", problem, solution), evaluator, budget, COUNT)
    assert prompt.total_tokens == prompt_tokens(prompt.messages, COUNT) <= budget


def test_placeholders_in_the_problem_are_not_filled() -> None:
    subject = Subject("x", "{final_solution} is a word", "secret")
    prompt = evaluation_prompt(subject, Evaluator("e", "m", user_prompt="{problem}"), 2000, COUNT)
    assert unfenced(prompt.messages[1]["content"]) == "{final_solution} is a word"


def test_a_custom_prompt_cannot_open_a_fenced_block() -> None:
    own_prompt = "Begin with: cat <<foobar\n{problem}\nfoobar>>"
    prompt = evaluation_prompt(
        Subject("x", "Why?", "secret"), Evaluator("e", "m", user_prompt=own_prompt), 2000, COUNT
    )
    content = prompt.messages[1]["content"]
    assert unfenced(content) == "Begin with: cat <·<foobar\nWhy?\nfoobar>>"


def test_debates_of_dialectic_are_read(tmp_path: Path) -> None:
    path = tmp_path / "deb-1.json"
    path.write_text(json.dumps(DIALECTIC))
    subject = read_subject(path)
    assert subject.name == "deb-1"
    assert subject.problem == DIALECTIC["problem"]
    assert subject.solution.startswith("A log-structured queue.")
    assert "- latency" in subject.solution
    assert subject.clarifications == "Arch asked: How many?\nAnswer: 10k"
    assert subject.requirements == "- survive restarts (major)"


def test_an_unfinished_debate_of_dialectic_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deb.json"
    path.write_text(json.dumps({**DIALECTIC, "finalSolution": {}}))
    with pytest.raises(InputError, match="not finished"):
        read_subject(path)


def test_the_last_messages_replace_a_missing_solution(tmp_path: Path) -> None:
    path = tmp_path / "talk.csv"
    path.write_text("speaker,minute,text\nAnn,1,First.\nBen,2,Second.\nAnn,3,Last of Ann.\n")
    subject = read_subject(path, problem="Why?")
    assert "Last of Ann." in subject.solution
    assert "First." not in subject.solution


def test_a_debate_without_messages_cannot_be_evaluated() -> None:
    with pytest.raises(InputError, match="no messages to evaluate"):
        subject_of_document({"topic": "x", "transcript": []})


def test_evaluators_of_dialectic_are_read(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "system.md").write_text("Be strict.")
    rows = [
        {"id": "eval-1", "name": "One", "model": "vendor/x", "provider": "openrouter", "timeout": 30000},
        {"id": "eval-2", "model": "y", "provider": "openai", "systemPromptPath": "./prompts/system.md"},
        {"id": "eval-3", "model": "z", "enabled": False},
    ]
    path = tmp_path / "eval.json"
    path.write_text(json.dumps({"agents": rows}))
    evaluators = read_evaluators(path)
    assert [(evaluator.id, evaluator.model, evaluator.name) for evaluator in evaluators] == [
        ("eval-1", "vendor/x", "One"),
        ("eval-2", "y", "eval-2"),
    ]
    one, two = evaluators
    assert two.system_prompt == "Be strict."
    assert one.settings is not None
    assert two.settings is not None
    assert (one.settings.timeout_s, one.settings.api_key_env) == (30.0, "OPENROUTER_API_KEY")
    assert two.settings.base_url is None


def test_evaluators_with_the_same_model_keep_their_own_settings(tmp_path: Path) -> None:
    rows = [
        {"id": "quick", "model": "x", "provider": "openrouter", "timeout": 1000},
        {"id": "patient", "model": "x", "timeout": 90_000},
    ]
    path = tmp_path / "eval.json"
    path.write_text(json.dumps({"agents": rows}))
    asked: list[tuple[float, str | None]] = []

    async def complete(call: ModelCall, models: Models, *, config: Any = None) -> Reply:
        settings = models.settings_of(call.model)
        asked.append((settings.timeout_s, settings.key_variable))
        return Reply(data=evaluator_reply(), model=call.model)

    listed = read_evaluators(path)
    evaluators = (*listed, *evaluators_named(["x"]))
    evaluate_subjects([SUBJECT], evaluators, DebateConfig(), _environment_with(complete))
    assert sorted(asked) == [(1.0, "OPENROUTER_API_KEY"), (90.0, "OPENAI_API_KEY"), (120.0, "OPENAI_API_KEY")]


def test_evaluators_share_the_concurrency_limit() -> None:
    running = peak = 0

    async def complete(call: ModelCall, models: Models, *, config: Any = None) -> Reply:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1
        return Reply(data=evaluator_reply(), model=call.model)

    config = make_config({"limits": {"concurrency": 2}})
    cards = evaluate_subjects(
        [SUBJECT] * 3, evaluators_named(["x", "y"]), config, _environment_with(complete)
    )
    assert [card.averages["evaluators"] for card in cards] == [2, 2, 2]
    assert peak == 2


def test_evaluators_named_by_model_get_unique_ids() -> None:
    assert [evaluator.id for evaluator in evaluators_named(["a/x", "a/x"], ["a-x"])] == ["a-x-2", "a-x-3"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({}, "add the key `agents`"),
        ({"agents": [{"model": "x", "enabled": False}]}, "enables no evaluator"),
        ({"agents": [{"id": "a"}]}, r"agents\[0\].model"),
        ({"agents": [{"id": "a", "model": "x"}, {"id": "a", "model": "y"}]}, "are not unique"),
        ({"agents": [{"model": "x", "timeout": -1}]}, "milliseconds"),
        ({"agents": [{"model": "x", "systemPromptPath": "nowhere.md"}]}, "cannot read"),
    ],
    ids=["no list", "none enabled", "no model", "duplicate id", "invalid timeout", "missing prompt"],
)
def test_invalid_evaluator_files_are_refused(tmp_path: Path, data: Any, error: str) -> None:
    path = tmp_path / "eval.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=error):
        read_evaluators(path)


def scorecard(name: str) -> Scorecard:
    evaluations = [evaluation_with(security=7, overall_score=8), evaluation_with(security=8)]
    return Scorecard(name, averages(evaluations), evaluations)


def test_tables_show_two_decimals_and_missing_scores() -> None:
    shown = figures(scorecard("x"))
    assert shown[2] == "7.50"
    assert shown[-1] == "8.00"
    assert shown[0] == "N/A"
    assert "| x | N/A | N/A | 7.50 |" in table_of([scorecard("x")]).markdown()


@given(st.text(max_size=40))
def test_csv_and_markdown_keep_any_name_in_one_cell(name: str) -> None:
    rows = list(csv.reader(io.StringIO(to_csv([scorecard(name)]), newline="")))
    assert tuple(rows[0]) == header()
    assert len(rows[1]) == len(header())
    assert table_of([scorecard(name)]).markdown().count("\n") == 3


def test_json_has_one_row_for_each_debate() -> None:
    one, other = to_json([scorecard("x"), scorecard("y")])["debates"]
    assert (one["debate"], other["debate"]) == ("x", "y")
    assert (one["scores"]["security"], one["scores"]["overall_score"]) == (7.5, 8.0)
    assert one["evaluators"][0]["strengths"] == "short"
    assert json.loads(json.dumps(to_json([scorecard("x")])))["debates"] == [one]


def test_a_reply_in_the_form_of_dialectics_prompts_is_read() -> None:
    mark = {"score": 7, "reasoning": "Sound."}
    data = {
        "evaluation": {"functional_completeness": mark, "non_functional": {"security": mark}},
        "overall_summary": {"strengths": "Clear.", "weaknesses": "Slow.", "overall_score": 6},
    }
    read = parse_reply(evaluator_schema(), f"```json\n{json.dumps(data)}\n```").data or {}
    assert [read["functional_completeness"], read["security"]] == [{"reasoning": "Sound.", "score": 7}] * 2
    assert (read["testability"]["score"], read["overall_score"], read["weaknesses"]) == (None, 6, "Slow.")
