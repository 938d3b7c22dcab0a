"""`moot resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moot.graph.cli import options as shared
from moot.graph.cli.database import opened_debate
from moot.graph.cli.screen.output import remark
from moot.state.errors import ConfigError, InputError

if TYPE_CHECKING:
    from moot.graph.api import Debate


def resume(
    debate_id: shared.DebateArgument,
    turns: shared.MoreTurnsOption = None,
    config: shared.ConfigOption = None,
    reconfigure: Annotated[
        bool, typer.Option("--reconfigure", help="Let what --config changes count from here on.")
    ] = False,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="TEXT", help="Answer to what the debate waits for.")
    ] = None,
    answers: shared.AnswersOption = None,
    output: shared.OutputOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Go on with a debate where it stands, or extend a finished one.

    The configuration was frozen when the debate began. A --config that says otherwise is refused, naming the
    keys that differ, unless --reconfigure.
    """
    from moot.graph.cli.run_request import read_answers
    from moot.graph.cli.running import Delivery, deliver, resume_line, run_to_end
    from moot.graph.cli.screen.answerer import check_answers
    from moot.graph.continuation import verdict_failed

    delivery = Delivery(db, as_json, quiet, output, read_answers(answers))
    with opened_debate(db, debate_id) as debate:
        if delivery.answers is not None:
            check_answers(delivery.answers, debate.config(), debate.questions())
        if config is not None:
            _settle(debate, config, reconfigure=reconfigure)
        if answer is not None and not debate.state().interrupts:
            raise InputError(f"debate {debate.name!r} waits for no answer: leave --answer out")
        if turns is not None or not debate.is_over() or verdict_failed(debate.state().values):
            raise typer.Exit(run_to_end(debate, delivery, turns=turns, answer=answer))
        document = debate.document()
        remark(f"This debate is finished ({document['status']}).")
        if debate.can_go_on():
            remark(f"Extend it with:\n  {resume_line(debate, db, '--turns', '6')}")
        deliver(debate, document, delivery, finished=False)


def _settle(debate: Debate, path: Path, *, reconfigure: bool) -> None:
    """Compare what a file says with the frozen configuration.

    Raises:
        ConfigError: it differs and is not to be taken over.
    """
    from moot.graph.cli.run_request import file_data
    from moot.state.config.config_files import make_config

    data = file_data(path)
    wanted = make_config(data).to_json()
    new = make_config({**debate.config().to_json(), **{key: wanted[key] for key in data if key != "topic"}})
    debate.allow(make_config(data))
    keys = debate.differing_keys(new)
    if keys and not reconfigure:
        raise ConfigError(
            f"{str(path)!r} differs from the debate's frozen configuration in {', '.join(keys)}: "
            "leave --config out, or add --reconfigure to go on with the new values"
        )
    if keys:
        debate.reconfigure(new)
