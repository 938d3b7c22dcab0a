"""A debate as one self-contained HTML page: nothing is fetched, nothing that was said is run."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType
from typing import ClassVar, Literal

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, select_autoescape
from jinja2.bccache import Bucket
from markupsafe import Markup

from moot.graph.documents import DebateDocument, as_far_as_it_goes
from moot.graph.reports.cast import People
from moot.graph.reports.charts import NARROW, SECTIONS, WIDE, floor_chart, leading, prompt_chart
from moot.graph.reports.contents import Report
from moot.graph.reports.prose import Prose
from moot.graph.reports.transcript_blocks import Message, Transcript, anchors_of
from moot.graph.reports.wording import clean_strings, clock, group_digits, one_decimal
from moot.nodes.blackboard.board_words import says
from moot.nodes.blackboard.outcome import GLANCE
from moot.nodes.judging.decision import RULES
from moot.nodes.text.plain import amount
from moot.state.entries import Entry, entry_id

TEMPLATES = Path(__file__).parent / "templates"
ReportPart = Literal["verdict", "positions", "board", "record"]
"""A part of the page, as its template is called."""
_SECTION = re.compile(r'<section id="(\w+)"[^>]*>\s*<h2[^>]*>(.*?)</h2>')


def render_html(document: Mapping[str, object]) -> str:
    """Render a report as one HTML file.

    The page makes no request (its content security policy forbids them too), follows the reader's light
    or dark setting, and prints unfolded. In long debates the transcript's blocks wait in `<template>`
    elements, which a small script opens; its hash is the only one that the policy lets run.

    Args:
        document: a debate in the format `moot.debate/1`; any key may be missing.

    Returns:
        The page, without control characters and lone surrogates, so that it encodes to UTF-8.
    """
    report = Report(document)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return _render(
        "report.html.j2",
        report,
        script=Markup(script),  # noqa: S704  # our own file
        script_hash=base64.b64encode(digest).decode("ascii"),
    )


def render_part(document: Mapping[str, object], part: ReportPart) -> str:
    """Render one part of the page that `render_html` makes, for a page that has its style."""
    return _render("part.html.j2", Report(document), part=f"{part}.html.j2")


def render_messages(entries: Sequence[Entry], among: DebateDocument) -> list[tuple[Message, str]]:
    """Render some entries of a document's transcript as the page does, each with what is known of it."""
    anchors = anchors_of(among["transcript"])
    ids = {entry["id"] for entry in entries}
    receipts = [each for each in among["receipts"] if each["entry_id"] in ids]
    few = {"config": among["config"], "transcript": list(entries), "receipts": receipts}
    document = as_far_as_it_goes(DebateDocument, clean_strings(few))
    folds = Transcript(document, People(document), anchors).blocks
    template = _environment(Prose(anchors)).get_template("message.html.j2").module
    return [(each, str(template.message(each))) for fold in folds for each in fold.messages]  # type: ignore[attr-defined]  # a macro


def _render(template: str, report: Report, **more: object) -> str:
    floor_sizes = (WIDE, NARROW) if report.transcript.count > 3 and len(report.people) else ()
    prompt_sizes = (WIDE, NARROW) if len(report.prompts.receipts) > 1 else ()
    environment = _environment(Prose(report.anchors))
    return environment.get_template(template).render(
        report=report,
        sections=SECTIONS,
        prompt_charts=[prompt_chart(report.prompts, size) for size in prompt_sizes],
        floor_charts=[floor_chart(report.transcript.blocks, report.people, s) for s in floor_sizes],
        floor_people=leading(report.people),
        **more,
    )


def _contents(main: str) -> list[tuple[str, Markup]]:
    """Return anchor and title of each section that a page's main part has."""
    return [(anchor, Markup(title)) for anchor, title in _SECTION.findall(main)]  # noqa: S704  # as it stands there


def _environment(prose: Prose) -> Environment:
    return template_environment(
        block=prose.block,
        section=partial(prose.block, base=3),
        folded=partial(prose.folded, most=GLANCE, base=3),
        inline=prose.inline,
        contents=_contents,
        cites=lambda ids: Markup(" ").join(map(prose.link, ids)),
    )


class _CompiledTemplates(BytecodeCache):
    """Keeps what templates compile to, which takes most of the time of a report, for the whole process."""

    _codes: ClassVar[dict[tuple[str, str], CodeType]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code:
            self._codes[bucket.key, bucket.checksum] = bucket.code


def template_environment(**filters: Callable[..., object]) -> Environment:
    """Return what renders a form of the report: HTML escapes every text, Markdown does so by its filters."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        bytecode_cache=_CompiledTemplates(),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        amount=amount, grouped=group_digits, tenths=one_decimal, clock=clock, **filters
    )
    environment.globals.update(rules=RULES, says=says)
    environment.filters["message_id"] = lambda seq: entry_id(max(seq, 0))
    return environment
