"""Stored evaluations, each with a record and the outcome of each item under each arm."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from typing_extensions import TypedDict

from moot.evals.arms import Arm
from moot.evals.items import ItemSet
from moot.state.entries import JsonObject
from moot.state.errors import DebateNotFound, InputError
from moot.storage.sqlite import DebateTable, Sql, reading


@dataclass(frozen=True)
class EvaluationRecord:
    """The record of an evaluation, with its items, compared configurations and settings."""

    name: str
    items: ItemSet
    arms: tuple[Arm, ...]
    seeds: int
    """Number of random seeds with which each configuration answers each evaluation item."""
    created_at: str
    judge: Mapping[str, object] = field(default_factory=dict)
    """Configuration of the judge model that grades free-text answers, as JSON data, or `{}` if there is
    none."""

    def arm(self, name: str) -> Arm:
        """Return the configuration under evaluation that has the given name."""
        return {arm.name: arm for arm in self.arms}[name]

    def extended_by(self, later: EvaluationRecord) -> EvaluationRecord:
        """Return a copy of this evaluation record with the configurations and seeds of `later` added.

        Raises:
            InputError: The later call changes the items, an arm or the judge.
        """
        advice = (
            f"choose another --name for the new evaluation, because {self.name!r} keeps its earlier results"
        )
        if later.items.digest != self.items.digest:
            raise InputError(
                f"the evaluation items differ from those with which evaluation {self.name!r} was started: "
                f"{advice}"
            )
        for arm in later.arms:
            known = next((each for each in self.arms if each.name == arm.name), arm)
            if known.fingerprint != arm.fingerprint:
                raise InputError(
                    f"the configuration for --arm {arm.name!r} has changed since {self.name!r} was started: "
                    f"{advice}"
                )
        if self.judge and later.judge and dict(self.judge) != dict(later.judge):
            raise InputError(f"the judge has changed since {self.name!r} was started: {advice}")
        names = {arm.name for arm in self.arms}
        arms = (*self.arms, *(arm for arm in later.arms if arm.name not in names))
        return replace(self, arms=arms, seeds=max(self.seeds, later.seeds), judge=self.judge or later.judge)

    def only(self, asked: EvaluationRecord) -> EvaluationRecord:
        """Return a copy of this evaluation record, limited to the configurations and seeds of `asked`.

        The parameter `asked` is another evaluation record.
        """
        names = {arm.name for arm in asked.arms}
        return replace(self, arms=tuple(arm for arm in self.arms if arm.name in names), seeds=asked.seeds)

    def left_out(self, asked: EvaluationRecord) -> list[str]:
        """Return this evaluation record's configurations and seeds that the other record, `asked`, lacks."""
        names = {arm.name for arm in asked.arms}
        seeds = range(asked.seeds + 1, self.seeds + 1)
        return [
            *(arm.name for arm in self.arms if arm.name not in names),
            *(f"seed {number}" for number in seeds),
        ]


class StatedConfidence(TypedDict):
    """A debater's answer and the confidence that the debater's model stated for it."""

    model: str
    answer: str
    """Text that contains the answer."""
    confidence: float
    """Stated confidence in percent."""


@dataclass(frozen=True)
class Outcome:
    """Result of running one evaluation item with one configuration."""

    item: str
    arm: str
    """Name of the evaluated configuration. For a comparison of two configurations, their names are joined
    by ` vs `."""
    seed: int
    debate: str = ""
    """Id of the debate, or `""` if there was no debate."""
    texts: tuple[str, ...] = ()
    """Reply texts from which the answer to the evaluation item is parsed. A vote has one text per answer,
    in order."""
    rounds: tuple[Mapping[str, str], ...] = ()
    """Debaters' answers in each round, keyed by debater id."""
    first_usage: Mapping[str, float] = field(default_factory=dict)
    """Total model usage of the debaters' first messages, such as calls and tokens."""
    winners: tuple[str, ...] = ()
    """Winners, one for each presentation order. A winner is an arm's name, `tie`, or `a` or `b` for a
    pair."""
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Mapping from the id of each judge on a panel to the winners that the judge chose. There is one winner
    for each presentation order."""
    confidence: float | None = None
    """Stated confidence in percent."""
    stated: tuple[StatedConfidence, ...] = ()
    """Debaters' answers, each paired with the debater's stated confidence in the answer. A weighted vote
    asks for it."""
    tokens: int = 0
    calls: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    answers: int = 1
    """Number of answers that were counted."""
    grade: float | None = None
    """Score of a free-form answer, from 0 to 1."""
    placeholder: bool = False
    """True if the built-in offline model wrote the answer or the verdict."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Key of this outcome, consisting of the item, the configuration and the seed."""
        return self.item, self.arm, self.seed


