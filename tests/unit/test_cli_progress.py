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
from moot.state.config import DebateConfig, DebaterConfig, LimitsConfig
from moot.state.entries import make_entry
from moot.text.plain_text import all_done_reason, count_noun

NAMES = {"ada": "Ada"}
QUESTIONS = [
    {"id": "q1", "debater": "ada", "name": "Ada", "question": "Which year?"},
    {"id": "q2", "debater": "ada", "name": "Ada", "question": "Where?"},
]


def _entry_event(content: str) -> Any:
    return {"event": "entry", "entry": make_entry(1, "ada", "speech", content, phase="opening", tokens=3)}


def test_the_bar_runs_towards_the_nearest_limit() -> None:
    config = DebateConfig(turns=10, limits=LimitsConfig(total_tokens=1000))
    assert RunTally(turns=1, tokens=900, config=config, planned=10).goal() == Goal("tokens", 900, 1000)
    assert RunTally(turns=5, tokens=100, config=config, planned=10).goal() == Goal("turn", 5, 10)


def test_the_bar_follows_the_configuration() -> None:
    tally = RunTally(turns=1)
    tally.follow(DebateConfig(turns=8))
    assert tally.goal() == Goal("turn", 1, 8)


def test_the_turns_of_people_count_as_well() -> None:
    tally = RunTally(turns=1)
    people = [DebaterConfig(name="Arch"), DebaterConfig(name="Robin", model="human")]
    tally.follow(DebateConfig(protocol="council", rounds=1, debaters=tuple(people)))
    assert str(tally.goal()) == "turn 1/6"


def test_no_total_is_shown_where_it_is_not_known() -> None:
    tally = RunTally(turns=25)
    tally.follow(DebateConfig(protocol="dialogue"))
    assert str(tally.goal()) == "turn 25"
    tally.follow(DebateConfig(protocol="single"))  # answered again, for somebody spoke up
    assert str(tally.goal()) == "turn 25"


def test_a_goal_is_never_more_than_reached() -> None:
    assert Goal("turn", 12, 10).share == 1.0
    assert str(Goal("turn", 12, 10)) == "turn 10/10"


def test_an_utterance_is_one_safe_line() -> None:
    line = event_line(
        _entry_event("first\n\x1b[31msecond"), NAMES, RunTally(turns=1, config=DebateConfig(), planned=4)
    )
    assert line == "[turn 1/4] Ada (opening): first ␛[31msecond"


@pytest.mark.parametrize(
    ("fields", "words"),
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
def test_an_entry_says_what_it_is_whom_it_answers_and_where(fields: dict[str, Any], words: str) -> None:
    entry = make_entry(4, "bo", content="Words.", **fields)
    assert entry_label(entry, NAMES) == words
    assert event_line({"event": "entry", "entry": entry}, NAMES, RunTally()).endswith(f"bo ({words}): Words.")


@pytest.mark.parametrize(
    "event",
    [
        {"event": "step", "kind": "turn", "phase": "opening", "round": 1, "speakers": ["ada"]},
        {"event": "token", "id": "m000001", "speaker": "ada", "text": "x"},
        {"event": "of-the-future"},
    ],
    ids=lambda event: event["event"],
)
def test_what_is_not_worth_a_line_has_none(event: Any) -> None:
    assert event_line(event, NAMES, RunTally()) == ""


def test_the_header_says_which_model_runs_and_how_to_use_a_real_one() -> None:
    said = "\n".join(header_lines("Why?", DebateConfig()))
    assert "offline model (built in; no network)" in said
    assert "--model" in said
    assert "moot setup" in said
    assert "offline" not in "\n".join(header_lines("Why?", DebateConfig(model="gpt-4o")))


def test_a_key_without_a_model_is_told_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert header_lines("Why?", DebateConfig())[-1] == "OPENAI_API_KEY is set: choose a model with --model."


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "OPENAI_BASE_URL", "NONE"])
def test_who_chose_the_offline_model_is_told_of_no_other(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    lines = header_lines("Why?", DebateConfig(model="offline"), model_chosen=True)
    assert not [line for line in lines if "--model" in line]


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
def test_questions_are_readable_whatever_their_shape(payload: object, lines: list[str]) -> None:
    assert question_lines(payload) == lines


@pytest.mark.parametrize("width", [80, 140])
def test_the_live_screen_shows_who_speaks_what_is_spent_and_no_markup(
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
    said = written.getvalue()
    assert "[bold]no markup[/bold] :smile:" in said
    assert "1,234 tokens" in said
    assert "turn 1/4" in said
    assert "␛[2J" in said
    assert "\x1b[2J\u202e" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize("height", [6, 10, 24, 50])
def test_the_live_part_fits_the_terminal_whoever_speaks(height: int, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_failed_verdict_shows_nothing_but_that() -> None:
    document = {"verdict": {"status": "failed", "error": "no answer", "winner": "ada"}, "config": {}}
    assert [str(part) for part in verdict_parts(document)] == ["The verdict failed: no answer"]


def test_the_live_part_says_how_long_what_goes_on_has_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    written, now = io.StringIO(), [0.0]
    console = Console(file=written, width=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(live, "err_console", lambda: console)
    screen = live.LiveScreen(NAMES, clock=lambda: now[0])
    step: Any = {"event": "step", "kind": "turn", "phase": "opening", "round": 1, "speakers": ["ada"]}
    for said, at in (("12 s · starting", 12.0), ("3 s · Ada · opening", 15.0)):
        now[0] = at
        console.print(screen._render())
        assert said in written.getvalue()
        if at == 12.0:
            screen.show(step, RunTally())


def test_a_wait_is_told_whole_where_a_terminal_is_80_columns_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=(written := io.StringIO()), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(live, "err_console", lambda: console)
    screen = live.LiveScreen(NAMES)
    wait: Any = {"event": "retry", "model": "gpt-4o-mini", "words": "rate limited, retry 3 of 5 in 8 s"}
    screen.show(wait, RunTally(turns=1, tokens=1234, planned=12))
    console.print(screen._render())
    assert "gpt-4o-mini: rate limited, retry 3 of 5 in 8 s" in written.getvalue()


def test_events_are_json_lines_where_a_program_reads_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with make_progress(NAMES, Delivery(log_json=True)) as log:
        log.show(_entry_event("first\nsecond"), RunTally(tokens=12))
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["event"], told["entry"]["content"], told["tokens"]) == ("entry", "first\nsecond", 12)


def test_numbers_and_their_nouns_agree() -> None:
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
