"""A debate as one self-contained HTML page that makes no requests and runs no untrusted code."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar, Literal, cast

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from moot import documents
from moot.claims.blackboard import GAPS, REVERSALS
from moot.claims.claim_extraction import MAX_QUOTATION_CHARS
from moot.claims.claim_status import options_chosen
from moot.claims.crux_cards import GLANCE
from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import card_status, quotation, stance_text, why_no_claims
from moot.claims.round_records import debater_lines, move_lines
from moot.config.model_settings import RECORDED
from moot.judging.panel import RULES
from moot.judging.shortcomings import shortcomings
from moot.protocols.registry import protocol_of
from moot.reports import argdown, markdown_html, positions
from moot.reports.verdict_view import Message, Panel, Participants, Transcript, anchors_of
from moot.state.claim_events import MAIN_QUESTION, QuotedEvent
from moot.state.entries import Entry, entry_details, entry_id
from moot.state.verdict import import_note
from moot.text.plain_text import clip, count_noun, show_reordering

PAGE_TITLE_CHARS = 160
"""Maximum number of characters in a report's title."""
NOTES = {
    "running": "Still running. The report shows the debate so far.",
    "paused": "Paused. The report shows the debate so far.",
    "waiting": "Waiting for a reply from a person.",
    "limit": "Ended at a limit.",
    "failed": "Ended with an error. See the notes at the end.",
}


