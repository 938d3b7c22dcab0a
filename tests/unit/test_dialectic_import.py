"""Debate states of dialectic are imported whole, and can be judged and continued."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debate, open_debates
from moot.config.config_files import make_config
from moot.importers import parse_transcript
from tests.support.fakes import FakeModel


def _contribution(agent: str, kind: str, content: str, target: str = "", **metadata: Any) -> dict[str, Any]:
    return {
        "agentId": f"agent-{agent}",
        "agentRole": agent,
        "type": kind,
        "content": content,
        "targetAgentId": target,
        "metadata": metadata,
    }


STATE: dict[str, Any] = {
    "problem": "Which store?\r\n\r\n  - for two\r\n",
    "context": "Two people run it.",
    "clarifications": [
        {
            "agentId": "agent-architect",
            "agentName": "Architect Ana",
            "role": "architect",
            "items": [{"id": "1", "question": "Cloud?", "answer": "Yes"}],
        }
    ],
    "rounds": [
        {
            "timestamp": "2026-02-03T09:41:00Z",
            "contributions": [
                _contribution("architect", "proposal", "Postgres.", model="gpt-x", tokensUsed=7),
                _contribution("kiss", "proposal", "A file."),
                _contribution("kiss", "critique", "Heavy.", "agent-architect"),
                _contribution("architect", "critique", "Fragile.", "agent-kiss"),
                _contribution("architect", "refinement", "Small Postgres."),
                _contribution("kiss", "refinement", "SQLite."),
            ],
        },
        {
            "summaries": {
                "agent-kiss": {"agentId": "agent-kiss", "summary": "Sizes differ.", "metadata": {}}
            },
            "contributions": [
                _contribution("architect", "proposal", "Small Postgres."),
                _contribution("architect", "refinement", "One Postgres."),
            ],
        },
    ],
    "judgeSummary": {"agentId": "judge", "summary": "Both are small.", "metadata": {}},
    "finalSolution": {
        "description": "Postgres.",
        "tradeoffs": ["Cost."],
        "confidence": 72,
        "synthesizedBy": "judge-main",
        "unfulfilledMajorRequirements": ["No backup."],
        "openQuestions": ["Which region?"],
    },
}


@pytest.fixture
def debate(tmp_path: Path) -> Iterator[Debate]:
    config = make_config({"model": "fake", "judge": {"model": "fake"}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        yield debates.import_transcript(json.dumps(STATE), config=config, name="store")


def test_context_clarifications_and_contributions_keep_their_kinds_and_order(debate: Debate) -> None:
    kinds = [(entry["kind"], entry["phase"]) for entry in debate.document()["transcript"]]
    assert kinds == [
        *(("topic", ""), ("context", ""), ("question", ""), ("answer", "")),
        *[("proposal", "propose")] * 2,
        *[("critique", "critique")] * 2,
        *[("refinement", "refine")] * 3,
    ]


def test_the_debate_becomes_a_council_with_names_and_roles(debate: Debate) -> None:
    config = debate.document()["config"]
    assert (config["protocol"], config["rounds"]) == ("council", 2)
    assert debate.document()["topic"] == "Which store?\n\n  - for two"
    named = [(each["name"], each["role"]) for each in config["debaters"]]
    assert named == [("Architect Ana", "architect"), ("agent-kiss", "kiss")]


def test_a_state_with_one_agent_is_no_council() -> None:
    alone = [_contribution("architect", kind, kind) for kind in ("proposal", "refinement")]
    read = parse_transcript(json.dumps({"problem": "Which?", "rounds": [{"contributions": alone}]}))
    assert (len(read.messages), dict(read.settings)) == (2, {})


def test_an_answer_targets_its_question_and_a_critique_its_debater(debate: Debate) -> None:
    targets = [entry["targets"] for entry in debate.document()["transcript"] if entry["targets"]]
    assert targets == [["m000002"], ["agent-architect"], ["agent-kiss"]]


def test_models_tokens_and_dates_are_kept(debate: Debate) -> None:
    entry = debate.document()["transcript"][4]
    assert (entry["model"], entry["usage"], entry["at"]) == (
        "gpt-x",
        {"completion_tokens": 7},
        "2026-02-03T09:41:00Z",
    )


def test_the_solution_becomes_a_verdict_that_is_marked_as_imported(debate: Debate) -> None:
    document = debate.document()
    verdict = document["verdict"] or {}
    assert (verdict["confidence"], [each["question"] for each in verdict["checks"]], verdict["judge"]) == (
        72.0,
        ["Which region?"],
        "judge-main",
    )
    assert verdict["unmet_requirements"] == [{"text": "No backup.", "major": True}]
    assert document["imported_at"]


def test_summaries_of_debaters_and_of_the_judge_are_kept(debate: Debate) -> None:
    kept = [(each["kind"], each["owner"], each["text"]) for each in debate.document()["summaries"]]
    assert kept == [("perspective", "agent-kiss", "Sizes differ."), ("judge", "", "Both are small.")]


def test_a_refinement_that_the_next_round_repeats_as_a_proposal_stands_once() -> None:
    read = parse_transcript(json.dumps(STATE))
    assert [each.content for each in read.messages].count("Small Postgres.") == 1
    assert "1 repeated proposal" in read.left_out


def test_an_imported_state_is_judged(debate: Debate) -> None:
    assert debate.judge().verdict["status"] == "ok"


def test_an_imported_state_is_continued_with_another_round(debate: Debate) -> None:
    debate.run(turns=4)
    rounds = [entry["round"] for entry in debate.document()["transcript"]]
    assert rounds[-4:] == [3, 3, 3, 3]
