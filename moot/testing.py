"""Fake model and pytest fixtures for the tests of programs that use Moot.

Add `pytest_plugins = ["moot.testing"]` to the `conftest.py` of your tests. The module needs pytest.

    def test_my_program(moot_debates, moot_model):
        debate = moot_debates.start("Tabs or spaces?", DebateConfig(turns=2, model="fake"))
        assert debate.run()["status"] == "done"
        assert len(moot_model.calls) == 4  # two turns, and the judge reads them in both orders
"""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from moot.api import Debates, open_debates
from moot.models.offline import ScriptedCall, ScriptedModel, ScriptReply, smallest_instance

__all__ = ["ScriptedCall", "ScriptedModel", "fake_model", "moot_debates", "moot_model"]

MODEL = "fake"
"""Name of the fake model that the fixture `moot_debates` uses."""


def fake_model(replies: Sequence[ScriptReply] = ()) -> ScriptedModel:
    """Return a fake chat model that needs no provider and records each call.

    A call that asks for structured output, such as the judge's, gets the smallest valid instance of its
    schema. All other calls get the replies in turn.

    Args:
        replies: texts, messages with tool calls, or exceptions to raise. Default: `Reply 1.`, `Reply 2.` and
            so on.
    """
    numbers = count()

    def reply(call: ScriptedCall) -> ScriptReply:
        if schema := call.parameters.get("json_schema"):
            return json.dumps(smallest_instance(schema))
        number = next(numbers)
        return replies[number % len(replies)] if replies else f"Reply {number + 1}."

    return ScriptedModel(reply)


@pytest.fixture
def moot_model() -> ScriptedModel:
    """Return the fake model that the fixture `moot_debates` uses."""
    return fake_model()


@pytest.fixture
def moot_debates(tmp_path: Path, moot_model: ScriptedModel) -> Iterator[Debates]:
    """Yield an empty debate database for a test."""
    with open_debates(str(tmp_path / "moot.sqlite"), models={MODEL: moot_model}) as debates:
        yield debates
