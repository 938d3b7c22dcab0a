"""`moot run`, `resume`, `fork` and `plan`: start, continue, copy and estimate debates."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from moot.cli import options as shared
from moot.cli import terminal
from moot.cli.group import command
from moot.cli.options import (
    after_setup,
    configured_model,
    open_database,
    open_stored_debate,
    read_topic,
    run_config,
    split_context,
    warn_of_ignored_length,
)
from moot.config.model_settings import is_built_in, recording_in
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError
from moot.state.settings import check_database, variable
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.api import Debate
    from moot.cli.running import Gate
    from moot.config import DebateConfig
    from moot.config.boundary import Capability
    from moot.debates.dry_run import Estimate, ExpectedCost


@dataclass(frozen=True)
class RunOptions:
    """Command-line options that only `moot run` accepts."""

    temperature: Annotated[
        float | None,
        Option("--temperature", min=0, max=2, metavar="T", help="Sampling temperature of the debaters."),
    ] = None
    seed: Annotated[
        int | None, Option("--seed", metavar="N", help="Sampling seed, sent to models that accept a seed.")
    ] = None
    summarizer: Annotated[
        str | None,
        Option(
            "--summarizer",
            metavar="NAME",
            help="Method for summarizing older messages: {summarizers}.",
        ),
    ] = None
    rubric: Annotated[
        str | None,
        Option(
            "--rubric",
            metavar="NAME|FILE",
            help="Rubric with the judge's criteria: {rubrics}, or the path of a rubric file.",
        ),
    ] = None
    no_judge: Annotated[bool, Option("--no-judge", help="End the debate without a verdict.")] = False
    context: shared.ContextOption = None
    tools: Annotated[
        str | None,
        Option(
            "--tools",
            metavar="NAME,…",
            help="Tools for all debaters that have no tools of their own: {tools}.",
        ),
    ] = None
    replay: Annotated[
        str | None,
        Option(
            "--replay",
            metavar="ID",
            help="Replay a stored debate from its journal, without calling a model.",
        ),
    ] = None
    propose: Annotated[
        bool,
        Option(
            "--propose",
            help="Let the model propose two debaters if you name none. Moot shows the price before the "
            'debate starts. `moot "Should we …?"` sets this option.',
        ),
    ] = False
    yes: Annotated[
        bool, Option("--yes", "-y", help="With --propose, start the debate without asking for confirmation.")
    ] = False
    name: shared.NameOption = None
    options: Annotated[
        str | None,
        Option(
            "--options",
            metavar="A,B,…",
            help=("Options that the judge chooses from. The decision is one of these options, or undecided."),
        ),
    ] = None
    gate: Annotated[
        str | None,
        Option("--gate", metavar="OPTION", help="Exit with code 7 if the decision is not OPTION."),
    ] = None
    min_confidence: Annotated[
        float | None,
        Option(
            "--min-confidence",
            min=0,
            max=100,
            metavar="N",
            help="Exit with code 7 if the confidence in the decision is below N percent. Needs --gate.",
        ),
    ] = None
    revisit: Annotated[
        str | None,
        Option(
            "--revisit",
            metavar="DATE",
            help="Date from which `moot list` asks you for feedback, such as 2027-03-01.",
        ),
    ] = None


@command(
    panel="Run debates",
    examples=(
        '"Should we adopt a monorepo?" --model gpt-4o-mini --turns 6 --id mono',
        '"Merge this change?" --context change.diff --options merge,hold --gate merge --min-confidence 70',
        '"Design a queue" --protocol council -d Ada:architect -d Ben:operator -o queue.html',
    ),
)
@shared.with_groups
def run(
    topic: Annotated[
        str | None,
        Argument(
            metavar="TOPIC|@FILE|-",
            help="Question to debate: text, a file, or - for stdin. Optional if the configuration sets "
            "`topic`.",
        ),
    ] = None,
    *,
    setup: shared.SetupOptions,
    run_options: RunOptions,
    delivery: shared.Delivery,
) -> None:
    """Run a debate on a question and print the verdict.

    Command-line options override the settings in the configuration file. Moot saves the debate after every
    step. After Ctrl-C, a crash or a model failure, `moot resume` continues the debate.
    """
    from moot.cli.live import check_answers
    from moot.cli.running import run_to_end
    from moot.configuration import read_rubric
    from moot.debates.lifecycle import unused_name
    from moot.plugins.importing.read_context import read_documents

    if run_options.replay:
        with open_database(delivery.db) as debates:
            name = run_options.name or unused_name(
                debates.records, f"{debates.get(run_options.replay).name}-replay"
            )
            raise Exit(run_to_end(debates.replay(run_options.replay, name=name), delivery))

    folder, files = split_context(run_options.context)
    flags = {
        **setup.flags(),
        "temperature": run_options.temperature,
        "seed": run_options.seed,
        "memory.summarizer": run_options.summarizer,
        "judge.rubric": read_rubric(run_options.rubric, Path()) if run_options.rubric else None,
        "judge.enabled": False if run_options.no_judge else None,
        "context": folder,
        "options": [each.strip() for each in run_options.options.split(",")] if run_options.options else None,
        "revisit": run_options.revisit,
    }
    question = read_topic(topic)
    check_database(delivery.db)
    documents = read_documents(files)
    given_tools = [each.strip() for each in (run_options.tools or "").split(",") if each.strip()]
    settings = run_config(setup.config, flags, given_tools, topic=question)
    if question is None and not (settings.topic or "").strip():
        raise InputError(
            "no topic is given: add TOPIC, @FILE or - (stdin), or set `topic` in the configuration"
        )
    gate = _gate(run_options, settings)
    warn_of_ignored_length(flags, settings)
    has_folder = any(Path(path).is_dir() for path in settings.context_paths())
    if has_folder and not any(debater.tools for debater in settings.debaters):
        terminal.print_note(
            "warning: no debater has tools to read the context folder: add --tools search,read_file"
        )
    check_answers(delivery.answers, settings)

    if run_options.propose:
        settings = _propose_and_confirm(
            question or settings.topic or "", settings, documents, yes=run_options.yes
        )
    with open_database(delivery.db, make=True) as debates:
        name = run_options.name or unused_name(debates.records, question or settings.topic or "")
        debate = debates.start(question, settings, name=name, documents=documents)
        model_chosen = "model" in settings.model_fields_set
        raise Exit(run_to_end(debate, delivery, gate=gate, model_chosen=model_chosen))


def _gate(run_options: RunOptions, config: DebateConfig) -> Gate | None:
    """Return the decision that `--gate` requires, or `None` if the option is not set.

    Raises:
        InputError: the gate is none of the options, nothing reaches a decision, or `--min-confidence` is set
            without a gate.
    """
    from moot.cli.running import Gate

    if run_options.gate is None:
        if run_options.min_confidence is not None:
            raise InputError("--min-confidence needs --gate: add --gate OPTION")
        return None
    if not config.judge.enabled:
        raise InputError("--gate needs a decision: remove --no-judge")
    option = next(
        (each for each in config.options if each.casefold() == run_options.gate.strip().casefold()), None
    )
    if option is None:
        choices = ", ".join(config.options)
        advice = f"use one of {choices}" if choices else "add --options, because the debate has none"
        raise InputError(f"--gate {run_options.gate!r} is not one of the debate's options: {advice}")
    return Gate(option, run_options.min_confidence or 0.0)


def _propose_and_confirm(
    question: str, settings: DebateConfig, documents: Sequence[Mapping[str, str]], *, yes: bool
) -> DebateConfig:
    """Let a model propose debaters if needed, print the estimated cost, and ask for confirmation.

    The model proposes two debaters if the user named none. Only a terminal asks for confirmation. A built-in
    model proposes nothing and costs nothing.

    Raises:
        Exit: the user does not want to start the debate.
    """
    from moot.configuration import validate
    from moot.debates.dry_run import estimate, expected_cost, omission_warnings
    from moot.debates.session import propose_debaters
    from moot.runtime.environment import Environment

    if is_built_in(settings.model):
        return settings
    proposal_cost = 0.0
    defaults = validate({"protocol": settings.protocol}).debaters
    if settings.debaters == defaults and len(defaults) == 2:
        terminal.print_note(f"{settings.model} proposes two debaters …")
        debaters, proposal_cost = propose_debaters(question, settings, Environment())
        settings = settings.model_copy(update={"debaters": debaters})
    for debater in settings.debaters:
        role = f" ({terminal.one_line(debater.role, 60)})" if debater.role else ""
        stance = terminal.one_line(debater.stance or "no stance", 300)
        terminal.print_note(f"{terminal.one_line(debater.name, 40)}{role}: {stance}")
    planned = estimate(settings.model_copy(update={"topic": question}), documents=documents)
    cost = expected_cost(planned, settings) if planned else []
    calls = f"about {count_noun(planned.calls, 'call')}" if planned else "an unknown number of calls"
    price = (
        f"price unknown for {', '.join(cost) or settings.model}"
        if isinstance(cost, list)
        else f"about US$ {cost['usd']:.4f}, at most US$ {cost['usd_at_most']:.4f}"
    )
    proposal = f" The proposal cost US$ {proposal_cost:.4f}." if proposal_cost else ""
    terminal.print_note(f"{settings.model}: {calls}, {price}.{proposal}")
    for warning in omission_warnings(planned, settings) if planned else ():
        terminal.print_note(warning)
    if sys.stdin.isatty() and not terminal.confirm("Start the debate?", "no debate was started", yes=yes):
        raise Exit(0)
    return settings


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
            "--reconfigure",
            help="Change the debate's configuration to the settings in the --config file.",
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
            model = model_after_recording(debate.config(), configured_model())
        change = _config_change(debate.config(), config, model, judge_model)
        if change is not None:
            if not reconfigure and (keys := debate.differing_keys(change.from_file)):
                raise ConfigError(
                    f"configuration {str(config)!r} differs from the debate's configuration in "
                    f"{', '.join(keys)}: remove --config, or add --reconfigure to continue with the new "
                    "values"
                )
            debate.allow(change.user_settings)
            if debate.differing_keys(change.config):
                debate.reconfigure(change.config)
        if answer is not None and not debate.state().interrupts:
            raise InputError(f"debate {debate.name!r} is not waiting for an answer: remove --answer")
        if turns is not None or not debate.is_over() or verdict_failed(debate.state().values):
            model_chosen = model is not None
            raise Exit(run_to_end(debate, delivery, turns=turns, answer=answer, model_chosen=model_chosen))
        document = debate.document()
        terminal.print_note(f"This debate is finished ({document['status']}).")
        if debate.can_go_on():
            extend_command = resume_line(debate, delivery.db, "--turns", "6")
            recorded_model = recording_in(debate.config().model_names())
            terminal.print_note(
                f"Extend it with:\n  {after_setup(extend_command) if recorded_model else extend_command}"
            )
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
    from moot.config.debate_config import frozen_config
    from moot.debates.continuation import check_fork, model_after_recording
    from moot.debates.lifecycle import dropped_interjections, fork_debate, fork_values, unused_name

    seq = shared.entry_number(after, "--after") if after is not None else None
    with open_database(db) as debates:
        debate = debates.get(debate_id)
        values = fork_values(debate.session, after=seq, without=without)
        former_config = frozen_config(values)
        if run and config is None and model is None:
            model = model_after_recording(former_config, configured_model())
        change = _config_change(former_config, config, model, judge_model)
        # Everything is checked before the fork is stored, so a refused fork leaves nothing behind.
        settings, granted = _checked(debate, former_config, change, run=run)
        if run:
            check_fork(values, settings, turns)
        values = {**values, "config": settings.to_json()}
        new_name = name or unused_name(debates.records, f"{debate.name}-fork")
        new_debate = debates.get(fork_debate(debate.session, values, new_name, granted).thread)
        if not quiet:
            for entry in dropped_interjections(debate.state().values, new_debate.state().values):
                terminal.print_note(
                    f"dropped the interjection {entry['id']}: "
                    + terminal.one_line(entry["content"], INTERJECTION_CHARS)
                )
        if run:
            delivery = shared.Delivery(db=db, as_json=as_json, quiet=quiet)
            raise Exit(run_to_end(new_debate, delivery, turns=turns, model_chosen=model is not None))
        if as_json:
            return terminal.print_json(new_debate.document())
        terminal.print_text(new_debate.name)
        if not quiet:
            recorded_model = recording_in(new_debate.config().model_names())
            resume_command = resume_line(new_debate, db)
            terminal.print_note(
                f"Continue with:\n  {after_setup(resume_command) if recorded_model else resume_command}"
            )


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
    """Return the change that a configuration file and options make to a debate's configuration.

    Return `None` if neither a file nor an option is given.
    """
    flags = {key: name for key, name in (("model", model), ("judge.model", judge_model)) if name is not None}
    if not flags and path is None:
        return None
    from moot.config.config_files import nested_settings
    from moot.configuration import file_data, freeze, merge, validate

    data, options = file_data(path, terminal.print_error) if path is not None else {}, nested_settings(flags)
    file_settings = freeze(validate(data))
    from_file = validate({**freeze(config), **{key: file_settings[key] for key in data if key != "topic"}})
    changed_config = validate(merge(freeze(from_file), options))
    return _ConfigChange(from_file, changed_config, validate(merge(data, options)))


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
    ] = 5.0,
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
    from moot.configuration import read_config
    from moot.debates.dry_run import estimate, expected_cost, omission_warnings
    from moot.plugins.importing.read_context import read_documents
    from moot.protocols.registry import protocol_named

    folder, files = split_context(context)
    flags = {"topic": read_topic(topic), **setup.flags(), "context": folder}
    settings = read_config(setup.config, flags, terminal.print_error)
    warn_of_ignored_length(flags, settings)
    protocol_named(settings.protocol).check(settings)
    planned = estimate(settings, documents=read_documents(files))
    if planned is None:
        raise ConfigError(
            f"debates with protocol {settings.protocol!r} cannot be estimated: set a low "
            "`limits.total_tokens` and run the debate instead"
        )
    cost = expected_cost(planned, settings)
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
    file = setup.config or variable("MOOT_CONFIG")
    terminal.print_answer(data, *plan_parts(planned, latency, cost, file), as_json=as_json)


def _price_advice(models: Sequence[str], file: Path | str | None) -> str:
    """Return advice on how to set model prices in the configuration file.

    The file may not exist yet.
    """
    settings = "{input_usd_per_million: PRICE, output_usd_per_million: PRICE}"
    lines = "".join(f"\n    {json.dumps(name, ensure_ascii=False)}: {settings}" for name in models)
    location = f"in {str(file)!r}" if file else "in a file such as moot.yaml, and add --config moot.yaml"
    return f"set the US$ per million tokens {location}:\n  models:{lines}"


def plan_parts(
    planned: Estimate, latency: float, cost: ExpectedCost | list[str], file: Path | str | None = None
) -> list[RenderableType]:
    """Return the estimate for a debate as a table and lines to print.

    Args:
        planned: the estimate.
        latency: assumed duration of one model call in seconds.
        cost: the expected cost, or the models without a known price.
        file: configuration file of the user, if there is one.
    """
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
    if isinstance(cost, list):
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
