"""Measure the precision and recall of a model that extracts claims from labelled excerpts of debates.

    python -m benchmarks.extraction --extractor MODEL [--data FILE] [--json] [--only ID …] [--errors]

Each excerpt is imported, and the model extracts its claims, as in `moot import`. A quotation is correct if it
is in the same message as a label's quotation and their words overlap with F1 ≥ 0.5. The main question counts
under stances. It counts as a dispute only if a label names it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from moot.claims.ledger_from_events import ledger_of
from moot.config import DebateConfig
from moot.config.boundary import Permissions
from moot.debates.imported_debate import transcript_config, transcript_values
from moot.importers import ImportedTranscript, ParsedMessage, Speaker
from moot.nodes.extract import extract
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.runtime.run_node import EffectHandler, JournalPosition, run_generator
from moot.state.claim_events import MAIN_QUESTION
from moot.state.entries import seq_of

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "minutes-dev.jsonl"
MIN_OVERLAP = 0.5
"""F1 of the words from which two quotations of one message count as the same (convention of the labels)."""
KINDS = ("stances", "disputes", "concessions", "shifts", "open_questions")
TRAP_KINDS = {
    "shift": "shifts",
    "concession": "concessions",
    "question": "open_questions",
    "proposition": "claims",
    "agreement": "agreements",
    "evidence": "evidence",
}
"""Findings that a trap of the labels provokes, by the trap's field `not`."""

Complete = Callable[..., Any]


class Span(NamedTuple):
    """Quotation from one message, given by its index."""

    message: int
    text: str


class Dispute(NamedTuple):
    """Claim that some debaters assert and others deny, with the quotations."""

    asserts: tuple[Span, ...]
    denies: tuple[Span, ...]
    is_main_question: bool = False


@dataclass
class Findings:
    """What the extractor found in one excerpt."""

    stances: dict[str, tuple[str, Span]] = field(default_factory=dict)
    """Side and quotation, by id of the debater."""
    disputes: list[Dispute] = field(default_factory=list)
    concessions: list[tuple[str, Span]] = field(default_factory=list)
    """Scope and quotation."""
    shifts: list[Span] = field(default_factory=list)
    open_questions: list[Span] = field(default_factory=list)
    evidence: list[Span] = field(default_factory=list)
    claims: list[Span] = field(default_factory=list)
    """Quotations that assert or deny a claim."""
    agreements: list[Span] = field(default_factory=list)


@dataclass
class Tally:
    """Counts of one kind of label."""

    correct: int = 0
    """Correct findings of the extractor."""
    reported: int = 0
    """All findings of the extractor."""
    labels: int = 0
    labels_found: int = 0

    def add(self, hits: Sequence[bool], labels: int, labels_found: int) -> None:
        """Add the counts of one excerpt."""
        self.correct += sum(hits)
        self.reported += len(hits)
        self.labels += labels
        self.labels_found += labels_found

    def figures(self) -> dict[str, Any]:
        """Return precision (`None` without findings), recall, F1 and the number of labels."""
        precision = self.correct / self.reported if self.reported else None
        recall = self.labels_found / self.labels if self.labels else 0.0
        total = (precision or 0.0) + recall
        f1 = 2 * (precision or 0.0) * recall / total if total else 0.0
        rounded = None if precision is None else round(precision, 3)
        return {"precision": rounded, "recall": round(recall, 3), "f1": round(f1, 3), "n": self.labels}


def word_counts(text: str) -> Counter[str]:
    """Count the words of a text. In scripts without spaces each character is a word."""
    return Counter(re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’][^\W_]+)*", text.casefold()))


def overlap(one: str, other: str) -> float:
    """Return the F1 of the words of two texts, from 0 to 1."""
    ours, theirs = word_counts(one), word_counts(other)
    shared = sum((ours & theirs).values())
    return 2 * shared / (sum(ours.values()) + sum(theirs.values())) if shared else 0.0


def is_same_quotation(one: Span, other: Span) -> bool:
    """Return True if two quotations are of the same message and overlap enough."""
    return one.message == other.message and overlap(one.text, other.text) >= MIN_OVERLAP


def is_any_quotation(one: Span, others: Iterable[Span]) -> bool:
    """Return True if a quotation is the same as one of others."""
    return any(is_same_quotation(one, other) for other in others)


def import_excerpt(item: Mapping[str, Any]) -> ImportedTranscript:
    """Return an excerpt as an imported transcript."""
    ids = {
        name: f"s{number}"
        for number, name in enumerate(dict.fromkeys(m["speaker"] for m in item["messages"]))
    }
    speakers = tuple(Speaker(key, name) for name, key in ids.items())
    messages = tuple(ParsedMessage(ids[m["speaker"]], m["text"]) for m in item["messages"])
    return ImportedTranscript(item["topic"], speakers, messages)


