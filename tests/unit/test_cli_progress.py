"""Progress of a run in the terminal: bar, event lines, live screen and JSON log."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from moot.cli import live
from moot.cli.live import Goal, RunTally, event_line, header_lines, question_lines
from moot.cli.options import Delivery
from moot.cli.running import make_progress
from moot.cli.show_parts import verdict_parts
from moot.cli.terminal import entry_label
from moot.config import DebateConfig, DebaterConfig, LimitsConfig
from moot.state.entries import make_entry
from moot.text.plain_text import all_done_reason, count_noun

NAMES = {"ada": "Ada"}
QUESTIONS = [
    {"id": "q1", "debater": "ada", "name": "Ada", "question": "Which year?"},
    {"id": "q2", "debater": "ada", "name": "Ada", "question": "Where?"},
]


def _entry_event(content: str) -> Any:
    return {"event": "entry", "entry": make_entry(1, "ada", "speech", content, phase="opening", tokens=3)}


def test_the_bar_shows_the_nearest_limit() -> None:
    config = DebateConfig(turns=10, limits=LimitsConfig(total_tokens=1000))
    assert RunTally(turns=1, tokens=900, config=config, planned=10).goal() == Goal("tokens", 900, 1000)
    assert RunTally(turns=5, tokens=100, config=config, planned=10).goal() == Goal("turn", 5, 10)


def test_the_bar_uses_the_configured_turns() -> None:
    tally = RunTally(turns=1)
    tally.follow(DebateConfig(turns=8))
    assert tally.goal() == Goal("turn", 1, 8)


def test_the_bar_counts_the_turns_of_people() -> None:
    tally = RunTally(turns=1)
    people = [DebaterConfig(name="Arch"), DebaterConfig(name="Robin", model="human")]
    tally.follow(DebateConfig(protocol="council", rounds=1, debaters=tuple(people)))
    assert str(tally.goal()) == "turn 1/6"


def test_the_bar_shows_no_total_if_it_is_unknown() -> None:
    tally = RunTally(turns=25)
    tally.follow(DebateConfig(protocol="dialogue"))
    assert str(tally.goal()) == "turn 25"
    tally.follow(DebateConfig(protocol="single"))  # a second answer, after an interjection
    assert str(tally.goal()) == "turn 25"


def test_progress_never_exceeds_its_goal() -> None:
    assert Goal("turn", 12, 10).share == 1.0
    assert str(Goal("turn", 12, 10)) == "turn 10/10"


def test_a_message_is_one_escaped_line() -> None:
    line = event_line(
        _entry_event("first\n\x1b[31msecond"), NAMES, RunTally(turns=1, config=DebateConfig(), planned=4)
    )
    assert line == "[turn 1/4] Ada (opening): first ␛[31msecond"


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"kind": "speech", "phase": "opening"}, "opening"),
        ({"kind": "speech"}, "speech"),
        ({"kind": "critique", "phase": "critique", "targets": ["ada"]}, "critique → Ada"),
        (
            {"kind": "speech", "phase": "exchange", "targets": ["ada", "m000003"], "room": "room-01"},
            "exchange → Ada, m000003 · in room-01",
        ),
        ({"kind": "question", "phase": "clarify", "targets": ["user"]}, "question → user"),
        ({"kind": "answer", "phase": "clarify", "targets": ["m000001"]}, "answer → m000001"),
        ({"kind": "tool_result", "phase": "argument"}, "tool result"),
        ({"kind": "notice", "phase": "critique", "targets": ["\x1b[2J"]}, "notice → ␛[2J"),
    ],
    ids=["phase", "no phase", "critique", "room", "question", "answer", "tool result", "hostile notice"],
)
def test_entry_labels_show_kind_targets_and_room(fields: dict[str, Any], label: str) -> None:
    entry = make_entry(4, "bo", content="Words.", **fields)
    assert entry_label(entry, NAMES) == label
    assert event_line({"event": "entry", "entry": entry}, NAMES, RunTally()).endswith(f"bo ({label}): Words.")


@pytest.mark.parametrize(
    "event",
    [
        {"event": "step", "kind": "turn", "phase": "opening", "round": 1, "speakers": ["ada"]},
        {"event": "token", "id": "m000001", "speaker": "ada", "text": "x"},
        {"event": "of-the-future"},
    ],
    ids=lambda event: event["event"],
)
def test_other_events_print_no_line(event: Any) -> None:
    assert event_line(event, NAMES, RunTally()) == ""


def test_the_header_names_the_model_or_says_that_none_is_set() -> None:
    assert "offline model (built in; no network)" in header_lines("Why?", DebateConfig(model="offline"))[1]
    assert "no model is set: run `moot setup`" in header_lines("Why?", DebateConfig())[1]
    assert "gpt-4o" in header_lines("Why?", DebateConfig(model="gpt-4o"))[1]


@pytest.mark.parametrize(
    ("payload", "lines"),
    [
        ("Which year?", ["Which year?"]),
        ({"questions": QUESTIONS}, ["Ada:", "  q1: Which year?", "  q2: Where?"]),
        ([{"a": 1}], ["[{'a': 1}]"]),
        ("\x1b[2J", ["␛[2J"]),
    ],
    ids=["text", "questions", "unknown shape", "hostile"],
)
def test_question_lines_accept_any_payload(payload: object, lines: list[str]) -> None:
    assert question_lines(payload) == lines


@pytest.mark.parametrize("width", [80, 140])
def test_the_live_screen_shows_messages_and_usage_without_markup(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    console = Console(
        file=written, width=width, force_terminal=True, markup=False, highlight=False, emoji=False
    )
    monkeypatch.setattr(live, "err_console", lambda: console)
    tally = RunTally(turns=1, tokens=1234, cost_usd=0.5, config=DebateConfig(), planned=4)
    hostile = "[bold]no markup[/bold] :smile: \x1b[2J\u202e" + "long words " * 60
    with live.LiveScreen(NAMES) as screen:
        step: Any = {"event": "step", "kind": "turn", "phase": "opening", "round": 1, "speakers": ["ada"]}
        screen.show(step, tally)
        screen.show({"event": "token", "id": "m000001", "speaker": "ada", "text": hostile}, tally)
        console.print(screen._render())
        screen.show(_entry_event(hostile), tally)
    output = written.getvalue()
    assert "[bold]no markup[/bold] :smile:" in output
    assert "1,234 tokens" in output
    assert "turn 1/4" in output
    assert "␛[2J" in output
    assert "\x1b[2J\u202e" not in output
    assert "\u202e" not in output


@pytest.mark.parametrize("height", [6, 10, 24, 50])
def test_the_live_screen_fits_the_terminal(height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=60, height=height, force_terminal=True, markup=False)
    monkeypatch.setattr(live, "err_console", lambda: console)
    screen = live.LiveScreen(NAMES)
    for number in range(9):
        token: Any = {
            "event": "token",
            "id": f"m{number}",
            "speaker": f"d{number}",
            "text": "long words " * 300,
        }
        screen.show(token, RunTally())
    lines = console.render_lines(screen._render(), console.options)
    assert len(lines) <= height
    assert "tokens" in "".join(segment.text for segment in lines[-1])


def test_a_failed_verdict_shows_only_its_error() -> None:
    document = {"verdict": {"status": "failed", "error": "no answer", "winner": "ada"}, "config": {}}
    assert [str(part) for part in verdict_parts(document)] == ["The verdict failed: no answer"]


def test_the_live_screen_shows_the_duration_of_the_current_step(monkeypatch: pytest.MonkeyPatch) -> None:
    written, now = io.StringIO(), [0.0]
    console = Console(file=written, width=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(live, "err_console", lambda: console)
    screen = live.LiveScreen(NAMES, clock=lambda: now[0])
    step: Any = {"event": "step", "kind": "turn", "phase": "opening", "round": 1, "speakers": ["ada"]}
    for expected, at in (("12 s · starting", 12.0), ("3 s · Ada · opening", 15.0)):
        now[0] = at
        console.print(screen._render())
        assert expected in written.getvalue()
        if at == 12.0:
            screen.show(step, RunTally())


def test_a_retry_message_fits_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=(written := io.StringIO()), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(live, "err_console", lambda: console)
    screen = live.LiveScreen(NAMES)
    wait: Any = {"event": "retry", "model": "gpt-4o-mini", "words": "rate limited, retry 3 of 5 in 8 s"}
    screen.show(wait, RunTally(turns=1, tokens=1234, planned=12))
    console.print(screen._render())
    assert "gpt-4o-mini: rate limited, retry 3 of 5 in 8 s" in written.getvalue()


def test_log_json_writes_events_as_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with make_progress(NAMES, Delivery(log_json=True)) as log:
        log.show(_entry_event("first\nsecond"), RunTally(tokens=12))
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["event"], event["entry"]["content"], event["tokens"]) == ("entry", "first\nsecond", 12)


def test_nouns_agree_with_their_numbers() -> None:
    assert [
        count_noun(n, word) for n, word in ((1, "round"), (2, "entry"), (1200, "match"), (0, "call"))
    ] == [
        "1 round",
        "2 entries",
        "1,200 matches",
        "0 calls",
    ]
    assert all_done_reason(1, "round", "done") == "the one round is done"
    assert all_done_reason(3, "round", "done") == "all 3 rounds are done"
