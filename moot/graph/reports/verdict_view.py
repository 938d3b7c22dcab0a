"""Verdicts ready to be shown: the decision, how a panel came to it, and each judge's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from moot.graph.documents import DebateDocument
from moot.graph.documents.reading import shown_config
from moot.graph.reports.cast import People, Person
from moot.nodes.judging.opinion_check import changed_text, confidence_of
from moot.nodes.judging.rubrics import parse_rubric, shipped_rubrics
from moot.nodes.protocols.protocol import Protocol
from moot.nodes.protocols.protocol_table import rules_of
from moot.state.errors import ConfigError
from moot.state.verdict import (
    NO_WINNER,
    PANEL,
    PLACEHOLDER,
    Case,
    CriterionScale,
    Decision,
    Outcome,
    Verdict,
)

_JUDGES = {"": "a judge", "judge": "the judge", PANEL: "the panel"}
_FULL = 100.0
"""Top of totals and of confidence."""


@dataclass(frozen=True)
class Score:
    """What one debater got for one criterion, or in total."""

    person: Person
    value: float | None
    share: int
    """Length of its bar, in percent of the scale."""
    reasoning: str = ""
    citations: tuple[str, ...] = ()


@dataclass(frozen=True)
class CriterionRow:
    """One criterion with the score of each debater, in the debaters' order."""

    name: str
    scores: tuple[Score, ...]


class VerdictView:
    """One verdict. `headline` is all that a hurried reader needs; a failed one never names a winner."""

    def __init__(
        self, verdict: Verdict, people: People, named: Mapping[str, Sequence[CriterionScale]], rules: Protocol
    ) -> None:
        self.record = record = cast(Decision, verdict)
        """A judge's verdict has no more of it than every verdict has."""
        self.judge = _JUDGES.get(record["judge"], record["judge"])
        self.changed = changed_text(record)
        """What did not count as it was said, in a sentence."""
        self.flipped = record["flip"]["flipped"]
        """Whether the winner changed with the order of presentation; `None` where one order alone counts."""
        self.failed, self.placeholder = record["status"] == "failed", record.get("placeholder", False)
        self.solution = "" if self.failed else record["solution_markdown"]
        """The answer that the judge wrote."""
        self.winner: Person | None = None
        self.confidence: int | None = None
        self.criteria: Sequence[CriterionRow] = ()
        self.totals: Sequence[Score] = ()
        self.outcome: Outcome | None = None
        """How several judges came to it; `None` for one judge's own."""
        self.cases: Mapping[str, Case] = {}
        """By debater, what speaks for its answer and against it."""
        if self.failed or self.placeholder:  # nobody's judgement
            self.headline = PLACEHOLDER.capitalize() if self.placeholder else "The verdict failed"
            return
        self.headline = rules.headline(record, {person.id: person.name for person in people.values()})
        if record["winner"] and record["winner"] not in NO_WINNER:
            self.winner = people[record["winner"]]
        self.confidence = confidence_of(record)
        self.criteria = _criteria(record, people, record.get("criteria") or named.get(record["rubric"], []))
        totals = {people[key].id: total for key, total in record["totals"].items()}
        self.totals = [
            Score(person, totals[person.id], _bar(totals[person.id] / _FULL))
            for person in _in_order(record["totals"], people)
        ]
        self.outcome = record.get("outcome") if record["judge"] == PANEL else None
        self.cases = record.get("cases", {})


class Panel:
    """What was decided, and the judges side by side."""

    def __init__(self, document: DebateDocument, people: People) -> None:
        """Tell by their numbers which verdicts the decision was made of, and show them beside the others.

        A decision from before there were numbers was made of the last verdicts that have none.
        """
        decision, verdicts = document["verdict"], document["verdicts"]
        self.agreement = agreement = document.get("agreement", {})
        self.alpha = agreement.get("alpha")
        """Krippendorff's α over the judges' scores."""
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
        """Those that the decision was made of."""
        self.earlier = views(earlier)
        """Those of earlier judgings, the oldest first."""
        self.later = views(later)
        """Those of later judgings: all failed, else the decision were theirs."""
        failed = all(verdict["status"] == "failed" for verdict in verdicts)
        alone = verdicts[-1:] if failed else []
        self.decision = next(iter(views([decision] if decision else alone)), None)
        """The decision, or the failed verdict of a lone judge: never another judge's in its place."""
        kappa, unanimous = agreement.get("kappa"), agreement.get("unanimous")
        figures = (
            ("Mean of the judges’ pairwise κ", "" if kappa is None else f"{kappa:.2f}"),
            ("Unanimous", {True: "yes", False: "no", None: ""}[unanimous]),
            ("Judges who failed", str(agreement.get("failed") or "")),
        )
        self.others = tuple((name, value) for name, value in figures if value)
        """Further figures of agreement, as (name, value)."""


def _named_scales(document: DebateDocument) -> dict[str, list[CriterionScale]]:
    """Return the rubrics that older verdicts may name: those that ship, and the configuration's."""
    rubrics = shipped_rubrics()
    judge = shown_config(document)["judge"]
    for seat in (judge, *judge.get("panel", [])):
        with suppress(ConfigError):  # a shipped one's name, or nobody's
            rubric = parse_rubric(seat.get("rubric"))
            rubrics = {**rubrics, rubric.name: rubric}
    return {name: rubric.scales() for name, rubric in rubrics.items()}


def _criteria(record: Verdict, people: People, scales: Sequence[CriterionScale]) -> tuple[CriterionRow, ...]:
    """Return the criteria in the rubric's order, then those that it does not know."""
    given = {people[key].id: records for key, records in record["scores"].items()}
    scored = dict.fromkeys(criterion for records in given.values() for criterion in records)
    known = {scale["id"]: scale for scale in scales}
    rows = []
    for key in [*(key for key in known if key in scored), *(key for key in scored if key not in known)]:
        of = [(person, given[person.id].get(key)) for person in _in_order(record["scores"], people)]
        top = max((score["score"] for _, score in of if score), default=0.0)
        # The top of a scale that is not known: 10, 100, or the highest score where it is above both.
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


def _in_order(keys: Iterable[str], people: People) -> list[Person]:
    named = {people[key].id: people[key] for key in keys}
    others = [person for key, person in named.items() if key not in people]
    return [person for person in people.values() if person.id in named] + others
