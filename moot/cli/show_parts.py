"""Parts of a debate as `moot show` prints them, with text that is safe for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from moot.claims.blackboard import GAPS, REVERSALS
from moot.claims.claim_status import Ledger
from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import card_text, stance_text, why_no_claims
from moot.claims.round_records import RoundRecord, debater_lines, move_lines
from moot.cli import terminal
from moot.config import OFFLINE
from moot.config.debate_config import frozen_config
from moot.documents import document_title, extracts_claims
from moot.judging.draft_test import finding_lines
from moot.judging.panel import RULES
from moot.judging.shortcomings import shortcomings
from moot.judging.verdict_fields import ShownField, changed_text, confidence_of, shown
from moot.models.registry import Models
from moot.protocols.base import Protocol
from moot.protocols.registry import protocol_of
from moot.reports.positions import cited_quotation
from moot.state.entries import JsonMapping, entry_details, tokens_of, turns_taken
from moot.state.verdict import NO_WINNER, PANEL, PLACEHOLDER, PanelVerdict, Verdict, import_note
from moot.text.plain_text import clip, count_noun

if TYPE_CHECKING:
    from moot.debates.continuation import Judgement
    from moot.debates.prompt_reconstruction import MemoryCost, ReconstructedPrompt, ReplayedTurn

MAX_COLUMNS = 5
"""Maximum number of debaters' columns in a score table. With more debaters, the table has one line per
debater with the total score."""
LABEL_CHARS = 30
"""Expected width of the criteria column in a score table, in characters."""
COLUMN_NAME_CHARS = 16
"""Maximum width of each debater's column in a score table, in characters."""
BELOW = (1, 0, 0, 0)
"""Padding with one blank line above a printed section."""


def verdict_parts(document: JsonMapping) -> list[RenderableType]:
    """Return a debate's verdict as texts and tables to print."""
    verdict: PanelVerdict | None = document["verdict"]
    protocol = protocol_of(document)
    label = protocol.answer_heading or "Solution"
    solution = protocol.at_a_glance(document.get("solution", ""))
    answer = _prose(label, [solution])
    if solution.count("\n") > 1:  # a long text starts below its label
        answer = [Padding(Text(f"{label}:\n"), BELOW), terminal.MarkdownText(solution)]
    if not verdict:
        return answer or [Text("No verdict.")]
    if verdict["status"] == "failed":
        return [Text(f"The verdict failed: {terminal.safe(verdict['error'])}", "bold red")]

    names = terminal.debater_names(document["config"], 30)
    result, is_placeholder = winner_text(verdict, names, protocol), verdict.get("placeholder")
    judge_text = " · ".join(
        filter(None, [terminal.one_line(verdict["judge"], 40), terminal.one_line(verdict["model"], 60)])
    )
    if is_placeholder:  # the scores and reasons of a placeholder have no meaning
        headline = Text.assemble((f"{protocol.result}: {result}", "bold"), (f"  {judge_text}", "dim"))
        return [*_notes_before(document), headline, *answer]
    fields = _shown_fields(document, result)
    if solution and terminal.one_line(solution, len(solution)) in result:
        answer = []  # the headline of a vote is the answer already

    speaker = verdict.get("speaker")
    parts = [
        *_notes_before(document),
        *_field_parts(fields),
        Text(f"Judged by {judge_text}", "dim") if judge_text else Text(),
        *_ruling(verdict, names),
        *_prose("Note", [*verdict["notes"], changed_text(verdict)]),
        *_prose("Tested", finding_lines(verdict, names)),
        *_scores(verdict, names),
        *_prose(
            f"In the words of {terminal.one_line(speaker, 40)}" if speaker else "", [verdict["reasoning"]]
        ),
    ]
    is_answer_first = protocol.answer_heading and answer and not verdict.get("decision")
    return [*answer, Text(), *parts] if is_answer_first else [*parts, *answer]


def _shown_fields(document: JsonMapping, headline: str) -> list[ShownField]:
    """Return the non-empty fields of a debate's verdict, ready for printing."""
    names, label = terminal.debater_names(document["config"], 30), protocol_of(document).result
    return shown(document["verdict"], names, headline=headline, winner_label=label)


