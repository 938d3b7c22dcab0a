"""`moot resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from moot.graph.cli import options as shared
from moot.graph.cli.database import opened_debate
from moot.graph.cli.screen.output import remark
from moot.state.errors import InputError


def resume(
    debate_id: shared.DebateArgument,
    turns: shared.MoreTurnsOption = None,
    model: shared.OtherModelOption = None,
    judge_model: shared.JudgeModelOption = None,
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
    bell: shared.BellOption = False,
    log_json: shared.LogOption = False,
) -> None:
    """Go on with a debate where it stands, or extend a finished one.

    The configuration was frozen when the debate began; --model and --judge-model change it from here on. A
    --config that says otherwise is refused, naming the keys that differ, unless --reconfigure.
    """
    from moot.graph.cli.run_request import go_on_with, read_answers
    from moot.graph.cli.running import Delivery, deliver, resume_line, run_to_end
    from moot.graph.cli.screen.answerer import check_answers
    from moot.graph.continuation import verdict_failed

    delivery = Delivery(db, as_json, quiet, output, read_answers(answers), bell, log_json)
    with opened_debate(db, debate_id) as debate:
        if delivery.answers is not None:
            check_answers(delivery.answers, debate.config(), debate.questions())
        flags = {"model": model, "judge.model": judge_model}
        go_on_with(debate, config, flags, reconfigure=reconfigure)
        if answer is not None and not debate.state().interrupts:
            raise InputError(f"debate {debate.name!r} waits for no answer: leave --answer out")
        if turns is not None or not debate.is_over() or verdict_failed(debate.state().values):
            raise typer.Exit(run_to_end(debate, delivery, turns=turns, answer=answer))
        document = debate.document()
        remark(f"This debate is finished ({document['status']}).")
        if debate.can_go_on():
            remark(f"Extend it with:\n  {resume_line(debate, db, '--turns', '6')}")
        deliver(debate, document, delivery, finished=False)
