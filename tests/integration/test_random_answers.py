"""Random instances of every reply schema are accepted and lead to a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debate, open_debates
from moot.config import DebateConfig
from moot.documents import DebateDocument
from moot.people import questions_in
from moot.plugins.evals.scorecards import Evaluator, evaluate_subjects
from moot.plugins.evals.subjects import subject_of_document
from moot.state.errors import WaitingForPerson
from tests.support.openai_server import OpenAIServer
from tests.support.random_answers import RandomAnswers

TOPIC = "Should the town build a tram? It costs 40 million and carries 9,000 people a day."
PANEL = {"panel": [{"id": "one"}, {"id": "two"}], "rule": "mean"}
CASES: dict[str, dict[str, Any]] = {
    "round-robin": {"protocol": "round-robin", "turns": 4},
    "panel": {"protocol": "random", "turns": 4, "judge": PANEL},
    "unblinded": {"protocol": "round-robin", "turns": 2, "judge": {"blind": False, "rule": "majority"}},
    "moderated": {"protocol": "moderated", "turns": 4},
    "council": {"protocol": "council", "rounds": 2, "termination": {"type": "convergence"}},
    "council in two orders": {"protocol": "council", "rounds": 1, "judge": {"swap": True}},
    "dialogue": {"protocol": "dialogue", "dialogue": {"max_aspects": 2, "crux": {"confidence": 0.0}}},
    "vote by judge": {"protocol": "vote", "vote": {"answers": 3}, "decide": "judge"},
    "single": {"protocol": "single"},
    "clarified": {"protocol": "round-robin", "turns": 2, "clarifications": {"enabled": True}},
    "extraction by a model": {
        "protocol": "round-robin",
        "turns": 4,
        "blackboard": {"extraction": "llm", "reflection_threshold": 1},
    },
}


@pytest.fixture(params=range(1), ids=lambda seed: f"seed {seed}")
def server(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    with OpenAIServer(RandomAnswers(request.param)) as running:
        yield running


def _config(server: OpenAIServer, **settings: Any) -> DebateConfig:
    reached = {"base_url": server.base_url, "max_attempts": 1}
    people = [{"id": "ann", "name": "Ann Lee"}, {"id": "bo", "name": "Bo Ray"}]
    return DebateConfig(**{"model": "m", "models": {"m": reached}, "debaters": people, **settings})


def _run(debate: Debate) -> DebateDocument:
    """Run a debate and answer all questions of its debaters."""
    try:
        return debate.run()
    except WaitingForPerson as waiting:
        debate.run(answer={each["id"]: "As you like." for each in questions_in(waiting.questions)})
    return debate.document()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_random_schema_instances_are_accepted(
    server: OpenAIServer, case: dict[str, Any], tmp_path: Path
) -> None:
    config = _config(server, **case)
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start(TOPIC, config, name="d")
        document = _run(debate)
        answer = debate.ask("What does the tram cost?")
        subject = subject_of_document(document)
        (card,) = evaluate_subjects([subject], [Evaluator("e", "m")], config, debates.environment)
    assert answer.dropped == 0
    assert not any("became" in note for each in card.evaluations for note in each.verdict["notes"])
    assert document["errors"] == []
    assert "That answer cannot be used" not in "".join(str(chat["messages"]) for chat in server.chats)
    for verdict in [*document["verdicts"], *filter(None, [document["verdict"]])]:
        assert verdict["status"] == "ok", verdict["error"]
        assert verdict["dropped_citations"] == verdict["clamped_scores"] == 0
        # A solution may be scored by criterion, without its authors.
        assert verdict["scores"] or case["protocol"] in ("council", "vote", "single"), case
        assert bool(verdict["totals"]) == bool(verdict["scores"])
        best = max(verdict["totals"].values(), default=0)
        ahead = [who for who, total in verdict["totals"].items() if total == best]
        explained = any("lower total" in note for note in verdict["notes"])
        assert verdict["winner"] in ("tie", "synthesis", *ahead) or explained or not verdict["scores"]
        assert verdict["winner_confidence"] is None or verdict["winner"] != "tie"
        assert bool(verdict["solution_markdown"]) <= (case["protocol"] in ("council", "vote"))