def _notes_before(document: JsonMapping) -> list[RenderableType]:
    """Return what readers must know before the verdict, such as that it was imported."""
    lines = shortcomings(
        document["verdict"],
        verdicts=document.get("verdicts") or [],
        transcript=document.get("transcript") or [],
        errors=document.get("errors") or [],
        names=terminal.debater_names(document["config"], 30),
    )
    notes = filter(None, [import_note(document.get("imported_at", "")), *lines])
    return [Text(terminal.safe(note), "yellow") for note in notes]


def bulleted(text: str) -> str:
    """Format a text as a list item, wrapped to the screen with indented continuation lines."""
    lines = Text(text).wrap(terminal.err_console(), max(20, terminal.columns() - 2))
    return "- " + "\n  ".join(line.plain.rstrip() for line in lines)


def _field_parts(fields: Sequence[ShownField]) -> list[RenderableType]:
    """Format fields of a verdict for printing."""
    parts: list[RenderableType] = []
    for field in fields:
        lines = [
            terminal.safe(line.text + "".join(f" [{key}]" for key in line.citations)) for line in field.lines
        ]
        if field.name == "question":
            parts.append(Text(lines[0], "bold"))
        elif field.single:
            style = "bold" if field.name in ("decision", "winner") else ""
            parts.append(Text(f"{field.label}: {lines[0]}", style))
        else:
            parts.append(Text("\n".join([f"{field.label}:", *map(bulleted, lines)])))
    return parts


ANSWER_LINES = 20
"""Maximum number of lines of the short answer, which a terminal of 24 lines shows with the next commands."""
SHORT_FORMS = ((3, 150), (2, 150), (2, 75), (1, 75))
"""Numbers of items in each list of the short answer, and of characters in each item, longest form first."""


def answer_parts(document: JsonMapping, lines: int = ANSWER_LINES) -> list[RenderableType]:
    """Return a debate's question and short answer to print, in at most `lines` lines if possible.

    Lists are shortened, but never the decision. Without a verdict of a model, return the `verdict_parts`.
    """
    verdict: PanelVerdict | None = document["verdict"]
    if not verdict or verdict["status"] == "failed" or verdict.get("placeholder"):
        return verdict_parts(document)
    if document.get("solution") and not verdict["decision"]:  # the solution is the answer
        return verdict_parts(document)
    names, protocol = terminal.debater_names(document["config"], 30), protocol_of(document)
    fields = _shown_fields(document, winner_text(verdict, names, protocol))
    answer = [each for each in fields if each.lead or each.name == "question"]
    parts: list[RenderableType] = []
    for items, chars in SHORT_FORMS:
        parts = [*_notes_before(document), *_field_parts([_shortened(each, items, chars) for each in answer])]
        if line_count(parts) <= lines:
            break
    return parts


def line_count(parts: Iterable[RenderableType]) -> int:
    """Return the number of screen lines that the texts and tables take up when they are wrapped."""
    console = terminal.err_console()
    screen = console.options.update_width(terminal.columns())
    return sum(len(console.render_lines(part, screen)) for part in parts)


def _shortened(field: ShownField, items: int, chars: int) -> ShownField:
    if field.name == "question":
        return replace(field, lines=(replace(field.lines[0], text=clip(field.text, terminal.columns())),))
    if field.single:
        return field
    lines = [replace(line, text=clip(line.text, chars)) for line in field.lines[:items]]
    more = len(field.lines) - len(lines)
    label = f"{field.label} ({more} more)" if more else field.label
    return replace(field, label=label, lines=tuple(lines))


TURNING_POINTS = 3
"""Maximum number of position changes that the demo prints."""


def turning_points(document: JsonMapping) -> list[RenderableType]:
    """Return the first changes of a position to print."""
    moved = [each for each in _shown_fields(document, "") if each.name == "moved"]
    return _field_parts(
        [replace(each, label="Turning points", lines=each.lines[:TURNING_POINTS]) for each in moved]
    )


def winner_text(verdict: Verdict, names: Mapping[str, str], protocol: Protocol) -> str:
    """Return a verdict's result in one line, which names a placeholder as such."""
    if verdict.get("placeholder"):
        return PLACEHOLDER
    return terminal.one_line(protocol.headline(cast(PanelVerdict, verdict), names), 160)


