"""`moot resume` and `moot fork`: going on with a debate, in its place or beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from moot.graph.cli import options as shared
from moot.graph.cli.database import open_stored_debate
from moot.graph.cli.screen.output import print_json, print_text, remark
from moot.state.errors import ConfigError, InputError

if TYPE_CHECKING:
    from moot.graph.api import Debate


@shared.with_groups
def resume(
    debate_id: shared.DebateArgument,
    turns: shared.MoreTurnsOption = None,
    model: shared.OtherModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    config: shared.ConfigOption = None,
    reconfigure: Annotated[
        bool, Option("--reconfigure", help="Let what --config changes count from here on.")
    ] = False,
    answer: Annotated[
        str | None, Option("--answer", metavar="TEXT", help="Answer to what the debate waits for.")
    ] = None,
    *,
    delivery: shared.Delivery,
) -> None:
    """Go on with a debate where it stands, or extend a finished one.

    The configuration was frozen when the debate began; --model and --judge-model change it from here on. A
    --config that says otherwise is refused, naming the keys that differ, unless --reconfigure.
    """
    from moot.graph.cli.running import deliver, resume_line, run_to_end
    from moot.graph.cli.screen.answerer import check_answers
    from moot.graph.continuation import verdict_failed

    with open_stored_debate(delivery.db, debate_id) as debate:
        if delivery.answers is not None:
            check_answers(delivery.answers, debate.config(), debate.questions())
        _go_on_with(debate, config, model, judge_model, reconfigure=reconfigure)
        if answer is not None and not debate.state().interrupts:
            raise InputError(f"debate {debate.name!r} waits for no answer: leave --answer out")
        if turns is not None or not debate.is_over() or verdict_failed(debate.state().values):
            raise Exit(run_to_end(debate, delivery, turns=turns, answer=answer))
        document = debate.document()
        remark(f"This debate is finished ({document['status']}).")
        if debate.can_go_on():
            remark(f"Extend it with:\n  {resume_line(debate, delivery.db, '--turns', '6')}")
        deliver(debate, document, delivery, finished=False)


def fork(
    debate_id: shared.DebateArgument,
    after: Annotated[
        str | None,
        Option("--after", metavar="SEQ", help="Number or id of the last entry that is kept; all without it."),
    ] = None,
    name: shared.NameOption = None,
    model: shared.OtherModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    config: shared.ConfigOption = None,
    run: Annotated[bool, Option("--run", help="Run the fork to its end at once.")] = False,
    turns: shared.MoreTurnsOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Begin a new debate with another one's beginning; it samples anew, and the original stays as it is.

    What --model, --judge-model and --config say counts from there on.
    """
    if turns is not None and not run:
        raise InputError("--turns says how far --run goes: add --run")
    from moot.graph.cli.running import resume_line, run_to_end

    seq = shared.entry_number(after, "--after") if after is not None else None
    with open_stored_debate(db, debate_id) as debate:
        made = debate.fork(after=seq, name=name)
        _go_on_with(made, config, model, judge_model, reconfigure=True)
        if run:
            raise Exit(run_to_end(made, shared.Delivery(db=db, as_json=as_json, quiet=quiet), turns=turns))
        if as_json:
            return print_json(made.document())
        print_text(made.name)
        if not quiet:
            remark(f"go on with: {resume_line(made, db)}")


def _go_on_with(
    debate: Debate, path: Path | None, model: str | None, judge_model: str | None, *, reconfigure: bool
) -> None:
    """Let a debate go on with what a file (if `reconfigure`) and models (always) say, and what they name."""
    given = {key: name for key, name in (("model", model), ("judge.model", judge_model)) if name is not None}
    if not given and path is None:
        return
    from moot.graph.cli.screen.output import complain
    from moot.graph.operator_config import file_data
    from moot.state.config.config_files import make_config, with_settings

    data = file_data(path, complain) if path is not None else {}
    said, frozen = make_config(data).to_json(), debate.config().to_json()
    new = make_config({**frozen, **{key: said[key] for key in data if key != "topic"}})
    debate.allow(make_config(with_settings(data, given)))
    if (keys := debate.differing_keys(new)) and not reconfigure:
        raise ConfigError(
            f"{str(path)!r} differs from the debate's frozen configuration in {', '.join(keys)}: "
            "leave --config out, or add --reconfigure to go on with the new values"
        )
    new = make_config(with_settings(new.to_json(), given))
    if debate.differing_keys(new):
        debate.reconfigure(new)
