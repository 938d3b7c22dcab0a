"""Stored evaluations, the outcome of each item under each arm, and the scores computed from them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from statistics import fmean

from typing_extensions import TypedDict

from moot.plugins.evals import items as item_sets
from moot.plugins.evals.arms import VERSUS, Arm
from moot.state.entries import JsonObject, tokens_of
from moot.state.errors import DebateNotFound, InputError
from moot.state.verdict import TIE
from moot.storage.sqlite import DebateTable, Sql, reading


@dataclass(frozen=True)
class EvaluationRecord:
    """The record of an evaluation, with its items, compared configurations and settings."""

    name: str
    items: item_sets.ItemSet
    arms: tuple[Arm, ...]
    seeds: int
    """Number of times that each configuration answers each item. Every time uses another random seed."""
    created_at: str
    judge: Mapping[str, object] = field(default_factory=dict)
    """Configuration of the judge that grades or compares answers, or `{}` if there is none."""

    def arm(self, name: str) -> Arm:
        """Return the evaluated configuration with this name."""
        return {arm.name: arm for arm in self.arms}[name]

    def extended_by(self, later: "EvaluationRecord") -> "EvaluationRecord":
        """Return a copy of this record with the configurations and seeds of a later call added.

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
            earlier_arm = next((each for each in self.arms if each.name == arm.name), arm)
            if earlier_arm.fingerprint != arm.fingerprint:
                raise InputError(
                    f"the configuration for --arm {arm.name!r} has changed since {self.name!r} was started: "
                    f"{advice}"
                )
        if self.judge and later.judge and dict(self.judge) != dict(later.judge):
            raise InputError(f"the judge has changed since {self.name!r} was started: {advice}")
        names = {arm.name for arm in self.arms}
        arms = (*self.arms, *(arm for arm in later.arms if arm.name not in names))
        return replace(self, arms=arms, seeds=max(self.seeds, later.seeds), judge=self.judge or later.judge)

    def only(self, requested_record: "EvaluationRecord") -> "EvaluationRecord":
        """Return a copy of this record with only the requested configurations and seeds."""
        names = {arm.name for arm in requested_record.arms}
        return replace(
            self, arms=tuple(arm for arm in self.arms if arm.name in names), seeds=requested_record.seeds
        )

    def left_out(self, requested_record: "EvaluationRecord") -> list[str]:
        """Return the names of the configurations and seeds that were not requested."""
        names = {arm.name for arm in requested_record.arms}
        seeds = range(requested_record.seeds + 1, self.seeds + 1)
        return [
            *(arm.name for arm in self.arms if arm.name not in names),
            *(f"seed {number}" for number in seeds),
        ]


class StatedConfidence(TypedDict):
    """A debater's answer and the confidence that the debater's model stated for it."""

    model: str
    answer: str
    """Text that contains the debater's answer."""
    confidence: float
    """Confidence that the debater's model stated for its answer, in percent."""


@dataclass(frozen=True)
class ItemOutcome:
    """Result of running one evaluation item with one configuration."""

    item: str
    arm: str
    """Name of the evaluated configuration. For a comparison of two configurations, their names are joined
    by ` vs `."""
    seed: int
    debate: str = ""
    """Id of the debate that produced the outcome, or `""` for a recorded result."""
    texts: tuple[str, ...] = ()
    """Texts from which the answer to the evaluation item is read. A vote has one text per answer, in
    order."""
    rounds: tuple[Mapping[str, str], ...] = ()
    """Debaters' answers in each round, keyed by debater id."""
    first_usage: Mapping[str, float] = field(default_factory=dict)
    """Total usage of the debaters' first messages, such as the number of calls and tokens."""
    winners: tuple[str, ...] = ()
    """Winners of a comparison, one for each order in which the judge read the two sides. A debate between
    line-ups has one winner. A winner is an arm's name, `tie`, or `a` or `b` for a pair."""
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Winners of a comparison according to each judge, keyed by judge id. There is one winner for each order
    of the answers."""
    confidence: float | None = None
    """Confidence in the result, in percent. The verdict or the recorded result states it."""
    stated: tuple[StatedConfidence, ...] = ()
    """Debaters' answers, each with the confidence that the debater stated. A weighted vote asks for it."""
    tokens: int = 0
    calls: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    answers: int = 1
    """Number of answers in this outcome. It is 1 except for votes and `first-answers`."""
    grade: float | None = None
    """Score of a free-form answer, from 0 to 1."""
    placeholder: bool = False
    """True if the built-in offline model wrote the answer or the verdict."""
    read_by_call: int = 0
    """Number of answers that a model call read from a text, because no rule could."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Key of this outcome, consisting of the item, the configuration and the seed."""
        return self.item, self.arm, self.seed


