"""Verdicts ready to be rendered: the decision, the panel, and each judge's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from moot.documents import DebateDocument
from moot.documents.read_document import document_config
from moot.judging.judge_response import ShownField, shown
from moot.judging.response_check import changed_text, confidence_of
from moot.judging.rubrics import parse_rubric, shipped_rubrics
from moot.protocols.base import Protocol
from moot.protocols.registry import rules_of
from moot.reports.transcript_blocks import Participant, Participants
from moot.state.errors import ConfigError
from moot.state.verdict import (
    NO_WINNER,
    PANEL,
    PLACEHOLDER,
    Case,
    CriterionScale,
    PanelVerdict,
    RuleResult,
    Verdict,
)

_JUDGES = {"": "an unnamed judge", "judge": "the judge", PANEL: "the panel"}
_FULL = 100.0
"""Highest possible total score and highest possible confidence of a judge."""


@dataclass(frozen=True)
class Score:
    """A debater's score for one rubric criterion, or the debater's total score."""

    person: Participant
    value: float | None
    share: int
    """Length of the score's bar, as a percentage of the scale."""
    reasoning: str = ""
    citations: tuple[str, ...] = ()


@dataclass(frozen=True)
class CriterionRow:
    """A rubric criterion with each debater's score."""

    name: str
    scores: tuple[Score, ...]


class VerdictView:
    """A verdict with all data that is needed to render it.

    A failed verdict never names a winner.
    """

    def __init__(
        self,
        verdict: Verdict,
        people: Participants,
        named: Mapping[str, Sequence[CriterionScale]],
        rules: Protocol,
    ) -> None:
        self.record = record = cast(PanelVerdict, verdict)
        """The verdict as stored. A single judge's verdict lacks the keys of a panel."""
        self.judge = _JUDGES.get(record["judge"], record["judge"])
        self.changed = changed_text(record)
        """Sentence about the parts of the judge's response that were changed. Empty without changes."""
        self.flipped = record["flip"]["flipped"]
        """True if the winner depends on the order of presentation. `None`: only one order was judged."""
        self.failed, self.placeholder = record["status"] == "failed", record.get("placeholder", False)
        self.solution = "" if self.failed else record["solution_markdown"]
        """Solution in Markdown, as the judge wrote it."""
        self.fields: Sequence[ShownField] = ()
        """Fields of the verdict that follow `top`."""
        self.winner: Participant | None = None
        self.confidence: int | None = None
        self.criteria: Sequence[CriterionRow] = ()
        self.totals: Sequence[Score] = ()
        self.outcome: RuleResult | None = None
        """Result of the panel's voting rule. `None` for a single judge's verdict."""
        self.cases: Mapping[str, Case] = {}
        """Reasons for and against each debater's position, by debater id."""
        self.positions: Mapping[str, str] = {}
        """Final position of each debater, by debater id."""
        if self.failed or self.placeholder:  # no judge's opinion
            self.headline = PLACEHOLDER.capitalize() if self.placeholder else "The verdict failed"
            self.top, self.top_label = self.headline, rules.result
            return
        names = {person.id: person.name for person in people.values()}
        self.headline = rules.headline(record, names)
        if record["winner"] and record["winner"] not in NO_WINNER:
            self.winner = people[record["winner"]]
        self.confidence = confidence_of(record)
        fields = {
            field.name: field
            for field in shown(record, names, headline=self.headline, winner_label=rules.result)
        }
        fields.pop("question", None)  # the title of the report
        top = fields.pop("decision", None) or fields.pop("winner", None)
        self.top = top.text if top else self.headline
        self.top_label = top.label if top else rules.result
        self.fields = tuple(fields.values())
        self.criteria = _criteria(record, people, record.get("criteria") or named.get(record["rubric"], []))
        totals = {people[key].id: total for key, total in record["totals"].items()}
        self.totals = [
            Score(person, totals[person.id], _bar(totals[person.id] / _FULL))
            for person in _in_order(record["totals"], people)
        ]
        self.outcome = record.get("outcome") if record["judge"] == PANEL else None
        self.cases = record.get("cases", {})
        self.positions = record.get("final_position", {})


