"""Estimate of a debate before it runs, made by running the real graph with stub replies.

`estimate` runs the debate twice, without a model, a network or a database. In the *agreeing* run nothing is
disputed and a council converges at once: it makes the fewest calls. In the *disputing* run all claims are
disputed, nothing converges and every crux room opens: it makes the most calls. The real nodes, protocols and
summarizers, plug-ins included, make the calls and the prompts.

Of a long debate, only the first turns run. The estimate's number of turns is exact, and its calls and tokens
are within `SCALING_ERROR`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import tracing_context
from typing_extensions import TypedDict

from moot.calls.model_calls import Purpose
from moot.config import DebateConfig, config_files, memory_config
from moot.debates import stub_replies
from moot.graph.debate import build_graph
from moot.judging.judge_spec import judge_config
from moot.models.registry import Models
from moot.people import questions_in
from moot.protocols.registry import protocol_named
from moot.runtime import background_loop, telemetry
from moot.runtime.environment import Environment
from moot.state.entries import EntryUsage, JsonObject, traits_of
from moot.state.errors import MootError
from moot.tools.registry import server_of


@dataclass(frozen=True)
class DryRun:
    """Simulated run of debaters that agree or disagree, with the model calls that it would make."""

    planned: Sequence[stub_replies.PlannedCall]
    turns: int
    """Total number of turns in the debate, including people's turns."""
    concurrency: int
    is_scaled: bool = False
    """True if only the first rounds were simulated, so that calls and tokens are within `SCALING_ERROR`."""

    @property
    def calls(self) -> int:
        """Total number of model calls in the dry run."""
        return round(sum(each.times for each in self.planned))

    def by_purpose(self) -> Counter[str]:
        """Return the number of model calls for each purpose, such as `turn` or `judge`."""
        counts: dict[str, float] = {}
        for each in self.planned:
            counts[each.call.purpose] = counts.get(each.call.purpose, 0) + each.times
        return Counter({purpose: round(times) for purpose, times in counts.items()})

    def batches(self) -> dict[tuple[Purpose, str, int], list[stub_replies.PlannedCall]]:
        """Return the simulated calls by purpose, phase and batch size, in order of first appearance."""
        sizes = Counter((each.batch, each.kind) for each in self.planned)
        batches: dict[tuple[Purpose, str, int], list[stub_replies.PlannedCall]] = {}
        for each in self.planned:
            batches.setdefault((*each.kind, sizes[each.batch, each.kind]), []).append(each)
        return batches

    @property
    def critical_path(self) -> int:
        """Number of calls that must run one after another, with `concurrency` calls at a time."""
        first = {each.batch: each for each in self.planned}
        sizes = Counter(each.batch for each in self.planned)
        return round(sum(-(-sizes[batch] // self.concurrency) * each.times for batch, each in first.items()))

    def prompt_tokens(self) -> float:
        """Return how many prompt tokens the debate is expected to use."""
        return sum(each.call.prompt_tokens * each.times for each in self.planned)

    def reply_tokens(self) -> float:
        """Return how many reply tokens the debate is expected to use."""
        return sum(each.reply_tokens * each.times for each in self.planned)


Documents = Sequence[Mapping[str, str]]
"""Documents that a debate shows to its participants, each with the keys `name` and `content`."""
DEFAULT_TOPIC = "Any topic of many different words, to one of which whatever people claim may be related"
"""Topic of a dry run if the configuration has no topic."""
SIMULATED_TURNS = 60
"""Number of turns that are simulated. The other rounds of a longer debate are scaled from the last third."""
MIN_ROUNDS = 12
"""Minimum number of rounds that are simulated. Calls for perspective summaries grow with the rounds: scaled
from 6 rounds, a council of 16 has 25 % too few calls, and from 12 rounds 4 %."""
SCALING_ERROR = 0.10
"""Relative error of the calls and tokens of a scaled dry run. `tests/unit/test_dry_run.py` compares it with
whole runs of 300 turns and of 16 rounds."""
MAX_CONCURRENCY = 256
"""Largest allowed `limits.concurrency`."""


def dry_run(
    config: DebateConfig,
    scenario: stub_replies.Scenario,
    check: stub_replies.Check = stub_replies.no_check,
    documents: Documents = (),
) -> DryRun:
    """Simulate a debate in one scenario.

    Of a debate of more than `SIMULATED_TURNS` turns, only these are simulated. The rounds of their last third
    then also stand for the missing rounds. `check` is called before each simulated call, and can raise an
    error to end the dry run. `documents` are shown to the debaters besides the context file of the
    configuration.
    """
    config = _without_side_effects(config)
    turns_per_round = _turns_a_round(config)
    shortened_config, missing_rounds = _shortened(config, turns_per_round)
    run = _run(shortened_config, scenario, check, documents)
    return _scaled(run, missing_rounds, turns_per_round) if missing_rounds else run


def _without_side_effects(config: DebateConfig) -> DebateConfig:
    """Remove embeddings, limits on tokens, cost and time, and MCP tools without a known definition."""
    retrieval = config.memory.retrieval.model_copy(update={"embeddings": memory_config.WORDS})
    limits = {"total_tokens": None, "cost_usd": None, "wall_clock_s": None}
    unknown_tools = {
        tool
        for debater in config.debaters
        for tool in debater.tools
        if (server := server_of(tool, config.mcp_servers)) and tool not in config.mcp_servers[server].tools
    }
    debaters = [
        debater.model_copy(
            update={"tools": tuple(tool for tool in debater.tools if tool not in unknown_tools)}
        )
        for debater in config.debaters
    ]
    changes = {
        "debaters": tuple(debaters),
        "topic": config.topic or DEFAULT_TOPIC,
        "memory": config.memory.model_copy(update={"retrieval": retrieval}),
        "limits": config.limits.model_copy(update=limits),
    }
    return config.model_copy(update=changes)


def _shortened(config: DebateConfig, turns_per_round: int) -> tuple[DebateConfig, int]:
    """Return a configuration of at most `SIMULATED_TURNS` turns, and the number of rounds that it leaves out.

    `turns` or `rounds` is lowered if the protocol's length depends on that setting. At least `MIN_ROUNDS`
    rounds remain.
    """
    settings = protocol_named(config.protocol).length_settings or ()
    kept_rounds = max(MIN_ROUNDS, SIMULATED_TURNS // turns_per_round)
    if config.turns and {"turns", "rounds"} & {*settings}:
        missing_rounds = max(0, config.turns // turns_per_round - kept_rounds)
        changes = {"turns": config.turns - missing_rounds * turns_per_round}
    elif config.rounds and "rounds" in settings:
        missing_rounds = max(0, config.rounds - kept_rounds)
        changes = {"rounds": config.rounds - missing_rounds}
    else:
        return config, 0
    data: JsonObject = {**config.to_json(), "topic": config.topic}
    return (
        config_files.make_config(config_files.with_settings(data, changes)) if missing_rounds else config
    ), missing_rounds


def _turns_a_round(config: DebateConfig) -> int:
    """Return the number of turns in one round of the configured debate."""
    protocol = protocol_named(config.protocol)
    three_rounds, two_rounds = (
        protocol.turns(config.model_copy(update={"turns": None, "rounds": rounds})) for rounds in (3, 2)
    )
    if three_rounds and two_rounds:
        return max(1, three_rounds.planned - two_rounds.planned)
    return len(config.turn_order())


def _scaled(run: DryRun, missing_rounds: int, turns_per_round: int) -> DryRun:
    """Scale a simulation to the debate's full length, except the last round: closings follow it."""
    last = max((each.round for each in run.planned), default=0)
    third = range(last - max(1, last // 3), last)
    times = 1 + missing_rounds / len(third)
    planned = [replace(each, times=times) if each.round in third else each for each in run.planned]
    return replace(run, planned=planned, turns=run.turns + missing_rounds * turns_per_round, is_scaled=True)


def _run(
    config: DebateConfig,
    scenario: stub_replies.Scenario,
    check: stub_replies.Check = stub_replies.no_check,
    documents: Documents = (),
) -> DryRun:
    replies = stub_replies.StubReplies(scenario, config, check)
    # Without a concurrency limit, all calls of a batch run at the same time.
    unbounded_config = config.model_copy(
        update={"limits": config.limits.model_copy(update={"concurrency": MAX_CONCURRENCY})}
    )
    with tracing_context(enabled=False), telemetry.muted_spans():
        turns = background_loop.call_from_sync(_run_debate, unbounded_config, replies, documents)
    return DryRun(replies.planned, turns, config.limits.concurrency)


async def _run_debate(config: DebateConfig, replies: stub_replies.StubReplies, documents: Documents) -> int:
    """Run a debate with stub replies, and return the number of turns."""
    environment = Environment(complete=replies, on_progress=lambda *_: None)
    graph = build_graph(InMemorySaver(), environment=environment)
    run_config: RunnableConfig = {"configurable": {"thread_id": "00000000-0000-4000-8000-000000000000"}}
    graph_input: Any = {"topic": config.topic, "context_documents": [dict(each) for each in documents]}
    while True:
        await graph.ainvoke(graph_input, run_config, context=config, durability="exit")
        snapshot = await graph.aget_state(run_config)
        questions = questions_in([interrupt.value for interrupt in snapshot.interrupts])
        if not questions:
            return int(snapshot.values.get("turn_count", 0))
        graph_input = Command(resume={each["id"]: replies.text(each["question"], None) for each in questions})


@dataclass(frozen=True)
class Batch:
    """Estimate for model calls that run at the same time."""

    purpose: Purpose
    phase: str
    calls: int
    """Number of calls in the batch. They run at the same time."""
    prompt_tokens: float
    """Expected number of prompt tokens in one call of the batch."""
    reply_tokens: float
    """Expected number of reply tokens in one call of the batch."""
    times: int
    """Expected number of such batches in the debate."""
    times_at_least: int
    """Lowest number of times that such a batch occurred in a simulation."""
    times_at_most: int
    """Highest number of times that such a batch occurred in a simulation."""

    @property
    def all_calls(self) -> int:
        """Expected number of model calls in all batches of this kind together."""
        return self.calls * self.times


class Estimate:
    """Estimated calls, tokens and duration of a debate."""

    def __init__(self, runs: Sequence[DryRun], *, shows_window: bool = True) -> None:
        self.shows_window = shows_window
        self.shortest_run, self.longest_run = sorted(runs, key=lambda run: run.calls)
        self.concurrency = self.longest_run.concurrency
        self.calls_at_least, self.calls_at_most = self.shortest_run.calls, self.longest_run.calls
        self.calls = _middle(self.calls_at_least, self.calls_at_most)
        """Expected number of model calls in the whole debate."""
        paths = sorted(run.critical_path for run in runs)
        self.critical_path, self.critical_path_at_most = _middle(*paths), paths[-1]
        """Expected and maximum number of calls that run one after another."""
        self.turns_at_most = max(run.turns for run in runs)
        """Maximum number of turns in the debate, people's turns included."""
        self.error = SCALING_ERROR if any(run.is_scaled for run in runs) else 0.0
        """Relative error of calls and tokens, because only the first rounds were simulated. 0: all were."""
        self.batches = self._batches()

    def _batches(self) -> list[Batch]:
        least_batches, most_batches = self.shortest_run.batches(), self.longest_run.batches()
        rows = []
        for key in most_batches | least_batches:
            calls = [*least_batches.get(key, ()), *most_batches.get(key, ())]
            purpose, phase, size = key
            counts = (sum(a.times for a in run.get(key, ())) for run in (least_batches, most_batches))
            min_times, max_times = sorted(round(count / size) for count in counts)
            prompt_tokens = fmean(planned.call.prompt_tokens for planned in calls)
            reply_tokens = fmean(planned.reply_tokens for planned in calls)
            times = _middle(min_times, max_times)
            rows.append(Batch(purpose, phase, size, prompt_tokens, reply_tokens, times, min_times, max_times))
        return rows

    def calls_by_purpose(self) -> dict[str, int]:
        """Return the expected number of model calls for each purpose."""
        least_counts, most_counts = self.shortest_run.by_purpose(), self.longest_run.by_purpose()
        counts = {
            purpose: _middle(least_counts[purpose], most_counts[purpose])
            for purpose in least_counts | most_counts
        }
        return {purpose: calls for purpose, calls in counts.items() if calls}

    def left_out(self) -> dict[str, int]:
        """Return how many message tokens may be missing from prompts, for each phase of the debate.

        The count of a phase is that of its fullest prompt. The result includes the prompts of judges,
        and those of debaters if the protocol shows them all relevant messages instead of a window.
        """
        purposes = ("judge",) if self.shows_window else ("turn", "judge")
        tokens_by_phase: dict[str, int] = {}
        for each in (*self.shortest_run.planned, *self.longest_run.planned):
            if each.call.purpose in purposes and each.call.prompt:
                tokens = sum(omission["tokens"] for omission in each.call.prompt.omitted)
                tokens_by_phase[each.phase] = max(tokens, tokens_by_phase.get(each.phase, 0))
        return {phase: tokens for phase, tokens in tokens_by_phase.items() if tokens}

    def seconds(self, latency_s: float) -> float:
        """Return the debate's expected duration in seconds if each call takes `latency_s` seconds."""
        return self.critical_path * latency_s

    def to_json(self) -> JsonObject:
        """Return the estimate as a JSON object. Keys have the same names as in `usage` where possible.

        Token maximums assume the `disputing` run, with each prompt and each reply at its limit.
        """
        runs = (self.shortest_run, self.longest_run)
        prompt = round(fmean(run.prompt_tokens() for run in runs))
        reply = round(fmean(run.reply_tokens() for run in runs))
        return {
            "calls": self.calls,
            "calls_at_least": self.calls_at_least,
            "calls_at_most": self.calls_at_most,
            "relative_error": self.error,
            "prompt_tokens": prompt,
            "prompt_tokens_at_most": round(sum(a.prompt_limit * a.times for a in self.longest_run.planned)),
            "completion_tokens": reply,
            "completion_tokens_at_most": round(
                sum(a.reply_limit * a.times for a in self.longest_run.planned)
            ),
            "critical_path_calls": self.critical_path,
            "critical_path_calls_at_most": self.critical_path_at_most,
            "concurrency": self.concurrency,
            "calls_by_purpose": self.calls_by_purpose(),
            "batches": [
                {
                    "purpose": batch.purpose,
                    "phase": batch.phase,
                    "calls": batch.calls,
                    "times": batch.times,
                    "times_at_least": batch.times_at_least,
                    "times_at_most": batch.times_at_most,
                    "prompt_tokens": round(batch.prompt_tokens),
                    "completion_tokens": round(batch.reply_tokens),
                }
                for batch in self.batches
            ],
        }


def _middle(low: float, high: float) -> int:
    return int((low + high) / 2 + 0.5)


def estimate(
    config: DebateConfig, check: stub_replies.Check = stub_replies.no_check, *, documents: Documents = ()
) -> Estimate | None:
    """Estimate how many model calls and tokens a debate will use, without calling a model.

    Return `None` if the debate does not end within `stub_replies.MAX_BATCHES` batches of calls.

    The estimate ignores limits on tokens, cost and time: it assumes that the debate reaches none of them.
    `check` runs before each simulated call, and can raise an error to end the estimate.

    Raises:
        ConfigError: The configuration cannot run.
    """
    try:
        runs = [dry_run(config, each, check, documents) for each in ("agreeing", "disputing")]
        return Estimate(runs, shows_window=protocol_named(config.protocol).shows_summary)
    except stub_replies.EndlessDebate:
        return None


def omission_warnings(planned: Estimate, config: DebateConfig) -> list[str]:
    """Return a warning for each part of a debate that its simulation or its prompts leave out.

    A warning about messages in the prompts of a phase says which setting to raise.
    """
    total = config.memory.budget.total
    warnings = []
    if planned.error:
        warnings.append(
            f"calls and tokens are ± {100 * planned.error:g} %, because only the first rounds were simulated"
            + (
                ": they are too low for many rounds, because perspective summaries need more calls each round"
                if config.memory.perspectives.enabled
                and any(row.past_tokens for row in protocol_named(config.protocol).phases.values())
                else ""
            )
        )
    for phase, tokens in planned.left_out().items():
        phase_budget = config.memory.budget.phases.get(phase)
        setting = f"memory.budget.phases.{phase}" if phase_budget else "memory.budget.total"
        limit = phase_budget or total
        if phase == "judge":
            limit = min(
                judge_config(config, each, config.judge.reply).memory.budget.total
                for each in config.judge.judges()
            )
        new_limit = -(-(limit + tokens) // 1000) * 1000
        warnings.append(
            f"{setting}: prompts of the phase {phase!r} hold {limit:,} tokens and may leave out {tokens:,} "
            f"tokens of messages: raise it to {new_limit:,} if the model's context allows"
        )
    return warnings


class ExpectedCost(TypedDict):
    """Estimated cost of a debate in US$, computed before the debate runs."""

    usd_at_least: float
    """Minimum cost in US$, if each call uses the cheapest of its model and its fallback models."""
    usd: float
    """Expected cost in US$, assuming that no fallback is used."""
    usd_at_most: float
    """Maximum cost in US$, if each call uses the most expensive of its model and its fallback models."""


def expected_cost(planned: Estimate, config: DebateConfig) -> ExpectedCost | list[str]:
    """Return a debate's estimated cost, or the names of the models whose prices are unknown."""
    models = Models(config.models)
    if unpriced := models.names_without_price(config.model_names()):
        return unpriced
    runs = (planned.shortest_run, planned.longest_run)
    expected_costs = [sum(prices(models, each)[0] * each.times for each in run.planned) for run in runs]
    return {
        "usd_at_least": sum(min(prices(models, each)) * each.times for each in planned.shortest_run.planned),
        "usd": sum(expected_costs) / len(runs),
        "usd_at_most": sum(
            max(prices(models, each, at_limits=True)) * each.times for each in planned.longest_run.planned
        ),
    }


def prices(models: Models, planned: stub_replies.PlannedCall, *, at_limits: bool = False) -> list[float]:
    """Return the cost of a call in US$ for its model and each fallback model."""
    usage: EntryUsage = {
        "prompt_tokens": planned.prompt_limit if at_limits else planned.call.prompt_tokens,
        "completion_tokens": planned.reply_limit if at_limits else planned.reply_tokens,
    }
    return [models.cost_usd(name, usage) or 0.0 for name in (planned.call.model, *planned.call.fallbacks)]


def with_plan(document: Mapping[str, Any]) -> JsonObject:
    """Return a document with an estimate as `planned`, unless the debate cannot be simulated here."""
    config, topic = document.get("config"), str(document.get("topic") or "").strip()
    if not config or document.get("planned"):
        return {**document}
    # The transcript holds the documents, those of `context` too, as they were when the debate began.
    partitions = [
        entry["content"].partition("\n\n")
        for entry in document["transcript"]
        if traits_of(entry).user_input == "document" and entry["speaker"] == "user"  # not Moot's own note
    ]
    documents = [{"name": name, "content": content} for name, _, content in partitions]
    try:
        settings = DebateConfig.model_validate({**config, "topic": topic or None})
        folders = tuple(path for path in settings.context_paths() if Path(path).is_dir())
        planned = estimate(settings.model_copy(update={"context": folders}), documents=documents)
    except MootError:  # a protocol, folder or tool of the debate is missing here
        planned = None
    return {**document, **({"planned": planned.to_json()} if planned else {})}
