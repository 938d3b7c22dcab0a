from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moot.api import open_debates
from moot.runtime.environment import Environment, record_progress
from moot.state.config import DebateConfig
from moot.storage.records import Records
from tests.support.patience import LONG_TIMEOUT_S


def test_a_run_that_is_stopped_while_it_notes_its_progress_is_listed_as_paused(tmp_path: Path) -> None:
    noting, stopped, noted = threading.Event(), threading.Event(), threading.Event()

    def slow_note(
        records: Records, debate: str, state: Mapping[str, Any], update: Mapping[str, Any], now: str
    ) -> None:
        if update.get("turn_count"):
            noting.set()
            stopped.wait(0.3)  # long enough for a stop that does not wait to get ahead
        record_progress(records, debate, state, update, now)
        if noting.is_set():
            noted.set()

    with open_debates(str(tmp_path / "d.sqlite"), environment=Environment(on_progress=slow_note)) as debates:
        debate = debates.start("Who has the last word?", DebateConfig(turns=4))
        events = debate.stream()
        assert any(event["event"] == "entry" for event in events)
        assert noting.wait(LONG_TIMEOUT_S)
        events.close()  # type: ignore[attr-defined]  # a generator
        stopped.set()
        assert noted.wait(LONG_TIMEOUT_S)
        assert debates.rows()[0].status == "paused"
