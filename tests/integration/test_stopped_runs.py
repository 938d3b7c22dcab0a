from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moot.api import open_debates
from moot.config import DebateConfig
from moot.runtime.environment import Environment, record_progress
from moot.storage.records import Records
from tests.support.waiting import LONG_TIMEOUT_S


def test_a_run_stopped_while_it_records_progress_is_listed_as_paused(tmp_path: Path) -> None:
    recording, stopped, recorded = threading.Event(), threading.Event(), threading.Event()

    def slow_record(
        records: Records, debate: str, state: Mapping[str, Any], update: Mapping[str, Any], now: str
    ) -> None:
        if update.get("turn_count"):
            recording.set()
            stopped.wait(0.3)  # a stop that does not wait would finish in this time
        record_progress(records, debate, state, update, now)
        if recording.is_set():
            recorded.set()

    with open_debates(
        str(tmp_path / "d.sqlite"), environment=Environment(on_progress=slow_record)
    ) as debates:
        debate = debates.start("Who has the last word?", DebateConfig(turns=4))
        events = debate.stream()
        assert any(event["event"] == "entry" for event in events)
        assert recording.wait(LONG_TIMEOUT_S)
        events.close()  # type: ignore[attr-defined]  # a generator
        stopped.set()
        assert recorded.wait(LONG_TIMEOUT_S)
        assert debates.rows()[0].status == "paused"
