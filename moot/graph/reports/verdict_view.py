"""One verdict, or a decision, ready to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from moot.graph.reports.cast import People, Person
from moot.graph.reports.fields import as_count, as_dict, as_dicts, as_number, as_text, as_texts, percent
from moot.graph.reports.rulings import Ruling, read_ruling
from moot.nodes.judging.rubrics import Rubric, shipped_rubrics
from moot.state.verdict import PANEL, SYNTHESIS, TIE

_JUDGES = {"judge": "the judge", PANEL: "the panel"}
_FULL_TOTAL = 100.0


@dataclass(frozen=True)
class Score:
    """What one debater got for one criterion."""

    person: Person
    value: float | None
    share: int
    """Length of its bar, in percent of the scale."""
    reasoning: str
    citations: tuple[str, ...]


@dataclass(frozen=True)
class Criterion:
    """One criterion with the score of each debater, in the debaters' order."""

    name: str
    scores: tuple[Score, ...]


@dataclass(frozen=True)
class Requirement:
    """Something asked for that nobody delivered."""

    text: str
    major: bool


@dataclass(frozen=True)
class VerdictView:
    """One verdict. `headline` is all that a hurried reader needs; a failed one never names a winner."""

    judge: str
    model: str
    failed: bool
    error: str
    headline: str
    winner: Person | None
    confidence: int | None
    reasoning: str
    criteria: tuple[Criterion, ...]
    totals: tuple[Score, ...]
    unmet: tuple[Requirement, ...]
    open_questions: tuple[str, ...]
    solution: str
    tradeoffs: tuple[str, ...]
    recommendations: tuple[str, ...]
    dropped_citations: int
    flipped: bool | None
    notes: tuple[str, ...]
    """What checking or the panel's rule made of what was said."""
    ruling: Ruling | None
    """How several judges came to it."""


def read_verdict(raw: dict[str, Any], people: People, rubrics: dict[str, Rubric]) -> VerdictView | None:
    """Build the view of a verdict, or of a decision; `None` where there is none."""
    if not raw:
        return None
    failed = as_text(raw.get("status")) == "failed"
    said = "" if failed else as_text(raw.get("winner"))
    winner = people[said] if said and said not in (TIE, SYNTHESIS) else None
    judge = as_text(raw.get("judge"))
    flipped = as_dict(raw.get("flip")).get("flipped")
    rubric = _rubric(raw) or rubrics.get(as_text(raw.get("rubric")))
    return VerdictView(
        judge=_JUDGES.get(judge, judge or "a judge"),
        model=as_text(raw.get("model")),
        failed=failed,
        error=as_text(raw.get("error")),
        headline=_headline(said, winner, failed=failed),
        winner=winner,
        confidence=None if failed else percent(raw.get("confidence")),
        reasoning=as_text(raw.get("reasoning")),
        criteria=() if failed else _criteria(as_dict(raw.get("scores")), people, rubric),
        totals=() if failed else _totals(as_dict(raw.get("totals")), people),
        unmet=_requirements(raw.get("unmet_requirements")),
        open_questions=as_texts(raw.get("open_questions")),
        solution="" if failed else as_text(raw.get("solution_markdown")),
        tradeoffs=as_texts(raw.get("tradeoffs")),
        recommendations=as_texts(raw.get("recommendations")),
        dropped_citations=as_count(raw.get("dropped_citations")),
        flipped=flipped if isinstance(flipped, bool) else None,
        notes=() if failed else as_texts(raw.get("notes")),
        ruling=None if failed else read_ruling(raw, people),
    )


def _rubric(raw: dict[str, Any]) -> Rubric | None:
    """Return what a verdict itself says of its criteria; older ones name their rubric alone."""
    try:
        return Rubric.model_validate({"name": "-", "criteria": raw.get("criteria")})
    except ValidationError:
        return None


def rubrics_in(document: dict[str, Any]) -> dict[str, Rubric]:
    """Return the rubrics that verdicts of a document may name: those that ship, and its configuration's."""
    judge = as_dict(as_dict(document.get("config")).get("judge"))
    rubrics = shipped_rubrics()
    for seat in (judge, *as_dicts(judge.get("panel"))):
        try:
            rubric = Rubric.model_validate(seat.get("rubric"))
        except ValidationError:  # a shipped one's name, or nobody's
            continue
        rubrics[rubric.name] = rubric
    return rubrics


def _headline(said: str, winner: Person | None, *, failed: bool) -> str:
    if winner is not None:
        return f"{winner.name} wins"
    if failed:
        return "The verdict failed"
    known = {TIE: "A tie", SYNTHESIS: "A synthesis of both sides"}
    return known.get(said, "Judged, without a winner")


def _criteria(raw: dict[str, Any], people: People, rubric: Rubric | None) -> tuple[Criterion, ...]:
    """Return the criteria in the rubric's order, then those that it does not know."""
    rows = {who: as_dict(given) for who, given in raw.items()}
    debaters = _in_order(list(rows), people)
    scored = dict.fromkeys(criterion for given in rows.values() for criterion in given)
    known = [criterion.id for criterion in rubric.criteria] if rubric else []
    order = [key for key in known if key in scored] + [key for key in scored if key not in known]
    of = {people[who].id: given for who, given in rows.items()}
    return tuple(
        _criterion(key, [(person, as_dict(of[person.id].get(key))) for person in debaters], rubric)
        for key in order
    )


def _criterion(key: str, given: Sequence[tuple[Person, dict[str, Any]]], rubric: Rubric | None) -> Criterion:
    values = [as_number(raw.get("score")) for _, raw in given]
    known = rubric.criterion(key) if rubric else None
    top = _scale(values)
    shares = [0 if v is None else known.share(v) if known else v / top for v in values]
    name = known.name if known else key.replace("_", " ").capitalize()
    rows = zip(given, values, shares, strict=True)
    return Criterion(name, tuple(_score(person, raw, value, share) for (person, raw), value, share in rows))


def _scale(values: Sequence[float | None]) -> float:
    """Return the top of a scale that is not known: 10, 100, or the highest score where it is above both."""
    top = max((value for value in values if value is not None), default=0.0)
    return next((scale for scale in (10.0, 100.0) if top <= scale), top)


def _score(person: Person, raw: dict[str, Any], value: float | None, share: float) -> Score:
    bar = round(100 * min(max(share, 0.0), 1.0))
    return Score(person, value, bar, as_text(raw.get("reason")), as_texts(raw.get("citations")))


def _totals(raw: dict[str, Any], people: People) -> tuple[Score, ...]:
    of = {people[key].id: as_number(value) for key, value in raw.items()}
    debaters = _in_order(list(raw), people)
    return tuple(
        _score(person, {}, of[person.id], (of[person.id] or 0.0) / _FULL_TOTAL) for person in debaters
    )


def _in_order(keys: list[str], people: People) -> list[Person]:
    named = {people[key].id: people[key] for key in keys}
    return [person for person in people if person.id in named] + [
        person for key, person in named.items() if key not in people
    ]


def _requirements(raw: Any) -> tuple[Requirement, ...]:
    items = raw if isinstance(raw, list) else []
    read = [item if isinstance(item, dict) else {"text": item} for item in items]
    return tuple(Requirement(as_text(item.get("text")), bool(item.get("major"))) for item in read)
