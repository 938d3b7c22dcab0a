"""`moot resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import (
    AnswersOption,
    ConfigOption,
    DbOption,
    DebateArgument,
    JsonOption,
    MoreTurnsOption,
    OutputOption,
    QuietOption,
)

if TYPE_CHECKING:
    from pathlib import Path

    from moot.graph.api import Debate
    from moot.graph.cli.running import Delivery
    from moot.state.config import DebateConfig

app = new_app()


@app.command()
def resume(
    debate_id: DebateArgument,
    turns: MoreTurnsOption = None,
    config: ConfigOption = None,
    reconfigure: Annotated[
        bool, typer.Option("--reconfigure", help="Let what --config changes count from here on.")
    ] = False,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="TEXT", help="Answer to what the debate waits for.")
    ] = None,
    answers: AnswersOption = None,
    output: OutputOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Go on with a debate where it stands, or extend a finished one.

    The configuration was frozen when the debate began. A --config that says otherwise is refused, naming the
    keys that differ, unless --reconfigure.
    """
    from moot.graph.cli.database import opened
    from moot.graph.cli.running import Delivery, run_to_end
    from moot.graph.cli.screen.answerer import check_answers, read_answers
    from moot.graph.cli.screen.output import format_of
    from moot.state.errors import InputError

    form = format_of(output) if output else ""
    delivery = Delivery(db, as_json, quiet, output, form, read_answers(answers))
    with opened(db) as debates:
        debate = debates.get(debate_id)
        if delivery.answers is not None:
            check_answers(delivery.answers, _frozen(debate), debate.questions())
        if config is not None:
            _settle(debate, config, reconfigure=reconfigure)
        if answer is not None and not debate.state().interrupts:
            raise InputError(f"debate {debate.name!r} waits for no answer: leave --answer out")
        if turns is None and _is_finished(debate):
            code = _say_finished(debate, delivery)
        else:
            code = run_to_end(debate, delivery, turns=turns, answer=answer)
    raise typer.Exit(code)


def _settle(debate: Debate, path: Path, *, reconfigure: bool) -> None:
    """Compare what a file says with the frozen configuration.

    Raises:
        ConfigError: it differs and is not to be taken over.
    """
    from moot.graph.cli.request import file_data
    from moot.state.config.config_files import make_config
    from moot.state.errors import ConfigError

    said = file_data(path)
    wanted, frozen = make_config(said), _frozen(debate)
    changed = {key: wanted.to_json()[key] for key in said if key != "topic"}
    new = make_config({**frozen.to_json(), **changed})
    keys = debate.differing_keys(new)
    if keys and not reconfigure:
        raise ConfigError(
            f"{str(path)!r} differs from the debate's frozen configuration in {', '.join(keys)}: "
            "leave --config out, or add --reconfigure to go on with the new values"
        )
    if keys:
        debate.reconfigure(new)


def _frozen(debate: Debate) -> DebateConfig:
    from moot.state.config.frozen import frozen_config

    return frozen_config(debate.state().values)


def _is_finished(debate: Debate) -> bool:
    from moot.graph.session import is_over

    snapshot = debate.state()
    return is_over(snapshot) and (snapshot.values.get("verdict") or {}).get("status") != "failed"


def _say_finished(debate: Debate, delivery: Delivery) -> int:
    from moot.graph.cli.running import resume_line
    from moot.graph.cli.screen.output import print_json, remark, render, write_file

    document = debate.document()
    remark(f"This debate is finished ({document['status']}).")
    if debate.can_go_on():
        remark(f"Extend it with:\n  {resume_line(debate, delivery, '--turns', '6')}")
    if delivery.output is not None:
        write_file(delivery.output, render(document, delivery.form))
    if delivery.as_json:
        print_json(document)
    return 0