class Evaluations:
    """Tables for evaluations and their outcomes, in the same database as the debates."""

    def __init__(self, sql: Sql) -> None:
        self._records, self._outcomes = _RecordTable(sql), _OutcomeTable(sql)

    def find(self, name: str) -> EvaluationRecord:
        """Return the record of the evaluation with the given name.

        Raises:
            DebateNotFound: There is no evaluation with this name.
        """
        if (record := self.get(name)) is None:
            known_names = ", ".join(each.name for each in self.all()) or "none yet"
            raise DebateNotFound(f"there is no evaluation {name!r}: the database contains {known_names}")
        return record

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
        """Store an evaluation's record, and replace its earlier record if there is one."""
        self._records.put(evaluation.name, evaluation.created_at, json.dumps(_to_json(evaluation)))

    def outcomes(self, name: str) -> dict[tuple[str, str, int], ItemOutcome]:
        """Return all outcomes of an evaluation, keyed by item, configuration and seed."""
        with reading("an answer of the evaluation", "restore a backup"):
            outcomes = [_outcome_from_json(json.loads(text)) for text in self._outcomes.texts(name)]
        return {each.key: each for each in outcomes}

    def put(self, name: str, outcomes: Iterable[ItemOutcome]) -> None:
        """Store outcomes of an evaluation, and replace those with the same keys."""
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

    def put(self, name: str, outcome: ItemOutcome) -> None:
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
    item_set = data["set"]
    items = item_sets.ItemSet.from_json(item_set["name"], item_set["kind"], item_set["items"])
    arms = tuple(Arm.from_json(row) for row in data["arms"])
    return EvaluationRecord(data["name"], items, arms, data["seeds"], data["created_at"], data["judge"])


def _outcome_from_json(data: JsonObject) -> ItemOutcome:
    lists = {key: tuple(data.get(key, ())) for key in ("texts", "rounds", "winners", "stated")}
    judges = {judge: tuple(winners) for judge, winners in data.get("judges", {}).items()}
    return ItemOutcome(**{**data, **lists, "judges": judges})


@dataclass(frozen=True)
class AnswerScore:
    """Score of one answer in an evaluation.

    `outcome` is the stored result that contains the answer.
    """

    outcome: ItemOutcome
    value: float
    """Score of the answer, from 0 (wrong) to 1 (right)."""
    answer: str | None = None
    """Normalized answer, or `None` if the answer cannot be read."""
    scores_by_order: tuple[float, ...] = ()
    """Scores of a judge's choices, one for each order of the two answers. A score is 1 if the judge preferred
    the same answer as people, and 0 otherwise."""


@dataclass(frozen=True)
class RoundChange:
    """Counts of answers that debaters changed from right to wrong, or from wrong to right, in one round."""

    round: int
    """Number of the round. Round 1 follows the debaters' first answers."""
    right_to_wrong: int
    wrong_to_right: int
    readable: int
    """Number of answers in this round that can be compared with an earlier answer. Both answers must be
    readable."""


@dataclass(frozen=True)
class Discussion:
    """Statistics on how discussion changed the answers in one configuration's debates."""

    changes: list[RoundChange]
    vote_changed: float | None
    """Share of debates whose most frequent answer changed during the discussion. It is `None` if no debate
    can be compared."""
    compared: int
    """Number of debates with a most frequent answer both before and after the discussion."""