def _ruling(verdict: PanelVerdict, names: Mapping[str, str]) -> list[RenderableType]:
    """Format the votes of a panel of judges, and name the dissenting judges."""

    def choice(candidate: str) -> str:
        return NO_WINNER.get(candidate) or names.get(candidate, terminal.one_line(candidate, 30))

    outcome = verdict.get("outcome")
    if verdict["judge"] != PANEL or not outcome:
        return []
    ranking = sorted(outcome["tally"].items(), key=lambda row: -row[1])
    tally = " · ".join(f"{choice(candidate)} {value:.4g}" for candidate, value in ranking)
    parts: list[RenderableType] = [Text(f"Rule {outcome['rule']}, {RULES[outcome['rule']].counts}: {tally}")]
    if dissent := [
        f"{terminal.one_line(each['judge'], 40)} ({choice(each['winner'])})" for each in outcome["dissent"]
    ]:
        parts.append(Text(f"Dissenting judges: {', '.join(dissent)}"))
    return parts


def _scores(verdict: PanelVerdict, names: Mapping[str, str]) -> list[RenderableType]:
    """Return a table of scores, with a column or, of many debaters, a row for each."""
    scores, totals, lengths = verdict["scores"], verdict["totals"], verdict["lengths"]
    debaters = [name for name in names if name in scores]
    if not debaters:
        return []
    total = {each: f"{totals[each]:.1f}" if each in totals else "–" for each in debaters}
    length = {each: f"{lengths[each]:,}" if each in lengths else "–" for each in debaters}
    if len(debaters) > MAX_COLUMNS:
        table = terminal.borderless_table("", figures=("total of 100", "tokens said"))
        for debater in sorted(debaters, key=lambda each: -totals.get(each, 0)):
            table.add_row(Text(names[debater]), total[debater], length[debater])
        return [Padding(table, BELOW)]

    criterion_names = {each["id"]: each["name"] for each in verdict.get("criteria", [])}
    labels = {
        key: terminal.one_line(criterion_names.get(key) or key.replace("_", " "), 40)
        for key in dict.fromkeys(key for debater in debaters for key in scores[debater])
    }
    table = terminal.borderless_table("", figures=[names[each] for each in debaters])
    for column in table.columns[1:]:
        column.max_width = COLUMN_NAME_CHARS
    if (
        LABEL_CHARS + (COLUMN_NAME_CHARS + 2) * len(debaters) > terminal.columns()
    ):  # otherwise the table would break words
        table.columns[0].width = max(len(word) for label in labels.values() for word in label.split())
    for criterion, label in labels.items():
        records = [scores[debater].get(criterion) for debater in debaters]
        table.add_row(Text(label), *(f"{record['score']:.1f}" if record else "–" for record in records))
    table.add_row(Text("total of 100", "bold"), *total.values())
    if lengths:
        table.add_row(Text("tokens said", "dim"), *length.values())
    return [Padding(table, BELOW)]


def _prose(label: str, texts: Iterable[str]) -> list[RenderableType]:
    """Format texts as paragraphs behind the label, long ones below it."""
    parts: list[RenderableType] = []
    for text in filter(str.strip, texts):
        prefix = f"{label}:" + ("\n\n" if text.count("\n") > 1 else " ") if label else ""
        parts.append(Padding(Text(prefix + terminal.safe(text)), (0, 0, 0, 0) if parts else BELOW))
    return parts


def agreement_parts(judgement: Judgement) -> list[RenderableType]:
    """Return tables that show the judges' results and how far the judges agree."""
    report = judgement.verdict.get("agreement")
    if not report:
        return []
    names, protocol = terminal.debater_names(judgement.config, 30), protocol_of({"config": judgement.config})
    dissenting = {each["judge"] for each in report["dissent"]}
    table = terminal.borderless_table("judge", "model", "says", "confidence", "orders")
    for verdict in judgement.verdicts:
        result = winner_text(verdict, names, protocol) if verdict["status"] == "ok" else "failed"
        dissents = " (dissents)" if verdict["judge"] in dissenting else ""
        confidence = confidence_of(verdict)
        cells = (
            terminal.one_line(verdict["judge"], 40),
            terminal.one_line(verdict["model"], 40),
            result + dissents,
            "–" if confidence is None else str(confidence),
            {True: "differ", False: "agree", None: "one order"}[verdict["flip"]["flipped"]],
        )
        table.add_row(*map(Text, cells))
    parts: list[RenderableType] = [Padding(table, BELOW)]
    if len(judgement.verdicts) > 1:
        figures = (
            f"α of scores {terminal.number(report['alpha'])} · mean κ {terminal.number(report['kappa'])}"
        )
        parts.append(Text(f"Panel: {figures} · flip rate {terminal.rate(report['flips'])}"))
    return parts


