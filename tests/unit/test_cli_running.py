from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.text import Text

from moot.api import Debate, open_debates
from moot.calls.concurrency import stop
from moot.cli import terminal
from moot.cli.commands.show import show
from moot.cli.options import Delivery
from moot.cli.running import handle_sigterm_as_interrupt, resumed_line, run_to_end
from moot.cli.show_parts import answer_parts, bulleted, line_count, verdict_parts
from moot.config import DebateConfig
from moot.models.offline import recording_config
from moot.state.errors import DebateBusy, DebatePaused, JudgeFailed, ModelError, WaitingForPerson
from moot.storage.catalogue import DebateRow
from tests.support.report_documents import VERDICT, debate_document

ROW = DebateRow("d0000000-0000", "mine", "Why?", "round-robin", "running", 1, 2, 0.0, "", "then", "now")


class StoppingDebate:
    """Fake debate whose run stops with a given exception."""

    id, name, row = ROW.id, ROW.name, ROW

    def __init__(self, stop: BaseException | None, verdict: dict[str, Any] | None = None) -> None:
        self._stop, self._verdict = stop, verdict

    def state(self) -> Any:
        return SimpleNamespace(values={"topic": "Why?"})

    def config(self) -> DebateConfig:
        return DebateConfig()

    def stream(self, **going_on: Any) -> Iterator[dict[str, Any]]:
        yield {"event": "step", "kind": "turn", "phase": "opening", "round": 1, "speakers": ["advocate"]}
        if self._stop:
            raise self._stop

    def can_go_on(self) -> bool:
        return True

    def document(self) -> dict[str, Any]:
        usage = {"calls": 1, "prompt_tokens": 1, "completion_tokens": 1, "cost_usd": 0.0}
        return {"config": DebateConfig().to_json(), "usage": usage, "verdict": self._verdict, "solution": ""}


def _run(stop: BaseException | None, *, verdict: dict[str, Any] | None = None, db: str | None = None) -> int:
    return run_to_end(cast(Debate, StoppingDebate(stop, verdict)), Delivery(db=db))


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        (KeyboardInterrupt(), 130),
        (ModelError("no answer"), 3),
        (JudgeFailed("no verdict"), 3),
        (WaitingForPerson("it waits", questions=[{"question": "Which year?"}]), 6),
        (DebatePaused("it is paused"), 130),
    ],
    ids=["interrupted", "model failed", "judge failed", "waiting", "paused"],
)
def test_every_stop_has_an_exit_code_and_prints_the_resume_command(
    stop: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(stop) == code
    assert "moot resume mine" in capsys.readouterr().err


def test_questions_are_printed_with_the_command_that_answers(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"id": "ada.1", "debater": "ada", "name": "Ada", "question": "Which \x1b[2Jyear?"}
    _run(WaitingForPerson("it waits", questions=[{"kind": "clarifications", "questions": [asked]}]))
    errors = capsys.readouterr().err
    assert "Ada:\n    ada.1: Which ␛[2Jyear?\n" in errors
    assert "--answer TEXT" in errors


def test_resume_command_names_and_quotes_the_database(capsys: pytest.CaptureFixture[str]) -> None:
    _run(ModelError("no answer"), db="my debates.sqlite")
    assert "moot resume mine --db 'my debates.sqlite'" in capsys.readouterr().err


def test_resumed_debate_prints_where_it_continues(capsys: pytest.CaptureFixture[str]) -> None:
    _run(None)
    assert "Continues after 1 of 6 turns\n" in capsys.readouterr().err
    assert resumed_line(2, 3, DebateConfig()) == ["Continues after 2 turns, for 3 more turns"]
    assert resumed_line(0, None, DebateConfig()) == []


def test_failed_verdict_exits_with_code_3() -> None:
    assert _run(None, verdict={"status": "failed", "error": "no answer"}) == 3
    assert _run(None, verdict=None) == 0


def test_debate_in_use_raises_debate_busy() -> None:
    with pytest.raises(DebateBusy):
        _run(DebateBusy("in use by process 7", pid=7))


def test_sigterm_ends_a_run_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch) -> None:
    debate = StoppingDebate(None)

    def stream(**going_on: Any) -> Iterator[dict[str, Any]]:
        os.kill(os.getpid(), signal.SIGTERM)
        yield from ()

    monkeypatch.setattr(debate, "stream", stream)
    former = signal.getsignal(signal.SIGTERM)
    assert run_to_end(cast(Debate, debate), Delivery(quiet=True)) == 130
    assert signal.getsignal(signal.SIGTERM) is former


