"""`moot run`: start a debate."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Exit, Option

from moot.cli import options as shared, terminal
from moot.cli.commands.plan import print_plan
from moot.cli.commands.setup import setup as run_setup
from moot.cli.databases import open_database
from moot.cli.group import command
from moot.cli.inputs import configured_model, read_context, read_topic, run_config, warn_of_ignored_length
from moot.config import DebateConfig
from moot.config.model_settings import is_built_in
from moot.state.errors import ConfigError, InputError
from moot.state.settings import check_database
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from moot.cli.running import Gate
    from moot.config.participants import DebaterConfig
    from moot.debates.dry_run import Estimate


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
        Option("--summarizer", metavar="NAME", help="Method for summarizing older messages: {summarizers}."),
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
            "--replay", metavar="ID", help="Replay a stored debate from its journal, without calling a model."
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
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the estimate of `moot plan`, and call no model.")
    ] = False
    max_cost: Annotated[
        float | None,
        Option(
            "--max-cost",
            min=0,
            metavar="USD",
            help="End the debate when its calls have cost this many US$. Sets limits.cost_usd.",
        ),
    ] = None
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
        Option(
            "--gate",
            metavar="OPTION",
            help="Exit with code 7 if the decision is not OPTION. Without --options, the judge chooses "
            "between OPTION and not OPTION.",
        ),
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
        '"Merge this change?" --context change.diff --options merge,hold --gate merge --max-cost 0.05',
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
    from moot.config.file_references import read_rubric
    from moot.debates.dry_run import estimate, omission_warnings
    from moot.debates.lifecycle import unused_name

    if run_options.replay:
        with open_database(delivery.db) as debates:
            source = debates.get(run_options.replay).name
            name = run_options.name or unused_name(debates.records, source, "-replay")
            raise Exit(run_to_end(debates.replay(run_options.replay, name=name), delivery))

    question = read_topic(topic)
    check_database(delivery.db)
    folder, documents = read_context(run_options.context, remarks=delivery.remarks)
    flags = {
        **setup.flags(),
        "temperature": run_options.temperature,
        "seed": run_options.seed,
        "memory.summarizer": run_options.summarizer,
        "judge.rubric": read_rubric(run_options.rubric, Path()) if run_options.rubric else None,
        "judge.enabled": False if run_options.no_judge else None,
        "context": folder,
        "options": _names(run_options.options) or None,
        "revisit": run_options.revisit,
        "limits.cost_usd": run_options.max_cost,
    }
    settings = run_config(setup.config, flags, _names(run_options.tools), topic=question)
    if question is None and not (settings.topic or "").strip():
        raise InputError(
            "no topic is given: add TOPIC, @FILE or - (stdin), or set `topic` in the configuration"
        )
    settings = settings.model_copy(update={"topic": question or settings.topic})
    gate, settings = _gate(run_options, settings)
    warn_of_ignored_length(flags, settings)
    check_answers(delivery.answers, settings)
    if run_options.dry_run:
        return print_plan(settings, documents, setup.config, as_json=delivery.as_json)
    if settings.lacks_model():
        _set_up(settings)
        settings = settings.model_copy(update={"model": configured_model()})

    is_paid = not all(map(is_built_in, settings.model_names()))
    if run_options.propose and not is_built_in(settings.model):
        settings = _propose_and_confirm(settings, documents, yes=run_options.yes)
    elif delivery.remarks and is_paid:
        planned = estimate(settings, documents=documents)
        terminal.print_note(_cost_line(settings, planned))
        for warning in omission_warnings(planned, settings) if planned else ():
            terminal.print_note(f"warning: {warning}")
    with open_database(delivery.db, make=True) as debates:
        name = run_options.name or unused_name(debates.records, settings.topic or "")
        debate = debates.start(question, settings, name=name, documents=documents)
        raise Exit(run_to_end(debate, delivery, gate=gate))


def _names(text: str | None) -> list[str]:
    """Return the names in an option's value, which are separated by commas."""
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _set_up(settings: DebateConfig) -> None:
    """Offer to run `moot setup` because no model is set.

    Raises:
        ConfigError: nobody can be asked, or the user declines.
    """
    from moot.debates.config_checks import check_model

    can_ask = sys.stdin.isatty() and sys.stderr.isatty()
    if not can_ask or not typer.confirm("No model is set. Run setup now?", default=True, err=True):
        check_model(settings)
    run_setup()


def _gate(run_options: RunOptions, config: DebateConfig) -> tuple[Gate | None, DebateConfig]:
    """Return the decision that `--gate` requires, or `None` without it, and the configuration with options.

    Raises:
        InputError: the gate is none of the options, nothing reaches a decision, or `--min-confidence` is set
            without a gate.
    """
    from moot.cli.running import Gate

    if run_options.gate is None:
        if run_options.min_confidence is not None:
            raise InputError("--min-confidence needs --gate: add --gate OPTION")
        return None, config
    if not config.judge.enabled:
        raise InputError("--gate needs a decision: remove --no-judge")
    required = run_options.gate.strip()
    if not config.options and required:
        config = config.model_copy(update={"options": (required, f"not {required}")})
    option = next((each for each in config.options if each.casefold() == required.casefold()), None)
    if option is None:
        choices = ", ".join(config.options)
        advice = f"use one of {choices}" if choices else "add --options, because the debate has none"
        raise InputError(f"--gate {required!r} is not one of the debate's options: {advice}")
    return Gate(option, run_options.min_confidence or 0.0), config