class Report:
    """Contents of a report on a debate, independent of the output format."""

    def __init__(self, raw_document: object) -> None:
        """Collect the contents from a document. A wrong key is an `InputError` that names it."""
        self.document = document = documents.read_document(markdown_html.clean_strings(raw_document))
        topic, board = document["topic"].strip(), document["blackboard"]
        self.name = document["name"] or document["id"]
        question = clip(documents.document_title(document), PAGE_TITLE_CHARS)
        self.title = question or self.name or "A debate"
        self.topic = topic if topic != question else ""
        """The whole topic, if the title does not show all of it."""
        status, reason = document["status"], document.get("ended_because", "").strip()
        self.status_note = NOTES.get(status, "")
        if status == "limit" and reason:
            self.status_note = f"Ended at a limit: {reason}."

        self.people = Participants(document)
        self.anchors = anchors_of(document["transcript"])
        self.transcript = Transcript(document, self.people, self.anchors)
        self.facts = tuple(fact for fact in self._facts(reason) if fact.value)
        self.panel = Panel(document, self.people)
        self.verdict = self.panel.decision
        self.import_note = import_note(document.get("imported_at", "") if self.verdict else "")
        """Warning that the verdict comes from an imported file. Empty if Moot judged the debate."""
        self.shortcomings = shortcomings(
            document["verdict"],
            verdicts=document["verdicts"],
            transcript=document["transcript"],
            errors=document["errors"],
            names={person.id: person.name for person in self.people.values()},
        )
        """What readers must know before they rely on the verdict, one sentence each."""

        self.protocol = protocol_of(document)
        """Protocol of the debate, which names the headings of the result."""
        answer = document["solution"]
        self.solution = answer or (self.verdict.solution if self.verdict else "")
        self.at_a_glance = self.protocol.at_a_glance(self.solution)
        """Part of the solution that fits on one page."""
        has_decision = bool(self.verdict and not self.verdict.failed and self.verdict.record.get("decision"))
        self.leads = bool(self.solution and self.protocol.answer_heading and not has_decision)
        """True if the solution comes before the verdict: the debate asked for one, and no decision exists."""

        self.standings = tuple(
            each
            for each in positions.read_positions(document, self.people)
            if each.person.turns or each.stance or each.holdings or each.moments
        )
        board_claims = board["standing"]["claims"]
        disputed = [each for each in board_claims if each["was_disputed"]]
        limited = [each for each in board_claims if each["status"] in ("conditional", "withdrawn")]
        ledger = fold_events(document["blackboard"]["claim_events"], document["topic"])
        by_id = {each["id"]: each for each in board_claims}
        versions = [*ledger.live_proposals, *ledger.proposals] if ledger.amendments else []
        proposals = [by_id[key] for key in dict.fromkeys(versions) if key in by_id]
        disputed = [each for each in disputed if each not in proposals]
        limited = [each for each in limited if each not in proposals]
        groups = {
            "Proposals, the live ones first": proposals,
            "Disputed claims": disputed,
            "Conditional or withdrawn claims": [each for each in limited if not each["was_disputed"]],
        }
        self.claim_groups = {title: claims for title, claims in groups.items() if claims}
        """Claims that were disputed, and others that are conditional or were withdrawn, by heading."""
        self.options_chosen = _options_chosen(document)
        """Debaters who chose each option of an open main question, by option, oldest first."""
        main_claim = by_id.get(ledger.live_proposals[0])
        self._main_stances = main_claim["stances"] if main_claim else {}
        self.claims = {each["id"]: each["text"] for each in board_claims}
        """Text of each claim, by claim id."""
        if MAIN_QUESTION in self.claims and len(topic) > PAGE_TITLE_CHARS:
            self.claims[MAIN_QUESTION] = "The main question"
        self.no_claims = ""
        """Reason why the report has no claims, and how to get them. Empty if it has claims or no messages."""
        if self.transcript.blocks:
            self.no_claims = why_no_claims(
                board["claim_events"], extracts=documents.extracts_claims(document)
            )
        names = {person.id: person.name for person in self.people.values()}
        self.rounds = [
            (
                each["round"],
                [(self.people[key], text) for key, text in debater_lines(each, ledger, names).items()],
                [*move_lines(each, ledger, names)],
            )
            for each in board["standing"]["rounds"]
        ]
        """Number of each round, its debaters with what they held and showed, and what moved in it."""
        open_points = {
            "Open questions": [*ledger.open_questions()][::-1],
            "Open challenges": [*ledger.open_challenges()][::-1],
            GAPS: ledger.gaps,
            REVERSALS: ledger.reversals,
        }
        self.open_points = {
            title: [
                f"{names.get(each['debater'], each['debater'])}: {quotation(each, MAX_QUOTATION_CHARS)}"
                for each in items
            ]
            for title, items in cast(Mapping[str, Sequence[QuotedEvent]], open_points).items()
        }
        """Questions, challenges and gaps that are still open, by heading."""
        self.has_rounds = bool(
            board["standing"]["rounds"] or board["reflections"] or document.get("convergence")
        )
        self.threshold: float | None = documents.document_config(document).termination.threshold
        """Agreement at which a council ends, 0 to 1. `None`: unknown."""

        self.prompts = positions.Prompts(document["receipts"], document["calls"])
        self.usage = positions.read_usage(document["usage"])
        self.plan = positions.read_plan(document)
        self.errors = [f"Step {each['step']}, {each['node']}: {each['error']}" for each in document["errors"]]
        """Errors of the debate, each with its step and node."""
        self.config = markdown_html.as_json(document["config"]) if document["config"] else ""

    def option_of(self, debater: str) -> str:
        """Return the answer to an open main question that a debater chose, or `""`."""
        stance = self._main_stances.get(debater)
        return stance.get("option", "") if stance else ""

    def _facts(self, reason: str) -> list[positions.Figure]:
        document, verdict = self.document, self.document["verdict"]
        rounds = max((entry["round"] for entry in document["transcript"]), default=0)
        start, end = (
            markdown_html.clock(document["created_at"]),
            markdown_html.clock(document["updated_at"]),
        )
        model_names = [entry["model"] for entry in document["transcript"]] + [
            verdict["model"] if verdict else ""
        ]
        unchecked = " (replies of a capable model, facts not checked)"
        models = [
            each + (unchecked if each.startswith(RECORDED) else "")
            for each in dict.fromkeys(filter(None, model_names))
        ]
        return [
            positions.Figure("Protocol", document["protocol"]),
            positions.Figure("Debaters", str(len(self.people) or "")),
            positions.Figure("Messages", f"{self.transcript.count:,}"),
            positions.Figure("Rounds", str(rounds or "")),
            positions.Figure("Began", start),
            positions.Figure("Last change", end if end != start else ""),
            positions.Figure("Ended", reason if document["status"] == "done" else ""),
            positions.Figure("Models", ", ".join(models)),
            positions.Figure("Id", document["id"] if document["name"] else ""),
        ]


def _options_chosen(document: documents.DebateDocument) -> dict[str, list[str]]:
    """Return the debaters who chose each option, keyed by option.

    Options are the answers to an open main question. Options and debaters are in the order of their first
    choice.

    The result is empty if there are no extracted claims, or if the main question is a yes-or-no question.
    """
    ledger = fold_events(document["blackboard"]["claim_events"], document["topic"])
    debaters_by_option: dict[str, dict[str, None]] = {option: {} for option in options_chosen(ledger)}
    for change in ledger.timeline(MAIN_QUESTION):
        if change.side in debaters_by_option:
            debaters_by_option[change.side][change.event["debater"]] = None
    return {option: list(debaters) for option, debaters in debaters_by_option.items()}


