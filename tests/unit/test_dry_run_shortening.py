"""`shorten_debate` lowers the settings of a protocol until its debate fits a maximum number of turns."""

from __future__ import annotations

from typing import Any

import pytest

from moot import ConfigError, DebateConfig, open_debates
from moot.debates.config_checks import shorten_debate
from tests.support.fakes import FakeModel


@pytest.mark.parametrize(
    ("protocol", "max_turns", "expected"),
    [
        ("round-robin", 4, {"turns": 4}),
        ("moderated", 12, {"turns": None}),
        ("council", 24, {"rounds": None}),
        ("council", 23, {"rounds": 2}),
        ("council", 12, {"rounds": 1}),
        ("vote", 2, {"vote": {"answers": 2}}),
        ("single", 1, {}),
    ],
)
def test_shortened_debate_stays_within_the_maximum_turns(
    protocol: str, max_turns: int, expected: dict[str, Any], tmp_path: Any
) -> None:
    config = shorten_debate(DebateConfig(protocol=protocol, judge={"enabled": False}), max_turns)
    data = config.to_json()
    assert {key: data[key] for key in expected if key != "vote"} == {
        k: v for k, v in expected.items() if k != "vote"
    }
    assert expected.get("vote", {}).items() <= data.get("vote", {}).items()
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        transcript = debates.start("T?", config).run()["transcript"]
    assert 0 < sum(entry["kind"] != "topic" for entry in transcript) <= max_turns


@pytest.mark.parametrize("max_turns", [0, -1])
@pytest.mark.parametrize("protocol", ["round-robin", "council", "dialogue", "vote", "single", "escalate"])
def test_maximum_below_one_turn_is_refused(protocol: str, max_turns: int) -> None:
    with pytest.raises(ConfigError, match=f"at most {max_turns} are allowed: allow more turns"):
        shorten_debate(DebateConfig(protocol=protocol), max_turns)


def test_too_small_maximum_is_refused_with_the_needed_turns() -> None:
    with pytest.raises(ConfigError, match="'council' may need 12 turns, but at most 11 are allowed"):
        shorten_debate(DebateConfig(protocol="council"), 11)
    dialogue = DebateConfig.model_validate({"protocol": "dialogue", "dialogue": {"crux": {"max_rooms": 0}}})
    assert shorten_debate(dialogue, 10).to_json()["dialogue"]["max_aspects"] == 1
