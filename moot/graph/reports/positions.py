"""Where each debater stood, and when that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moot.graph.reports.cast import People, Person
from moot.graph.reports.fields import as_count, as_dict, as_dicts, as_list, as_text, as_texts

MOST_MOMENTS = 24
"""Moments above which a timeline leaves out what the round records say, and keeps the shifts."""


@dataclass(frozen=True)
class Aspect:
    """A debater's position on one aspect of the topic."""

    name: str
    position: str
    evidence: tuple[str, ...]
    challenged: tuple[str, ...]


@dataclass(frozen=True)
class Moment:
    """One step of a debater's position through the debate."""

    when: str
    kind: str
    """`start`, `held`, `shift` or `now`."""
    text: str
    before: str
    message_id: str


@dataclass(frozen=True)
class Standing:
    """All that is known of one debater's position."""

    person: Person
    stance: str
    aspects: tuple[Aspect, ...]
    agreements: tuple[str, ...]
    disagreements: tuple[str, ...]
    concessions: tuple[str, ...]
    moments: tuple[Moment, ...]


def read_standings(document: dict[str, Any], people: People) -> tuple[Standing, ...]:
    """Build the standing of each debater from the ledger, the round records and the configuration."""
    board = as_dict(document.get("blackboard"))
    ledger = as_dict(board.get("ledger"))
    rounds = as_dicts(board.get("rounds"))
    return tuple(_standing(person, as_dict(ledger.get(person.id)), rounds, people) for person in people)


def _standing(person: Person, row: dict[str, Any], rounds: list[dict[str, Any]], people: People) -> Standing:
    stance = as_text(row.get("stance"))
    return Standing(
        person=person,
        stance=stance or person.stance,
        aspects=tuple(_aspect(name, value) for name, value in as_dict(row.get("aspects")).items()),
        agreements=tuple(_relation(item, people) for item in as_list(row.get("agreements"))),
        disagreements=tuple(_relation(item, people) for item in as_list(row.get("disagreements"))),
        concessions=as_texts(row.get("concessions")),
        moments=_moments(person, stance, as_dicts(row.get("shifts")), rounds),
    )


def _aspect(name: str, value: Any) -> Aspect:
    raw = value if isinstance(value, dict) else {"position": value}
    evidence, challenged = as_texts(raw.get("evidence")), as_texts(raw.get("challenged"))
    return Aspect(name, as_text(raw.get("position")), evidence, challenged)


def _relation(raw: Any, people: People) -> str:
    if not isinstance(raw, dict):
        return as_text(raw)
    strength = as_text(raw.get("strength"))
    text = f"{people[raw.get('with')].name}: {as_text(raw.get('on'))}"
    return f"{text} ({strength})" if strength else text


def _moments(
    person: Person, stance: str, shifts: list[dict[str, Any]], rounds: list[dict[str, Any]]
) -> tuple[Moment, ...]:
    """Order what is known by round, without what a record repeats, or any record where they are many."""
    moments = [Moment("At the start", "start", person.stance, "", "")] if person.stance else []
    records = [(as_count(record.get("round")), 0, _recorded(record, person.id)) for record in rounds]
    changes = [(as_count(shift.get("round")), 1, _shift(shift)) for shift in shifts]
    for _, _, moment in sorted([*records, *changes], key=lambda item: item[:2]):
        if moment.text and (moment.kind == "shift" or not moments or moments[-1].text != moment.text):
            moments.append(moment)
    if stance and (not moments or moments[-1].text != stance):
        moments.append(Moment("At the end", "now", stance, "", ""))
    many = len(moments) > MOST_MOMENTS
    return tuple(moment for moment in moments if not many or moment.kind != "held")


def _shift(raw: dict[str, Any]) -> Moment:
    ids = as_texts(raw.get("message_id") or raw.get("message_ids"))
    when = f"Round {as_count(raw.get('round'))}"
    return Moment(when, "shift", as_text(raw.get("to")), as_text(raw.get("from")), ids[0] if ids else "")


def _recorded(record: dict[str, Any], key: str) -> Moment:
    row = record_rows(record).get(key)
    position = as_text(row.get("position")) if isinstance(row, dict) else as_text(row)
    return Moment(f"Round {as_count(record.get('round'))}", "held", position, "", "")


def record_rows(record: dict[str, Any]) -> dict[str, Any]:
    """Return a round record's rows by debater."""
    return as_dict(record.get("positions"))
