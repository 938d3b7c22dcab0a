"""How true the extracted claims are: labelled excerpts of debates, read by a model.

    python -m benchmarks.minutes --reader MODEL [--data FILE] [--json] [--only ID …] [--wrong]

Each excerpt is imported, and the model extracts its claims, as in `moot import`. A quotation is right where
its words and those of the label overlap with F1 ≥ 0.5 in the same message. The motion itself counts under
stances: as a proposition only where a label names it.
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
from moot.importing import ImportedTranscript, ParsedMessage, Speaker
from moot.importing.transcript import transcript_config, transcript_values
from moot.nodes.extract import extract
from moot.runtime.environment import Environment, NodeContext
from moot.runtime.run_node import EffectHandler, JournalPosition, run_generator
from moot.state.claim_events import MAIN_QUESTION
from moot.state.config import DebateConfig
from moot.state.config.boundary import Permissions
from moot.state.entries import seq_of

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "minutes-dev.jsonl"
OVERLAP = 0.5
"""F1 of tokens from which two quotations of one message are the same, as the labels' conventions say."""
KINDS = ("stances", "propositions", "concessions", "shifts", "open_questions")
FALSE_POSITIVE_KINDS = {
    "shift": "shifts",
    "concession": "concessions",
    "question": "open_questions",
    "proposition": "claims",
    "agreement": "agreements",
    "evidence": "evidence",
}
"""Which findings fall into a trap that is `not` something."""

Complete = Callable[..., Any]


class Span(NamedTuple):
    """Words of one message."""

    message: int
    text: str


class Dispute(NamedTuple):
    """A proposition of which somebody says yes and somebody no."""

    asserts: tuple[Span, ...]
    denies: tuple[Span, ...]
    motion: bool = False


@dataclass
class Findings:
    """What a reader found in one excerpt."""

    stances: dict[str, tuple[str, Span]] = field(default_factory=dict)
    """Side and quotation by debater's id."""
    propositions: list[Dispute] = field(default_factory=list)
    concessions: list[tuple[str, Span]] = field(default_factory=list)
    """Scope and quotation."""
    shifts: list[Span] = field(default_factory=list)
    open_questions: list[Span] = field(default_factory=list)
    evidence: list[Span] = field(default_factory=list)
    claims: list[Span] = field(default_factory=list)
    """Quotations of whoever asserts or denies anything."""
    agreements: list[Span] = field(default_factory=list)


@dataclass
class Tally:
    """Counts of one kind of label."""

    found: int = 0
    """Said by the reader and right."""
    said: int = 0
    wanted: int = 0
    met: int = 0
    """Labels that were found."""

    def add(self, hits: Sequence[bool], wanted: int, met: int) -> None:
        """Add one excerpt's."""
        self.found += sum(hits)
        self.said += len(hits)
        self.wanted += wanted
        self.met += met

    def figures(self) -> dict[str, Any]:
        """Return precision (`None` of nothing said), recall, F1 and the number of labels."""
        precision = self.found / self.said if self.said else None
        recall = self.met / self.wanted if self.wanted else 0.0
        total = (precision or 0.0) + recall
        f1 = 2 * (precision or 0.0) * recall / total if total else 0.0
        rounded = None if precision is None else round(precision, 3)
        return {"precision": rounded, "recall": round(recall, 3), "f1": round(f1, 3), "n": self.wanted}


def tokens_of(text: str) -> Counter[str]:
    """Return the words of a text; of scripts without spaces, its characters."""
    return Counter(re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’][^\W_]+)*", text.casefold()))


def overlap(one: str, other: str) -> float:
    """Return the F1 of two texts' tokens, 0–1."""
    ours, theirs = tokens_of(one), tokens_of(other)
    shared = sum((ours & theirs).values())
    return 2 * shared / (sum(ours.values()) + sum(theirs.values())) if shared else 0.0


def same(one: Span, other: Span) -> bool:
    """Return whether two quotations are the same words of the same message."""
    return one.message == other.message and overlap(one.text, other.text) >= OVERLAP


def among(one: Span, others: Iterable[Span]) -> bool:
    """Return whether a quotation is one of others."""
    return any(same(one, other) for other in others)


def import_excerpt(item: Mapping[str, Any]) -> ImportedTranscript:
    """Return an excerpt as the import reads a transcript."""
    ids = {
        name: f"s{number}"
        for number, name in enumerate(dict.fromkeys(m["speaker"] for m in item["messages"]))
    }
    speakers = tuple(Speaker(key, name) for name, key in ids.items())
    said = tuple(ParsedMessage(ids[m["speaker"]], m["text"]) for m in item["messages"])
    return ImportedTranscript(item["topic"], speakers, said)


