"""Shortened runs of long debates, with every bound of every protocol."""

from __future__ import annotations

from typing import Any

import pytest

from moot import ConfigError, DebateConfig, open_debates
from moot.debates.session import shorten_debate
from tests.support.fakes import FakeModel


@pytest.mark.parametrize(
    ("protocol", "most", "set_to"),
    [
        ("round-robin", 4, {"turns": 4}),
        ("moderated", 12, {"turns": None}),
        ("council", 29, {"rounds": 2}),
        ("council", 12, {"rounds": 1}),
        ("vote", 2, {"vote": {"answers": 2}}),
        ("single", 1, {}),
    ],
)
def test_what_bounds_a_protocol_is_lowered_as_little_as_will_do(
    protocol: str, most: int, set_to: dict[str, Any], tmp_path: Any
) -> None:
    config = shorten_debate(DebateConfig(protocol=protocol, judge={"enabled": False}), most)
    data = config.to_json()
    assert {key: data[key] for key in set_to if key != "vote"} == {
        k: v for k, v in set_to.items() if k != "vote"
    }
    assert set_to.get("vote", {}).items() <= data.get("vote", {}).items()
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        said = debates.start("T?", config).run()["transcript"]
    assert 0 < sum(entry["kind"] != "topic" for entry in said) <= most


@pytest.mark.parametrize("most", [0, -1])
@pytest.mark.parametrize("protocol", ["round-robin", "council", "dialogue", "vote", "single", "escalate"])
def test_a_debate_without_a_turn_is_refused(protocol: str, most: int) -> None:
    with pytest.raises(ConfigError, match=f"at most {most} are allowed: allow more turns"):
        shorten_debate(DebateConfig(protocol=protocol), most)


def test_what_cannot_be_that_short_is_refused_with_what_it_takes() -> None:
    with pytest.raises(ConfigError, match="'council' may need 12 turns, but at most 11 are allowed"):
        shorten_debate(DebateConfig(protocol="council"), 11)
    dialogue = DebateConfig.model_validate({"protocol": "dialogue", "dialogue": {"crux": {"max_rooms": 0}}})
    assert shorten_debate(dialogue, 10).to_json()["dialogue"]["max_aspects"] == 1
