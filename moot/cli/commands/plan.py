"""`moot plan`: estimate a debate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from moot.cli import options as shared, terminal
from moot.cli.group import command
from moot.cli.inputs import read_context, read_topic, warn_of_ignored_length
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError
from moot.state.settings import variable
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.config import DebateConfig
    from moot.debates.dry_run import Estimate, ExpectedCost

LATENCY_S = 5.0
"""Default of `--latency`, in seconds."""
TABLE_CHARS = 72
"""Minimum terminal width, in columns, for the complete table of estimates. A narrower terminal shows only the
column of calls."""


@command(
    panel="Set up and inspect",
    examples=('"Should we adopt a monorepo?" --protocol council --model gpt-4o-mini',),
)
@shared.with_groups
def plan(
    topic: Annotated[
        str | None,
        Argument(
            metavar="TOPIC|@FILE|-",
            help="Question to debate. If omitted, the estimate assumes a short question.",
        ),
    ] = None,
    *,
    setup: shared.SetupOptions,
    context: shared.ContextOption = None,
    latency: Annotated[
        float, Option("--latency", min=0, metavar="S", help="Assumed duration of one model call in seconds.")
    ] = LATENCY_S,
    as_json: shared.JsonOption = False,
) -> None:
    """Estimate the calls, tokens, time and cost of a debate.

    Moot simulates the debate twice in memory, without calling a model. In the first simulation, the debaters
    agree, so the debate needs the fewest model calls. In the second simulation, the debaters dispute every
    claim, so the debate needs the most model calls. Each estimate is the average of the two simulations. The
    estimates ignore limits, tool calls, retries and repairs of structured replies. For the maximum number of
    tokens, Moot assumes that every prompt and reply is as long as the configuration allows. Moot calculates
    the cost from the prices in the configuration, or from the list prices of well-known models.
    """
    from moot.config.stages import read_config
    from moot.debates.config_checks import with_tools
    from moot.protocols.registry import protocol_named

    question = read_topic(topic)
    folder, documents = read_context(context)
    flags = {"topic": question, **setup.flags(), "context": folder}
    settings = with_tools(read_config(setup.config, flags, terminal.print_error))
    warn_of_ignored_length(flags, settings)
    protocol_named(settings.protocol).check(settings)
    print_plan(settings, documents, setup.config, latency, as_json=as_json)


def print_plan(
    settings: DebateConfig,
    documents: Sequence[Mapping[str, str]],
    file: Path | None,
    latency: float = LATENCY_S,
    *,
    as_json: bool,
) -> None:
    """Estimate a debate and print the estimate. `file` is the user's configuration file.

    Raises:
        ConfigError: the protocol cannot be estimated.
    """
    from moot.debates.dry_run import estimate, expected_cost, omission_warnings

    planned = estimate(settings, documents=documents)
    if planned is None:
        raise ConfigError(
            f"debates with protocol {settings.protocol!r} cannot be estimated: set a low "
            "`limits.total_tokens` and run the debate instead"
        )
    cost = [] if settings.lacks_model() else expected_cost(planned, settings)
    data: JsonObject = {
        "protocol": settings.protocol,
        **planned.to_json(),
        "latency_s": latency,
        "seconds": round(planned.seconds(latency), 3),
        "seconds_at_most": round(planned.critical_path_at_most * latency, 3),
        **({} if isinstance(cost, list) else cost),
        "left_out_tokens": planned.left_out(),
    }
    for warning in omission_warnings(planned, settings):
        terminal.print_note(warning)
    parts = plan_parts(planned, latency, cost, file or variable("MOOT_CONFIG"))
    terminal.print_answer(data, *parts, as_json=as_json)


def _price_advice(models: Sequence[str], file: Path | str | None) -> str:
    """Return advice on setting prices in the configuration file, which may not exist yet."""
    settings = "{input_usd_per_million: PRICE, output_usd_per_million: PRICE}"
    lines = "".join(f"\n    {json.dumps(name, ensure_ascii=False)}: {settings}" for name in models)
    location = f"in {str(file)!r}" if file else "in a file such as moot.yaml, and add --config moot.yaml"
    return f"set the US$ per million tokens {location}:\n  models:{lines}"


def plan_parts(
    planned: Estimate, latency: float, cost: ExpectedCost | list[str], file: Path | str | None = None
) -> list[RenderableType]:
    """Return the estimate for a debate as a table and lines to print."""
    from moot.models.usage import price_list_text

    headings = ("calls", "at once", "times", "prompt a call", "reply a call")
    column_count = len(headings) if terminal.columns() >= TABLE_CHARS else 1
    table = terminal.borderless_table("phase", "purpose", figures=headings[:column_count])
    for batch in planned.batches:
        min_times, max_times = batch.times_at_least, batch.times_at_most
        figures = (
            f"{round(batch.all_calls):,}",
            f"{batch.calls:,}",
            f"{batch.times:,}" if min_times == max_times else f"{min_times:,}–{max_times:,}",
            f"{round(batch.prompt_tokens):,}",
            f"{round(batch.reply_tokens):,}",
        )
        table.add_row(batch.phase, batch.purpose, *figures[:column_count])

    # The number of calls is a range, because it depends on the course of the debate.
    min_calls, max_calls = planned.calls_at_least, planned.calls_at_most
    calls = (
        f"{min_calls:,}"
        if min_calls == max_calls
        else f"{min_calls:,}–{max_calls:,}, about {planned.calls:,}"
    )
    critical_path, max_critical_path = planned.critical_path, planned.critical_path_at_most
    max_text = (
        ""
        if critical_path == max_critical_path
        else f" (at most {max_critical_path:,}: {max_critical_path * latency:,.1f} s)"
    )
    if cost == []:
        dollars = "unknown: no model is set; run `moot setup`, or add --model NAME"
    elif isinstance(cost, list):
        dollars = f"unknown: no price is known for {', '.join(cost)}; {_price_advice(cost, file)}"
    elif not cost["usd_at_most"]:
        dollars = "0"
    else:
        min_usd, max_usd = cost["usd_at_least"], cost["usd_at_most"]
        dollars = f"{cost['usd']:.4f} (at least {min_usd:.4f}, at most {max_usd:.4f})"
        dollars += f"\nprices          for models without a configured price: {price_list_text()}"
    sums = planned.to_json()
    return [
        table,
        "",
        f"calls           {calls}",
        f"prompt tokens   {sums['prompt_tokens']:,} (at most {sums['prompt_tokens_at_most']:,})",
        f"reply tokens    {sums['completion_tokens']:,} (at most {sums['completion_tokens_at_most']:,})",
        f"critical path   {count_noun(critical_path, 'call')} in a row at concurrency {planned.concurrency}: "
        f"{planned.seconds(latency):,.1f} s at {latency:g} s a call{max_text}",
        f"US$             {dollars}",
    ]
