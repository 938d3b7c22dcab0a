"""Verdicts for the screen: winner, scores, reasoning, and how far judges agree; a failed one says no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from moot.graph.cli.screen.output import MarkdownText, columns
from moot.graph.cli.screen.result_tables import borderless_table, number, rate
from moot.graph.cli.screen.terminal_text import debater_names, one_line, safe
from moot.nodes.judging.decision import RULES
from moot.nodes.judging.opinion_check import changed_text, confidence_of
from moot.nodes.protocols.protocol import Protocol
from moot.nodes.protocols.protocol_table import rules_of
from moot.nodes.text.plain import amount
from moot.state.verdict import NO_WINNER, PANEL, PLACEHOLDER, Decision, Verdict

if TYPE_CHECKING:
    from moot.graph.judge_benchmark import BenchmarkResult
    from moot.graph.judgement import Judgement

MOST_COLUMNS = 5
"""Debaters that have a column each; more get a line each, with their totals alone."""
LABEL_CHARS, NAME_CHARS = 30, 16
"""Widths of the columns of criteria and of debaters."""
BELOW = (1, 0, 0, 0)
"""Padding of what has a blank line above it."""


def verdict_parts(document: Mapping[str, Any]) -> list[RenderableType]:
    """Return what is printed of a debate's verdict."""
    verdict: Decision | None = document["verdict"]
    protocol = rules_of(document)
    label = protocol.answer_leads or "Solution"
    solution = protocol.at_a_glance(document.get("solution", ""))
    answer = _prose(label, [solution])
    if solution.count("\n") > 1:  # longer words stand below their label
        answer = [Padding(Text(f"{label}:\n"), BELOW), MarkdownText(solution)]
    if not verdict:
        return answer or [Text("No verdict.")]
    if verdict["status"] == "failed":
        return [Text(f"The verdict failed: {safe(verdict['error'])}", "bold red")]

    names = debater_names(document["config"], 30)
    won, is_placeholder = winner_text(verdict, names, protocol), verdict.get("placeholder")
    sure = None if is_placeholder else confidence_of(verdict)
    whose = " · ".join(filter(None, [one_line(verdict["judge"], 40), one_line(verdict["model"], 60)]))
    headline = Text.assemble(
        (f"{protocol.result}: {won}", "bold"),
        "" if sure is None else f"  confidence {sure} of 100",
        (f"  {whose}", "dim"),
    )
    if is_placeholder:  # its scores mean nothing, and its words say so once more
        return [headline, *answer]
    if solution and one_line(solution, len(solution)) in won:
        answer = []  # a vote's headline is its answer

    speaker = verdict.get("speaker")
    parts = [
        headline,
        *_ruling(verdict, names),
        *_prose("Note", [*verdict["notes"], changed_text(verdict)]),
        *_scores(verdict, names),
        *_prose(f"In the words of {one_line(speaker, 40)}" if speaker else "", [verdict["reasoning"]]),
        *_prose("Unmet", [item["text"] for item in verdict["unmet_requirements"]]),
        *_prose("Open", verdict["open_questions"]),
        *_prose("Next", verdict["recommendations"]),
    ]
    return [*answer, Text(), *parts] if protocol.answer_leads and answer else [*parts, *answer]


def winner_text(verdict: Verdict, names: Mapping[str, str], protocol: Protocol) -> str:
    """Return what a verdict comes to, in words; of a placeholder that it is one."""
    if verdict.get("placeholder"):
        return PLACEHOLDER
    return one_line(protocol.headline(cast(Decision, verdict), names), 160)


def _ruling(verdict: Decision, names: Mapping[str, str]) -> list[RenderableType]:
    """Return what a panel's rule counted, in a line, and who chose otherwise."""

    def choice(said: str) -> str:
        return NO_WINNER.get(said) or names.get(said, one_line(said, 30))

    outcome = verdict.get("outcome")
    if verdict["judge"] != PANEL or not outcome:
        return []
    ranked = sorted(outcome["tally"].items(), key=lambda row: -row[1])
    tally = " · ".join(f"{choice(who)} {value:.4g}" for who, value in ranked)
    parts: list[RenderableType] = [Text(f"Rule {outcome['rule']}, {RULES[outcome['rule']].counts}: {tally}")]
    if dissent := [
        f"{one_line(each['judge'], 40)} ({choice(each['winner'])})" for each in outcome["dissent"]
    ]:
        parts.append(Text(f"Judges who chose otherwise: {', '.join(dissent)}"))
    return parts


