"""How far judges agree, for the screen: a panel's judges side by side, a benchmark's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from moot.graph.cli.screen.entry_words import debater_names
from moot.graph.cli.screen.result_tables import borderless_table
from moot.graph.cli.screen.terminal_text import one_line
from moot.graph.cli.screen.verdict_screen import winner_text
from moot.nodes.judging.opinion_check import confidence_of
from moot.nodes.protocols.protocol_table import rules_of
from moot.state.amounts import amount

if TYPE_CHECKING:
    from rich.table import Table

    from moot.graph.judge_benchmark import BenchmarkResult
    from moot.graph.judgement import Judgement
    from moot.state.verdict import PanelReport, Rate


def agreement_parts(judgement: Judgement) -> list[RenderableType]:
    """Return the panel's table and figures; for one judge, whether the order changed its mind."""
    names = debater_names(judgement.config, 30)
    report = judgement.verdict.get("agreement")
    if not report:
        return []
    parts: list[RenderableType] = [Padding(_table(judgement, report, names), (1, 0, 0, 0))]
    if len(judgement.verdicts) > 1:
        figures = [
            f"α of scores {number(report['alpha'])}",
            f"mean κ {number(report['kappa'])}",
            f"flip rate {rate(report['flips'])}",
        ]
        parts.append(Text("Panel: " + " · ".join(figures)))
    return parts


def _table(judgement: Judgement, report: PanelReport, names: Mapping[str, str]) -> Table:
    table = borderless_table()
    for heading in ("judge", "model", "says", "confidence", "orders"):
        table.add_column(heading)
    protocol = rules_of({"config": judgement.config})
    dissenting = {each["judge"] for each in report["dissent"]}
    for verdict in judgement.verdicts:
        who = one_line(verdict["judge"], 40)
        said = winner_text(verdict, names, protocol) if verdict["status"] == "ok" else "failed"
        dissents = " (dissents)" if verdict["judge"] in dissenting else ""
        confidence = "–" if (sure := confidence_of(verdict)) is None else str(sure)
        orders = {True: "contradict each other", False: "agree", None: "one only"}[verdict["flip"]["flipped"]]
        cells = (who, one_line(verdict["model"], 40), said + dissents, confidence, orders)
        table.add_row(*map(Text, cells))
    return table


def benchmark_parts(measured: BenchmarkResult) -> list[RenderableType]:
    """Return a judge's figures beside those of people."""
    table = borderless_table()
    table.add_column("")
    columns = [(name, who) for name in measured.settings for who in ("judge", "humans")]
    for name, who in columns:
        table.add_column(f"{name}: {who}", justify="right")
    for label, key in (
        ("accuracy", "accuracy"),
        ("Brier", "brier"),
        ("log score", "log_score"),
        ("ECE", "ece"),
    ):
        table.add_row(label, *(_figure(measured.settings[name], who, key) for name, who in columns))
    lines = [
        f"{name}: agreement with the human panel {rate(found['panel']['agreement'])}, "
        f"κ {number(found['panel']['kappa'])}, {found['panel']['undecided']} undecided, "
        f"{amount(found['sessions'], 'session')}"
        for name, found in measured.settings.items()
    ]
    lines.append(f"answers that changed with their order: {rate(measured.flips)}")
    if measured.failed:
        lines.append(f"{amount(len(measured.failed), 'session')} without an answer")
    heading = Text(f"Judge {one_line(measured.model, 60)} on human-judged debates", "bold")
    return [heading, Padding(table, (1, 0)), *map(Text, lines)]


def _figure(found: Any, who: str, key: str) -> str:
    value = found[who][key]
    return (
        f"{number(value['rate'])} ({value['low']:.2f}–{value['high']:.2f})"
        if key == "accuracy"
        else number(value)
    )


def rate(value: Rate) -> str:
    """Return a proportion with its interval, in words."""
    if value["rate"] is None:
        return "–"
    return f"{value['rate']:.2f} ({value['low']:.2f}–{value['high']:.2f}, n = {value['n']})"


def number(value: float | None) -> str:
    """Return a coefficient with two decimals, `–` where it is undefined."""
    return "–" if value is None else f"{value:.2f}"
