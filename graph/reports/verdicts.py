"""The decision and the panel behind it, ready to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graph.reports.fields import as_count, as_dict, as_dicts, as_number, as_text, as_texts, percent
from graph.reports.people import People, Person


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
    outcome: str
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


@dataclass(frozen=True)
class Panel:
    """Several judges side by side."""

    verdicts: tuple[VerdictView, ...]
    alpha: float | None
    flip_rate: float | None
    others: tuple[tuple[str, str], ...]
    """Further figures of agreement, as (name, value)."""


def read_verdict(raw: dict[str, Any], people: People) -> VerdictView | None:
    """Build the view of a verdict; `None` where there is none."""
    if not raw:
        return None
    failed = as_text(raw.get("status")) == "failed"
    outcome = "failed" if failed else as_text(raw.get("outcome"))
    winner = people[raw["winner"]] if raw.get("winner") and outcome == "winner" else None
    return VerdictView(
        judge=as_text(raw.get("judge")) or "Judge",
        model=as_text(raw.get("model")),
        failed=failed,
        error=as_text(raw.get("error")),
        outcome=outcome,
        headline=_headline(outcome, winner),
        winner=winner,
        confidence=None if failed else percent(raw.get("confidence")),
        reasoning=as_text(raw.get("reasoning")),
        criteria=() if failed else _criteria(as_dicts(raw.get("scores")), people),
        totals=() if failed else _totals(as_dict(raw.get("totals")), people),
        unmet=_requirements(raw.get("unmet_requirements")),
        open_questions=as_texts(raw.get("open_questions")),
        solution="" if failed else as_text(raw.get("solution_markdown")),
        tradeoffs=as_texts(raw.get("tradeoffs")),
        recommendations=as_texts(raw.get("recommendations")),
        dropped_citations=as_count(raw.get("dropped_citations")),
        flipped=raw["flipped"] if isinstance(raw.get("flipped"), bool) else None,
    )


def read_panel(document: dict[str, Any], people: People) -> Panel:
    """Build the view of all judges' verdicts and their agreement."""
    views = (read_verdict(raw, people) for raw in as_dicts(document.get("verdicts")))
    agreement = as_dict(document.get("agreement"))
    others = [(key, as_text(value)) for key, value in agreement.items() if key not in ("alpha", "flip_rate")]
    return Panel(
        verdicts=tuple(view for view in views if view is not None),
        alpha=as_number(agreement.get("alpha")),
        flip_rate=as_number(agreement.get("flip_rate")),
        others=tuple((key.replace("_", " "), value) for key, value in others if value),
    )


def _headline(outcome: str, winner: Person | None) -> str:
    if winner is not None:
        return f"{winner.name} wins"
    known = {"failed": "The verdict failed", "tie": "A tie", "synthesis": "A synthesis of both sides"}
    return known.get(outcome, "Judged, without a winner")


def _scale(values: Sequence[float | None]) -> float:
    """Return the top of the scale: 10, 100, or the highest score where it is above both."""
    top = max((value for value in values if value is not None), default=0.0)
    return next((scale for scale in (10.0, 100.0) if top <= scale), top)


def _score(person: Person, raw: dict[str, Any], scale: float) -> Score:
    value = as_number(raw.get("score"))
    share = round(100 * min(max(value or 0.0, 0.0) / scale, 1.0))
    return Score(person, value, share, as_text(raw.get("reasoning")), as_texts(raw.get("citations")))


def _criteria(raw: list[dict[str, Any]], people: People) -> tuple[Criterion, ...]:
    scale = _scale([as_number(score.get("score")) for score in raw])
    debaters = _in_order([as_text(score.get("debater")) for score in raw], people)
    table: dict[str, dict[str, Score]] = {}
    for score in raw:
        person = people[score.get("debater")]
        name = as_text(score.get("criterion")) or "Overall"
        table.setdefault(name, {})[person.id] = _score(person, score, scale)
    return tuple(
        Criterion(name, tuple(row.get(person.id) or _score(person, {}, scale) for person in debaters))
        for name, row in table.items()
    )


def _totals(raw: dict[str, Any], people: People) -> tuple[Score, ...]:
    top = max((as_number(value) or 0.0 for value in raw.values()), default=0.0) or 1.0
    by_id = {people[key].id: {"score": value} for key, value in raw.items()}
    return tuple(_score(person, by_id[person.id], top) for person in _in_order(list(raw), people))


def _in_order(keys: list[str], people: People) -> list[Person]:
    named = {people[key].id: people[key] for key in keys}
    return [person for person in people if person.id in named] + [
        person for key, person in named.items() if key not in people
    ]


def _requirements(raw: Any) -> tuple[Requirement, ...]:
    items = raw if isinstance(raw, list) else []
    read = [item if isinstance(item, dict) else {"text": item} for item in items]
    return tuple(Requirement(as_text(item.get("text")), bool(item.get("major"))) for item in read)
