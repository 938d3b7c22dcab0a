"""`moot resume` and `moot fork`: continue and copy debates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from moot.cli import inputs, options as shared, terminal
from moot.cli.databases import open_database, open_stored_debate
from moot.cli.group import command
from moot.config import DebateConfig
from moot.config.debate_config import frozen_config
from moot.config.model_settings import recording_in
from moot.state.errors import ConfigError, InputError

if TYPE_CHECKING:
    from moot.api import Debate
    from moot.config.boundary import Capability

INTERJECTION_CHARS = 100
"""Maximum number of characters to print from each dropped interjection. `moot fork` lists the interjections
that the fork does not contain."""


@command(panel="Run debates", examples=("mono --turns 6", "mono --model gpt-4o --judge-model o3"))
@shared.with_groups
def resume(
    debate_id: shared.DebateArgument,
    turns: shared.MoreTurnsOption = None,
    model: shared.OtherModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    config: shared.ConfigOption = None,
    reconfigure: Annotated[
        bool,
        Option(
            "--reconfigure", help="Change the debate's configuration to the settings in the --config file."
        ),
    ] = False,
    answer: Annotated[
        str | None,
        Option("--answer", metavar="TEXT", help="Answer to the question that the debate is waiting for."),
    ] = None,
    *,
    delivery: shared.Delivery,
) -> None:
    """Continue a saved debate, or extend a finished debate.

    A debate keeps the configuration it started with. The options --model and --judge-model change the
    models for the rest of the debate. If the --config file differs from the debate's configuration, the
    command stops and names the settings that differ. To apply the settings in the file, add --reconfigure.
    """
    from moot.cli.live import check_answers
    from moot.cli.running import output_result, resume_line, run_to_end
    from moot.debates.continuation import model_after_recording, verdict_failed

    with open_stored_debate(delivery.db, debate_id) as debate:
        if delivery.answers is not None:
            check_answers(delivery.answers, debate.config(), debate.questions())
        if config is None and model is None and (turns or debate.row.parent):
            model = model_after_recording(debate.config(), inputs.configured_model())
        change = _config_change(debate.config(), config, model, judge_model)
        if change is not None:
            if not reconfigure and (keys := debate.differing_keys(change.from_file)):
                raise ConfigError(
                    f"configuration {str(config)!r} differs from the debate's configuration in "
                    f"{', '.join(keys)}: remove --config, or add --reconfigure to continue with the new "
                    "values"
                )
            debate.allow(change.user_settings)
            if changed := debate.differing_keys(change.config):
                debate.reconfigure(change.config)
                if debate.is_over() and "turns" in changed:
                    terminal.print_note(
                        "The configuration is stored. A finished debate takes no further turns from `turns`: "
                        "extend it with --turns."
                    )
        if answer is not None and not debate.state().interrupts:
            raise InputError(f"debate {debate.name!r} is not waiting for an answer: remove --answer")
        if turns is not None or not debate.is_over() or verdict_failed(debate.state().values):
            raise Exit(run_to_end(debate, delivery, turns=turns, answer=answer))
        document = debate.document()
        terminal.print_note(f"This debate is finished ({document['status']}).")
        if debate.can_go_on():
            extend_command = resume_line(debate, delivery.db, "--turns", "6")
            recorded_model = recording_in(debate.config().model_names())
            line = shared.after_setup(extend_command) if recorded_model else extend_command
            terminal.print_note(f"Extend it with:\n  {line}")
        output_result(debate, document, delivery, finished=False)


@command(
    panel="Run debates",
    examples=("mono --after m000003 --id other --run", "mono --without m000005 --id no-freeze --run"),
)
def fork(
    debate_id: shared.DebateArgument,
    after: Annotated[
        str | None,
        Option(
            "--after",
            metavar="SEQ",
            help="Number or id of the last message to copy. Default: the debate's last message.",
        ),
    ] = None,
    without: Annotated[
        str | None,
        Option(
            "--without",
            metavar="ID",
            help=(
                "Id of the interjection to leave out. Moot copies only the messages before this "
                "interjection. Later interjections are sent to the fork again."
            ),
        ),
    ] = None,
    name: shared.NameOption = None,
    model: shared.OtherModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    config: shared.ConfigOption = None,
    run: Annotated[bool, Option("--run", help="Run the forked debate until it ends.")] = False,
    turns: shared.MoreTurnsOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Copy a debate up to a given message into a new debate.

    The new debate is called a fork. The original debate does not change. Interjections are messages from
    outside the debate, such as those that you send with `moot say`. With --after, the fork contains no
    interjections from after the last copied message. With --without, the fork receives the later
    interjections again, except the interjection that you leave out. The options --model, --judge-model and
    --config affect only the turns after the copied messages.
    """
    if after is not None and without is not None:
        raise InputError("--after and --without both set where the fork starts: remove --after or --without")
    if turns is not None and not run:
        raise InputError(
            "--turns needs --run: without --run, `moot fork` copies the debate but runs no turns"
        )
    from moot.cli.running import resume_line, run_to_end
    from moot.debates.continuation import check_fork, model_after_recording
    from moot.debates.lifecycle import dropped_interjections, fork_debate, fork_values, unused_name

    seq = inputs.entry_number(after, "--after") if after is not None else None
    with open_database(db) as debates:
        debate = debates.get(debate_id)
        values = fork_values(debate.session, after=seq, without=without)
        former_config = frozen_config(values)
        if run and config is None and model is None:
            model = model_after_recording(former_config, inputs.configured_model())
        change = _config_change(former_config, config, model, judge_model)
        # Everything is checked before the fork is stored, so a refused fork leaves nothing behind.
        settings, granted = _checked(debate, former_config, change, run=run)
        if run:
            check_fork(values, settings, turns)
        values = {**values, "config": settings.to_json()}
        new_name = name or unused_name(debates.records, debate.name, "-fork")
        new_debate = debates.get(fork_debate(debate.session, values, new_name, granted).thread)
        if not quiet:
            for entry in dropped_interjections(debate.state().values, new_debate.state().values):
                terminal.print_note(
                    f"dropped the interjection {entry['id']}: "
                    + terminal.one_line(entry["content"], INTERJECTION_CHARS)
                )
        if run:
            delivery = shared.Delivery(db=db, as_json=as_json, quiet=quiet)
            raise Exit(run_to_end(new_debate, delivery, turns=turns))
        if as_json:
            return terminal.print_json(new_debate.document())
        terminal.print_text(new_debate.name)
        if not quiet:
            recorded_model = recording_in(new_debate.config().model_names())
            resume_command = resume_line(new_debate, db)
            line = shared.after_setup(resume_command) if recorded_model else resume_command
            terminal.print_note(f"Continue with:\n  {line}")


