"""Runs of an evaluation, in which every arm answers every item in a stored debate.

Each task is a debate with a name that follows from the evaluation, the item, the arm and the seed. A second
call therefore continues the debates of the first one: outcomes are stored, and replies come from the journal.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from string import ascii_uppercase

from moot.api import Debate, Debates, is_judged
from moot.config import DebateConfig, slug
from moot.config.boundary import Permissions
from moot.config.config_files import make_config, with_settings
from moot.config.model_settings import is_built_in
from moot.debates.config_checks import check_config, check_judges
from moot.judging.panel import winning_side
from moot.plugins.evals import items as eval_items, planned_debates
from moot.plugins.evals.arms import MAX_ANSWERS, VERSUS, Arm, Meeting, meetings
from moot.plugins.evals.results import EvaluationRecord, Evaluations, ItemOutcome, StatedConfidence
from moot.runtime.run_node import JournalPosition, run_to_end
from moot.state.entries import Entry, JsonMapping, tokens_of, traits_of
from moot.state.errors import ConfigError, DebateNotFound, MootError
from moot.state.reducers import add_totals
from moot.state.verdict import TIE, FinalAnswer, PanelVerdict, Verdict
from moot.storage.catalogue import thread_id_of
from moot.storage.rate_limiter import SharedBudget
from moot.storage.servers import DebateQueue
from moot.text.answers import parse_confidence, stated_answer

GRADING = "grade"
"""Name under which the journal stores calls that grade or read answers."""
QUEUED_ERROR = "queued"
"""Error message for a task whose debate is still queued."""
SIDES = ("candidate-1", "candidate-2")
"""Ids of the two answers that the `pairwise` protocol compares."""


@dataclass(frozen=True)
class Task(planned_debates.PlannedDebate):
    """A planned debate about one item of an evaluation."""

    item: eval_items.Item = field(kw_only=True)
    arm: str = field(kw_only=True)
    """Name of the evaluated configuration. If two configurations debate each other or are compared, ` vs `
    joins their names."""
    seed: int = field(kw_only=True)
    sides: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Configuration names of the debaters or answers, keyed by their ids. Empty unless two configurations
    debate each other or are compared."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Key under which the task's outcome is stored."""
        return self.item.id, self.arm, self.seed


@dataclass(frozen=True)
class TaskReport:
    """Progress report about an evaluation task that has ended."""

    task: Task
    error: str
    """Reason why the task has no outcome, or `""` if it has an outcome."""
    done: int
    total: int
    budget: SharedBudget


@dataclass
class RunResult:
    """Result of one evaluation run, with its errors, queued debates and budget."""

    errors: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """Reasons why results are missing, keyed by item, configuration and seed."""
    queued: int = 0
    """Number of debates that were added to the queue."""
    budget: SharedBudget = field(default_factory=SharedBudget)