@pytest.mark.parametrize(("grace", "times"), [(True, 1), (False, 2)], ids=["charged call", "no charged call"])
def test_interrupt_waits_only_for_calls_that_are_charged(
    grace: bool, times: int, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        with pytest.raises(KeyboardInterrupt), handle_sigterm_as_interrupt(grace=grace):
            signal.raise_signal(signal.SIGINT)
        assert stop.times == times
    finally:
        stop.times = 0
    assert ("to finish" in capfd.readouterr().err) is grace


def test_short_answer_omits_the_dissent_that_the_verdict_shows() -> None:
    verdict = {**VERDICT, "decision": "Keep one deployable.", "confidence": 80.0, "dissent": ["It decays."]}
    document = debate_document(protocol="round-robin", verdict=verdict)
    short, whole = (
        "\n".join(part.plain for part in parts(document) if isinstance(part, Text))
        for parts in (answer_parts, verdict_parts)
    )
    assert short.index("Decision: Keep one deployable.") < short.index("Confidence: 80 of 100")
    assert "First step: Cut the ledger out first" in short
    assert "Dissent" not in short
    assert "Dissent:\n- It decays." in whole


@pytest.mark.parametrize("lines", [20, 16, 12])
def test_short_answer_fits_the_screen_and_keeps_the_decision_whole(lines: int) -> None:
    items = [f"{'word ' * 40}{number}" for number in range(9)]
    verdict = {
        **VERDICT,
        "question": "Should we? " * 30,
        "decision": "Keep one deployable. " * 8,
        "confidence": 80.0,
        "conditions": items,
        "would_reverse": items,
        "read": {"full": 1, "part": 1, "of": 9},
    }
    parts = answer_parts(debate_document(protocol="round-robin", verdict=verdict), lines)
    text = "\n".join(str(part) for part in parts)
    assert line_count(parts) <= lines
    assert text.startswith("The judge read 1 of 9 messages in full")
    assert ("Keep one deployable. " * 8).strip() in text
    assert "more):" in text


def test_short_answer_shows_a_failed_verdict() -> None:
    failed = debate_document(verdict={**VERDICT, "status": "failed", "error": "no reply"})
    assert [str(part) for part in answer_parts(failed)] == ["The verdict failed: no reply"]


def test_a_long_list_item_is_indented() -> None:
    first, *others = bulleted("word " * 60).split("\n")
    assert first.startswith("- word")
    assert others
    assert all(line.startswith("  word") for line in others)


def test_show_ends_with_the_answer_on_one_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "d.sqlite")
    with open_debates(database) as debates:
        debates.start(None, DebateConfig.model_validate(recording_config("monolith")), name="mono").run()
        debates.start("Trams?", DebateConfig(turns=2), name="offline").run()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    show("mono", db=database)
    shown, notes = capfd.readouterr()
    assert len(shown.splitlines()) + len(notes.splitlines()) < 24
    assert shown.index("status") < shown.index("Decision: Do not split this year")
    assert shown.splitlines()[-1].startswith("- ")
    assert f"moot show mono --verdict --db {database}" in notes
    show("offline", db=database)
    assert capfd.readouterr().out.startswith("Trams?")
    monkeypatch.setattr(terminal, "is_terminal", lambda: False)
    show("mono", db=database)
    assert "Final positions" in capfd.readouterr().out