class ScoredEvaluation:
    """An evaluation with its outcomes, and the scores that are computed from them."""

    def __init__(
        self, evaluation: EvaluationRecord, outcomes: Mapping[tuple[str, str, int], ItemOutcome]
    ) -> None:
        self.evaluation = evaluation
        self.items = {item.id: item for item in evaluation.items.items}
        self.outcomes: dict[str, list[ItemOutcome]] = {arm.name: [] for arm in evaluation.arms}
        """Outcomes by arm, in the order of the items and seeds."""
        pairs = {f"{first}{VERSUS}{second}" for first, second in permutations(self.outcomes, 2)}
        self.meetings = [
            each for each in outcomes.values() if each.arm in pairs and each.seed <= evaluation.seeds
        ]
        """Outcomes of two arms that met in a debate or were compared by a judge."""
        for arm in evaluation.arms:
            for item in self.items:
                for seed in range(1, evaluation.seeds + 1):
                    outcome = _outcome(arm, item, seed, outcomes)
                    if outcome is not None:
                        self.outcomes[arm.name].append(outcome)
        self.scores = {
            arm: [score for each in arm_outcomes if (score := self._score(each)) is not None]
            for arm, arm_outcomes in self.outcomes.items()
        }
        """Scores by arm. Outcomes that cannot be scored, because a grade is missing, are left out."""

    def _score(self, outcome: ItemOutcome) -> AnswerScore | None:
        item = self.items[outcome.item]
        if isinstance(item, item_sets.PairItem):
            scores_by_order = tuple(float(winner == item.better) for winner in outcome.winners)
            return (
                AnswerScore(outcome, fmean(scores_by_order), scores_by_order=scores_by_order)
                if scores_by_order
                else None
            )
        if not isinstance(item, item_sets.QuestionItem) or item.graded_by == "comparison":
            return None
        if item.graded_by == "reference":
            return None if outcome.grade is None else AnswerScore(outcome, outcome.grade, outcome.texts[0])
        answer = item_sets.majority(outcome.texts, item).answer
        return AnswerScore(
            outcome, float(answer is not None and answer == item_sets.gold_answer(item)), answer
        )

    def by_item(self, arm: str) -> dict[str, float]:
        """Return the mean score of the configuration `arm` on each evaluation item.

        The mean is taken over repetitions with different random seeds.
        """
        values: dict[str, list[float]] = defaultdict(list)
        for score in self.scores[arm]:
            values[score.outcome.item].append(score.value)
        return {item: fmean(scores) for item, scores in values.items()}

    def missing(self, arm: str) -> int:
        """Return how many results of a configuration are missing or not graded yet."""
        return len(self.items) * self.evaluation.seeds - len(self.scores[arm])

    def unreadable(self) -> list[AnswerScore]:
        """Return all answers that count as wrong because they cannot be read."""
        return [
            score
            for scores in self.scores.values()
            for score in scores
            if score.answer is None and not score.scores_by_order
        ]

    def discussion(self, arm: str) -> Discussion | None:
        """Return how discussion changed the answers in a configuration's debates.

        Return `None` if no debater answered twice.
        """
        discussed_outcomes = [each for each in self.outcomes[arm] if len(each.rounds) > 1]
        graded_outcomes = [each for each in discussed_outcomes if self._gold(each.item) is not None]
        if not graded_outcomes:
            return None
        vote_changes, comparisons = 0, 0
        totals: dict[int, list[int]] = {}
        for outcome in graded_outcomes:
            item, gold = self._question(outcome.item), self._gold(outcome.item)
            answers = {
                debater: item_sets.read_answer(text, item) for debater, text in outcome.rounds[0].items()
            }
            for number, texts in enumerate(outcome.rounds[1:], start=1):
                total = totals.setdefault(number, [0, 0, 0])
                for debater, text in texts.items():
                    answer_before, answer_after = answers.get(debater), item_sets.read_answer(text, item)
                    if answer_before is not None and answer_after is not None:
                        total[0] += answer_before == gold != answer_after
                        total[1] += answer_before != gold == answer_after
                        total[2] += 1
                    answers[debater] = answer_after if answer_after is not None else answer_before
            last_texts = {debater: texts[debater] for texts in outcome.rounds for debater in texts}
            votes = [
                item_sets.majority(list(texts.values()), item).answer
                for texts in (outcome.rounds[0], last_texts)
            ]
            if None not in votes:
                comparisons += 1
                vote_changes += votes[0] != votes[1]
        changes = [RoundChange(number, *total) for number, total in sorted(totals.items())]
        return Discussion(changes, vote_changes / comparisons if comparisons else None, comparisons)

    def agreement(self) -> tuple[str, dict[tuple[str, int], str]]:
        """Return how far the debaters' first answers agree on each item.

        The name of their configuration is returned as well. Levels are `all agree`, `majority` and `no
        majority`. The first debate arm with several debaters gives the answers.
        """
        for arm in self.evaluation.arms:
            levels = {}
            for outcome in self.outcomes[arm.name]:
                if len(outcome.rounds[0] if outcome.rounds else ()) > 1 and self._gold(outcome.item):
                    texts = list(outcome.rounds[0].values())
                    levels[outcome.item, outcome.seed] = _level(
                        item_sets.majority(texts, self._question(outcome.item))
                    )
            if levels:
                return arm.name, levels
        return "", {}

    def stated_confidences(self) -> dict[str, list[tuple[float, bool]]]:
        """Return each model's stated confidences, and whether the answers were correct.

        Confidences are in percent.
        """
        confidences: dict[str, list[tuple[float, bool]]] = defaultdict(list)
        for outcome in (each for arm_outcomes in self.outcomes.values() for each in arm_outcomes):
            gold = self._gold(outcome.item)
            for each in outcome.stated if gold is not None else ():
                is_right = item_sets.read_answer(each["answer"], self._question(outcome.item)) == gold
                confidences[each["model"]].append((each["confidence"], is_right))
        return dict(sorted(confidences.items()))

    def vote_curve(self) -> list[tuple[int, float, float, float]]:
        """Return how accurate a vote is with each number of answers.

        A point holds the number of answers, the accuracy, the mean tokens and the mean cost.

        The answers are those of the largest vote arm. The curve ends where some items have fewer answers.
        """
        votes = [
            self.scores[arm.name]
            for arm in self.evaluation.arms
            if arm.kind == "vote" and self.scores[arm.name]
        ]
        if not votes:
            return []
        largest = max(votes, key=lambda scores: min(len(score.outcome.texts) for score in scores))
        outcomes = [score.outcome for score in largest if self._gold(score.outcome.item) is not None]
        points = []
        for answers in range(1, 1 + min((len(each.texts) for each in outcomes), default=0)):
            right = [
                item_sets.majority(each.texts[:answers], self._question(each.item)).answer
                == self._gold(each.item)
                for each in outcomes
            ]
            shares = [answers / len(each.texts) for each in outcomes]
            tokens = fmean(each.tokens * share for each, share in zip(outcomes, shares, strict=True))
            cost = fmean(each.cost_usd * share for each, share in zip(outcomes, shares, strict=True))
            points.append((answers, fmean(right), tokens, cost))
        return points

    def _question(self, item: str) -> item_sets.QuestionItem:
        question = self.items[item]
        assert isinstance(question, item_sets.QuestionItem)  # noqa: S101  # only questions have answers
        return question

    def _gold(self, item: str) -> str | None:
        evaluation_item = self.items[item]
        return (
            item_sets.gold_answer(evaluation_item)
            if isinstance(evaluation_item, item_sets.QuestionItem)
            else None
        )