class EvaluationRun:
    """A run of an evaluation that continues where the previous run stopped."""

    def __init__(self, debates: Debates, evaluation: EvaluationRecord) -> None:
        self.debates, self.evaluation = debates, evaluation
        self.store = Evaluations(debates.records.sql)
        self.outcomes = self.store.outcomes(evaluation.name)
        self.result = RunResult()
        self._budget = f"eval:{evaluation.name}"

    def check(self, budget: SharedBudget) -> None:
        """Check all configurations before any model is called.

        Raises:
            ConfigError: A configuration cannot be used, or a limit on the cost needs a missing price.
        """
        environment = self.debates.environment
        configs = [arm.config for arm in self.evaluation.arms if arm.config]
        debater_models = {model for config in configs for model in map(config.model_of, config.debaters)}
        configs += [self._judge_config()] if self._needs_judge() else []
        for config in configs:
            check_config(Permissions.of_operator(config), environment)
            is_pairwise = config.protocol == "pairwise"  # its debaters are texts that were given
            check_judges(
                config, debater_models if is_pairwise else map(config.model_of, config.debaters), environment
            )
            models = environment.models_of(Permissions.of_operator(config))
            needs_prices = budget.max_cost is not None or any(a.match == "cost" for a in self.evaluation.arms)
            if needs_prices and (unpriced := models.names_without_price(config.model_names())):
                raise ConfigError(
                    "vote@cost and cost limits need prices: set input_usd_per_million and "
                    f"output_usd_per_million under `models` for {', '.join(map(repr, unpriced))}"
                )
        if self.evaluation.items.kind == "topic":
            meetings(self.evaluation.arms)

    def run(
        self, budget: SharedBudget, workers: int, report: Callable[[TaskReport], None] | None = None
    ) -> RunResult:
        """Run all unfinished tasks and store their outcomes.

        Args:
            budget: Limits on the tokens and the cost of the whole evaluation, including earlier calls.
            workers: Maximum number of debates at the same time.
            report: Function called on the caller's thread when a task ends.
        """
        self._set_budget(budget)
        for stage in (self._first_tasks, self._matched_votes, self._comparisons):
            self._run_tasks(stage(), workers, report)
        self._finish(workers)
        self.result.budget = self.debates.records.budgets.get(self._budget)
        return self.result

    def enqueue(self, budget: SharedBudget, queue: DebateQueue, workers: int) -> RunResult:
        """Queue all unfinished debates, and store the outcomes of finished debates.

        Votes with an equal budget and comparisons follow in a later call, when their input is known. Creating
        a debate can call a model for its question, so `workers` debates are created at the same time.
        """
        self._set_budget(budget)
        self.collect()
        self._finish(workers)
        budgets = self.debates.records.budgets
        stages = (self._first_tasks, self._matched_votes, self._comparisons)
        tasks = [task for stage in stages for task in stage()]
        budgets.add(self._budget, [thread_id_of(task.id) for task in tasks])

        def create(task: Task) -> str:
            reason = budgets.get(self._budget).reached
            self.result.errors[task.key] = reason or QUEUED_ERROR
            return "" if reason else planned_debates.create_planned_debate(self.debates, task).id

        with ThreadPoolExecutor(workers) as pool:
            self.result.queued = queue.add([debate_id for debate_id in pool.map(create, tasks) if debate_id])
        self.result.budget = budgets.get(self._budget)
        return self.result

    def collect(self) -> None:
        """Store the outcomes of the evaluation's finished debates, without calling a model."""
        for stage in (self._first_tasks, self._matched_votes, self._comparisons):
            for task in stage():
                self._collect(task)

    def _set_budget(self, budget: SharedBudget) -> None:
        """Store the evaluation's budget limits, and count what is already used.

        Used tokens and cost are those in the journal, or the stored ones if they are higher.
        """
        records = self.debates.records
        stored_budget, journal_usage = records.budgets.get(self._budget), self._journalled()
        tokens = max(stored_budget.tokens, tokens_of(journal_usage))
        cost = max(stored_budget.cost, journal_usage.get("cost_usd", 0.0))
        records.budgets.set(self._budget, replace(budget, tokens=tokens, cost=cost))

    def _journalled(self) -> dict[str, float]:
        records = self.debates.records
        debates = records.budgets.debates(self._budget)
        replies = [reply for each in debates for reply in records.journal.replies(each).values()]
        return add_totals({}, [reply.usage for reply in replies])

    def _run_tasks(
        self, tasks: Sequence[Task], workers: int, report: Callable[[TaskReport], None] | None
    ) -> None:
        budgets, total = self.debates.records.budgets, len(tasks)
        budgets.add(self._budget, [thread_id_of(task.id) for task in tasks])

        def refuse() -> str:
            return budgets.get(self._budget).reached

        ended_tasks = planned_debates.run_many(self.debates, tasks, workers, refuse)
        for done, (task, error) in enumerate(ended_tasks, start=1):
            if not error:
                error = self._collect(task)
            if error:
                self.result.errors[task.key] = error
            if report is not None:
                report(TaskReport(task, error, done, total, budgets.get(self._budget)))

    def _collect(self, task: Task) -> str:
        """Store the outcome of a finished task.

        Return an error message, or `""` on success.
        """
        try:
            debate = self.debates.get(task.id)
        except DebateNotFound:
            return "the debate has not started"
        if not debate.is_over():
            return "the debate is not finished"
        if not is_judged(debate):
            return f"the verdict failed: {(debate.state().values.get('verdict') or {}).get('error', '')}"
        outcome = outcome_of(debate, task)
        self.outcomes[outcome.key] = outcome
        self.store.put(self.evaluation.name, [outcome])
        return ""

    # Tasks

    def _first_tasks(self) -> list[Task]:
        """Return the unfinished tasks that do not depend on other tasks."""
        item_seeds = [
            (item, seed)
            for seed in range(1, self.evaluation.seeds + 1)
            for item in self.evaluation.items.items
        ]
        if self.evaluation.items.kind == "topic":
            return [
                self._meeting_task(item, meeting, seed)
                for item, seed in item_seeds
                for meeting in meetings(self.evaluation.arms)
                if (item.id, meeting.name, seed) not in self.outcomes
            ]
        arms = [(arm, arm.config) for arm in self.evaluation.arms if arm.config and not arm.match]
        return [
            self._task(item, arm, config, seed)
            for item, seed in item_seeds
            for arm, config in arms
            if (item.id, arm.name, seed) not in self.outcomes
        ]

    def _task(self, item: eval_items.Item, arm: Arm, config: DebateConfig, seed: int) -> Task:
        settings: dict[str, object] = {"seed": _seed(config, seed)}
        documents: list[dict[str, str]] = []
        transcript: list[dict[str, str]] = []
        if isinstance(item, eval_items.PairItem):
            topic = item.input
            texts = zip(SIDES, (item.a, item.b), strict=True)
            transcript = [{"speaker": side, "content": text} for side, text in texts]
        else:
            assert isinstance(item, eval_items.QuestionItem)  # noqa: S101  # topics have tasks of their own
            topic = eval_items.topic_of(item)
            documents = [{"name": "context", "content": item.context}] if item.context else []
            settings |= _answer_settings(item, config)
        return self._planned(
            item, arm.name, seed, topic, with_settings(config.to_json(), settings), documents, transcript
        )

    def _meeting_task(self, item: eval_items.Item, meeting: Meeting, seed: int) -> Task:
        assert isinstance(item, eval_items.TopicItem)  # noqa: S101  # only topics are debated by line-ups
        config = {**meeting.config.to_json(), "seed": _seed(meeting.config, seed)}
        return self._planned(item, meeting.name, seed, item.topic, config, sides=meeting.sides)

    def _planned(
        self,
        item: eval_items.Item,
        arm: str,
        seed: int,
        topic: str,
        data: Mapping[str, object],
        documents: Sequence[Mapping[str, str]] = (),
        transcript: Sequence[Mapping[str, str]] = (),
        sides: Mapping[str, str] | None = None,
    ) -> Task:
        config = self._validated(json.dumps(data, sort_keys=True))
        prefix = f"eval-{slug(self.evaluation.name) or 'set'}"
        name = planned_debates.planned_name(
            prefix, config, self.evaluation.name, item.id, arm, str(seed), topic
        )
        return Task(
            name,
            topic,
            config,
            documents=documents,
            transcript=transcript,
            item=item,
            arm=arm,
            seed=seed,
            sides=sides or {},
        )

    @lru_cache(maxsize=256)  # noqa: B019  # one run exists for the length of a command
    def _validated(self, data: str) -> DebateConfig:
        return make_config(json.loads(data))

    def _matched_votes(self) -> list[Task]:
        """Return the unfinished tasks of votes that have the same budget as a debate.

        The budget determines the number of answers in the vote.

        If other debate arms determine another size now, the outcome of the earlier size is dropped.
        """
        tasks = []
        for arm in self.evaluation.arms:
            configs: dict[int, DebateConfig] = {}
            for item in self.evaluation.items.items if arm.match else ():
                for seed in range(1, self.evaluation.seeds + 1):
                    key = item.id, arm.name, seed
                    answers = self._matched_answers(item.id, arm.match, seed)
                    if answers is None:
                        if key not in self.outcomes:
                            self.result.errors[key] = "it is waiting for the debates on this item"
                        continue
                    if answers not in configs:
                        configs[answers] = _vote_of(arm, answers)
                    task = self._task(item, arm, configs[answers], seed)
                    if key in self.outcomes and self.outcomes[key].debate == thread_id_of(task.id):
                        continue
                    self.outcomes.pop(key, None)
                    tasks.append(task)
        return tasks

    def _matched_answers(self, item: str, match: str, seed: int) -> int | None:
        """Return how many answers a vote may give for the price of a debate.

        The price is that of the most expensive debate about the item.

        `match` says whether to compare the cost or the tokens. Return `None` while an outcome is missing.
        """
        debates = [arm.name for arm in self.evaluation.arms if arm.is_debate]
        outcomes = [self.outcomes.get((item, name, seed)) for name in (*debates, "single")]
        if None in outcomes:
            return None
        amounts = [each.cost_usd if match == "cost" else each.tokens for each in outcomes if each]
        *debate_amounts, single_amount = amounts
        return max(1, min(MAX_ANSWERS, int(max(debate_amounts) / single_amount))) if single_amount else 1

    # Free answers

    def _needs_judge(self) -> bool:
        return any(
            isinstance(item, eval_items.QuestionItem) and item.graded_by != "answer"
            for item in self.evaluation.items.items
        )

    def _judge_config(self) -> DebateConfig:
        return make_config({**self.evaluation.judge, "protocol": "pairwise"})

    def _comparisons(self) -> list[Task]:
        """Return a task for each pair of answers that a judge has not compared yet."""
        tasks = []
        for item in self.evaluation.items.items:
            if not isinstance(item, eval_items.QuestionItem) or item.graded_by != "comparison":
                continue
            for seed in range(1, self.evaluation.seeds + 1):
                for first, second in combinations(self.evaluation.arms, 2):
                    texts = [self._text(item, arm, seed) for arm in (first, second)]
                    name = f"{first.name}{VERSUS}{second.name}"
                    if all(texts) and (item.id, name, seed) not in self.outcomes:
                        transcript = [
                            {"speaker": side, "content": text or ""}
                            for side, text in zip(SIDES, texts, strict=True)
                        ]
                        config = self._judge_config().to_json()
                        sides = dict(zip(SIDES, (first.name, second.name), strict=True))
                        tasks.append(
                            self._planned(item, name, seed, item.question, config, (), transcript, sides)
                        )
        return tasks

    def _text(self, item: eval_items.QuestionItem, arm: Arm, seed: int) -> str:
        if arm.recorded:
            result = arm.recorded.get(item.id)
            return (result.answer or "") if result else ""
        outcome = self.outcomes.get((item.id, arm.name, seed))
        return outcome.texts[0] if outcome and outcome.texts else ""

    def _finish(self, workers: int) -> None:
        """Read answers in no known form by model calls, grade free-form answers, and store the outcomes.

        Answers are read with the settings of their debate, and graded with those of the judge.
        """
        items = {
            item.id: item for item in self.evaluation.items.items if isinstance(item, eval_items.QuestionItem)
        }
        outcomes = [each for each in self.outcomes.values() if each.item in items and not each.placeholder]
        outcomes = [
            each for each in outcomes if eval_items.is_unfinished(items[each.item], each.texts, each.grade)
        ]
        configs = {each.key: self._config_for(each, items[each.item]) for each in outcomes}
        slots, environment = asyncio.Semaphore(workers), self.debates.environment

        async def finish(outcome: ItemOutcome) -> tuple[ItemOutcome, str]:
            config = configs[outcome.key]
            position = JournalPosition(
                self.debates.records, outcome.debate, step=0, node=GRADING, resumed=True
            )
            count, permissions = environment.token_counter_for(config), Permissions.of_operator(config)
            flow = eval_items.finish_answer(items[outcome.item], outcome.texts, config, count)
            async with slots:
                try:
                    result, _ = await run_to_end(flow, environment, permissions, position)
                except MootError as error:
                    return outcome, str(error)
            read = outcome.read_by_call + len({*result.texts} - {*outcome.texts})
            return replace(outcome, texts=result.texts, grade=result.grade, read_by_call=read), result.error

        for outcome, error in planned_debates.iterate_as_completed(outcomes, finish):
            if error:
                self.result.errors[outcome.key] = f"not graded: {error}"
            if outcome != self.outcomes[outcome.key]:
                self.outcomes[outcome.key] = outcome
                self.store.put(self.evaluation.name, [outcome])

    def _config_for(self, outcome: ItemOutcome, item: eval_items.QuestionItem) -> DebateConfig:
        is_read = item.graded_by != "reference" and outcome.debate
        return self.debates.get(outcome.debate).config() if is_read else self._judge_config()