def _scores(verdict: Decision, names: Mapping[str, str]) -> list[RenderableType]:
    """Return a column for each debater with its scores, or a line for each where they are many."""
    scores, totals, lengths = verdict["scores"], verdict["totals"], verdict["lengths"]
    debaters = [name for name in names if name in scores]
    if not debaters:
        return []
    total = {each: f"{totals[each]:.1f}" if each in totals else "–" for each in debaters}
    length = {each: f"{lengths[each]:,}" if each in lengths else "–" for each in debaters}
    if len(debaters) > MOST_COLUMNS:
        table = borderless_table("", figures=("total of 100", "tokens said"))
        for debater in sorted(debaters, key=lambda each: -totals.get(each, 0)):
            table.add_row(Text(names[debater]), total[debater], length[debater])
        return [Padding(table, BELOW)]

    called = {each["id"]: each["name"] for each in verdict.get("criteria", [])}
    labels = {
        key: one_line(called.get(key) or key.replace("_", " "), 40)
        for key in dict.fromkeys(key for debater in debaters for key in scores[debater])
    }
    table = borderless_table("", figures=[names[each] for each in debaters])
    for column in table.columns[1:]:
        column.max_width = NAME_CHARS
    if LABEL_CHARS + (NAME_CHARS + 2) * len(debaters) > columns():  # or words would be broken
        table.columns[0].width = max(len(word) for label in labels.values() for word in label.split())
    for criterion, label in labels.items():
        records = [scores[debater].get(criterion) for debater in debaters]
        table.add_row(Text(label), *(f"{record['score']:.1f}" if record else "–" for record in records))
    table.add_row(Text("total of 100", "bold"), *total.values())
    if lengths:
        table.add_row(Text("tokens said", "dim"), *length.values())
    return [Padding(table, BELOW)]


def _prose(label: str, texts: Iterable[str]) -> list[RenderableType]:
    """Return texts behind their label, a long one below it."""
    parts: list[RenderableType] = []
    for text in filter(str.strip, texts):
        prefix = f"{label}:" + ("\n\n" if text.count("\n") > 1 else " ") if label else ""
        parts.append(Padding(Text(prefix + safe(text)), (0, 0, 0, 0) if parts else BELOW))
    return parts


def agreement_parts(judgement: Judgement) -> list[RenderableType]:
    """Return the panel's table and figures; for one judge, whether the order changed its mind."""
    report = judgement.verdict.get("agreement")
    if not report:
        return []
    names, protocol = debater_names(judgement.config, 30), rules_of({"config": judgement.config})
    dissenting = {each["judge"] for each in report["dissent"]}
    table = borderless_table("judge", "model", "says", "confidence", "orders")
    for verdict in judgement.verdicts:
        said = winner_text(verdict, names, protocol) if verdict["status"] == "ok" else "failed"
        dissents = " (dissents)" if verdict["judge"] in dissenting else ""
        sure = confidence_of(verdict)
        cells = (
            one_line(verdict["judge"], 40),
            one_line(verdict["model"], 40),
            said + dissents,
            "–" if sure is None else str(sure),
            {True: "contradict each other", False: "agree", None: "one only"}[verdict["flip"]["flipped"]],
        )
        table.add_row(*map(Text, cells))
    parts: list[RenderableType] = [Padding(table, BELOW)]
    if len(judgement.verdicts) > 1:
        figures = f"α of scores {number(report['alpha'])} · mean κ {number(report['kappa'])}"
        parts.append(Text(f"Panel: {figures} · flip rate {rate(report['flips'])}"))
    return parts


def benchmark_parts(measured: BenchmarkResult) -> list[RenderableType]:
    """Return a judge's figures beside those of people."""
    figures = {
        f"{name}: {who}": each
        for name, found in measured.settings.items()
        for who, each in (("judge", found["judge"]), ("humans", found["humans"]))
    }
    table = borderless_table("", figures=figures)
    accuracies = [each["accuracy"] for each in figures.values()]
    spans = [f"{number(each['rate'])} ({each['low']:.2f}–{each['high']:.2f})" for each in accuracies]
    table.add_row("accuracy", *spans)
    table.add_row("Brier", *(number(each["brier"]) for each in figures.values()))
    table.add_row("log score", *(number(each["log_score"]) for each in figures.values()))
    table.add_row("ECE", *(number(each["ece"]) for each in figures.values()))
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