class Evaluations:
    """Tables for evaluations and their outcomes, in the same database as the debates."""

    def __init__(self, sql: Sql) -> None:
        self._records, self._outcomes = _RecordTable(sql), _OutcomeTable(sql)

    def find(self, name: str) -> EvaluationRecord:
        """Return the record of an evaluation.

        Raises:
            DebateNotFound: There is no evaluation with this name.
        """
        if (found := self.get(name)) is None:
            known = ", ".join(each.name for each in self.all()) or "none yet"
            raise DebateNotFound(f"there is no evaluation {name!r}: the database contains {known}")
        return found

    def get(self, name: str) -> EvaluationRecord | None:
        """Return the record of the evaluation with the given name, or `None` if there is none."""
        return next((each for each in self.all() if each.name == name), None)

    def all(self) -> list[EvaluationRecord]:
        """Return all evaluations, oldest first."""
        with reading("an evaluation", "restore a backup"):
            return [_from_json(json.loads(text)) for text in self._records.texts()]

    def overview(self) -> list[JsonObject]:
        """Return one row per evaluation, oldest first, with its configurations and number of answers."""
        return [
            {
                "name": each.name,
                "set": each.items.name,
                "kind": each.items.kind,
                "items": len(each.items.items),
                "arms": [arm.name for arm in each.arms],
                "seeds": each.seeds,
                "answers": len(self.outcomes(each.name)),
                "created_at": each.created_at,
            }
            for each in self.all()
        ]

    def save(self, evaluation: EvaluationRecord) -> None:
        """Store the record of an evaluation, or replace it."""
        self._records.put(evaluation.name, evaluation.created_at, json.dumps(_to_json(evaluation)))

    def outcomes(self, name: str) -> dict[tuple[str, str, int], Outcome]:
        """Return all outcomes of an evaluation, keyed by item, configuration and seed."""
        with reading("an answer of the evaluation", "restore a backup"):
            found = [_outcome(json.loads(text)) for text in self._outcomes.texts(name)]
        return {each.key: each for each in found}

    def put(self, name: str, outcomes: Iterable[Outcome]) -> None:
        """Store outcomes of an evaluation, replacing existing outcomes with the same keys."""
        for outcome in outcomes:
            self._outcomes.put(name, outcome)


class _RecordTable(DebateTable):
    name = "moot_evaluations"
    columns = "name TEXT PRIMARY KEY, created_at TEXT NOT NULL, record TEXT NOT NULL"
    debate = "name"

    def texts(self) -> list[str]:
        return [
            row[0] for row in self._execute("SELECT record FROM moot_evaluations ORDER BY created_at, name")
        ]

    def put(self, name: str, created_at: str, record: str) -> None:
        row = {"name": name, "created_at": created_at, "record": record}
        self._insert(row, "ON CONFLICT (name) DO UPDATE SET record = excluded.record")


class _OutcomeTable(DebateTable):
    name = "moot_evaluation_outcomes"
    columns = """
        evaluation TEXT NOT NULL, item TEXT NOT NULL, arm TEXT NOT NULL, seed BIGINT NOT NULL,
        outcome TEXT NOT NULL, PRIMARY KEY (evaluation, item, arm, seed)"""
    debate = "evaluation"

    def texts(self, name: str) -> list[str]:
        rows = self._execute("SELECT outcome FROM moot_evaluation_outcomes WHERE evaluation = ?", (name,))
        return [row[0] for row in rows]

    def put(self, name: str, outcome: Outcome) -> None:
        row = {"evaluation": name, "item": outcome.item, "arm": outcome.arm, "seed": outcome.seed}
        self._insert(
            {**row, "outcome": json.dumps(asdict(outcome))},
            "ON CONFLICT (evaluation, item, arm, seed) DO UPDATE SET outcome = excluded.outcome",
        )


def _to_json(evaluation: EvaluationRecord) -> JsonObject:
    items = evaluation.items
    return {
        "name": evaluation.name,
        "set": {"name": items.name, "kind": items.kind, "items": items.to_json()},
        "arms": [arm.to_json() for arm in evaluation.arms],
        "seeds": evaluation.seeds,
        "created_at": evaluation.created_at,
        "judge": dict(evaluation.judge),
    }


def _from_json(data: JsonObject) -> EvaluationRecord:
    of = data["set"]
    items = ItemSet.from_json(of["name"], of["kind"], of["items"])
    arms = tuple(Arm.from_json(row) for row in data["arms"])
    return EvaluationRecord(data["name"], items, arms, data["seeds"], data["created_at"], data["judge"])


def _outcome(data: JsonObject) -> Outcome:
    lists = {key: tuple(data.get(key, ())) for key in ("texts", "rounds", "winners", "stated")}
    judges = {judge: tuple(winners) for judge, winners in data.get("judges", {}).items()}
    return Outcome(**{**data, **lists, "judges": judges})
