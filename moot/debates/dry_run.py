"""Estimate of a debate before it runs, made by running the real graph with stub replies.

`estimate` runs the debate twice, without a model, a network or a database. In the *agreeing* run nothing is
disputed and a council converges at once: it makes the fewest calls. In the *disputing* run all claims are
disputed, nothing converges and every crux room opens: it makes the most calls. The real nodes, protocols and
summarizers, plug-ins included, make the calls and the prompts.

A long debate runs shortened, and its middle rounds are extrapolated. The number of turns is then exact. Calls
and tokens are within 5 %, and calls for summaries within 20 %: `tests/unit/test_dry_run.py` compares
extrapolations with whole runs of 300 turns and of 16 rounds.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, cycle, islice
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import tracing_context
from pydantic import ValidationError
from typing_extensions import TypedDict

from moot.calls.effects import ModelCall, Purpose, Reply
from moot.claims.reflections import DISAGREEMENT
from moot.config import DebateConfig
from moot.config.config_files import make_config, with_settings
from moot.config.memory_config import WORDS
from moot.config.model_settings import server_of
from moot.graph.debate import build_graph
from moot.models.offline import smallest_instance
from moot.models.registry import Models
from moot.people import questions_in
from moot.protocols.registry import protocol_named
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.runtime.telemetry import muted_spans
from moot.state.claim_events import MAIN_QUESTION
from moot.state.entries import Entry, EntryUsage, JsonObject, traits_of
from moot.state.errors import MootError
from moot.text.tokens import TokenCounter

Scenario = Literal["agreeing", "disputing"]
"""Behaviour of the stub debaters in a dry run. `agreeing` needs the fewest model calls, and
`disputing` needs the most."""


@dataclass(frozen=True)
class PlannedCall:
    """Model call recorded in a dry run."""

    call: ModelCall
    batch: int
    """Number of the batch that contains this call. Calls in the same batch run at the same time."""
    round: int
    reply_tokens: int
    times: float = 1.0
    """Expected number of real calls that this simulated call stands for. It exceeds 1 only if the simulation
    was shortened."""

    @property
    def phase(self) -> str:
        """Name of the debate phase in which this model call occurs.

        If the phase has the same name as the call's purpose, the memory kind takes its place.
        """
        phase = self.call.hints.get("phase", "")
        return phase if phase != self.call.purpose else self.call.memory_kind or phase

    @property
    def kind(self) -> tuple[Purpose, str]:
        """Purpose and debate phase of the model call."""
        return self.call.purpose, self.phase

    @property
    def prompt_limit(self) -> int:
        """Maximum number of tokens in the prompt of this call."""
        return max(self.call.prompt_tokens, self.call.prompt.budget if self.call.prompt else 0)

    @property
    def reply_limit(self) -> int:
        """Maximum number of tokens in the reply to this call."""
        return max(self.call.max_tokens, self.reply_tokens)


@dataclass(frozen=True)
class DryRun:
    """Simulated run of a debate, with the model calls that the debate would make.

    The simulated debaters either agree or disagree.
    """

    planned: Sequence[PlannedCall]
    turns: int
    """Total number of turns in the debate, including people's turns."""
    concurrency: int

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

    def batches(self) -> dict[tuple[Purpose, str, int], list[PlannedCall]]:
        """Return the simulated calls by purpose, phase and batch size, in order of first appearance."""
        sizes = Counter((each.batch, each.kind) for each in self.planned)
        batches: dict[tuple[Purpose, str, int], list[PlannedCall]] = {}
        for each in self.planned:
            batches.setdefault((*each.kind, sizes[each.batch, each.kind]), []).append(each)
        return batches

    @property
    def critical_path(self) -> int:
        """Number of model calls that must run one after another.

        At most `concurrency` calls of a batch run at the same time.
        """
        first = {each.batch: each for each in self.planned}
        sizes = Counter(each.batch for each in self.planned)
        return round(sum(-(-sizes[batch] // self.concurrency) * each.times for batch, each in first.items()))

    def prompt_tokens(self) -> float:
        """Return how many prompt tokens the debate is expected to use."""
        return sum(each.call.prompt_tokens * each.times for each in self.planned)

    def reply_tokens(self) -> float:
        """Return how many reply tokens the debate is expected to use."""
        return sum(each.reply_tokens * each.times for each in self.planned)


TOKENS_PER_WORD: Mapping[Scenario, float] = {"agreeing": 1.05, "disputing": 1.3}
"""Assumed number of reply tokens for each word that a prompt requests, keyed by scenario. Recorded debates
have 1.06 to 1.33."""
DEFAULT_WORDS = 150
"""Number of words in a stub reply if the prompt requests no particular length."""
REPLY_TOKENS: Mapping[str, int] = {
    "judge": 1_800,
    "extract": 1_200,
    "reflect": 220,
    "evaluate": 270,
    "clarify": 80,
    "moderate": 60,
    "decide": 150,
}
"""Assumed number of tokens in a structured reply, keyed by the purpose of the call. The first three values
are means of recorded debates."""
DEFAULT_REPLY_TOKENS = 100
"""Assumed number of tokens in a structured reply of any other purpose than in `REPLY_TOKENS`."""
MAX_BATCHES = 20_000
"""Maximum number of batches of calls in a dry run. A debate with more batches counts as endless."""
MAX_CLAIMS = 12
"""Maximum number of claims in one simulated extraction."""
CLAIM_QUOTE = "this measure stands or falls with the figures"
"""Phrase in simulated messages that simulated claims quote. Each simulated message of more than 25 tokens
contains it."""
_CLAIM_SENTENCE = f"In case {{number}} {CLAIM_QUOTE}."
_WORDS = re.compile(r"(?<!\d)(\d+) words\b")
_VOCABULARY = """
anchor answer autumn balance barrel basket bottle branch bridge bucket budget button cabin camera
candle canvas carpet castle cattle cement chapel circle coffee colour copper corner cotton county
cradle credit custom dealer debate desert detail dinner doctor donkey effort engine evening fabric
factor farmer fellow figure finger forest friend garden gather ginger glass guitar habit hammer
harbour harvest helmet insect island jacket journal jungle kettle kitchen ladder lawyer leader
leather lemon letter linen lumber machine market master matter meadow member message metal minute
mirror moment motion mountain museum needle notice number object office orange orchard oxygen palace
paper parcel parent parish pencil pepper petrol picture pillow planet pocket potato powder prison
profit quarter rabbit record region result ribbon river rocket saddle sailor salary sample season
second secret shadow shelter signal silver sister socket spider spring square stable station statue
stream street student summer supper surface symbol system tailor target teacher temple tenant
theatre thread ticket timber tongue travel tunnel turkey valley vessel village violin wagon weather
weekend whistle window winter wonder yellow
""".split()  # noqa: SIM905  # 160 words


Check = Callable[[], object]
"""Function called before each simulated model call. It can raise an error to end the dry run."""


def no_check() -> None:
    """Do nothing as the default check, so that the dry run continues."""


class EndlessDebate(MootError):
    """Error raised if a simulated debate does not end.

    The limit is `MAX_BATCHES` batches of model calls.
    """


@dataclass
class StubReplies:
    """Stub model that records all calls and returns texts of the requested length.

    The stub is the `complete` function of an `Environment`. A text reply has the number of words that the
    prompt asks for. A structured reply is the smallest object that the schema allows, except for the fields
    that decide how the debate continues.
    """

    scenario: Scenario
    config: DebateConfig
    check: Check = no_check
    planned: list[PlannedCall] = field(default_factory=list)
    _batch: int = 0
    _in_flight: int = 0
    _round: int = 0
    _texts: int = 0
    """Number of texts that this stub model has generated. It seeds the next text, so that all texts
    differ."""
    _heard: dict[str, int] = field(default_factory=dict)
    """Messages from which claims were extracted. The dictionary maps each message id to a number, which
    starts at 0."""
    _counter: TokenCounter | None = None

    async def __call__(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Return a stub reply to a model call, and record the call."""
        self.check()
        if not self._in_flight:
            self._batch += 1
            if self._batch > MAX_BATCHES:
                raise EndlessDebate(f"the debate did not end within {MAX_BATCHES} batches of model calls")
        self._in_flight += 1
        try:
            self._round = call.hints.get("round", self._round) if call.purpose == "turn" else self._round
            reply, tokens = self._reply(call)
            self.planned.append(PlannedCall(call, self._batch, self._round, tokens))
            await asyncio.sleep(0)  # lets the other calls of the batch start
        finally:
            self._in_flight -= 1
        return reply

    def _reply(self, call: ModelCall) -> tuple[Reply, int]:
        usage: EntryUsage = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 0}
        if call.schema is None:
            # A debater's prompt states the length in its last message, a summarizer's in its first message.
            place = -1 if call.purpose == "turn" else 0
            prompt = call.messages[place]["content"]
            text = self.text(prompt, call.max_tokens)
            if '"Answer: "' in prompt:
                text += f"\nAnswer: {self._answer()}"
            tokens = self._count(text)
            usage["completion_tokens"] = tokens
            return Reply(text=text, model=call.model, usage=usage), tokens
        tokens = min(REPLY_TOKENS.get(call.purpose, DEFAULT_REPLY_TOKENS), call.max_tokens)
        usage["completion_tokens"] = tokens
        return Reply(data=self._data(call), model=call.model, usage=usage), tokens

    def _answer(self) -> str:
        """Return a simulated debater's answer to the question under debate."""
        options = self.config.options
        if options:
            return options[self._texts % len(options) if self.scenario == "disputing" else 0]
        return f"answer {self._texts}" if self.scenario == "disputing" else "the same answer"

    def _count(self, text: str) -> int:
        self._counter = self._counter or Environment().token_counter_for(self.config)
        return self._counter(text)

    def text(self, prompt: str, limit: int | None) -> str:
        """Return random text of about the length that the prompt requests, with at most `limit` tokens."""
        self._texts += 1
        word_counts = _WORDS.findall(prompt)
        tokens = (int(word_counts[-1]) if word_counts else DEFAULT_WORDS) * TOKENS_PER_WORD[self.scenario]
        target_tokens = min(int(tokens), limit or 1_000_000)
        dice = Random(self._texts)  # noqa: S311  # no secret
        vocabulary = dice.sample(_VOCABULARY, 40)
        sentences = [_CLAIM_SENTENCE.format(number=self._texts)] if target_tokens > 25 else []
        remaining = target_tokens - sum(map(_sentence_tokens, sentences))
        while remaining > 0:
            sentence = f"{' '.join(dice.choices(vocabulary, k=min(12, max(1, remaining - 1)))).capitalize()}."
            sentences.append(sentence)
            remaining -= _sentence_tokens(sentence)
        return " ".join(sentences)

    def _data(self, call: ModelCall) -> JsonObject:
        """Return a minimal structured reply to a simulated call.

        The reply fits the schema of the call and the scenario.
        """
        schema = cast(Any, call.schema)
        form = schema.model_json_schema()
        smallest = cast(JsonObject, smallest_instance(form))
        decisions = {key: value for key, value in self._decisions(call).items() if key in form["properties"]}
        try:
            return cast(JsonObject, schema.model_validate(smallest | decisions).model_dump(mode="json"))
        except ValidationError:
            return smallest  # a plug-in's schema uses one of these names with another type

    def _decisions(self, call: ModelCall) -> JsonObject:
        """Return values for the fields that steer the debate, such as `agreement`."""
        fields, disputes = cast(Any, call.schema).model_fields, self.scenario == "disputing"
        if {"claims", "events"} <= fields.keys():
            return self._dispute(call) if disputes else {}
        speakers = self.config.turn_order()
        aspects = fields["aspects"].json_schema_extra if "aspects" in fields else None
        max_aspects = cast(JsonObject, aspects or {}).get("maxItems", 1)
        return {
            "agreement": 0.0 if disputes else 1.0,
            "resolved": not disputes,
            "aspects": [
                f"aspect number {number}" for number in range(1, 1 + (max_aspects if disputes else 1))
            ],
            "questions": [f"What about {self.text('8 words', None)}?"] if disputes else [],
            "answer": self._answer(),
            "next_speaker": speakers[len(self.planned) % len(speakers)],
        }

    def _dispute(self, call: ModelCall) -> JsonObject:
        """Return simulated claims that the debaters all dispute.

        One message asserts each claim, and another message denies it. After the first round, the debaters
        also change their position on the topic itself, which a further call may check.
        """
        claims, events = [], []
        for message in call.hints.get("message_ids", ()):
            is_first = self._heard.setdefault(message, len(self._heard)) < len(self.config.turn_order())
            kind = "asserts" if is_first else "denies"
            events.append(_event(message, MAIN_QUESTION, kind))
        pairs = list(islice(combinations(call.hints.get("message_ids", ()), 2), MAX_CLAIMS))
        min_claims = 1 + self.config.blackboard.reflection_threshold // DISAGREEMENT
        claim_count = min(MAX_CLAIMS, max(len(pairs), min_claims))
        for number, (asserting_id, denying_id) in enumerate(islice(cycle(pairs), claim_count), 1):
            self._texts += 1
            claims.append({"ref": f"n{number}", "text": f"Measure {self._texts} saves the city money"})
            for message, kind in ((asserting_id, "asserts"), (denying_id, "denies")):
                events.append(_event(message, f"n{number}", kind))
        return {"claims": claims, "events": events}


def _event(message: str, claim: str, kind: str) -> JsonObject:
    """Return one event for a simulated claim."""
    return {
        "message_id": message,
        "claim": claim,
        "kind": kind,
        "quote": CLAIM_QUOTE,
        "condition": "",
        "ground": True,
        "confidence": 1.0,
    }


@lru_cache(maxsize=4096)
def _sentence_tokens(sentence: str) -> int:
    """Estimate the number of tokens in one sentence of a simulated model reply.

    The estimate is 1.1 tokens per word plus one.
    """
    return int(1.1 * len(sentence.split())) + 1


Documents = Sequence[Mapping[str, str]]
"""Documents that a debate shows to its participants, each with the keys `name` and `content`."""
DEFAULT_TOPIC = "Any topic of many different words, to one of which whatever people claim may be related"
"""Topic of a dry run if the configuration has no topic."""
FIRST_LENGTH = 60
"""Number of turns in the first simulation of a long debate. The number doubles with each further simulation
until the debate can be extrapolated."""
ENOUGH_CALLS = 130
"""Number of simulated model calls after which a long debate is extrapolated in any case. Its rounds need not
repeat by then."""
MAX_GROWTH = 0.05
"""Maximum relative growth at which two parts of a simulation count as equal. The limit applies to the number
of calls and to the prompt tokens per call."""
MIN_ROUNDS = 6
"""Minimum number of rounds that a shortened simulation keeps."""
MIN_MISSING_ROUNDS = 3
"""Minimum number of rounds that a shortened simulation leaves out. If fewer can be left out, the whole debate
is simulated."""
MIN_PERIODS = 3
"""Number of rounds with the same kind of call from which its frequency can be estimated."""
GROWTH = 0.25
"""Minimum growth at which a growing number of calls is extrapolated. The growth is the relative increase in
calls of one kind between two parts of a simulation."""
MIN_CALLS_TO_GROW = 12
"""Minimum number of calls of one kind for their growth to be extrapolated. The calls are those in the earlier
part of a simulation. With fewer calls, growth is ignored because it can be chance."""
MAX_CONCURRENCY = 256
"""Largest allowed `limits.concurrency`."""


def dry_run(
    config: DebateConfig, scenario: Scenario, check: Check = no_check, documents: Documents = ()
) -> DryRun:
    """Simulate a debate in one scenario.

    For a long debate, a shortened version is simulated, and its length is doubled until the rounds repeat or
    it makes `ENOUGH_CALLS` calls. The missing rounds are extrapolated. `check` is called before each
    simulated call, and can raise an error to end the dry run. `documents` are shown to the debaters besides
    the context file of the configuration.
    """
    config = _without_side_effects(config)
    length = FIRST_LENGTH
    while shorter := _shortened(config, length):
        shortened_config, missing_rounds = shorter
        run = _run(shortened_config, scenario, check, documents)
        if run.calls >= ENOUGH_CALLS or _is_settled(run.planned):
            return _extended(run, missing_rounds, _turns_a_round(config))
        length *= 2
    return _run(config, scenario, check, documents)


def _without_side_effects(config: DebateConfig) -> DebateConfig:
    """Return a configuration for a simulation without side effects.

    Embeddings and the limits on tokens, cost and time are removed. The tools of MCP servers stay if their
    definitions are known.
    """
    retrieval = config.memory.retrieval.model_copy(update={"embeddings": WORDS})
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


def _shortened(config: DebateConfig, turns: int) -> tuple[DebateConfig, int] | None:
    """Return a copy of the configuration with fewer rounds.

    Also return the number of removed rounds. Return `None` if the debate cannot be shortened. The shortened
    debate has about `turns` turns. To shorten it, `turns` or `rounds` is lowered if the protocol's length
    depends on that setting. At least `MIN_ROUNDS` rounds remain.
    """
    length_settings = protocol_named(config.protocol).length_settings or ()
    data: JsonObject = {**config.to_json(), "topic": config.topic}
    turns_per_round = _turns_a_round(config)
    if config.turns and {"turns", "rounds"} & {*length_settings}:
        missing_rounds = (config.turns - max(turns, MIN_ROUNDS * turns_per_round)) // turns_per_round
        changes = {"turns": config.turns - missing_rounds * turns_per_round}
    elif config.rounds and "rounds" in length_settings:
        missing_rounds = config.rounds - max(MIN_ROUNDS, turns // turns_per_round)
        changes = {"rounds": config.rounds - missing_rounds}
    else:
        return None
    if missing_rounds < MIN_MISSING_ROUNDS:
        return None
    return make_config(with_settings(data, changes)), missing_rounds


def _turns_a_round(config: DebateConfig) -> int:
    """Return the number of turns in one round of the configured debate."""
    protocol = protocol_named(config.protocol)
    three_rounds, two_rounds = (
        protocol.turns(config.model_copy(update={"turns": None, "rounds": rounds})) for rounds in (3, 2)
    )
    return (
        three_rounds.planned - two_rounds.planned if three_rounds and two_rounds else len(config.turn_order())
    )


def _parts(calls: Sequence[PlannedCall]) -> tuple[range, range]:
    """Return two ranges of rounds of equal length to compare.

    The ranges are adjacent and lie in the last two thirds of the simulated debate.
    """
    last = max((each.round for each in calls), default=0)
    start, end = last // 3, last - 1
    half = (end - start) // 2
    return range(end - 2 * half, end - half), range(end - half, end)


def _middle_rounds(calls: Sequence[PlannedCall], early: range, late: range) -> list[list[int]]:
    """Return the rounds in which each kind of call occurs.

    The result has one list of rounds for each kind. Only rounds from the start of `early` to the end of
    `late` count.
    """
    rounds_by_kind: dict[tuple[Purpose, str], set[int]] = {}
    for each in calls:
        if early.start <= each.round < late.stop:
            rounds_by_kind.setdefault(each.kind, set()).add(each.round)
    return [sorted(rounds) for rounds in rounds_by_kind.values()]


def _is_settled(calls: Sequence[PlannedCall]) -> bool:
    """Return True if later rounds of a simulation resemble earlier ones.

    They resemble each other if they make about as many calls, with prompts about as long.
    """
    parts = _parts(calls)
    if any(0 < len(rounds) < MIN_PERIODS for rounds in _middle_rounds(calls, *parts)):
        return False
    early, late = ([each for each in calls if each.round in part] for part in parts)
    if not early or not late:
        return False
    early_tokens, late_tokens = (fmean(each.call.prompt_tokens for each in part) for part in (early, late))
    return (
        abs(len(late) - len(early)) <= max(2, MAX_GROWTH * len(early))
        and late_tokens - early_tokens <= MAX_GROWTH * early_tokens
    )


def _extended(run: DryRun, missing_rounds: int, turns_per_round: int) -> DryRun:
    """Extrapolate a shortened simulation to the full length of the debate.

    The calls of the middle rounds also stand for those of the missing rounds. The middle spans whole periods
    of the rarest kind of call. A kind of call that grows from round to round keeps growing.
    """
    early, late = _parts(run.planned)
    kinds: dict[tuple[Purpose, str], Counter[int]] = {}
    for each in run.planned:
        kinds.setdefault(each.kind, Counter())[each.round] += 1
    round_lists = _middle_rounds(run.planned, early, late)
    rarest_rounds = min(
        (rounds for rounds in round_lists if len(rounds) > 1), key=len, default=[early.start, late.stop]
    )
    times: dict[tuple[Purpose, str], tuple[range, float]] = {}
    for kind, rounds in kinds.items():
        early_calls, late_calls = (sum(rounds[n] for n in part) for part in (early, late))
        growth = (late_calls - early_calls) / len(late) ** 2  # growth of the calls from round to round
        if early_calls >= MIN_CALLS_TO_GROW and late_calls > (1 + GROWTH) * early_calls:
            added_calls = missing_rounds * (
                late_calls / len(late) + growth * (missing_rounds + len(late)) / 2
            )
            times[kind] = late, 1 + added_calls / late_calls
        else:
            times[kind] = (
                range(rarest_rounds[0], rarest_rounds[-1]),
                1 + missing_rounds / (rarest_rounds[-1] - rarest_rounds[0]),
            )

    def extended(each: PlannedCall) -> PlannedCall:
        middle, stands_for = times[each.kind]
        return replace(each, times=stands_for) if each.round in middle else each

    return replace(
        run,
        planned=[extended(each) for each in run.planned],
        turns=run.turns + missing_rounds * turns_per_round,
    )


def _run(
    config: DebateConfig, scenario: Scenario, check: Check = no_check, documents: Documents = ()
) -> DryRun:
    replies = StubReplies(scenario, config, check)
    # Without a concurrency limit, all calls of a batch run at the same time.
    unbounded_config = config.model_copy(
        update={"limits": config.limits.model_copy(update={"concurrency": MAX_CONCURRENCY})}
    )
    with tracing_context(enabled=False), muted_spans():
        turns = call_from_sync(_run_debate, unbounded_config, replies, documents)
    return DryRun(replies.planned, turns, config.limits.concurrency)


async def _run_debate(config: DebateConfig, replies: StubReplies, documents: Documents) -> int:
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
        self.batches = self._batches()

    def _batches(self) -> list[Batch]:
        least_batches, most_batches = self.shortest_run.batches(), self.longest_run.batches()
        rows = []
        for key in _merged(list(least_batches), list(most_batches)):
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


def _merged(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Merge two lists without duplicates, and keep the order of their items.

    The lists hold the keys of two simulations' call groups.
    """
    merged = list(first)
    place = 0
    for key in second:
        if key in merged:
            place = merged.index(key) + 1
        else:
            merged.insert(place, key)
            place += 1
    return merged


def estimate(config: DebateConfig, check: Check = no_check, *, documents: Documents = ()) -> Estimate | None:
    """Estimate how many model calls and tokens a debate will use, without calling a model.

    Return `None` if the debate does not end within `MAX_BATCHES` batches of calls.

    The estimate ignores limits on tokens, cost and time: it assumes that the debate reaches none of them.

    Args:
        config: The configuration of the debate.
        check: Function that runs before each simulated call. It can raise an error to end the estimate.
        documents: Documents that the debaters see, in addition to the context file of the configuration.

    Raises:
        ConfigError: The configuration cannot run.
    """
    try:
        runs = [dry_run(config, each, check, documents) for each in ("agreeing", "disputing")]
        return Estimate(runs, shows_window=protocol_named(config.protocol).shows_summary)
    except EndlessDebate:
        return None


def omission_warnings(planned: Estimate, config: DebateConfig) -> list[str]:
    """Return a warning for each debate phase whose prompts may leave out messages.

    The warning says which setting to raise.
    """
    total = config.memory.budget.total
    warnings = []
    for phase, tokens in planned.left_out().items():
        phase_budget = config.memory.budget.phases.get(phase)
        setting = f"memory.budget.phases.{phase}" if phase_budget else "memory.budget.total"
        limit = phase_budget or total
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
    """Return the estimated cost of a debate.

    If the prices of models are unknown, return the names of these models instead.
    """
    models = Models(config.models)
    if unpriced := models.names_without_price(config.model_names()):
        return unpriced
    runs = (planned.shortest_run, planned.longest_run)
    expected_costs = [sum(_prices(models, each)[0] * each.times for each in run.planned) for run in runs]
    return {
        "usd_at_least": sum(min(_prices(models, each)) * each.times for each in planned.shortest_run.planned),
        "usd": sum(expected_costs) / len(runs),
        "usd_at_most": sum(
            max(_prices(models, each, at_limits=True)) * each.times for each in planned.longest_run.planned
        ),
    }


def _prices(models: Models, planned: PlannedCall, *, at_limits: bool = False) -> list[float]:
    """Return the cost of a call in US$ for its model and each fallback model."""
    usage: EntryUsage = {
        "prompt_tokens": planned.prompt_limit if at_limits else planned.call.prompt_tokens,
        "completion_tokens": planned.reply_limit if at_limits else planned.reply_tokens,
    }
    return [models.cost_usd(name, usage) or 0.0 for name in (planned.call.model, *planned.call.fallbacks)]


def _is_document(entry: Entry) -> bool:
    """Return True if a transcript entry is a document that a person provided.

    Moot's own note about the background is not such a document.
    """
    return traits_of(entry).user_input == "document" and entry["speaker"] == "user"


def with_plan(document: Mapping[str, Any]) -> JsonObject:
    """Return a debate document with an estimate of its model calls.

    The estimate is under the key `planned`. It is missing if the debate cannot be simulated here.
    """
    config, topic = document.get("config"), str(document.get("topic") or "").strip()
    if not config or document.get("planned"):
        return {**document}
    # The transcript holds the documents, those of `context` too, as they were when the debate began.
    partitions = [
        entry["content"].partition("\n\n") for entry in document["transcript"] if _is_document(entry)
    ]
    documents = [{"name": name, "content": content} for name, _, content in partitions]
    try:
        settings = DebateConfig.model_validate({**config, "topic": topic or None})
        folders = tuple(path for path in settings.context_paths() if Path(path).is_dir())
        planned = estimate(settings.model_copy(update={"context": folders}), documents=documents)
    except MootError:  # a protocol, folder or tool of the debate is missing here
        planned = None
    return {**document, **({"planned": planned.to_json()} if planned else {})}
