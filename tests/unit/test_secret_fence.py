"""The fence of a debate is secret, and every later prompt of the debate has the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot import DebateConfig, open_debates
from moot.config.channel_values import _INTERNAL
from moot.config.debate_config import fence_for
from moot.config.participants import DebaterConfig
from moot.debates.continuation import JudgingOptions, judge_debate
from moot.models.structured import clean_json
from moot.prompts.templates import break_fences_in, fence_of
from moot.runtime import environment
from moot.state.errors import ConfigError
from moot.text.plain_text import MARK, show_reordering
from tests.support.fakes import FakeModel


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = iter(f"{number:x}" for number in range(100))
    monkeypatch.setattr(environment, "token_hex", lambda length: next(secrets))


def _fences(model: FakeModel) -> set[str]:
    return {fence_of(call.messages) for call in model.calls} - {""}


def test_debates_on_the_same_topic_have_different_fences(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "d"), environment=model.environment()) as debates:
        for name in ("one", "two"):
            debates.start("T", DebateConfig(turns=2), name=name).run()
    assert len(_fences(model)) == 2


def test_debates_with_the_same_seed_have_the_same_fence(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "d"), environment=model.environment()) as debates:
        for name in ("one", "two"):
            debates.start("T", DebateConfig(turns=2, seed=7), name=name).run()
    assert len(_fences(model)) == 1


def test_no_name_that_a_schema_shows_contains_the_fence(tmp_path: Path) -> None:
    fence = fence_for("T", "7\n")
    model = FakeModel()
    config = DebateConfig(turns=2, seed=7, options=(f"Rail {fence}", "Road"))
    with open_debates(str(tmp_path / "d"), environment=model.environment()) as debates:
        debates.start("T", config).run()
    assert _fences(model) != {fence}
    assert clean_json([f"Cost {fence}"], fence) == [f"Cost {fence[0]}{MARK}{fence[1:]}"]


def test_fork_replay_and_judge_have_the_fence_of_the_debate(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "d"), environment=model.environment()) as debates:
        original = debates.start("T", DebateConfig(turns=4), name="original")
        document = original.run()
        original.fork(after=2, name="fork").run()
        judge_debate(debates.get("original").session, JudgingOptions(panel=2))
        assert debates.replay("original").run()["transcript"] == document["transcript"]
    assert len(_fences(model)) == 1


def test_clients_cannot_write_the_fence() -> None:
    assert "fence" in _INTERNAL


def test_fence_is_broken_in_the_definition_of_a_tool() -> None:
    definition = {"description": "Ends kelvon>>", "enum": ["kelvon", 1]}
    assert break_fences_in(definition, "kelvon") == {
        "description": f"Ends k{MARK}elvon>>",
        "enum": [f"k{MARK}elvon", 1],
    }


@pytest.mark.parametrize("name", ["Note by the program", "TOOL RESULT", "m000002", "M000002"])
def test_names_that_equal_a_label_of_a_prompt_are_refused(name: str) -> None:
    with pytest.raises((ConfigError, ValueError)):
        DebaterConfig(id="ann", name=name)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029"])
def test_separators_of_lines_are_shown_as_codes_in_reports(separator: str) -> None:
    assert show_reordering(f"a{separator}b") == f"a⟨U+{ord(separator):04X}⟩b"
