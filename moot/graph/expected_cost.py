"""What a debate would cost: its forecast, priced by the models that may be asked."""

from typing_extensions import TypedDict

from moot.nodes.calls import Purpose
from moot.nodes.models.registry import Models
from moot.nodes.prompts.request import Voice, voice_of
from moot.nodes.protocols.forecast import Forecast
from moot.state.config import DebateConfig
from moot.state.entries import EntryUsage


class ExpectedCost(TypedDict):
    """Cost of a debate before it runs, US$."""

    usd_at_least: float
    """Of the calls that are certain, each by the cheapest model that it may go to."""
    usd: float
    """Of the planned calls; where several models share them, by their mean."""
    usd_at_most: float
    """Of all calls that there can be, each at its budget and by the dearest model that it may go to."""


def voices_asked(config: DebateConfig, purpose: Purpose) -> list[Voice]:
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


def expected_cost(planned: Forecast, config: DebateConfig) -> ExpectedCost | list[str]:
    """Return what a debate would cost, or the models whose price nobody knows."""
    models = Models(config.models)
    if unpriced := models.unpriced(config.model_names()):
        return unpriced
    least = expected = most = 0.0
    for batch in planned.batches:
        voices = voices_asked(config, batch.purpose)
        first = [voice.model for voice in voices]
        all_names = [*first, *(name for voice in voices for name in voice.fallbacks)]
        planned_tokens = _tokens(batch.prompt.expected, batch.reply.expected)
        each = [models.cost_usd(name, planned_tokens) or 0.0 for name in all_names]
        dearest = [models.cost_usd(name, _tokens(batch.prompt.most, batch.reply.most)) for name in all_names]
        least += min(each, default=0) * batch.calls * batch.times_at_least
        expected += sum(each[: len(first)]) / max(1, len(first)) * batch.all_calls
        most += max((cost or 0.0 for cost in dearest), default=0) * batch.calls * batch.times_at_most
    return {"usd_at_least": least, "usd": expected, "usd_at_most": most}


def _tokens(prompt: float, reply: float) -> EntryUsage:
    return {"prompt_tokens": round(prompt), "completion_tokens": round(reply)}