def _vote_of(arm: Arm, answers: int) -> DebateConfig:
    """Return the configuration of a vote with the given number of answers."""
    assert arm.config  # noqa: S101  # a vote has a configuration
    settings = {"vote.answers": answers} if answers > 1 else {"protocol": "single"}
    data = with_settings(arm.config.to_json(), settings)
    if answers == 1:
        data.pop("vote", None)
        data.pop("debaters", None)
    return make_config(data)


SEED_STEP = 1_000
"""Increment of the random seed between repetitions. It leaves room for the consecutive seeds of a
vote's answers."""


def _seed(config: DebateConfig, repetition: int) -> int:
    """Return the random seed for one repetition of a configuration. `repetition` starts at 1."""
    return (config.seed or 1) + SEED_STEP * (repetition - 1)


def _answer_settings(item: eval_items.QuestionItem, config: DebateConfig) -> dict[str, object]:
    """Return settings that make a debate answer in the required form.

    The question requires the form, such as a choice or a number. Built-in votes need no judge, because the
    evaluation counts the answers itself.
    """
    if config.protocol == "vote":
        is_free = item.form == "free"  # free texts are never equal
        return {"decide": "judge"} if is_free else {"judge.enabled": False}
    if item.form == "free":
        return {}
    if item.form == "choice":
        return {} if config.protocol == "single" else {"options": [*ascii_uppercase[: len(item.choices)]]}
    instruction = f"{config.judge.instruction}\n{eval_items.DECISIONS[item.form]}".strip()
    return {"judge.instruction": instruction}


