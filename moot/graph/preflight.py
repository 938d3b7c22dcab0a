"""Before any call is paid: what could not run is refused; what can, is shortened and priced."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from typing_extensions import TypedDict

from moot.nodes.calls import Purpose
from moot.nodes.driving.environment import Environment
from moot.nodes.judging.rubrics import rubric_for
from moot.nodes.memory.indexes import embeddings_of
from moot.nodes.memory.perspective import perspective_settings
from moot.nodes.memory.summarizers.summarizer_table import summarizer_named
from moot.nodes.memory.window import WindowLimits
from moot.nodes.models.complete import complete
from moot.nodes.models.registry import Models
from moot.nodes.prompts.material import problem_room
from moot.nodes.prompts.request import Voice, voice_of
from moot.nodes.protocols.forecast import Forecast
from moot.nodes.protocols.protocol import SPEECH_WORDS, TOKENS_PER_WORD
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.protocols.stand_in import WITHOUT_CALLS, forecast
from moot.nodes.text.plain import amount
from moot.nodes.text.tokens import TokenCounter
from moot.nodes.tools.context_documents import check_tools
from moot.nodes.views.head import head_tokens
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim
from moot.state.config.config_files import make_config, with_settings
from moot.state.config.memory_config import NO_SUMMARY
from moot.state.config.model_settings import OFFLINE
from moot.state.entries import EntryUsage
from moot.state.errors import ConfigError

NO_JUDGE = (
    "nobody is named to judge what people or models said, and the offline model judges nothing: name a model "
    "with --model (--evaluator of `moot eval`, judge.model in a file), or `offline` for placeholders"
)


def check_config(claim: Claim, environment: Environment, *, imports: bool = True) -> None:
    """Check everything that a configuration names: protocol, models, rubrics, summarisers, tools, context.

    First of all it has to be admitted. With `imports`, what it names is imported, to see that it can be.

    Raises:
        ConfigError: what is wrong and what to do.
    """
    config = claim.admit()
    protocol = protocol_named(config.protocol)
    protocol.check(config)
    check_tools(config, environment.count_for(config))
    if config.memory.summarizer != NO_SUMMARY:
        summarizer_named(config.memory.summarizer)
    if imports:
        embeddings_of(claim, environment.embeddings)
    for debater in config.debaters:
        summarizer_named(perspective_settings(config, debater).method)
    for seat in config.judge.seats():
        rubric_for(seat, config, protocol.brief.rubric)
    models = environment.models_of(claim)
    if config.limits.cost_usd is not None and (unpriced := models.names_without_price(config.model_names())):
        raise ConfigError(  # a limit that could not be kept
            "limits.cost_usd needs prices: give input_usd_per_million and output_usd_per_million "
            f"(0 where free) under `models` for {', '.join(map(repr, unpriced))}"
        )
    if environment.complete is complete:  # else nobody is reached
        models.check(config.model_names())


def check_judges(config: DebateConfig, models: Iterable[str], environment: Environment) -> None:
    """Refuse the offline model, which nobody named, as judge of what people, `""`, or models said.

    Raises:
        ConfigError: a judge would be the offline model.
    """
    judge = config.judge
    unnamed = config.model == OFFLINE and not all(seat.model or judge.model for seat in judge.seats())
    if unnamed and environment.complete is complete and set(models) - {OFFLINE}:
        raise ConfigError(NO_JUDGE)


def warnings_about(config: DebateConfig) -> list[str]:
    """Return what in a usable configuration is likely not meant."""
    unused = sorted(config.models.keys() - set(config.model_names()))
    used = ", ".join(map(repr, config.model_names()))
    said = [f"models.{name}: no model of this debate has this name; it calls {used}" for name in unused]

    planned = forecast(config) if config.interjections else None
    turns = planned.turns if planned else None
    late = [each.after for each in config.interjections if turns is not None and each.after >= turns]
    if late:
        said.append(
            f"interjections: after {amount(late[0], 'turn')} nobody is left to hear it, of {turns} in all"
        )

    # A topic and a context file that no prompt can show whole.
    budget, count = config.memory.budget, Environment().count_for(config)
    file = config.context if config.context and Path(config.context).is_file() else None
    text = Path(file).read_text("utf-8", "replace") if file else ""
    given = (
        ("topic", count(config.topic or ""), problem_room(budget)),
        ("context", count(text), budget.messages),
    )
    said += [
        f"{name}: {tokens:,} tokens, for which prompts have room for {room:,} at least: what does not fit is "
        "cut, and receipts say so; raise memory.budget.total, or give a folder and tools"
        for name, tokens, room in given
        if tokens > room
    ]
    return said + _idle_memory(config, count)


def _idle_memory(config: DebateConfig, count: TokenCounter) -> list[str]:
    """Return what is said of a window asked to hold more than its tokens, and of a summary nobody reads."""
    memory = config.memory
    said = []
    if memory.summarizer not in WITHOUT_CALLS and not protocol_named(config.protocol).shows_summary:
        said = [
            f"memory.summarizer: no view of {config.protocol!r} shows a summary; rule-based makes the judge's"
        ]
    limits = WindowLimits.of(memory, head_tokens(config.topic or "", config, count))
    speech = int(SPEECH_WORDS * TOKENS_PER_WORD)
    room = limits.high_tokens // speech
    asked = {
        "keep_recent": memory.keep_recent,
        "summarize_every": memory.keep_recent + memory.summarize_every,
    }
    return said + [
        f"memory.{name}: {most} messages of {SPEECH_WORDS} words do not fit the window's "
        f"{limits.high_tokens:,} tokens, which hold about {room}: it cannot take effect"
        for name, most in asked.items()
        if name in memory.model_fields_set and most > room
    ]


def shorten_debate(config: DebateConfig, most: int) -> DebateConfig:
    """Return a configuration whose debate takes at most so many speeches: itself where it does.

    What the protocol says it is bounded by is lowered, one setting after the other, as little as will do.

    Raises:
        ConfigError: even the shortest debate by these rules takes more.
    """
    if _speeches(config) <= most:
        return config
    for setting in protocol_named(config.protocol).bounded_by or ():
        data = config.to_json()
        section, _, name = setting.rpartition(".")
        value = (data[section] if section else data)[name]
        if not isinstance(value, int | None):
            continue
        for number in range(min(value or most, most), 0, -1):
            shorter = make_config(with_settings(data, {setting: number}))
            if _speeches(shorter) <= most:
                return shorter
        config = shorter
    raise ConfigError(
        f"a debate by protocol {config.protocol!r} takes up to {_speeches(config)} speeches at its shortest, "
        f"more than {most}: give more turns, or another protocol"
    )


def _speeches(config: DebateConfig) -> int:
    planned = forecast(config)
    if planned is None:
        raise ConfigError(f"nobody knows how long a debate by protocol {config.protocol!r} is: give no turns")
    if planned.turns is not None:
        return planned.turns
    return sum(each.calls * each.times_at_most for each in planned.batches if each.purpose == "turn")


class ExpectedCost(TypedDict):
    """Cost of a debate before it runs, US$."""

    usd_at_least: float
    """Of the calls that are certain, each by the cheapest model that it may go to."""
    usd: float
    """Of the planned calls; where several models share them, by their mean."""
    usd_at_most: float
    """Of all calls that there can be, each at its budget and by the dearest model that it may go to."""


def expected_cost(planned: Forecast, config: DebateConfig) -> ExpectedCost | list[str]:
    """Return what a debate would cost, or the models whose price nobody knows."""
    models = Models(config.models)
    if unpriced := models.names_without_price(config.model_names()):
        return unpriced
    cost: ExpectedCost = {"usd_at_least": 0.0, "usd": 0.0, "usd_at_most": 0.0}
    for batch in planned.batches:
        voices = _voices(config, batch.purpose)
        first = [voice.model for voice in voices]
        names = [*first, *(name for voice in voices for name in voice.fallbacks)]
        each = _prices(models, names, batch.prompt.expected, batch.reply.expected)
        dearest = max(_prices(models, names, batch.prompt.most, batch.reply.most), default=0)
        cost["usd_at_least"] += min(each, default=0) * batch.calls * batch.times_at_least
        cost["usd"] += sum(each[: len(first)]) / max(1, len(first)) * batch.all_calls
        cost["usd_at_most"] += dearest * batch.calls * batch.times_at_most
    return cost


def _voices(config: DebateConfig, purpose: Purpose) -> list[Voice]:
    """Return whose models calls of a purpose go to."""
    match purpose:
        case "turn" | "clarify":
            return [voice_of(config, each) for each in config.debaters if not each.is_human]
        case "judge":
            return [voice_of(config, seat) for seat in config.judge.seats()]
        case "summary" | "perspective":
            return [voice_of(config, config.memory)]
        case _:
            return [voice_of(config, config.blackboard)]


def _prices(models: Models, names: Iterable[str], prompt: float, reply: float) -> list[float]:
    """Return what one call of this size costs by each model, US$."""
    usage: EntryUsage = {"prompt_tokens": round(prompt), "completion_tokens": round(reply)}
    return [models.cost_usd(name, usage) or 0.0 for name in names]