TEMPLATES = Path(__file__).parent / "templates"
ReportPart = Literal["verdict", "positions", "board", "record"]
"""Name of a part of the report page. The part's template has the same name."""
_SECTION = re.compile(r'<section id="(\w+)"[^<>]*>\s*<h2[^<>]*>([^<]*)</h2>')


def render_html(document: Mapping[str, object]) -> str:
    """Render the report of a debate as one self-contained HTML file.

    The page makes no request, and its content security policy forbids requests. It follows the reader's light
    or dark setting and prints unfolded. In long debates the blocks of the transcript are `<template>`
    elements. A small script opens them; the policy allows only this script, by its hash.

    Returns:
        The page, without control characters and lone surrogates, so that it can be encoded as UTF-8.
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
    """Render one part of the report page as HTML, for use in another page."""
    return _render("part.html.j2", Report(document), part=f"{part}.html.j2")


def render_messages(
    entries: Sequence[Entry], debate_document: documents.DebateDocument
) -> list[tuple[Message, str]]:
    """Render transcript entries as HTML."""
    anchors = anchors_of(debate_document["transcript"])
    ids = {entry["id"] for entry in entries}
    receipts = [each for each in debate_document["receipts"] if each["entry_id"] in ids]
    excerpt = {"config": debate_document["config"], "transcript": list(entries), "receipts": receipts}
    document = cast(
        documents.DebateDocument,
        {**documents.empty_document(), **cast(Any, markdown_html.clean_strings(excerpt))},
    )
    folds = Transcript(document, Participants(document), anchors).blocks
    template = _environment(markdown_html.Prose(anchors)).get_template("message.html.j2").module
    return [(each, show_reordering(str(template.message(each)))) for fold in folds for each in fold.messages]  # type: ignore[attr-defined]  # a macro


def _render(template: str, report: Report, **variables: object) -> str:
    environment = _environment(markdown_html.Prose(report.anchors))
    page = environment.get_template(template).render(
        report=report,
        sections=positions.SECTIONS,
        prompt_chart=positions.prompt_chart(report.prompts),
        strips=(strips := positions.answer_strips(report.document, report.standings)),
        answers=positions.answers_shown(strips),
        maps=argdown.claim_maps(report.document, report.people),
        row_height=argdown.ROW_HEIGHT,
        **variables,
    )
    return show_reordering(page)


def _environment(prose: markdown_html.Prose) -> jinja2.Environment:
    return template_environment(
        block=prose.block,
        section=partial(prose.block, base=3),
        folded=partial(prose.folded, max_items=GLANCE, base=3),
        inline=prose.inline,
        contents=lambda main: [(key, Markup(title)) for key, title in _SECTION.findall(main)],  # noqa: S704  # rendered HTML
        cites=lambda ids: Markup(" ").join(map(prose.link, ids)),
    )


class _CompiledTemplates(jinja2.BytecodeCache):
    """Cache of compiled templates, shared by all Jinja environments in the process."""

    _codes: ClassVar[dict[tuple[str, str], CodeType]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code:
            self._codes[bucket.key, bucket.checksum] = bucket.code


class _Templates(jinja2.Environment):
    """Environment in which an optional key is empty, and any other unknown name an error."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._empty_key(obj, attribute, super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._empty_key(obj, argument, super().getitem(obj, argument))

    def _empty_key(self, obj: Any, key: Any, value: Any) -> Any:
        is_missing = isinstance(value, jinja2.StrictUndefined) and isinstance(obj, Mapping)
        return jinja2.ChainableUndefined(obj=obj, name=key) if is_missing else value


def template_environment(**filters: Callable[..., object]) -> jinja2.Environment:
    """Return the Jinja environment for report templates.

    The environment contains common filters and the given `filters`.

    Autoescaping is on for HTML templates. Markdown templates escape each text with a filter.
    """
    environment = _Templates(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        bytecode_cache=_CompiledTemplates(),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        amount=count_noun,
        grouped=markdown_html.group_digits,
        tenths=markdown_html.one_decimal,
        clock=markdown_html.clock,
        **filters,
    )
    environment.globals.update(
        entry_details=entry_details, rules=RULES, card_status=card_status, stance_text=stance_text
    )
    environment.filters["message_id"] = lambda seq: entry_id(max(seq, 0))
    return environment
