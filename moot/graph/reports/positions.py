"""Where each debater stood, and when that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moot.graph.documents import DebateDocument, as_far_as_it_goes
from moot.graph.reports.cast import People, Person
from moot.state.blackboard import LedgerRow, Relation, RoundRecord

MOST_MOMENTS = 24
"""Moments above which a timeline leaves out what the round records say, and keeps the shifts."""


@dataclass(frozen=True)
class Moment:
    """One step of a debater's position through the debate."""

    when: str
    kind: str
    """`start`, `held`, `shift` or `now`."""
    text: str
    before: str = ""
    message_id: str = ""


@dataclass(frozen=True)
class Standing:
    """All that is known of one debater's position."""

    person: Person
    row: LedgerRow
    stance: str
    agreements: tuple[str, ...]
    disagreements: tuple[str, ...]
    moments: tuple[Moment, ...]


def read_standings(document: DebateDocument, people: People) -> tuple[Standing, ...]:
    """Build the standing of each debater from the ledger, the round records and the configuration."""
    board = document["blackboard"]
    rows = {person: board["ledger"].get(person.id) or as_far_as_it_goes(LedgerRow, {}) for person in people}
    return tuple(
        Standing(
            person=person,
            row=row,
            stance=row["stance"] or person.stance,
            agreements=tuple(_relation(each, people) for each in row["agreements"]),
            disagreements=tuple(_relation(each, people) for each in row["disagreements"]),
            moments=_moments(person, row, board["rounds"]),
        )
        for person, row in rows.items()
    )


def _relation(relation: Relation, people: People) -> str:
    strength = f" ({relation['strength']})" if relation["strength"] else ""
    return f"{people[relation['with']].name}: {relation['on']}{strength}"


def _moments(person: Person, row: LedgerRow, rounds: Sequence[RoundRecord]) -> tuple[Moment, ...]:
    """Order what is known by round, without what a record repeats, or any record where they are many."""
    moments = [Moment("At the start", "start", person.stance)] if person.stance else []
    held = [(record["round"], record["positions"].get(person.id)) for record in rounds]
    changes = [
        *((number, 0, Moment(f"Round {number}", "held", row["position"])) for number, row in held if row),
        *(
            (
                each["round"],
                1,
                Moment(f"Round {each['round']}", "shift", each["to"], each["from"], each["message_id"]),
            )
            for each in row["shifts"]
        ),
    ]
    for _, _, moment in sorted(changes, key=lambda change: change[:2]):
        if moment.text and (moment.kind == "shift" or not moments or moments[-1].text != moment.text):
            moments.append(moment)
    if row["stance"] and (not moments or moments[-1].text != row["stance"]):
        moments.append(Moment("At the end", "now", row["stance"]))
    many = len(moments) > MOST_MOMENTS
    return tuple(moment for moment in moments if not many or moment.kind != "held")