def read_excerpt(item: Mapping[str, Any], reader: str, complete: Complete | None = None) -> dict[str, Any]:
    """Return the state of an excerpt that was imported and read.

    Args:
        item: as the data file has it.
        reader: a model's name.
        complete: answers calls in an endpoint's place.
    """
    environment = Environment(complete=complete) if complete else Environment()
    base = DebateConfig.model_validate({"blackboard": {"extraction": "llm", "model": reader}})
    transcript = import_excerpt(item)
    config = transcript_config(transcript, base, item["debaters"])
    state: Any = transcript_values(transcript, item["topic"], config, environment)
    update = asyncio.run(_driven(state, config, environment))
    return {**state, **update}


async def _driven(state: Any, config: DebateConfig, environment: Environment) -> dict[str, Any]:
    """Run the node that takes the minutes to its end."""
    answering = EffectHandler(environment, Permissions.of_operator(config), JournalPosition())
    body = extract(state, NodeContext(environment))
    update = await run_generator(body, answering.call_models)  # type: ignore[arg-type]  # it asks models alone
    return dict(update or {})


SIDES = {"asserts": "for", "denies": "against", "conditional": "conditional"}


def findings_of(state: Mapping[str, Any]) -> Findings:
    """Return what the ledger says, with the quotations that show it."""

    def span(note: Mapping[str, Any]) -> Span:
        return Span((seq_of(note["message_id"]) or 0) - 1, note["quote"])

    ledger, found = ledger_of(state), Findings()
    for who, event in ledger.stances(MAIN_QUESTION).items():
        if event["kind"] in SIDES:
            found.stances[who] = (SIDES[event["kind"]], span(event))
    for key, course in ledger.timelines.items():
        events = [turn.event for turn in course]
        if ledger.status(key) == "disputed":
            yes, no = (
                tuple(span(event) for event in events if event["kind"] in kinds)
                for kinds in (("asserts", "conditional"), ("denies",))
            )
            found.propositions.append(Dispute(yes, no, motion=key == MAIN_QUESTION))
        found.claims += [span(event) for event in events if event["kind"] in ("asserts", "denies")]
        holders = [event for event in ledger.stances(key).values() if key != MAIN_QUESTION]
        found.agreements += [span(event) for event in holders if ledger.status(key) == "agreed"]
    for event in ledger.events:
        if event["kind"] in ("concedes", "withdraws"):  # the labels count a withdrawal among concessions
            found.concessions.append(("core" if ledger.is_core(event) else "side", span(event)))
    # A withdrawal that comes with the new side, or a side that changed: one shift a message.
    changes = {
        (change.event["debater"], change.event["message_id"]): change.event for change in ledger.changes
    }
    found.shifts = [span(event) for event in changes.values()]
    found.open_questions = [span(question) for question in ledger.open_questions()]
    found.evidence = [span(item) for item in ledger.evidence]
    return found


def score(item: Mapping[str, Any], found: Findings, tallies: Mapping[str, Tally]) -> list[str]:
    """Add one excerpt's counts; return what was wrong, a line each."""
    gold, ids = item["gold"], {one.name: one.id for one in import_excerpt(item).speakers}
    wrong = []

    def tell(kind: str, said: Any) -> None:
        wrong.append(f"{item['id']} {kind}: {said}")

    sides = {ids[name]: label for name, label in gold["stances"].items() if label["side"] != "unclear"}
    hits = []
    for who, (side, said) in found.stances.items():
        if who in sides:
            spans = [Span(each["message"], each["text"]) for each in sides[who]["spans"]]
            hits.append(side == sides[who]["side"] and among(said, spans))
            if not hits[-1]:
                tell("stance", f"{side} {said}, not {sides[who]['side']}")
    tallies["stances"].add(hits, len(sides), sum(hits))
    disputed = [each for each in gold["propositions"] if each["status"] == "disputed"]
    _score_disputes(disputed, found.propositions, tallies["propositions"], tell)
    for kind in ("concessions", "shifts", "open_questions"):
        labels = [Span(each["message"], each["text"]) for each in gold[kind]]
        noted: list[Span] = (
            [one for _, one in found.concessions] if kind == "concessions" else getattr(found, kind)
        )
        hits = [among(each, labels) for each in noted]
        tallies[kind].add(hits, len(labels), sum(among(label, noted) for label in labels))
        for each, hit in zip(noted, hits, strict=True):
            if not hit:
                tell(kind, each)
    scopes = {each["scope"]: Span(each["message"], each["text"]) for each in gold["concessions"]}
    right = [
        scope == name
        for scope, said in found.concessions
        for name, label in scopes.items()
        if same(said, label)
    ]
    tallies["scopes"].add(right, len(right), sum(right))
    evidence = [Span(each["message"], each["text"]) for each in gold["evidence"]]
    tallies["evidence"].add([], len(evidence), sum(among(label, found.evidence) for label in evidence))
    avoided = 0
    for trap in gold["traps"]:
        kind = FALSE_POSITIVE_KINDS[trap["not"]]
        noted = [one for _, one in found.concessions] if kind == "concessions" else getattr(found, kind)
        fallen = among(Span(trap["message"], trap["text"]), noted)
        avoided += not fallen
        if fallen:
            tell("trap", f"{trap['not']} {trap['text']!r}")
    tallies["traps"].add([], len(gold["traps"]), avoided)
    return wrong


