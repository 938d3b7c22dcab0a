"""A debate as one self-contained HTML page: nothing is fetched, nothing that was said is run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from moot.graph.documents import Json
from moot.graph.reports import charts
from moot.graph.reports.contents import Report, read
from moot.graph.reports.prose import Prose
from moot.graph.reports.wording import clock, grouped
from moot.state.entries import entry_id

TEMPLATES = Path(__file__).parent / "templates"
WRITTEN = {"grouped": grouped, "clock": clock, "message_id": lambda seq: entry_id(max(seq, 0))}
"""Filters of both forms of a report that need no escaping of their own."""


def render_html(document: Mapping[str, Json]) -> str:
    """Render a report as one HTML file.

    The page makes no request (its content security policy forbids them too), follows the reader's light
    or dark setting, and prints unfolded. In long debates the transcript's blocks wait in `<template>`
    elements, which a small script opens; its hash is the only one that the policy lets run.

    Args:
        document: a debate in the format `moot.debate/1`; any key may be missing.

    Returns:
        The page, without control characters and lone surrogates, so that it encodes to UTF-8.
    """
    report = read(document)
    prose = Prose(report.anchors)
    environment = _environment()
    environment.filters.update(block=prose.block, section=prose.section, inline=prose.inline)
    environment.filters["cites"] = lambda ids: Markup(" ").join(map(prose.link, ids))
    script = _file("report.js")
    return environment.get_template("report.html.j2").render(
        report=report,
        contents=list(_contents(report)),
        style=Markup(_file("report.css")),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own file
        script_hash=_digest(script),
        sections=charts.SECTIONS,
        prompt_charts=_prompt_charts(report),
        floor_charts=_floor_charts(report),
        floor_people=charts.leading(report.people),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(WRITTEN)
    return environment


@cache
def _file(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _contents(report: Report) -> Iterable[tuple[str, str]]:
    """Yield anchor and title of each section that the report has."""
    board = report.document["blackboard"]
    present = (
        ("verdict", "Verdict", True),
        ("solution", "Solution", report.solution),
        ("panel", "The panel", len(report.panel.verdicts) > 1),
        ("earlier", "Earlier verdicts", bool(report.panel.earlier)),
        ("sides", "Who argued what", report.standings),
        ("positions", "Positions over time", any(s.moments for s in report.standings)),
        ("claims", "Contested claims", board["claims"]),
        ("cruxes", "Crux cards", board["cards"]),
        ("rounds", "Round by round", report.has_rounds),
        ("transcript", "Transcript", report.transcript.count),
        ("summaries", "Summaries", report.document["summaries"]),
        ("tokens", "Tokens and cost", report.prompts.receipts or report.usage or report.plan),
        ("notes", "Notes", report.errors or report.config),
    )
    return ((anchor, title) for anchor, title, there in present if there)


def _prompt_charts(report: Report) -> list[Markup]:
    sizes = (charts.WIDE, charts.NARROW) if len(report.prompts.receipts) > 1 else ()
    return [charts.prompt_chart(report.prompts, size) for size in sizes]


def _floor_charts(report: Report) -> list[Markup]:
    sizes = (charts.WIDE, charts.NARROW) if report.transcript.count > 3 and len(report.people) else ()
    return [charts.floor_chart(report.transcript.blocks, report.people, size) for size in sizes]
