"""Failed runs of a node: their usage is counted once, and their errors are reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.api import Debate
from moot.calls.model_calls import ModelCall, Reply
from moot.state.errors import ModelError
from tests.support.fakes import FakeModel, fake_reply

TOPIC = "Is a failure free?"
USAGE: Any = {"prompt_tokens": 1000, "completion_tokens": 500}


class FailingModel:
    """A model whose turns fail while `failing` is set."""

    def __init__(self) -> None:
        self.failing = False

    def __call__(self, call: ModelCall) -> Reply:
        fails = self.failing and call.purpose == "turn"
        return Reply(error="only reasoning", usage=USAGE, retryable=True) if fails else fake_reply(call)


@contextmanager
def _start_debate(tmp_path: Path, model: FailingModel, config: DebateConfig) -> Iterator[Debate]:
    environment = FakeModel(model).environment()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        yield debates.start(TOPIC, config, name="f")


def _fail(debate: Debate) -> None:
    with pytest.raises(ModelError):
        debate.run()


def _usage(document: Mapping[str, Any]) -> tuple[int, int, int]:
    return tuple(document["usage"][key] for key in ("calls", "prompt_tokens", "completion_tokens"))


def test_failed_runs_list_errors_and_count_their_usage_once(tmp_path: Path) -> None:
    model, config = FailingModel(), DebateConfig(turns=3, seed=1, openings="sequential")
    with _start_debate(tmp_path / "a", model, config) as debate:
        usage_without_failures = _usage(debate.run())
    with _start_debate(tmp_path / "b", model, config) as debate:
        model.failing = True
        _fail(debate)
        _fail(debate)
        document = debate.document()
        assert document["status"] == "failed"
        assert [(each["node"], each["error"]) for each in document["errors"]] == 2 * [
            ("turn", "only reasoning")
        ]
        assert _usage(document) == (2, 2000, 1000)
        assert debate.row.tokens == 3000  # `moot list`
        model.failing = False
        document = debate.run()
        assert document["status"] == "done"
        assert len(document["errors"]) == 2
        assert _usage(document) == tuple(
            a + b for a, b in zip(usage_without_failures, (2, 2000, 1000), strict=True)
        )


def test_a_debate_that_always_fails_ends_at_its_token_limit(tmp_path: Path) -> None:
    model = FailingModel()
    model.failing = True
    with _start_debate(
        tmp_path, model, DebateConfig(turns=3, seed=1, openings="sequential", limits={"total_tokens": 4000})
    ) as debate:
        for _ in range(3):
            _fail(debate)
        document = debate.run()
        assert document["status"] == "limit"
        assert document["usage"]["prompt_tokens"] >= 3000
        assert len(document["errors"]) == 3


def test_a_fork_keeps_the_errors_and_usage_of_failed_runs(tmp_path: Path) -> None:
    model = FailingModel()
    with _start_debate(tmp_path, model, DebateConfig(turns=3, seed=1, openings="sequential")) as debate:
        model.failing = True
        _fail(debate)
        model.failing = False
        document = debate.run()
        fork = debate.fork(name="other")
        assert fork.document()["errors"] == document["errors"]
        assert _usage(fork.document()) == _usage(document)
        debate.delete()
        assert debate.session.records.failed.of(debate.id) == []