class Panel:
    """The decision of a debate, with the verdict of each judge on the panel."""

    def __init__(self, document: DebateDocument, people: Participants) -> None:
        """Split the verdicts into deciding verdicts, earlier verdicts and later verdicts.

        The verdicts are told apart by the number of their judging. In documents without numbers, the last
        verdicts are those
        behind the decision.
        """
        decision, verdicts = document["verdict"], document["verdicts"]
        self.agreement = agreement = document.get("agreement", {})
        self.alpha = agreement.get("alpha")
        """Krippendorff's α of the judges' scores."""
        if number := decision.get("judging", 0) if decision else 0:
            own = [verdict for verdict in verdicts if verdict.get("judging", 0) == number]
            earlier = [verdict for verdict in verdicts if verdict.get("judging", 0) < number]
            later = [verdict for verdict in verdicts if verdict.get("judging", 0) > number]
        else:
            later = [verdict for verdict in verdicts if verdict.get("judging")] if decision else []
            unnumbered = [verdict for verdict in verdicts if verdict not in later]
            sat = agreement.get("judges", 0) + agreement.get("failed", 0)
            first = max(0, len(unnumbered) - sat) if sat else 0
            own, earlier = unnumbered[first:], unnumbered[:first]
        scales, rules = _named_scales(document), rules_of(document)

        def views(of: Sequence[Verdict]) -> tuple[VerdictView, ...]:
            return tuple(VerdictView(verdict, people, scales, rules) for verdict in of)

        self.verdicts = views(own)
        """Verdicts behind the decision."""
        self.earlier = views(earlier)
        """Verdicts of earlier judgings, oldest first."""
        self.later = views(later)
        """Verdicts of later judgings that all failed."""
        failed = all(verdict["status"] == "failed" for verdict in verdicts)
        alone = verdicts[-1:] if failed else []
        self.decision = next(iter(views([decision] if decision else alone)), None)
        """The decision, or the failed verdict of a single judge."""
        kappa, unanimous = agreement.get("kappa"), agreement.get("unanimous")
        figures = (
            ("Mean pairwise κ of the judges", "" if kappa is None else f"{kappa:.2f}"),
            ("Unanimous", {True: "yes", False: "no", None: ""}[unanimous]),
            ("Failed judges", str(agreement.get("failed") or "")),
        )
        self.others = tuple((name, value) for name, value in figures if value)
        """Further figures on the judges' agreement, as (name, value) pairs."""


def _named_scales(document: DebateDocument) -> dict[str, list[CriterionScale]]:
    """Return the scales of all built-in and configured rubrics, keyed by rubric name."""
    rubrics = shipped_rubrics()
    judge = document_config(document)["judge"]
    for spec in (judge, *judge.get("panel", [])):
        with suppress(ConfigError):  # a built-in rubric, or an unknown name
            rubric = parse_rubric(spec.get("rubric"))
            rubrics = {**rubrics, rubric.name: rubric}
    return {name: rubric.scales() for name, rubric in rubrics.items()}


def _criteria(
    record: Verdict, people: Participants, scales: Sequence[CriterionScale]
) -> tuple[CriterionRow, ...]:
    """Return a row for each scored criterion, with the rubric's own criteria first."""
    given = {people[key].id: records for key, records in record["scores"].items()}
    scored = dict.fromkeys(criterion for records in given.values() for criterion in records)
    known = {scale["id"]: scale for scale in scales}
    rows = []
    for key in [*(key for key in known if key in scored), *(key for key in scored if key not in known)]:
        of = [(person, given[person.id].get(key)) for person in _in_order(record["scores"], people)]
        top = max((score["score"] for _, score in of if score), default=0.0)
        # If the scale is unknown, its maximum is 10, 100, or the highest score if that is above 100.
        name, low, high = key.replace("_", " ").capitalize(), 0.0, 10.0 if top <= 10 else max(top, _FULL)
        if scale := known.get(key):
            name, low, high = scale["name"], scale["scale_min"], scale["scale_max"]
        scores = []
        for person, score in of:
            if score is None:
                scores.append(Score(person, None, 0))
                continue
            share = (score["score"] - low) / (high - low) if high > low else 0.0
            citations = tuple(score["citations"])
            scores.append(Score(person, score["score"], _bar(share), score["reason"], citations))
        rows.append(CriterionRow(name, tuple(scores)))
    return tuple(rows)


def _bar(share: float) -> int:
    return round(100 * min(max(0.0, share), 1.0))


def _in_order(keys: Iterable[str], people: Participants) -> list[Participant]:
    named = {people[key].id: people[key] for key in keys}
    others = [person for key, person in named.items() if key not in people]
    return [person for person in people.values() if person.id in named] + others