def extract_excerpt(
    item: Mapping[str, Any], extractor: str, complete: Complete | None = None
) -> dict[str, Any]:
    """Import an excerpt, extract its claims, and return the state.

    Args:
        item: a row of the data file.
        extractor: name of the model.
        complete: function that answers the model calls; without it they go to the model's endpoint.
    """
    environment = Environment(complete=complete) if complete else Environment()
    base = DebateConfig.model_validate({"blackboard": {"extraction": "llm", "model": extractor}})
    transcript = import_excerpt(item)
    config = transcript_config(transcript, base, item["debaters"])
    state: Any = transcript_values(transcript, item["topic"], config, environment)
    update = asyncio.run(_extract_claims(state, config, environment))
    return {**state, **update}


async def _extract_claims(state: Any, config: DebateConfig, environment: Environment) -> dict[str, Any]:
    """Run the node that extracts claims, and return its update."""
    handler = EffectHandler(environment, Permissions.of_operator(config), JournalPosition())
    body = extract(node_context(environment, state))
    update = await run_generator(body, handler.call_models)  # type: ignore[arg-type]  # all effects are model calls
    return dict(update or {})


SIDE_BY_KIND = {"asserts": "for", "denies": "against", "conditional": "conditional"}


def findings_of(state: Mapping[str, Any]) -> Findings:
    """Return the findings of a state's ledger with their quotations."""

    def span(event: Mapping[str, Any]) -> Span:
        return Span((seq_of(event["message_id"]) or 0) - 1, event["quote"])

    ledger, found = ledger_of(state), Findings()
    for who, event in ledger.stances(MAIN_QUESTION).items():
        if event["kind"] in SIDE_BY_KIND:
            found.stances[who] = (SIDE_BY_KIND[event["kind"]], span(event))
    for key, timeline in ledger.timelines.items():
        events = [turn.event for turn in timeline]
        if ledger.status(key) == "disputed":
            yes, no = (
                tuple(span(event) for event in events if event["kind"] in kinds)
                for kinds in (("asserts", "conditional"), ("denies",))
            )
            found.disputes.append(Dispute(yes, no, is_main_question=key == MAIN_QUESTION))
        found.claims += [span(event) for event in events if event["kind"] in ("asserts", "denies")]
        holders = [event for event in ledger.stances(key).values() if key != MAIN_QUESTION]
        found.agreements += [span(event) for event in holders if ledger.status(key) == "agreed"]
    for event in ledger.events:
        if event["kind"] in ("concedes", "withdraws"):  # the labels count a withdrawal among concessions
            found.concessions.append(("core" if ledger.is_core(event) else "side", span(event)))
    # A message that withdraws a stance and takes another one is one shift.
    changes = {
        (change.event["debater"], change.event["message_id"]): change.event for change in ledger.changes
    }
    found.shifts = [span(event) for event in changes.values()]
    found.open_questions = [span(question) for question in ledger.open_questions()]
    found.evidence = [span(item) for item in ledger.evidence]
    return found


def score(item: Mapping[str, Any], found: Findings, tallies: Mapping[str, Tally]) -> list[str]:
    """Add the counts of one excerpt to the tallies, and return one line for each error."""
    gold, ids = item["gold"], {one.name: one.id for one in import_excerpt(item).speakers}
    errors = []

    def report(kind: str, finding: Any) -> None:
        errors.append(f"{item['id']} {kind}: {finding}")

    sides = {ids[name]: label for name, label in gold["stances"].items() if label["side"] != "unclear"}
    hits = []
    for who, (side, quotation) in found.stances.items():
        if who in sides:
            spans = [Span(each["message"], each["text"]) for each in sides[who]["spans"]]
            hits.append(side == sides[who]["side"] and is_any_quotation(quotation, spans))
            if not hits[-1]:
                report("stance", f"{side} {quotation}, not {sides[who]['side']}")
    tallies["stances"].add(hits, len(sides), sum(hits))
    disputed = [each for each in gold["propositions"] if each["status"] == "disputed"]
    _score_disputes(disputed, found.disputes, tallies["disputes"], report)
    for kind in ("concessions", "shifts", "open_questions"):
        labels = [Span(each["message"], each["text"]) for each in gold[kind]]
        findings: list[Span] = (
            [one for _, one in found.concessions] if kind == "concessions" else getattr(found, kind)
        )
        hits = [is_any_quotation(each, labels) for each in findings]
        tallies[kind].add(hits, len(labels), sum(is_any_quotation(label, findings) for label in labels))
        for each, hit in zip(findings, hits, strict=True):
            if not hit:
                report(kind, each)
    scopes = {each["scope"]: Span(each["message"], each["text"]) for each in gold["concessions"]}
    right = [
        scope == name
        for scope, quotation in found.concessions
        for name, label in scopes.items()
        if is_same_quotation(quotation, label)
    ]
    tallies["scopes"].add(right, len(right), sum(right))
    evidence = [Span(each["message"], each["text"]) for each in gold["evidence"]]
    tallies["evidence"].add(
        [], len(evidence), sum(is_any_quotation(label, found.evidence) for label in evidence)
    )
    avoided = 0
    for trap in gold["traps"]:
        kind = TRAP_KINDS[trap["not"]]
        findings = [one for _, one in found.concessions] if kind == "concessions" else getattr(found, kind)
        provoked = is_any_quotation(Span(trap["message"], trap["text"]), findings)
        avoided += not provoked
        if provoked:
            report("trap", f"{trap['not']} {trap['text']!r}")
    tallies["traps"].add([], len(gold["traps"]), avoided)
    return errors