def outcome_of(debate: Debate, task: Task) -> ItemOutcome:
    """Read the outcome of a task from its finished debate."""
    document = debate.document()
    usage, verdict = document["usage"], document["verdict"] or {}
    messages = [entry for entry in document["transcript"] if traits_of(entry).argues and entry["model"]]
    outcome = ItemOutcome(
        item=task.item.id,
        arm=task.arm,
        seed=task.seed,
        debate=debate.id,
        confidence=verdict.get("confidence") if verdict.get("status") == "ok" else None,
        stated=_stated_confidences(debate.state().values.get("final_answers") or [], messages),
        tokens=tokens_of(usage),
        calls=usage["calls"],
        cost_usd=usage["cost_usd"],
        seconds=usage["elapsed_s"],
        placeholder=bool(verdict.get("placeholder")) or any(is_built_in(e["model"]) for e in messages),
    )
    if isinstance(task.item, eval_items.TopicItem):
        decision: PanelVerdict | None = document["verdict"]
        winner = winning_side(decision, document["verdicts"], task.sides) if decision else TIE
        return replace(outcome, winners=(winner if winner in task.sides.values() else TIE,))
    if task.config.protocol == "pairwise":
        names = (
            dict(zip(SIDES, "ab", strict=True)) if isinstance(task.item, eval_items.PairItem) else task.sides
        )
        by_judge = _winners_by_judge(document["verdicts"], verdict, names)
        return replace(outcome, winners=_most_frequent(by_judge.values()), judges=by_judge)
    if task.config.protocol == "vote" and task.config.decide != "judge":
        texts = tuple(map(_message_answer, messages))
        read = sum("answer" in entry for entry in messages)
        return replace(outcome, texts=texts, answers=len(texts), read_by_call=read)
    return replace(
        outcome,
        texts=(_answer_text(document, task.item),),
        rounds=_rounds(messages),
        first_usage=_first_usage(messages),
    )


