"""Markdown on a terminal and in a pipe."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from moot import DebateConfig
from moot.cli import terminal
from moot.cli.commands import plan
from moot.cli.show_parts import verdict_parts
from moot.cli.terminal import MarkdownText, wrap_for_terminal
from moot.debates.dry_run import estimate
from tests.support.report_documents import VERDICT

TEXT = """## The decision

Keep **one** deployable, and *repair* how it is released; `psql` stays. <b>No tag</b> is lost.

- Merge trains of three, so that a rollback takes back three changes and not fifteen
- Database roles for each module

| option | cost |
|---|---|
| split | 12 |
"""


def _render(text: str, width: int, *, terminal: bool) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, markup=False, emoji=False, color_system=None
    )
    console.print(MarkdownText(text))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 40])
def test_terminals_show_formatted_markdown_without_broken_words(width: int) -> None:
    output = re.sub("\x1b\\[[0-9;]*m", "", _render(TEXT, width, terminal=True))
    assert not {"##", "**", "`"} & set(re.findall(r"##|\*\*|`", output))
    assert set(re.findall(r"\w+", TEXT)) <= set(re.findall(r"\w+", output))
    assert "<b>No tag</b>" in output
    assert max(map(len, output.splitlines())) <= width


def test_pipes_get_the_unformatted_text() -> None:
    assert _render(TEXT, 200, terminal=False).split() == TEXT.split()


def test_only_long_solutions_start_below_their_label() -> None:
    for solution, label in ((TEXT, "Solution:\n"), ("Tabs.", "Solution: Tabs.")):
        parts = verdict_parts({"verdict": {}, "solution": solution, "config": {"protocol": "council"}})
        console = Console(file=io.StringIO(), width=80, color_system=None)
        console.print(*parts)
        assert isinstance(console.file, io.StringIO)
        assert label in "\n".join(map(str.rstrip, console.file.getvalue().splitlines())) + "\n"


@pytest.mark.parametrize("columns", [80, 40])
def test_terminal_messages_are_wrapped_between_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(columns))
    words = (
        "A --config that says otherwise is refused, naming the keys that differ, unless --reconfigure. " * 3
    )
    lines = wrap_for_terminal(words, Terminal()).splitlines()
    assert all(len(line) <= columns for line in lines)
    assert " ".join(lines).split() == words.split()


@pytest.mark.parametrize("columns", [80, 40])
def test_scores_and_plans_break_no_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("Ada Lindqvist", "Benjamin Okafor")
    debaters = [{"id": name[:3].lower(), "name": name} for name in names]
    score = {"score": 7.0, "reasoning": "", "citations": []}
    verdict = {
        **VERDICT,
        "winner": "ada",
        "scores": {each["id"]: {"responsiveness_and_rebuttal": score} for each in debaters},
        "totals": {each["id"]: 70.0 for each in debaters},
        "lengths": {},
        "criteria": [],
    }
    monkeypatch.setattr(terminal, "columns", lambda: columns)
    config = {"protocol": "round-robin", "debaters": debaters}
    planned = estimate(DebateConfig(protocol="council"))
    assert planned
    for parts, wanted in (
        (verdict_parts({"verdict": verdict, "config": config}), [*names, "responsiveness and rebuttal"]),
        (plan.plan_parts(planned, 5.0, ["m"]), ["critique", "propose", "judge"]),
    ):
        console = Console(file=io.StringIO(), width=columns, color_system=None)
        console.print(*parts)
        assert isinstance(console.file, io.StringIO)
        output = console.file.getvalue()
        assert "…" not in output
        assert {word for each in wanted for word in each.split()} <= set(output.split())
