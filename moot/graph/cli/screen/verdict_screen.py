"""A verdict for the screen: winner, scores, confidence, reasoning; a failed one says so and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from moot.graph.cli.screen.entry_words import debater_names
from moot.graph.cli.screen.markdown_text import MarkdownText
from moot.graph.cli.screen.output import columns
from moot.graph.cli.screen.result_tables import borderless_table
from moot.graph.cli.screen.terminal_text import one_line, safe
from moot.nodes.judging.decision import RULES
from moot.nodes.judging.opinion_check import changed_text, confidence_of
from moot.nodes.protocols.protocol import Protocol
from moot.nodes.protocols.protocol_table import rules_of
from moot.state.verdict import NO_WINNER, PANEL, PLACEHOLDER, Decision, Verdict

MOST_COLUMNS = 5
"""Debaters that have a column each; more get a line each, with their totals alone."""
LABEL_CHARS, NAME_CHARS = 30, 16
"""Widths of the columns of criteria and of debaters."""


def verdict_parts(document: Mapping[str, Any]) -> list[RenderableType]:
    """Return what is printed of a debate's verdict."""
    verdict: Decision | None = document["verdict"]
    protocol = rules_of(document)
    solution = protocol.at_a_glance(document.get("solution", ""))
    answer = _answer(protocol.answer_leads or "Solution", solution)
    if not verdict:
        return answer or [Text("No verdict.")]
    if verdict["status"] == "failed":
        return [Text(f"The verdict failed: {safe(verdict['error'])}", "bold red")]
    names = debater_names(document["config"], 30)
    head: list[RenderableType] = [_headline(verdict, names, protocol)]
    if verdict.get("placeholder"):  # its scores mean nothing, and its words say so once more
        return [*head, *answer]
    if solution and one_line(solution, len(solution)) in winner_text(verdict, names, protocol):
        answer = []  # a vote's headline is its answer
    speaker, leads = verdict.get("speaker"), bool(protocol.answer_leads and answer)
    return [
        *([*answer, Text()] if leads else ()),
        *head,
        *_ruling(verdict, names),
        *_prose("Note", [*verdict["notes"], changed_text(verdict)]),
        *_scores(verdict, names),
        *_prose(f"In the words of {one_line(speaker, 40)}" if speaker else "", [verdict["reasoning"]]),
        *_prose("Unmet", [item["text"] for item in verdict["unmet_requirements"]]),
        *_prose("Open", verdict["open_questions"]),
        *_prose("Next", verdict["recommendations"]),
        *(() if leads else answer),
    ]


def _answer(label: str, text: str) -> list[RenderableType]:
    """Return what was asked for: short words behind their label, longer ones below it as Markdown."""
    if text.count("\n") <= 1:
        return _prose(label, [text])
    return [Padding(Text(f"{label}:\n"), (1, 0, 0, 0)), MarkdownText(text)]


def winner_text(verdict: Verdict, names: Mapping[str, str], protocol: Protocol) -> str:
    """Return what a verdict comes to, in words; of a placeholder that it is one."""
    if verdict.get("placeholder"):
        return PLACEHOLDER
    return one_line(protocol.headline(cast(Decision, verdict), names), 160)


def _choice(said: str, names: Mapping[str, str]) -> str:
    return NO_WINNER.get(said) or names.get(said, one_line(said, 30))


def _ruling(verdict: Decision, names: Mapping[str, str]) -> list[RenderableType]:
    """Return what a panel's rule counted, in a line, and who chose otherwise."""
    outcome = verdict.get("outcome")
    if verdict["judge"] != PANEL or not outcome:
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


def _headline(verdict: Verdict, names: Mapping[str, str], protocol: Protocol) -> Text:
    sure = None if verdict.get("placeholder") else confidence_of(verdict)
    return Text.assemble(
        (f"{protocol.result}: {winner_text(verdict, names, protocol)}", "bold"),
        "" if sure is None else f"  confidence {sure} of 100",
        (
            "  " + " · ".join(filter(None, [one_line(verdict["judge"], 40), one_line(verdict["model"], 60)])),
            "dim",
        ),
    )


def _scores(verdict: Verdict, names: Mapping[str, str]) -> list[RenderableType]:
    """Return a column for each debater with its scores, or a line for each where they are many."""
    scores, totals, lengths = verdict["scores"], verdict["totals"], verdict["lengths"]
    debaters = [name for name in names if name in scores]
    if not debaters:
        return []
    total = {each: f"{totals[each]:.1f}" if each in totals else "–" for each in debaters}
    length = {each: f"{lengths[each]:,}" if each in lengths else "–" for each in debaters}
    table = borderless_table()
    table.add_column("")
    if len(debaters) > MOST_COLUMNS:
        table.add_column("total of 100", justify="right")
        table.add_column("tokens said", justify="right")
        for debater in sorted(debaters, key=lambda each: -totals.get(each, 0)):
            table.add_row(Text(names[debater]), total[debater], length[debater])
        return [Padding(table, (1, 0, 0, 0))]
    called = {each["id"]: each["name"] for each in verdict.get("criteria", [])}
    labels = {
        key: one_line(called.get(key) or key.replace("_", " "), 40)
        for key in dict.fromkeys(key for debater in debaters for key in scores[debater])
    }
    if LABEL_CHARS + (NAME_CHARS + 2) * len(debaters) > columns():  # or words would be broken
        table.columns[0].width = max(len(word) for label in labels.values() for word in label.split())
    for debater in debaters:
        table.add_column(Text(names[debater]), justify="right", max_width=NAME_CHARS)
    for criterion, label in labels.items():
        records = [scores[debater].get(criterion) for debater in debaters]
        table.add_row(Text(label), *(f"{record['score']:.1f}" if record else "–" for record in records))
    table.add_row(Text("total of 100", "bold"), *total.values())
    if lengths:
        table.add_row(Text("tokens said", "dim"), *length.values())
    return [Padding(table, (1, 0, 0, 0))]


def _prose(label: str, texts: Iterable[str]) -> list[RenderableType]:
    said = [text for text in texts if text.strip()]
    prefixes = [label and f"{label}:{chr(10) * 2 if text.count(chr(10)) > 1 else chr(32)}" for text in said]
    return [
        Padding(Text(prefix + safe(text)), (1 if i == 0 else 0, 0, 0, 0))
        for i, (prefix, text) in enumerate(zip(prefixes, said, strict=True))
    ]