def _message_answer(entry: Entry) -> str:
    """Return the answer of a message as text, also if a call of the debate read it."""
    return f"Answer: {entry['answer']}" if "answer" in entry else eval_items.answer_part(entry["content"])


def _answer_text(document: JsonMapping, item: eval_items.Item) -> str:
    """Return the answer of a debate as text.

    A decision between options is the answer. Otherwise it is the last `Answer:` line of the result, or else
    the judge's decision.
    """
    result, verdict = document["final_answer"], document["verdict"] or {}
    if isinstance(item, eval_items.QuestionItem) and item.form == "free":
        return str(result)
    decision = verdict.get("status") == "ok" and not verdict.get("placeholder") and verdict.get("decision")
    if decision and ("options" in verdict or not stated_answer(result)):
        return eval_items.answer_part(str(decision))
    return eval_items.answer_part(result)


def _winners_by_judge(
    verdicts: Sequence[Verdict], decision: Mapping[str, object], names: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the winners that each judge chose, one for each order of the answers."""
    return {
        verdict["judge"]: tuple(
            names.get(winner, TIE) for winner in verdict["flip"]["winners"] or [verdict["winner"]]
        )
        for verdict in verdicts
        if verdict["status"] == "ok" and verdict.get("judging") == decision.get("judging")
    }


def _most_frequent(by_judge: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the winner that most judges chose, for each order of the answers.

    The winner is `tie` if no winner leads.
    """
    winners = []
    for ballots in zip(*by_judge, strict=False):
        (leader, votes), *runners_up = Counter(ballots).most_common()
        winners.append(TIE if runners_up and runners_up[0][1] == votes else leader)
    return tuple(winners)


def _rounds(messages: Sequence[Entry]) -> tuple[dict[str, str], ...]:
    """Return the debaters' answers, grouped by round.

    The first group holds the answers from the debaters' first messages.

    Critiques and messages in crux rooms are left out, because they give no answer to the question.
    """
    answers = [entry for entry in messages if entry["kind"] != "critique" and not entry["room"]]
    first_entries: dict[str, Entry] = {}
    later_rounds: dict[int, dict[str, str]] = {}
    for entry in answers:
        if first_entries.setdefault(entry["speaker"], entry) is not entry:
            later_rounds.setdefault(entry["round"], {})[entry["speaker"]] = _message_answer(entry)
    first_round = {debater: _message_answer(entry) for debater, entry in first_entries.items()}
    return (
        (first_round, *(later_rounds[number] for number in sorted(later_rounds)))
        if len(first_entries) > 1
        else ()
    )


def _stated_confidences(
    final_answers: Sequence[FinalAnswer], messages: Sequence[Entry]
) -> tuple[StatedConfidence, ...]:
    """Return the debaters' answers with the confidence that they stated.

    The answers are the final answers if there are any, otherwise those in the messages.
    """
    if final_answers:
        rows = [(each["model"], f"Answer: {each['answer']}", each["confidence"]) for each in final_answers]
    else:
        pairs = [(each, parse_confidence(each["content"])) for each in messages]
        rows = [
            (each["model"], eval_items.answer_part(each["content"]), confidence) for each, confidence in pairs
        ]
    return tuple(
        StatedConfidence(model=model, answer=answer, confidence=confidence)
        for model, answer, confidence in rows
        if confidence is not None and model and not is_built_in(model)
    )


def _first_usage(messages: Sequence[Entry]) -> dict[str, float]:
    first_entries: dict[str, Entry] = {}
    for entry in messages:
        first_entries.setdefault(entry["speaker"], entry)
    usage = [{"calls": 1, **entry["usage"]} for entry in first_entries.values()]
    return add_totals({}, usage)
