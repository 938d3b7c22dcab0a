"""A verdict for the screen: winner, scores, confidence, reasoning; a failed one says so and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from moot.graph.cli.screen.terminal_text import one_line, safe
from moot.nodes.judging.decision import RULES
from moot.state.verdict import PANEL, PLACEHOLDER, SYNTHESIS, TIE

MOST_COLUMNS = 5
"""Debaters that have a column each; more get a line each, with their totals alone."""

_NOBODY = {TIE: "a tie", SYNTHESIS: "a synthesis of several"}


def verdict_parts(document: Mapping[str, Any]) -> list[RenderableType]:
    """Return what is printed of a debate's verdict."""
    verdict = document.get("verdict")
    if not verdict:
        return [Text("No verdict.")]
    if verdict.get("status") == "failed":
        return [Text(f"The verdict failed: {safe(verdict.get('error', ''))}", "bold red")]
    names = {
        debater["id"]: one_line(debater["name"], 30) for debater in document["config"].get("debaters", [])
    }
    if verdict.get("placeholder"):  # its scores mean nothing, and its words say so once more
        return [_headline(verdict, names), *_prose("Solution", [document.get("solution") or ""])]
    return [
        _headline(verdict, names),
        *_ruling(verdict, names),
        *_prose("Note", verdict.get("notes", [])),
        *_scores(verdict, names),
        *_prose(_whose(verdict), [verdict.get("reasoning", "")]),
        *_prose("Unmet", [item["text"] for item in verdict.get("unmet_requirements", [])]),
        *_prose("Open", verdict.get("open_questions", [])),
        *_prose("Solution", [document.get("solution") or ""]),
    ]


def winner_text(verdict: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return who won, in words; of a placeholder that it is one."""
    if verdict.get("placeholder"):
        return PLACEHOLDER
    winner = verdict.get("winner", "")
    return _NOBODY.get(winner) or f"{_choice(winner, names)} wins"


def _choice(said: str, names: Mapping[str, str]) -> str:
    return _NOBODY.get(said) or names.get(said, one_line(said, 30))


def _ruling(verdict: Mapping[str, Any], names: Mapping[str, str]) -> list[RenderableType]:
    """Return what a panel's rule counted, in a line, and who chose otherwise."""
    outcome = verdict.get("outcome")
    if verdict.get("judge") != PANEL or not outcome:
        return []
    ranked = sorted(outcome["tally"].items(), key=lambda row: -row[1])
    tally = " · ".join(f"{_choice(who, names)} {value:.4g}" for who, value in ranked)
    lines = [f"Rule {outcome['rule']}, {RULES[outcome['rule']].counts}: {tally}"]
    chosen = [
        f"{one_line(each['judge'], 40)} ({_choice(each['winner'], names)})" for each in outcome["dissent"]
    ]
    if chosen:
        lines.append(f"Judges who chose otherwise: {', '.join(chosen)}")
    return [Text(line) for line in lines]


def _whose(verdict: Mapping[str, Any]) -> str:
    """Return whose words stand for a panel's; nobody's name for one judge's own."""
    return f"In the words of {one_line(verdict['speaker'], 40)}" if verdict.get("speaker") else ""


def _headline(verdict: Mapping[str, Any], names: Mapping[str, str]) -> Text:
    confidence = f"  confidence {verdict.get('confidence', 0):.0f} of 100"
    return Text.assemble(
        (f"Verdict: {winner_text(verdict, names)}", "bold"),
        "" if verdict.get("placeholder") else confidence,
        (f"  {one_line(verdict.get('judge', ''), 40)} · {one_line(verdict.get('model', ''), 60)}", "dim"),
    )


def _scores(verdict: Mapping[str, Any], names: Mapping[str, str]) -> list[RenderableType]:
    scores: Mapping[str, Mapping[str, Any]] = verdict.get("scores") or {}
    debaters = [name for name in names if name in scores]
    if not debaters:
        return []
    few = len(debaters) <= MOST_COLUMNS
    table = _by_criterion(verdict, names, debaters) if few else _totals(verdict, names, debaters)
    return [Padding(table, (1, 0, 0, 0))]


def _by_criterion(verdict: Mapping[str, Any], names: Mapping[str, str], debaters: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for debater in debaters:
        table.add_column(Text(names[debater]), justify="right", max_width=16)
    criteria = dict.fromkeys(key for debater in debaters for key in verdict["scores"][debater])
    called = {each["id"]: each["name"] for each in verdict.get("criteria", [])}
    for criterion in criteria:
        records = [verdict["scores"][debater].get(criterion) for debater in debaters]
        label = one_line(called.get(criterion) or criterion.replace("_", " "), 40)
        table.add_row(Text(label), *(f"{record['score']:.1f}" if record else "–" for record in records))
    totals = verdict.get("totals") or {}
    table.add_row(
        Text("total of 100", "bold"), *(f"{totals[each]:.0f}" if each in totals else "–" for each in debaters)
    )
    lengths = verdict.get("lengths") or {}
    if lengths:
        table.add_row(Text("tokens said", "dim"), *(_length(lengths, each) for each in debaters))
    return table


def _totals(verdict: Mapping[str, Any], names: Mapping[str, str], debaters: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("total of 100", justify="right")
    table.add_column("tokens said", justify="right")
    totals, lengths = verdict.get("totals") or {}, verdict.get("lengths") or {}
    for debater in sorted(debaters, key=lambda each: -totals.get(each, 0)):
        total = f"{totals[debater]:.0f}" if debater in totals else "–"
        table.add_row(Text(names[debater]), total, _length(lengths, debater))
    return table


def _length(lengths: Mapping[str, int], debater: str) -> str:
    return f"{lengths[debater]:,}" if debater in lengths else "–"


def _prose(label: str, texts: Iterable[str]) -> list[RenderableType]:
    said = [text for text in texts if text.strip()]
    prefix = f"{label}: " if label else ""
    return [Padding(Text(prefix + safe(text)), (1 if i == 0 else 0, 0, 0, 0)) for i, text in enumerate(said)]
