"""`moot demo`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from moot.graph.cli import options as shared
from moot.graph.cli.database import command_line, open_database
from moot.graph.cli.screen.output import remark

READING_PACE_S = 0.1
"""Seconds a word: 600 a minute. Silent reading manages 238 (Brysbaert 2019); what scrolls by is skimmed."""


def demo(
    sample: Annotated[
        str, Argument(metavar="[NAME]", help="monolith, rate-limiter or free-transport.")
    ] = "monolith",
    fast: Annotated[bool, Option("--fast", help="All at once, not at reading speed.")] = False,
    db: shared.DbOption = None,
    output: shared.OutputOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Watch a sample debate: held once by a capable model, played again through the real machine.

    No key and no network are needed. It is a debate like any other: Ctrl-C and `moot resume`, `moot report`,
    `moot fork` work, and with a model of your own `moot ask` and `moot judge`. Facts in it are unchecked.
    """
    from moot.graph.cli.running import run_to_end
    from moot.nodes.driving.environment import Environment
    from moot.nodes.models.recorded import RecordedModel, recording_config
    from moot.state.config import DebateConfig
    from moot.state.config.debaters import free_id

    settings = recording_config(sample)
    topic = settings.pop("topic")
    model = RecordedModel(recording=sample, pace_s=0.0 if fast or quiet or as_json else READING_PACE_S)
    environment = Environment(factory=lambda name, settings: model)
    with open_database(db, make=True, environment=environment) as debates:
        name = free_id(sample, {row.name for row in debates.rows()})
        debate = debates.start(topic, DebateConfig(**settings), name=name)
        delivery = shared.Delivery(None, output or Path(f"{name}.html"), db, as_json, quiet)
        code = run_to_end(debate, delivery)
        if not quiet and code == 0:
            remark(f"  your own   {command_line('run', 'Should we …?', '--model', 'NAME', db=db)}")
    raise Exit(code)