Parts = list[RenderableType]
Document = JsonMapping


def overview(document: Document, parent: str) -> Parts:
    """Return the question and facts about a debate. `parent` is the name of the debate it was forked from."""
    names, usage = terminal.debater_names(document["config"]), document["usage"]
    has_name, has_failed = document["name"] != document["id"], document["status"] == "failed"
    usage_texts = [
        count_noun(turns_taken(document["transcript"], names), "turn"),
        count_noun(usage["calls"], "call"),
        count_noun(tokens_of(usage), "token"),
        cost_text(document),
    ]
    facts = {
        "debate": f"{document['name']} ({document['id']})" if has_name else document["id"],
        "protocol": f"{document['protocol']} · {', '.join(names.values())}",
        "status": document["status"],
        "ended": document.get("ended_because", ""),
        "agreement": _agreement(document),
        "used": " · ".join(usage_texts),
        "started": f"{terminal.local_time(document['created_at'])} · last active "
        + terminal.local_time(document["updated_at"]),
        "pinned": ", ".join(document.get("state", {}).get("pinned", [])),
        "why": document["errors"][-1]["error"] if has_failed and document["errors"] else "",
        "forked from": parent,
    }
    table = Table.grid(padding=(0, 2))
    for key, value in facts.items():
        if value:
            table.add_row(Text(key, "dim"), Text(terminal.one_line(str(value), 600)))
    return [Text(terminal.one_line(document_title(document), 1000), "bold"), table, Text()]


def _agreement(document: Document) -> str:
    """Describe in a line how far proposals agree after each checked round, or `""`."""
    checks = document.get("convergence") or []
    threshold = document["config"].get("termination", {}).get("threshold")
    shares = [each["agreement"] for each in checks] + [threshold]
    *share_texts, threshold_text = ("unknown" if share is None else f"{share:.2f}" for share in shares)
    rounds = [f"{share} in round {each['round']}" for share, each in zip(share_texts, checks, strict=True)]
    return f"{', '.join(rounds)} (ends at {threshold_text})" if rounds else ""


def cost_text(document: Document) -> str:
    """Format a debate's cost, and name the models whose prices are unknown."""
    config, cost = frozen_config(document), f"US$ {document['usage']['cost_usd']:.4f}"
    unpriced = Models(config.models).names_without_price(config.model_names())
    if not unpriced:
        return cost
    if not set(config.model_names()) - {OFFLINE, *unpriced}:
        return "cost unknown: no prices are configured"
    return f"{cost}, without {', '.join(unpriced)}: no prices are configured"


def block(heading: Text, text: str, indent: int = 2) -> Parts:
    """Return a heading with a text below it."""
    return [heading, Padding(Text(terminal.safe(text)), (0, 0, 1, indent))]


def transcript(document: Document) -> Parts:
    """Return all transcript entries of a debate for printing."""
    names, parts = terminal.debater_names(document["config"]), []
    for entry in document["transcript"]:
        speaker = terminal.one_line(names.get(entry["speaker"], entry["speaker"]), 60)
        details = [entry["id"], terminal.entry_label(entry, names), *entry_details(entry)]
        heading = Text.assemble(
            (speaker, "bold"), (f"  {terminal.one_line(' · '.join(filter(None, details)), 300)}", "dim")
        )
        parts += block(heading, entry["content"])
    return parts


def summary(version: JsonMapping | None) -> Parts:
    """Format one version of a summary for printing. Without a version, return a notice."""
    if version is None:
        return [Text("No summary yet: every message is still in the window.")]
    model, provider, tokens_used = version["model"], version.get("provider"), version.get("tokens_used", 0)
    made_by = [
        version["method"],
        f"{model} ({provider})" if model and provider else model,
        f"temperature {version['temperature']:g}" if version["temperature"] is not None else "",
        f"{version['latency_s']:.1f} s" if model else "",
        f"{tokens_used:,} tokens of model calls so far" if tokens_used else "",
        f"failed: {version['failure']}" if version.get("failure") else "",
    ]
    details = (
        f"  entries {version['covers_from_seq']}–{version['covers_through_seq']} · "
        f"{count_noun(version['messages'], 'message')} · {version['before_tokens']} → "
        f"{version['after_tokens']} tokens · {terminal.one_line(' · '.join(filter(None, made_by)), 300)}"
    )
    owner_text = f" of {terminal.one_line(version['owner'], 60)}" if version["owner"] else ""
    title = f"{version['kind']} summary{owner_text}, version {version['version']}"
    return block(Text.assemble((title, "bold"), (details, "dim")), version["text"])


