"""`moot run`: start a debate."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from moot.cli import options as shared
from moot.cli import terminal
from moot.cli.databases import open_database
from moot.cli.group import command
from moot.cli.inputs import read_topic, run_config, split_context, warn_of_ignored_length
from moot.config import DebateConfig
from moot.config.model_settings import is_built_in
from moot.state.errors import InputError
from moot.state.settings import check_database
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from moot.cli.running import Gate


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
    from moot.config.file_references import read_rubric
    from moot.debates.lifecycle import unused_name
    from moot.importers import read_documents

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
    if delivery.remarks and not all(map(is_built_in, settings.model_names())):
        topic = question or settings.topic or ""
        from moot.debates.dry_run import estimate, omission_warnings  # imports the graph

        planned = estimate(settings.model_copy(update={"topic": topic}), documents=documents or ())
        for warning in omission_warnings(planned, settings) if planned else ():
            terminal.print_note(f"warning: {warning}")
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
    from moot.config.stages import validate
    from moot.debates.dry_run import estimate, expected_cost, omission_warnings
    from moot.debates.proposed_debaters import propose_debaters
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
