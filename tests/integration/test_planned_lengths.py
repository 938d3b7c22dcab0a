"""Planned and actual lengths of debates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.config.config_files import make_config
from moot.protocols.registry import turns_planned

BASE = {"seed": 1, "judge": {"enabled": False}}
DIALOGUE: dict[str, Any] = {"aspects": ["cost", "speed"], "minirounds": 2, "crux": {"max_rooms": 0}}


@pytest.mark.parametrize(
    "config",
    [
        {"turns": 5},
        {"protocol": "moderated", "rounds": 2},
        {"protocol": "random", "turns": 3},
        {"protocol": "council", "rounds": 2},
        {"protocol": "council", "rounds": 1, "turns": 20},
        {"protocol": "dialogue", "dialogue": DIALOGUE},
        {"protocol": "vote", "vote": {"answers": 4}},
        {"protocol": "single"},
    ],
    ids=lambda config: "-".join(map(str, config.values()))[:24],
)
def test_a_debate_has_the_planned_number_of_turns(tmp_path: Path, config: dict[str, Any]) -> None:
    settings = make_config({**BASE, **config})
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Is a bridge better than a ferry?", settings)
        debate.run()
        taken = debate.state().values["turn_count"]
    assert taken == turns_planned(settings)
