"""`moot gc`: forks, replays, prompts and continued debates do not need what it deletes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.debates.lifecycle import prune, shrink
from tests.support.fakes import FakeModel
from tests.support.history import forks_and_prompts
from tests.support.transcripts import message_texts

CONFIGS: dict[str, Any] = {
    "round-robin": {"turns": 5, "memory": {"budget": {"messages": 200}}},
    "dialogue": {"protocol": "dialogue", "rounds": 1},
    "council": {"protocol": "council", "rounds": 1},
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.slow
def test_pruning_changes_no_history_and_no_replay(name: str, tmp_path: Path) -> None:
    environment = FakeModel().environment()
    with open_debates(str(tmp_path / "m.sqlite"), environment=environment) as debates:
        debate = debates.start("Should we?", DebateConfig.model_validate(CONFIGS[name]), name="d")
        debate.run()
        before = forks_and_prompts(debate)
        dropped, stored = prune(debate.session)
        assert 0 < dropped < stored
        assert forks_and_prompts(debate) == before
        assert prune(debate.session) == (0, stored - dropped)
        replayed = debates.replay("d", name="again").run()
        assert message_texts(replayed) == message_texts(before["document"])
        if debate.can_go_on():
            longer = debate.run(turns=2)["transcript"]
            assert longer[: len(before["document"]["transcript"])] == before["document"]["transcript"]
            assert prune(debate.session)[0]
            assert debate.document()["transcript"] == longer


def test_an_unfinished_debate_is_not_pruned(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "m.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start("Should we?", DebateConfig(turns=3))
        assert prune(debate.session) == (0, 0)


def test_the_file_is_rewritten_only_if_that_saves_space(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "m.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start("Should we?", DebateConfig(turns=9))
        debate.run()
        assert not shrink(debates.records.sql, pruned=False)
        debate.delete()
        assert shrink(debates.records.sql, pruned=False)
        assert debates.records.sql.execute("PRAGMA freelist_count") == [(0,)]
