"""`moot judge`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from moot.graph.cli.database import open_database
from moot.graph.cli.options import ConfigOption, DbOption, JsonOption, QuietOption
from moot.graph.cli.screen.output import complain, print_answer, remark
from moot.graph.cli.screen.terminal_text import one_line
from moot.nodes.judging.decision import RULES
from moot.nodes.text.plain import amount
from moot.state.entries import tokens_of
from moot.state.errors import InputError, RunError
from moot.state.verdict import Rule

if TYPE_CHECKING:
    from moot.graph.judgement import Judgement, JudgingOptions

DECIDES = "; ".join(f"{name}, {rule.decides}" for name, rule in RULES.items())


def judge(
    subject: Annotated[
        str | None,
        Argument(metavar="ID|FILE", help="A debate that is over, or a transcript or export to judge."),
    ] = None,
    model: Annotated[
        list[str] | None,
        Option("--model", "-m", metavar="NAME", help="Model; several make a panel of one judge each."),
    ] = None,
    rubric: Annotated[str | None, Option("--rubric", metavar="NAME|FILE", help="What is scored.")] = None,
    panel: Annotated[
        int | None, Option("--panel", min=1, metavar="N", help="So many judges of the model.")
    ] = None,
    rule: Annotated[Rule | None, Option("--rule", help=f"The panel decides by: {DECIDES}.")] = None,
    swap: Annotated[
        bool | None, Option("--swap/--no-swap", help="Judge in both orders of presentation.")
    ] = None,
    blind: Annotated[bool | None, Option("--blind/--no-blind", help="Hide names from the judge.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Store nothing.")] = False,
    topic: Annotated[
        str | None, Option("--topic", "-t", metavar="TEXT", help="Of a FILE that does not say it.")
    ] = None,
    benchmark: Annotated[
        Path | None,
        Option("--benchmark", metavar="FILE", help="Measure the judge on human-judged debates instead."),
    ] = None,
    limit: Annotated[
        int | None, Option("--limit", min=1, metavar="N", help="Sessions of the benchmark, the first.")
    ] = None,
    config: ConfigOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Judge a debate again, and show the verdict and how far the judges agree.

    Names are hidden, and every judge judges in both orders where the protocol has a winner to choose (all
    but council and vote), unless told otherwise. The verdicts of a stored debate are kept beside the earlier
    ones. Of --config, what is under judge and models counts where the debate has a configuration already.
    Exits with 3 where the verdict failed.
    """
    from moot.graph.cli.named_files import file_of
    from moot.graph.judgement import JudgingOptions, judge_debate
    from moot.graph.operator_config import read_rubric

    several = model if model and len(model) > 1 else None
    if several and panel is not None:
        raise InputError("--panel: several --model already make a panel; give one of the two")
    options = JudgingOptions(
        model=model[0] if model and not several else None,
        rubric=read_rubric(rubric, Path()) if rubric else None,
        panel=several or panel,
        rule=rule,
        swap=swap,
        blind=blind,
    )
    if benchmark is not None:
        unwanted = {"ID|FILE": subject, "several --model": several, "--panel": panel, "--rubric": rubric}
        unwanted |= {"--rule": rule, "--blind": blind, "--topic": topic}
        if refused := [name for name, value in unwanted.items() if value is not None]:
            raise InputError(
                f"--benchmark takes no {' or '.join(refused)}: it measures one judge on the sessions of a "
                "file, so leave that out, and measure several models one after the other"
            )
        _measure(benchmark, options, config, limit, as_json=as_json)
        return
    if subject is None:
        raise InputError("say what is to be judged: a debate's ID, a FILE, or --benchmark FILE")
    path = file_of(subject)
    if path is not None:
        judgement = _judge_file(path, options, topic, config)
    elif topic is not None:
        raise InputError("--topic is for a FILE that does not say it; a debate has its own")
    else:
        options = _with_config(options, config)
        with open_database(db) as debates:
            judgement = judge_debate(debates.get(subject).session, options, dry_run=dry_run)
    _deliver(judgement, as_json=as_json, quiet=quiet)


def _with_config(options: JudgingOptions, config: Path | None) -> JudgingOptions:
    """Return the options for a debate that has a configuration, of whose judge a file says something else."""
    from moot.graph.cli.screen.output import complain
    from moot.graph.operator_config import file_data
    from moot.state.config.config_files import make_config

    if config is None:
        return options
    data = file_data(config, complain)
    make_config(data)  # what is wrong elsewhere in the file is no less wrong
    if not data.get("judge") and not data.get("models"):
        raise InputError(
            f"--config {str(config)!r} has neither `judge` nor `models`: nothing else of a file counts "
            "where the debate has a configuration already"
        )
    return replace(options, configured=data)


def _judge_file(path: Path, options: JudgingOptions, topic: str | None, config: Path | None) -> Judgement:
    from moot.graph.cli.named_files import read_transcript
    from moot.graph.cli.usual_config import run_config
    from moot.graph.importing.adopting import document_values, transcript_config, transcript_values
    from moot.graph.judgement import judge_values
    from moot.nodes.driving.environment import Environment
    from moot.state.config.boundary import Reach, reaches

    imported, environment = read_transcript(path), Environment()
    if imported.document is not None:
        options = _with_config(options, config)
        values = document_values(imported.document, environment)
        granted: Collection[Reach] = ()
    else:
        base = run_config(config, {})
        settings = transcript_config(imported, base)
        granted = reaches(settings)
        said = topic or base.topic or imported.topic
        values = transcript_values(imported, said, settings, environment, rated=False)
    return judge_values(values, options, environment, granted=granted)


def _deliver(judgement: Judgement, *, as_json: bool, quiet: bool) -> None:
    from moot.graph.cli.screen.verdict_screen import agreement_parts, verdict_parts

    document = {
        "config": judgement.config,
        "verdict": judgement.verdict,
        "solution": judgement.verdict["solution_markdown"],
    }
    parts = [*verdict_parts(document), *agreement_parts(judgement)]
    print_answer(judgement.to_json(), *parts, as_json=as_json)
    if not quiet and not as_json:
        calls = amount(int(judgement.usage.get("calls", 0)), "call")
        kept = "stored with the debate" if judgement.stored else "not stored"
        remark(f"\n{calls} · {tokens_of(judgement.usage):,.0f} tokens · {kept}")
    if judgement.failed:
        complain(f"the verdict failed: {one_line(judgement.verdict['error'], 500)}")
        raise Exit(RunError.exit_code)


def _measure(
    path: Path, options: JudgingOptions, config: Path | None, limit: int | None, *, as_json: bool
) -> None:
    from moot.graph.cli.screen.verdict_screen import benchmark_parts
    from moot.graph.cli.usual_config import run_config
    from moot.graph.judge_benchmark import measure_judge
    from moot.nodes.driving.environment import Environment

    settings = options.applied_to(run_config(config, {}))
    if settings.judge.panel and options.model is None:
        raise InputError("--benchmark measures one judge, and the configuration has a panel: give --model")
    swap = settings.judge.swap is not False
    measured = measure_judge(path, settings, Environment(), limit=limit, swap=swap)
    print_answer(measured.to_json(), *benchmark_parts(measured), as_json=as_json)