@dataclass(frozen=True)
class _ConfigChange:
    """Change to the configuration of a stored debate."""

    from_file: DebateConfig
    """Configuration with the changes from the user's file, but without those from the options."""
    config: DebateConfig
    """Configuration with the changes from the user's file and options."""
    user_settings: DebateConfig
    """Settings that the user gave in the configuration file and as options. The user allows everything that
    they name."""


def _config_change(
    config: DebateConfig, path: Path | None, model: str | None, judge_model: str | None
) -> _ConfigChange | None:
    """Return the change that a file and options make, or `None` if there are none."""
    flags = {key: name for key, name in (("model", model), ("judge.model", judge_model)) if name is not None}
    if not flags and path is None:
        return None
    from moot.config.config_files import make_config, merge_settings, nested_settings
    from moot.config.stages import file_data

    data, options = file_data(path, terminal.print_error) if path is not None else {}, nested_settings(flags)
    file_settings = make_config(data).to_json()
    new_settings = {key: file_settings[key] for key in data if key != "topic"}
    from_file = make_config({**config.to_json(), **new_settings})
    changed_config = make_config(merge_settings(from_file.to_json(), options))
    return _ConfigChange(from_file, changed_config, make_config(merge_settings(data, options)))


def _checked(
    debate: Debate, config: DebateConfig, change: _ConfigChange | None, *, run: bool
) -> tuple[DebateConfig, set[Capability]]:
    """Check the configuration of a forked debate.

    Return the configuration and the capabilities that the change adds. A configuration without a change is
    checked only if the fork is run.

    Raises:
        ConfigError: the configuration is invalid, or a model has no key.
    """
    if change is not None:
        return debate.check_change(change.config, config, change.user_settings)
    return debate.check_change(config, config) if run else (config, set())
