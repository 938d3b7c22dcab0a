"""`moot plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from moot.graph.cli import options as shared
from moot.graph.cli.screen.output import columns, print_answer
from moot.graph.cli.screen.result_tables import borderless_table
from moot.nodes.text.plain import amount
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.graph.preflight import ExpectedCost
    from moot.nodes.protocols.forecast import Forecast

TABLE_CHARS = 72
"""Columns that the whole table takes; a narrower terminal gets the calls alone."""


@shared.with_groups
def plan(
    topic: Annotated[
        str | None,
        Argument(metavar="TOPIC|@FILE|-", help="What would be argued; without it, a short one is assumed."),
    ] = None,
    *,
    setup: shared.SetupOptions,
    latency: Annotated[
        float, Option("--latency", min=0, metavar="S", help="Seconds that one call takes.")
    ] = 5.0,
    as_json: shared.JsonOption = False,
) -> None:
    """Say what a debate would take, before anything is paid: calls, tokens, time and US$.

    Calls are exact where the configuration decides them. Where the debate itself decides, as with crux rooms
    and reflections by a model, the plan goes without, and says how many calls there are at least and at most.
    Tools, retries and answers that are asked for again come on top. Tokens are what the prompts ask for, and
    the most that the budgets allow. Prices are those configured, else the list prices of well-known models.
    """
    from moot.graph.cli.named_files import read_topic
    from moot.graph.cli.screen.output import complain
    from moot.graph.cli.usual_config import warn_of_idle
    from moot.graph.operator_config import usual_config
    from moot.graph.preflight import expected_cost
    from moot.nodes.protocols.protocol_table import protocol_named
    from moot.nodes.protocols.stand_in import forecast

    flags = {"topic": read_topic(topic), **setup.flags()}
    settings = usual_config(setup.config, flags, complain)
    warn_of_idle(flags, settings)
    protocol_named(settings.protocol).check(settings)
    planned = forecast(settings)
    if planned is None:
        raise ConfigError(f"protocol {settings.protocol!r}: what it takes cannot be said beforehand")
    cost = expected_cost(planned, settings)
    data: JsonObject = {
        "protocol": settings.protocol,
        **planned.to_json(),
        "latency_s": latency,
        "seconds": round(planned.seconds(latency), 3),
        "seconds_at_most": round(planned.critical_path_at_most * latency, 3),
        **({} if isinstance(cost, list) else cost),
    }
    print_answer(data, *plan_parts(planned, latency, cost), as_json=as_json)


def plan_parts(planned: Forecast, latency: float, cost: ExpectedCost | list[str]) -> list[RenderableType]:
    """Return the forecast as a table, one row a kind of batch, and what it comes to, in US$ too."""
    from moot.nodes.models.usage import lists_words

    headings = ("calls", "at once", "times", "prompt a call", "reply a call")
    shown = len(headings) if columns() >= TABLE_CHARS else 1
    table = borderless_table("phase", "purpose", figures=headings[:shown])
    for batch in planned.batches:
        least, most = batch.times_at_least, batch.times_at_most
        figures = (
            f"{round(batch.all_calls):,}",
            f"{batch.calls:,}",
            f"{batch.times:,}" if least == most else f"{least:,}–{most:,}",
            f"{round(batch.prompt.expected):,}",
            f"{round(batch.reply.expected):,}",
        )
        table.add_row(batch.phase, batch.purpose, *figures[:shown])

    # Bounds stand where the debate itself decides how many calls there are.
    least, most = planned.calls_at_least, planned.calls_at_most
    calls = "" if least == most else f" (at least {least:,}, at most {most:,})"
    path, longest = planned.critical_path, planned.critical_path_at_most
    longer = "" if path == longest else f" (at most {longest:,}: {longest * latency:,.1f} s)"
    if isinstance(cost, list):
        dollars = f"unknown: nobody lists {', '.join(cost)}; give prices under `models`"
    elif not cost["usd_at_most"]:
        dollars = "0"
    else:
        at_least, at_most = cost["usd_at_least"], cost["usd_at_most"]
        dollars = f"{cost['usd']:.4f} (at least {at_least:.4f}, at most {at_most:.4f})"
        dollars += f"\nprices          where none are configured: {lists_words()}"
    sums = planned.to_json()
    return [
        table,
        "",
        f"calls           {planned.calls:,}{calls}",
        f"prompt tokens   {sums['prompt_tokens']:,} (at most {sums['prompt_tokens_at_most']:,})",
        f"reply tokens    {sums['completion_tokens']:,} (at most {sums['completion_tokens_at_most']:,})",
        f"critical path   {amount(path, 'call')} in a row at concurrency {planned.concurrency}: "
        f"{planned.seconds(latency):,.1f} s at {latency:g} s a call{longer}",
        f"US$             {dollars}",
    ]