def _score_disputes(
    labels: Sequence[Mapping[str, Any]],
    said: Sequence[Dispute],
    tally: Tally,
    tell: Callable[[str, Any], None],
) -> None:
    """Count disputes: one is right where both sides' quotations are, whichever way round it is put."""

    def spans(label: Mapping[str, Any], side: str) -> list[Span]:
        return [Span(each["message"], each["text"]) for each in label[side]]

    def fits(dispute: Dispute, label: Mapping[str, Any]) -> bool:
        yes, no = spans(label, "asserts"), spans(label, "denies")
        ways = ((yes, no), (no, yes))
        return any(
            any(among(each, one) for each in dispute.asserts)
            and any(among(each, other) for each in dispute.denies)
            for one, other in ways
        )

    hits = [(dispute, any(fits(dispute, label) for label in labels)) for dispute in said]
    counted = [hit for dispute, hit in hits if hit or not dispute.motion]
    met = sum(any(fits(dispute, label) for dispute in said) for label in labels)
    tally.add(counted, len(labels), met)
    for dispute, hit in hits:
        if not hit and not dispute.motion:
            tell("proposition", dispute)


def measure(
    items: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> tuple[dict[str, Tally], list[str]]:
    """Return the counts over all excerpts, and what was wrong."""
    tallies = {kind: Tally() for kind in (*KINDS, "scopes", "evidence", "traps")}
    wrong = [line for item in items for line in score(item, findings_of(read(item)), tallies)]
    return tallies, wrong


def as_json(tallies: Mapping[str, Tally]) -> dict[str, Any]:
    """Return the figures in the form of `--json`."""
    traps = tallies["traps"]
    return {
        **{kind: tallies[kind].figures() for kind in KINDS},
        "evidence": {key: tallies["evidence"].figures()[key] for key in ("recall", "n")},
        "traps_avoided": round(traps.met / traps.wanted, 3) if traps.wanted else None,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print one block."""
    parser = argparse.ArgumentParser(description="How true the minutes are.")
    parser.add_argument("--data", type=Path, default=DATA, help="labelled excerpts, JSON lines")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--reader", metavar="MODEL", help="the model that extracts the claims")
    parser.add_argument("--only", nargs="*", default=(), metavar="ID", help="these excerpts alone")
    parser.add_argument("--wrong", action="store_true", help="tell what was wrong")
    given = parser.parse_args(arguments)
    if not given.reader:
        print("minutes: extraction needs a model: give --reader MODEL")
        return
    if not given.data.exists():
        print(f"minutes: no labelled excerpts at {str(given.data)!r}: give --data FILE")
        return
    tallies, wrong = measure(excerpts(given.data, given.only), partial(read_excerpt, reader=given.reader))
    if given.json:
        print(json.dumps(as_json(tallies)))
    else:
        print(f"minutes: {given.data.stem}, read by {given.reader}")
        print("\n".join(_lines(tallies, wrong if given.wrong else ())))


def excerpts(data: Path, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the excerpts of a file, all or those with these ids."""
    items = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [item for item in items if not only or item["id"] in only]


def _lines(tallies: Mapping[str, Tally], wrong: Sequence[str]) -> Iterator[str]:
    for kind in KINDS:
        row = tallies[kind].figures()
        precision = "  —  " if row["precision"] is None else f"{row['precision']:.3f}"
        told = f"precision {precision} of {tallies[kind].said:<4} recall {row['recall']:.3f} of {row['n']}"
        yield f"  {kind:<15} {told}"
    scopes, figures = tallies["scopes"], as_json(tallies)
    yield f"  {'scope':<15} right for {scopes.met} of {scopes.wanted} concessions found"
    yield f"  {'evidence':<15} recall {figures['evidence']['recall']:.3f} of {figures['evidence']['n']}"
    yield f"  {'traps avoided':<15} {figures['traps_avoided']}"
    yield from (f"    {line}" for line in wrong)


if __name__ == "__main__":
    main()
