"""Failed runs of a node: their usage is counted once, and their errors are reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.api import Debate
from moot.calls.effects import ModelCall, Reply
from moot.state.errors import ModelError
from tests.support.fakes import FakeModel, answer

TOPIC = "Is a failure free?"
PAID: Any = {"prompt_tokens": 1000, "completion_tokens": 500}


class Moody:
    """A model that fails for as long as it is told to."""

    def __init__(self) -> None:
        self.failing = False

    def __call__(self, call: ModelCall) -> Reply:
        fails = self.failing and call.purpose == "turn"
        return Reply(error="only reasoning", usage=PAID, retryable=True) if fails else answer(call)


@contextmanager
def _debate(tmp_path: Path, moody: Moody, config: DebateConfig) -> Iterator[Debate]:
    environment = FakeModel(moody).environment()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        yield debates.start(TOPIC, config, name="f")


def _fail(debate: Debate) -> None:
    with pytest.raises(ModelError):
        debate.run()


def _usage(document: Mapping[str, Any]) -> tuple[int, int, int]:
    return tuple(document["usage"][key] for key in ("calls", "prompt_tokens", "completion_tokens"))


def test_what_failed_runs_used_is_counted_once_and_the_reason_is_told(tmp_path: Path) -> None:
    moody, config = Moody(), DebateConfig(turns=3, seed=1, openings="sequential")
    with _debate(tmp_path / "a", moody, config) as debate:
        untroubled = _usage(debate.run())
    with _debate(tmp_path / "b", moody, config) as debate:
        moody.failing = True
        _fail(debate)
        _fail(debate)
        document = debate.document()
        assert document["status"] == "failed"
        assert [(each["node"], each["error"]) for each in document["errors"]] == 2 * [
            ("turn", "only reasoning")
        ]
        assert _usage(document) == (2, 2000, 1000)
        assert debate.row.tokens == 3000  # `moot list`
        moody.failing = False
        document = debate.run()
        assert document["status"] == "done"
        assert len(document["errors"]) == 2
        assert _usage(document) == tuple(a + b for a, b in zip(untroubled, (2, 2000, 1000), strict=True))


def test_a_debate_that_only_fails_ends_at_its_limit_instead_of_paying_for_ever(tmp_path: Path) -> None:
    moody = Moody()
    moody.failing = True
    with _debate(
        tmp_path, moody, DebateConfig(turns=3, seed=1, openings="sequential", limits={"total_tokens": 4000})
    ) as debate:
        for _ in range(3):
            _fail(debate)
        document = debate.run()
        assert document["status"] == "limit"
        assert document["usage"]["prompt_tokens"] >= 3000
        assert len(document["errors"]) == 3


def test_a_fork_keeps_the_reason_and_counts_it_no_second_time(tmp_path: Path) -> None:
    moody = Moody()
    with _debate(tmp_path, moody, DebateConfig(turns=3, seed=1, openings="sequential")) as debate:
        moody.failing = True
        _fail(debate)
        moody.failing = False
        document = debate.run()
        fork = debate.fork(name="other")
        assert fork.document()["errors"] == document["errors"]
        assert _usage(fork.document()) == _usage(document)
        debate.delete()
        assert debate.session.records.failed.of(debate.id) == []