def summaries(document: Document) -> Parts:
    """Return every version of a debate's summaries for printing, oldest first."""
    versions = document["summaries"]
    return [part for version in versions for part in summary(version)] if versions else summary(None)


def blackboard(document: Document) -> Parts:
    """Format claims, open challenges, crux cards, rounds and reflections."""
    board = document["blackboard"]
    reason = why_no_claims(board["claim_events"], extracts=extracts_claims(document))
    if reason and not (board["cards"] or board["reflections"]):
        return [Text(reason)]
    names, standing, events = (
        terminal.debater_names(document["config"]),
        board["standing"],
        board["claim_events"],
    )
    ledger = fold_events(events, document["topic"])
    passes = [each for each in events if each["type"] == "reflection_pass"]
    dropped = {key for each in passes for key in each.get("dropped", ())}
    parts: Parts = [Text(reason)] if reason else []
    for title, items in {
        "Claims": [_claim_text(each, names) for each in standing["claims"]],
        "Positions by aspect": _aspect_texts(standing["claims"], names),
        "Open challenges": [
            _by_debater(each, names) for each in events if each.get("id") in standing["open_challenges"]
        ],
        "Open questions": [
            _by_debater(each, names) for each in events if each.get("id") in standing["open_questions"]
        ],
        "Evidence": [_by_debater(each, names) for each in ledger.evidence],
        GAPS: [_by_debater(each, names) for each in ledger.gaps],
        REVERSALS: [_by_debater(each, names) for each in ledger.reversals],
        "Crux cards": [card_text(each, names) for each in board["cards"]],
        "Rounds": [_round_text(each, ledger, names) for each in standing.get("rounds", [])],
        "Reflections": [each["content"] for each in board["reflections"] if each["id"] not in dropped],
    }.items():
        if items:
            parts += block(Text(title, "bold"), "\n".join(f"- {each}" for each in items))
    return parts


def _claim_text(claim: Document, names: Mapping[str, str]) -> str:
    """Describe a claim, its status and each debater's stance as text."""
    stances = (
        f"{names.get(debater, debater)}: {stance_text(stance)}: {cited_quotation(stance)} "
        f"(events {', '.join(stance['history'])})"
        for debater, stance in claim["stances"].items()
    )
    return "\n    ".join([f"{claim['id']} ({claim['label']}): {claim['text']}", *stances])


def _aspect_texts(claims: Sequence[Document], names: Mapping[str, str]) -> list[str]:
    """Describe each debater's stances on the claims of each aspect as text."""
    lines: dict[str, list[str]] = {}
    for debater, name in names.items():
        for claim in claims:
            if stance := claim["stances"].get(debater):
                line = f"{name}: {claim['id']}: {stance_text(stance)}"
                lines.setdefault(claim["aspect"], []).append(line)
    return ["\n    ".join([aspect, *texts]) for aspect, texts in lines.items()]


def _by_debater(event: Document, names: Mapping[str, str]) -> str:
    addressee = f" to {names.get(event['to'], event['to']) or 'all'}" if "to" in event else ""
    name = names.get(event["debater"], event["debater"])
    return f"{event['id']}{addressee} by {name}: “{event['quote']}” [{event['message_id']}]"


def _round_text(record: RoundRecord, ledger: Ledger, names: Mapping[str, str]) -> str:
    """Format the record of a round."""
    lines = [f"{names[debater]}: {text}" for debater, text in debater_lines(record, ledger, names).items()]
    return "\n    ".join([f"Round {record['round']}", *lines, *move_lines(record, ledger, names)])


def receipts(document: Document) -> Parts:
    """Return a table of prompt sizes for the debaters' turns, divided into sections."""
    names = terminal.debater_names(document["config"])
    rows = [{**row, "speaker": names.get(row["speaker"], row["speaker"])} for row in document["receipts"]]
    return _receipts(rows, ("seq", "speaker", "phase"))


def calls(document: Document) -> Parts:
    """Return a table of prompt sizes for all model calls except debaters' turns."""
    return _receipts(document.get("calls", []), ("id", "purpose", "memory_kind"))