def _cost_line(settings: DebateConfig, planned: Estimate | None) -> str:
    """Return a line that says which debate runs and what it is expected to cost."""
    from moot.debates.dry_run import expected_cost

    cost = expected_cost(planned, settings) if planned else list(settings.model_names())
    calls = f"about {count_noun(planned.calls, 'call')}" if planned else "an unknown number of calls"
    price = (
        f"price unknown for {', '.join(cost)}"
        if isinstance(cost, list)
        else f"about US$ {cost['usd']:.4f}, at most US$ {cost['usd_at_most']:.4f}"
    )
    models = ", ".join(terminal.one_line(each, 60) for each in settings.model_names())
    return f"Debate ({settings.protocol}) with {models}: {calls}, {price}."


def _propose_and_confirm(
    settings: DebateConfig, documents: Sequence[Mapping[str, str]], *, yes: bool
) -> DebateConfig:
    """Let the model propose two debaters if the user named none, and let the user accept or change them.

    Only a terminal asks. A user who declines gets a command that runs the proposed debate.

    Raises:
        Exit: the user does not want to start the debate.
    """
    from moot.config.config_files import make_config
    from moot.debates.config_checks import with_tools
    from moot.debates.dry_run import estimate, omission_warnings
    from moot.debates.proposed_debaters import propose_debaters
    from moot.runtime.environment import Environment

    defaults, tools = make_config({"protocol": settings.protocol}).debaters, settings.debaters[0].tools
    plain_debaters = [each.model_copy(update={"tools": ()}) for each in settings.debaters]
    proposes = plain_debaters == [*defaults] and len(defaults) == 2
    choices = {"y": "[y]es", "e": "[e]dit", **({"a": "[a]nother"} if proposes else {}), "n": "[n]o"}
    proposed: list[DebaterConfig] = []
    spent_usd, choice = 0.0, "a"
    while True:
        if choice == "a" and proposes:
            terminal.print_note(f"{settings.model} proposes two debaters, for one call …")
            debaters, cost_usd = propose_debaters(settings.topic or "", settings, Environment(), proposed)
            proposed, spent_usd = [*proposed, *debaters], spent_usd + cost_usd
            settings = with_tools(settings.model_copy(update={"debaters": debaters}), tools)
        elif choice == "e":
            settings = _edited(settings)
        for debater in settings.debaters:
            role = f" ({terminal.one_line(debater.role, 60)})" if debater.role else ""
            stance = terminal.one_line(debater.stance or "no stance", 300)
            terminal.print_note(f"{terminal.one_line(debater.name, 40)}{role}: {stance}")
        planned = estimate(settings, documents=documents)
        spent = f" The proposals cost US$ {spent_usd:.4f}." if spent_usd else ""
        terminal.print_note(_cost_line(settings, planned) + spent)
        for warning in omission_warnings(planned, settings) if planned else ():
            terminal.print_note(warning)
        if yes or not sys.stdin.isatty():
            return settings
        try:
            choice = _chosen(choices)
        except typer.Abort:  # Ctrl-C: the proposal is paid
            choice = "n"
        if choice == "y":
            return settings
        if choice == "n":
            terminal.print_note(f"No debate was started. To run it later:\n  {_run_line(settings)}")
            raise Exit(0)


def _chosen(choices: Mapping[str, str]) -> str:
    """Ask the user to choose, and return the letter of the choice."""
    while True:
        question = f"Start the debate? {', '.join(choices.values())}"
        if (answer := str(typer.prompt(question, err=True)).strip().lower()[:1]) in choices:
            return answer


def _edited(settings: DebateConfig) -> DebateConfig:
    """Ask the user for the name, role and stance of each debater. Enter keeps what it was."""
    from moot.config.config_files import make_config

    data = settings.to_json()
    for debater in data["debaters"]:
        debater.pop("id")
        for key in ("name", "role", "stance"):
            answer = typer.prompt(f"{debater['name']}: {key}", default=debater[key], err=True)
            debater[key] = str(answer).strip()
    try:
        return make_config(data).model_copy(update={"topic": settings.topic})
    except ConfigError as error:
        terminal.print_error(str(error))
        return settings


def _run_line(settings: DebateConfig) -> str:
    """Return a command line that runs the debate as this command would, with the debaters."""
    words = [each for each in sys.argv[1:] if each != "--propose"]
    words = words[words[0] == "run" :]
    for debater in settings.debaters:
        parts = (debater.name, debater.role, debater.stance)
        words += ["--debater", ":".join(part.replace(":", " ") for part in parts[:2]) + f":{parts[2]}"]
    return shared.command_line("run", *words)