def _level(first: item_sets.Majority) -> str:
    if first.agreement == 1:
        return "all agree"
    return "majority" if first.agreement > 0.5 else "no majority"


def _outcome(
    arm: Arm, item: str, seed: int, outcomes: Mapping[tuple[str, str, int], ItemOutcome]
) -> ItemOutcome | None:
    """Return a configuration's outcome for one item and one seed."""
    if arm.kind == "recorded":
        result = arm.recorded.get(item)
        if result is None:
            return None
        return ItemOutcome(
            item,
            arm.name,
            seed,
            texts=(result.answer,) if result.answer is not None else (),
            winners=result.winners,
            confidence=result.confidence,
            tokens=result.tokens,
            calls=result.calls,
            cost_usd=result.cost_usd,
            seconds=result.seconds,
        )
    if arm.kind == "first-answers":
        source = outcomes.get((item, arm.source, seed))
        if source is None or not source.rounds:
            return None
        texts, usage = tuple(source.rounds[0].values()), source.first_usage
        return ItemOutcome(
            item,
            arm.name,
            seed,
            debate=source.debate,
            texts=texts,
            answers=len(texts),
            tokens=tokens_of(usage),
            calls=int(usage.get("calls", 0)),
            cost_usd=float(usage.get("cost_usd", 0.0)),
            placeholder=source.placeholder,
        )
    return outcomes.get((item, arm.name, seed))


def meeting_scores(meetings: Sequence[ItemOutcome]) -> dict[str, list[tuple[str, str, float]]]:
    """Return the scores of head-to-head comparisons, keyed by evaluation item.

    Each entry holds the names of two configurations and the mean score of the first.
    """
    scores: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for meeting in meetings:
        if not meeting.winners:
            continue
        first, _, second = meeting.arm.partition(VERSUS)
        score = fmean(0.5 if winner == TIE else float(winner == first) for winner in meeting.winners)
        scores[meeting.item].append((first, second, score))
    return dict(scores)