def _receipts(rows: Sequence[Document], words: Sequence[str]) -> Parts:
    """Return a table of prompt sizes in tokens. Each prompt is a row, and each section is a column."""
    if not rows:
        return [Text("No prompt has been sent yet.")]
    sections = list(dict.fromkeys(section for row in rows for section in row["sections"]))
    table = terminal.borderless_table(*words, figures=(*sections, "total", "budget", "left out"))
    for row in rows:
        counts = [row["sections"].get(section, 0) for section in sections]
        omitted = sum(note["tokens"] for note in row["omitted"])
        figures = map(str, (*counts, row["total_tokens"], row["budget"], omitted))
        table.add_row(*(Text(terminal.one_line(str(row[key]), 24)) for key in words), *figures)
    return [table]


def memory_costs(rows: Sequence[MemoryCost]) -> Parts:
    """Return a table with the cost and use of each kind of memory."""
    headings = ("created", "calls", "tokens", "US$", "prompts", "tokens shown")
    table = terminal.borderless_table("memory", figures=headings)
    for row in rows:
        numbers = (
            row.made,
            row.calls,
            row.tokens,
            f"{row.cost_usd:.4f}" if row.cost_usd else "–",
            row.prompts,
            row.shown_tokens,
        )
        table.add_row(row.kind, *map(str, numbers))
    return [table]


def replays(replayed_turns: Sequence[ReplayedTurn], without: str) -> Parts:
    """Return tables that compare repeated turns with the original turns.

    The prompts of the repeated turns lack one kind of memory. Each table shows the original and the new
    message of one turn side by side.
    """
    parts: Parts = []
    for each in replayed_turns:
        table = Table(
            pad_edge=False, expand=True, title=f"{each.entry_id}, {terminal.one_line(each.speaker, 60)}"
        )
        for heading in (f"original, with {each.shown_tokens} tokens of {without}", f"without {without}"):
            table.add_column(heading, ratio=1)
        table.add_row(Text(terminal.safe(each.said)), Text(terminal.safe(each.without or each.error)))
        parts.append(table)
    return parts


def prompt(reconstruction: ReconstructedPrompt) -> Parts:
    """Return the prompt of one model call as text to print, divided into sections."""
    receipt = reconstruction.receipt
    record: Document = receipt
    if "purpose" in record:
        call_text = f"{record['id']}, {record['purpose']}"
    else:
        call_text = f"{record['entry_id']}, {terminal.one_line(record['speaker'], 60)}"
    heading = f"Prompt of {call_text}: {receipt['total_tokens']} of {receipt['budget']} tokens"
    proof = (
        "exact: its digest is the recorded one"
        if reconstruction.exact
        else "NOT the prompt that was sent: its digest differs, perhaps because a prompt file has changed"
    )
    parts: Parts = [Text(heading, "bold"), Text(f"{proof}  {reconstruction.digest[:16]}…", "dim"), Text()]
    for part in reconstruction.parts:
        author = " ".join(
            filter(None, [part.message["role"], terminal.one_line(part.message.get("name") or "", 60)])
        )
        title = f"── {part.section} · {author} · {part.tokens} tokens"
        parts += block(Text(title, "bold cyan"), part.message["content"], indent=0)
    omitted = receipt["omitted"]
    parts.append(Text("Left out:", "bold") if omitted else Text("Nothing was left out."))
    for note in omitted:
        what, why = terminal.one_line(note["what"], 80), terminal.one_line(note["why"], 80)
        parts.append(Text(f"  {note.get('count', 1)} × {what}: {why}, {note['tokens']} tokens"))
    return parts


PARTS: Mapping[str, Callable[[Document], Parts]] = {
    "transcript": transcript,
    "summaries": summaries,
    "blackboard": blackboard,
    "receipts": receipts,
    "calls": calls,
    "verdict": verdict_parts,
}


def part(name: str, document: Document, parent: str = "") -> tuple[object, Parts]:
    """Return one part of a debate, both as JSON data and formatted for printing.

    The name `""` stands for the whole document. `parent` is the name of the debate it was forked from.
    """
    if not name:
        return document, [*overview(document, parent), *verdict_parts(document)]
    if name == "summary":
        latest = next((each for each in reversed(document["summaries"]) if each["kind"] == "rolling"), None)
        return latest or {}, summary(latest)
    return document[name], PARTS[name](document)
