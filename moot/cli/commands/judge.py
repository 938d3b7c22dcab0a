"""`moot judge`: judge a debate or a file again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from moot.cli import databases, inputs, options as shared, terminal
from moot.cli.group import command
from moot.config.config_files import make_config
from moot.judging.panel import RULES
from moot.state.entries import JsonMapping, tokens_of
from moot.state.errors import InputError, RunError
from moot.state.verdict import Rule
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from moot.debates.continuation import Judgement, JudgingOptions

DECIDES = "; ".join(f"{name} ({rule.decides})" for name, rule in RULES.items())


@command(panel="Read results", examples=("mono --model gpt-4o --panel 3 --rule majority",))
def judge(
    subject: Annotated[
        str | None,
        Argument(
            metavar="ID|FILE",
            help="Name or id of the debate to judge, or a file that contains a transcript or an exported "
            "debate.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        Option(
            "--model",
            "-m",
            metavar="NAME",
            help=("Model that judges the debate. Repeat the option for a panel with one judge per model."),
        ),
    ] = None,
    rubric: Annotated[
        str | None,
        Option(
            "--rubric",
            metavar="NAME|FILE",
            help="Rubric with the judge's criteria: {rubrics}, or the path of a rubric file.",
        ),
    ] = None,
    panel: Annotated[
        int | None,
        Option(
            "--panel",
            min=1,
            metavar="N",
            help="Number of judges on the panel. All judges use the same model.",
        ),
    ] = None,
    rule: Annotated[
        Rule | None, Option("--rule", help=f"Rule by which a panel of judges decides: {DECIDES}.")
    ] = None,
    swap: Annotated[
        bool | None,
        Option(
            "--swap/--no-swap",
            help="Let each judge decide twice, the second time with the debaters in reverse order.",
        ),
    ] = None,
    blind: Annotated[
        bool | None, Option("--blind/--no-blind", help="Hide the names of the debaters from the judge.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Do not store the verdict.")] = False,
    topic: Annotated[
        str | None,
        Option(
            "--topic",
            "-t",
            metavar="TEXT",
            help="Question that was debated. Needed only if FILE does not contain the question.",
        ),
    ] = None,
    config: shared.ConfigOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Judge a debate again, or end a paused debate with a verdict.

    `moot judge` prints the verdict and shows how far the judges agree. By default, the judges do not see the
    debaters' names, and each judge decides twice, the second time with the debaters in reverse order. In the
    council, dialogue and vote protocols, each judge decides once by default. Moot stores the new verdicts in
    addition to the earlier ones. For a stored or exported debate, Moot uses only the keys `judge` and
    `models` of the --config file. The exit code is 3 if judging fails.
    """
    from moot.config.file_references import read_rubric
    from moot.debates.continuation import JudgingOptions, judge_debate, model_after_recording

    panel_models = model if model and len(model) > 1 else None
    if panel_models and panel is not None:
        raise InputError(
            "--panel cannot be used with several --model options, because several models already form a panel"
        )
    options = JudgingOptions(
        model=model[0] if model and not panel_models else None,
        rubric=read_rubric(rubric, Path()) if rubric else None,
        panel=panel_models or panel,
        rule=rule,
        swap=swap,
        blind=blind,
    )
    if subject is None:
        raise InputError("there is nothing to judge: give the ID of a debate, or a FILE")
    path, document, whole_verdict = inputs.file_of(subject), None, ""
    if path is not None:
        judgement = _judge_file(path, options, topic, config)
    elif topic is not None:
        raise InputError("--topic works only with a FILE, because a stored debate already has a topic")
    else:
        options = _with_config(options, config)
        with databases.open_database(db) as debates:
            debate = debates.get(subject)
            if not model and config is None:
                own_model = model_after_recording(debate.config(), inputs.configured_model())
                options = replace(options, model=own_model)  # a recording judges only once
            judgement = judge_debate(debate.session, options, dry_run=dry_run)
            if judgement.stored and terminal.is_terminal():
                document = debate.document()
                whole_verdict = shared.command_line("show", debate.name or debate.id, "--verdict", db=db)
    _deliver(judgement, document, whole_verdict, as_json=as_json, quiet=quiet)


def _with_config(options: JudgingOptions, config: Path | None) -> JudgingOptions:
    """Add the `judge` and `models` settings of a configuration file to the judging options."""
    from moot.config.stages import file_data

    if config is None:
        return options
    data = file_data(config, terminal.print_error)
    make_config(data)  # reports mistakes in the rest of the file too
    if not data.get("judge") and not data.get("models"):
        raise InputError(
            f"configuration {str(config)!r} sets neither `judge` nor `models`: set at least one "
            "of them. `moot judge` ignores all other keys, because the debate has its own configuration"
        )
    return replace(options, configured=data)


def _judge_file(path: Path, options: JudgingOptions, topic: str | None, config: Path | None) -> Judgement:
    from moot.config.boundary import Capability, capabilities_of
    from moot.debates.continuation import judge_values
    from moot.debates.imported_debate import document_values, transcript_config, transcript_values
    from moot.runtime.environment import Environment

    imported, environment = inputs.read_transcript(path), Environment()
    if imported.document is not None:
        options = _with_config(options, config)
        values = document_values(imported.document, environment)
        granted: Collection[Capability] = ()
    else:
        base = inputs.run_config(config, {})
        settings = transcript_config(imported, base)
        granted = capabilities_of(settings)
        debate_topic = topic or base.topic or imported.topic
        values = transcript_values(imported, debate_topic, settings, environment)
    return judge_values(values, options, environment, granted=granted)


def _deliver(
    judgement: Judgement, document: JsonMapping | None, whole_verdict: str, *, as_json: bool, quiet: bool
) -> None:
    """Print the verdict, in short if `whole_verdict` names the command that shows all of it."""
    from moot.cli.running import print_short_answer
    from moot.cli.show_parts import agreement_parts, verdict_parts

    parts = agreement_parts(judgement)
    if not document:
        document = {
            "config": judgement.config,
            "verdict": judgement.verdict,
            "solution": judgement.verdict["solution_markdown"],
        }
        parts = [*verdict_parts(document), *parts]
    terminal.print_answer(judgement.to_json(), *parts, as_json=as_json)
    if not quiet and not as_json:
        calls = count_noun(int(judgement.usage.get("calls", 0)), "call")
        storage_note = "stored with the debate" if judgement.stored else "not stored"
        terminal.print_note(f"\n{calls} · {tokens_of(judgement.usage):,.0f} tokens · {storage_note}\n")
    if whole_verdict and not as_json:
        print_short_answer(document, () if quiet else ("", f"  verdict  {whole_verdict}"))
    if judgement.failed:
        terminal.print_error(f"the verdict failed: {terminal.one_line(judgement.verdict['error'], 500)}")
        raise Exit(RunError.exit_code)