def _score_disputes(
    labels: Sequence[Mapping[str, Any]],
    findings: Sequence[Dispute],
    tally: Tally,
    report: Callable[[str, Any], None],
) -> None:
    """Count the disputes. One is correct if quotations of both sides are, with either side as yes."""

    def spans(label: Mapping[str, Any], side: str) -> list[Span]:
        return [Span(each["message"], each["text"]) for each in label[side]]

    def fits(dispute: Dispute, label: Mapping[str, Any]) -> bool:
        yes, no = spans(label, "asserts"), spans(label, "denies")
        ways = ((yes, no), (no, yes))
        return any(
            any(is_any_quotation(each, one) for each in dispute.asserts)
            and any(is_any_quotation(each, other) for each in dispute.denies)
            for one, other in ways
        )

    hits = [(dispute, any(fits(dispute, label) for label in labels)) for dispute in findings]
    counted = [hit for dispute, hit in hits if hit or not dispute.is_main_question]
    labels_found = sum(any(fits(dispute, label) for dispute in findings) for label in labels)
    tally.add(counted, len(labels), labels_found)
    for dispute, hit in hits:
        if not hit and not dispute.is_main_question:
            report("dispute", dispute)


def measure(
    items: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> tuple[dict[str, Tally], list[str]]:
    """Return the counts over all excerpts, and one line for each error."""
    tallies = {kind: Tally() for kind in (*KINDS, "scopes", "evidence", "traps")}
    errors = [line for item in items for line in score(item, findings_of(read(item)), tallies)]
    return tallies, errors


def as_json(tallies: Mapping[str, Tally]) -> dict[str, Any]:
    """Return the figures as printed by `--json`."""
    traps = tallies["traps"]
    return {
        **{kind: tallies[kind].figures() for kind in KINDS},
        "evidence": {key: tallies["evidence"].figures()[key] for key in ("recall", "n")},
        "traps_avoided": round(traps.labels_found / traps.labels, 3) if traps.labels else None,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description="Precision and recall of claim extraction.")
    parser.add_argument("--data", type=Path, default=DATA, help="labelled excerpts, JSON lines")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--extractor", metavar="MODEL", help="model that extracts the claims")
    parser.add_argument("--only", nargs="*", default=(), metavar="ID", help="use only these excerpts")
    parser.add_argument("--errors", action="store_true", help="print each error")
    options = parser.parse_args(arguments)
    if not options.extractor:
        print("extraction: a model is needed: give --extractor MODEL")
        return
    if not options.data.exists():
        print(f"extraction: no labelled excerpts at {str(options.data)!r}: give --data FILE")
        return
    tallies, errors = measure(
        read_excerpts(options.data, options.only), partial(extract_excerpt, extractor=options.extractor)
    )
    if options.json:
        print(json.dumps(as_json(tallies)))
    else:
        print(f"extraction: {options.data.stem}, claims extracted by {options.extractor}")
        print("\n".join(_report_lines(tallies, errors if options.errors else ())))


def read_excerpts(data: Path, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the excerpts of a file, or only those with the given ids."""
    items = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [item for item in items if not only or item["id"] in only]


def _report_lines(tallies: Mapping[str, Tally], errors: Sequence[str]) -> Iterator[str]:
    for kind in KINDS:
        row = tallies[kind].figures()
        precision = "  —  " if row["precision"] is None else f"{row['precision']:.3f}"
        found = f"precision {precision} of {tallies[kind].reported:<4} "
        yield f"  {kind:<15} {found}recall {row['recall']:.3f} of {row['n']}"
    scopes, figures = tallies["scopes"], as_json(tallies)
    yield f"  {'scope':<15} correct for {scopes.labels_found} of {scopes.labels} concessions found"
    yield f"  {'evidence':<15} recall {figures['evidence']['recall']:.3f} of {figures['evidence']['n']}"
    yield f"  {'traps avoided':<15} {figures['traps_avoided']}"
    yield from (f"    {line}" for line in errors)


if __name__ == "__main__":
    main()
