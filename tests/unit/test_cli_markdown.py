"""Markdown on a terminal and in a pipe."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from moot import DebateConfig
from moot.cli import terminal
from moot.cli.commands import run
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


def _shown(text: str, width: int, *, terminal: bool) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, markup=False, emoji=False, color_system=None
    )
    console.print(MarkdownText(text))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 40])
def test_markdown_is_laid_out_on_a_terminal_and_no_word_is_broken(width: int) -> None:
    said = re.sub("\x1b\\[[0-9;]*m", "", _shown(TEXT, width, terminal=True))
    assert not {"##", "**", "`"} & set(re.findall(r"##|\*\*|`", said))
    assert set(re.findall(r"\w+", TEXT)) <= set(re.findall(r"\w+", said))
    assert "<b>No tag</b>" in said
    assert max(map(len, said.splitlines())) <= width


def test_a_pipe_gets_the_text_as_it_stands() -> None:
    assert _shown(TEXT, 200, terminal=False).split() == TEXT.split()


def test_a_solution_is_laid_out_and_a_short_answer_stands_behind_its_label() -> None:
    for solution, label in ((TEXT, "Solution:\n"), ("Tabs.", "Solution: Tabs.")):
        parts = verdict_parts({"verdict": {}, "solution": solution, "config": {"protocol": "council"}})
        console = Console(file=io.StringIO(), width=80, color_system=None)
        console.print(*parts)
        assert isinstance(console.file, io.StringIO)
        assert label in "\n".join(map(str.rstrip, console.file.getvalue().splitlines())) + "\n"


@pytest.mark.parametrize("columns", [80, 40])
def test_a_remark_is_wrapped_between_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_scores_and_plans_break_no_word(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
        (run.plan_parts(planned, 5.0, ["m"]), ["critique", "propose", "judge"]),
    ):
        console = Console(file=io.StringIO(), width=columns, color_system=None)
        console.print(*parts)
        assert isinstance(console.file, io.StringIO)
        said = console.file.getvalue()
        assert "…" not in said
        assert {word for each in wanted for word in each.split()} <= set(said.split())
