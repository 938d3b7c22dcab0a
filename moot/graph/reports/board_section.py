"""What the blackboard holds: contested claims, crux cards, round records, reflections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moot.graph.reports.cast import People, Person
from moot.graph.reports.fields import as_count, as_dict, as_dicts, as_text, as_texts
from moot.graph.reports.positions import record_rows


@dataclass(frozen=True)
class Side:
    """One debater's answer on a crux card."""

    person: Person
    answer: str
    reasoning: str
    falsifier: str


@dataclass(frozen=True)
class Claim:
    """A contested claim."""

    id: str
    text: str
    between: tuple[Person, ...]
    status: str
    round: int
    message_ids: tuple[str, ...]
    resolution: str
    card: str


@dataclass(frozen=True)
class Card:
    """A crux card: the question on which a disagreement turns."""

    id: str
    question: str
    sides: tuple[Side, ...]
    sort: str
    diagnosis: str
    resolved: bool
    resolution: str
    message_ids: tuple[str, ...]


@dataclass(frozen=True)
class RoundRecord:
    """What one round brought."""

    round: int
    summary: str
    positions: tuple[tuple[Person, str], ...]
    news: tuple[str, ...]


@dataclass(frozen=True)
class Reflection:
    """An observation on the debate."""

    content: str
    kind: str
    about: str
    round: int
    importance: int
    message_ids: tuple[str, ...]


@dataclass(frozen=True)
class Board:
    """The blackboard, but for the ledger of positions."""

    claims: tuple[Claim, ...]
    cards: tuple[Card, ...]
    rounds: tuple[RoundRecord, ...]
    reflections: tuple[Reflection, ...]


def read_board(document: dict[str, Any], people: People) -> Board:
    """Read the blackboard of a document."""
    board = as_dict(document.get("blackboard"))
    claims = {as_text(raw.get("id")): as_text(raw.get("claim")) for raw in as_dicts(board.get("claims"))}
    return Board(
        claims=tuple(_claim(raw, people) for raw in as_dicts(board.get("claims"))),
        cards=tuple(_card(raw, people) for raw in as_dicts(board.get("cards"))),
        rounds=tuple(_round(raw, people, claims) for raw in as_dicts(board.get("rounds"))),
        reflections=tuple(_reflection(raw, people) for raw in as_dicts(board.get("reflections"))),
    )


def _sides(card: dict[str, Any], people: People) -> tuple[Side, ...]:
    """Read both sides of a crux card, in the order in which the card has them."""
    sides = as_dict(card.get("sides"))
    return tuple(
        Side(
            people[key],
            as_text(side.get("answer")),
            as_text(side.get("reasoning")),
            as_text(side.get("falsifier")),
        )
        for key, side in ((key, as_dict(value)) for key, value in sides.items())
    )


def _claim(raw: dict[str, Any], people: People) -> Claim:
    return Claim(
        id=as_text(raw.get("id")),
        text=as_text(raw.get("claim")),
        between=tuple(people[key] for key in as_texts(raw.get("between"))),
        status=as_text(raw.get("status")).replace("_", " "),
        round=as_count(raw.get("round")),
        message_ids=as_texts(raw.get("message_ids")),
        resolution=as_text(raw.get("resolution")),
        card=as_text(raw.get("card")),
    )


def _card(raw: dict[str, Any], people: People) -> Card:
    return Card(
        id=as_text(raw.get("id")),
        question=as_text(raw.get("question")),
        sides=_sides(raw, people),
        sort=as_text(raw.get("type")),
        diagnosis=as_text(raw.get("diagnosis")),
        resolved=bool(raw.get("resolved")),
        resolution=as_text(raw.get("resolution")),
        message_ids=as_texts(raw.get("message_ids")),
    )


def _round(raw: dict[str, Any], people: People, claims: dict[str, str]) -> RoundRecord:
    rows = {people[key]: value for key, value in record_rows(raw).items()}
    stated = ((person, row.get("key_argument") or row.get("position")) for person, row in _dict_rows(rows))
    return RoundRecord(
        round=as_count(raw.get("round")),
        summary=as_text(raw.get("summary")),
        positions=tuple((person, as_text(text)) for person, text in stated if text),
        news=tuple(claims.get(key, key) for key in as_texts(raw.get("new_disagreements"))),
    )


def _dict_rows(rows: dict[Person, Any]) -> list[tuple[Person, dict[str, Any]]]:
    return [(p, row if isinstance(row, dict) else {"position": row}) for p, row in rows.items()]


def _reflection(raw: dict[str, Any], people: People) -> Reflection:
    return Reflection(
        content=as_text(raw.get("content")),
        kind=as_text(raw.get("kind")),
        about=", ".join(people[key].name for key in as_texts(raw.get("about"))),
        round=as_count(raw.get("round")),
        importance=as_count(raw.get("importance")),
        message_ids=as_texts(raw.get("message_ids")),
    )
