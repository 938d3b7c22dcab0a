"""`moot plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from moot.graph.cli import options as shared
from moot.state.amounts import amount

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.graph.preflight import ExpectedCost
    from moot.nodes.protocols.forecast import Batch, Forecast


def plan(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC|@FILE|-", help="What would be argued; without it, a short one is assumed."
        ),
    ] = None,
    config: shared.ConfigOption = None,
    debater: shared.DebaterOption = None,
    turns: shared.TurnsOption = None,
    rounds: shared.RoundsOption = None,
    protocol: shared.ProtocolOption = None,
    model: shared.ModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    latency: Annotated[
        float, typer.Option("--latency", min=0, metavar="S", help="Seconds that one call takes.")
    ] = 5.0,
    as_json: shared.JsonOption = False,
) -> None:
    """Say what a debate would take, before anything is paid: calls, tokens, time and US$.

    Calls are exact where the configuration decides them. Where the debate itself decides, as with crux rooms
    and reflections by a model, the plan goes without, and says how many calls there are at least and at most.
    Tools, retries and answers that are asked for again come on top. Tokens are what the prompts ask for, and
    the most that the budgets allow. Prices are those configured, else the list prices of well-known models.
    """
    from rich.text import Text

    from moot.graph.cli import run_request
    from moot.graph.cli.screen.output import print_json, print_result
    from moot.graph.cli.usual_config import configured
    from moot.graph.preflight import expected_cost
    from moot.nodes.protocols.protocol_table import protocol_named
    from moot.nodes.protocols.stand_in import forecast
    from moot.state.errors import ConfigError

    flags = {
        "topic": run_request.read_topic(topic),
        "debaters": run_request.parse_debaters(debater),
        "turns": turns,
        "rounds": rounds,
        "protocol": protocol,
        "model": model,
        "judge.model": judge_model,
    }
    settings = configured(config, flags)
    run_request.warn_of_idle(flags, settings)
    protocol_named(settings.protocol).check(settings)
    planned = forecast(settings)
    if planned is None:
        raise ConfigError(f"protocol {settings.protocol!r}: what it takes cannot be said beforehand")
    cost = expected_cost(planned, settings)
    if as_json:
        times = {
            "latency_s": latency,
            "seconds": round(planned.seconds(latency), 3),
            "seconds_at_most": round(planned.seconds_at_most(latency), 3),
        }
        print_json(
            {
                "protocol": settings.protocol,
                **planned.to_json(),
                **times,
                **({} if isinstance(cost, list) else cost),
            }
        )
    else:
        print_result(*_screen(planned, latency), Text(_cost_line(cost)))


TABLE_CHARS = 72
"""Columns that the whole table takes; a narrower terminal gets the calls alone."""
_TOKENS = {"prompt": "prompt tokens", "completion": "reply tokens"}


def _screen(planned: Forecast, latency: float) -> list[RenderableType]:
    """Return the forecast as a table, one row a kind of batch, and what it comes to."""
    from rich.text import Text

    from moot.graph.cli.screen.output import columns
    from moot.graph.cli.screen.result_tables import borderless_table

    table = borderless_table()
    table.add_column("phase")
    table.add_column("purpose")
    headings = ("calls", "at once", "times", "prompt a call", "reply a call")
    shown = len(headings) if columns() >= TABLE_CHARS else 1
    for heading in headings[:shown]:
        table.add_column(heading, justify="right")
    for batch in planned.batches:
        sizes = (f"{round(figure):,}" for figure in (batch.prompt.expected, batch.reply.expected))
        figures = (f"{round(batch.all_calls):,}", f"{batch.calls:,}", _times(batch), *sizes)
        table.add_row(batch.phase, batch.purpose, *figures[:shown])
    sums = planned.to_json()
    tokens = {key: (sums[f"{key}_tokens"], sums[f"{key}_tokens_at_most"]) for key in _TOKENS}
    summary = (
        f"calls           {planned.calls:,}{_range(planned)}",
        *(f"{_TOKENS[key]:<16}{some:,} (at most {most:,})" for key, (some, most) in tokens.items()),
        f"critical path   {amount(planned.critical_path, 'call')} in a row at concurrency "
        f"{planned.concurrency}: {planned.seconds(latency):,.1f} s at {latency:g} s a call"
        + _longest(planned, latency),
    )
    return [table, Text(""), *map(Text, summary)]


def _cost_line(cost: ExpectedCost | list[str]) -> str:
    """Return what it comes to in US$, and by whose prices."""
    if isinstance(cost, list):
        return f"US$             unknown: nobody lists {', '.join(cost)}; give prices under `models`"
    if not cost["usd_at_most"]:
        return "US$             0"
    from moot.nodes.models.usage import lists_words

    at_least, most = cost["usd_at_least"], cost["usd_at_most"]
    figures = f"{cost['usd']:.4f} (at least {at_least:.4f}, at most {most:.4f})"
    return f"US$             {figures}\nprices          where none are configured: {lists_words()}"


def _times(batch: Batch) -> str:
    """Return how often a batch comes: as planned, or between which bounds."""
    least, most = batch.times_at_least, batch.times_at_most
    return f"{batch.times:,}" if least == most else f"{least:,}–{most:,}"


def _range(planned: Forecast) -> str:
    """Return the bounds of the calls where the debate decides how many there are."""
    least, most = planned.calls_at_least, planned.calls_at_most
    return "" if least == most else f" (at least {least:,}, at most {most:,})"


def _longest(planned: Forecast, latency: float) -> str:
    """Return the longest critical path where it is not the planned one."""
    most = planned.critical_path_at_most
    if most == planned.critical_path:
        return ""
    return f" (at most {most:,}: {planned.seconds_at_most(latency):,.1f} s)"
