"""`moot eval`: compare configurations, votes, judges and line-ups, and score finished debates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from typer import Argument, Exit, Option

from moot.cli import databases, inputs, live, options as shared, terminal
from moot.cli.group import Interrupted, command, ignore_interrupts, new_app
from moot.cli.terminal import json_text
from moot.config import DebateConfig
from moot.plugins.evals.batch_command import QueueOption
from moot.state.entries import JsonObject
from moot.state.errors import InputError, RunError, file_error_reason
from moot.state.settings import variable
from moot.state.verdict import PLACEHOLDER
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from moot.plugins.evals.run import EvaluationRun, RunResult, TaskReport
    from moot.plugins.evals.scorecards import Scorecard

Form = Literal["table", "json", "csv", "md"]
MAX_LISTED_ANSWERS = 5
"""Maximum number of missing answers that `moot eval run` lists, each with the reason."""

app = new_app(no_args_is_help=True)


@command(
    panel="Read results",
    name="eval",
    app=app,
    examples=(
        "run questions.jsonl --arm single --arm vote@tokens --arm debate.yaml",
        "report questions --html",
    ),
)
@app.callback()
def evaluate() -> None:
    """Compare configurations on many questions, or score debates."""


@app.command("run")
def run_evaluation(
    path: Annotated[
        Path,
        Argument(
            metavar="SET",
            help="Evaluation set, a .jsonl or .csv file. The file contains questions to answer, pairs of "
            "answers for a judge to compare, or topics for two groups of debaters.",
        ),
    ],
    arm: Annotated[
        list[str],
        Option(
            "--arm",
            "-a",
            metavar="ARM",
            help="Configuration to evaluate. Repeat the option for each configuration. Possible values: a "
            "protocol such as single; a configuration file; vote@K, vote@tokens or vote@cost for a vote "
            "among answers; first-answers for the first answers in a debate; judge:FILE for the judge of a "
            "configuration file; or recorded:FILE for recorded results.",
        ),
    ],
    name: Annotated[
        str | None,
        Option(
            "--name",
            "-n",
            metavar="NAME",
            help="Name of the evaluation. Default: the name of the evaluation set.",
        ),
    ] = None,
    seeds: Annotated[
        int,
        Option(
            "--seeds",
            min=1,
            max=1000,
            metavar="N",
            help="Number of times that each configuration is run on each item.",
        ),
    ] = 1,
    max_cost: Annotated[
        float | None,
        Option("--max-cost", min=0, metavar="USD", help="Maximum cost of the whole evaluation in US$."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        Option(
            "--max-tokens",
            min=0,
            metavar="N",
            help="Maximum number of tokens that the whole evaluation may use.",
        ),
    ] = None,
    concurrency: Annotated[
        int,
        Option(
            "--concurrency",
            "-w",
            min=1,
            max=256,
            metavar="N",
            help="Number of debates to run at the same time.",
        ),
    ] = 4,
    queue: QueueOption = False,
    model: shared.ModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    config: shared.ConfigOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Run every --arm configuration on every item in an evaluation set.

    The command then prints a report on the evaluation. To continue after Ctrl-C, a failure or a reached
    limit, run the same command again. Moot does not repeat finished model calls. When you run the command
    again, you may add or omit --arm configurations. Moot runs and reports only the --arm configurations that
    you name.

    The settings in the --config file apply to --arm configurations without a file of their own, such as
    `single`, and to the judge that grades free-text answers. When an evaluation reaches --max-cost or
    --max-tokens, Moot starts no new model calls, but waits for running calls to finish. The exit code is 3 if
    any answer is missing from the evaluation.
    """
    from moot.cli.running import handle_sigterm_as_interrupt
    from moot.plugins.evals.arms import judge_settings, read_arms
    from moot.plugins.evals.items import read_items
    from moot.plugins.evals.results import EvaluationRecord, Evaluations
    from moot.plugins.evals.run import EvaluationRun
    from moot.plugins.evals.statistics import check_installed
    from moot.runtime.environment import utc_now
    from moot.storage.rate_limiter import SharedBudget

    check_installed()
    items = read_items(path)
    flags = {"model": model, "judge.model": judge_model}
    judge = judge_settings(flags, config)
    budget = SharedBudget(max_tokens, max_cost)
    jobs = databases.open_queue(db) if queue else None
    with databases.open_database(db, make=True) as debates:
        store, title = Evaluations(debates.records.sql), name or path.stem
        stored_record = store.get(title)
        arms = read_arms(
            arm, items, flags, config, terminal.print_error, stored_record.arms if stored_record else ()
        )
        record = EvaluationRecord(title, items, tuple(arms), seeds, utc_now(), judge)
        evaluation = stored_record.extended_by(record) if stored_record else record
        left_out = evaluation.left_out(record)
        run = EvaluationRun(debates, evaluation.only(record))
        run.check(budget)
        store.save(evaluation)
        if jobs is not None:
            result = run.enqueue(budget, jobs, concurrency)
        else:
            try:
                with handle_sigterm_as_interrupt(), _progress(quiet=quiet) as say:
                    result = run.run(budget, concurrency, say)
            except KeyboardInterrupt:
                ignore_interrupts()
                raise Interrupted(
                    "the evaluation was interrupted, but all answers so far are saved: run the same command "
                    "again to continue"
                ) from None
        report = _report_of(run)
    _deliver_run(report, result, left_out, db, as_json=as_json, quiet=quiet)
    if result.errors and (result.budget.reached or not queue):
        raise Exit(RunError.exit_code)


def _report_of(run: EvaluationRun, baseline: str = "") -> JsonObject:
    from moot.plugins.evals.report import evaluation_report

    return evaluation_report(run.evaluation, run.outcomes, baseline)


def _deliver_run(
    report: JsonObject,
    result: RunResult,
    left_out: Sequence[str],
    db: str | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the report of an evaluation run. Then print notes on missing and omitted results."""
    name = report["name"]
    missing = [
        {"item": item, "arm": arm, "seed": seed, "why": why}
        for (item, arm, seed), why in result.errors.items()
    ]
    if as_json:
        spent = {"tokens": result.budget.tokens, "cost_usd": round(result.budget.cost, 6)}
        reached = result.budget.reached
        run = {"queued": result.queued, **spent, "reached": reached, "missing": missing}
        terminal.print_json({**report, "run": {**run, "left_out": [*left_out]}})
    else:
        terminal.print_result(*report_parts(report))
    if left_out:
        report_command = shared.command_line("eval", "report", name, db=db)
        terminal.print_note(
            f"left out, because this call did not ask for it: {', '.join(left_out)}. All: {report_command}"
        )
    if result.queued or (missing and all(each["why"] == "queued" for each in missing)):
        terminal.print_note(
            f"{count_noun(result.queued, 'debate')} queued. When the workers are done, run the same command "
            "again to collect the answers"
        )
        if not result.budget.reached:
            return
    if result.budget.reached:
        terminal.print_error(
            f"{result.budget.reached}; {count_noun(len(missing), 'answer')} missing. Run the same command "
            "again with a higher limit to go on"
        )
    elif missing:
        terminal.print_error(
            f"{count_noun(len(missing), 'answer')} missing. Run the same command again to try them again:"
        )
        for each in missing[:MAX_LISTED_ANSWERS]:
            terminal.print_note(
                f"  {each['item']}, {each['arm']}: {terminal.one_line(str(each['why']), 300)}"
            )
    elif not quiet:
        terminal.print_note(
            f"\nHTML page with the chart: {shared.command_line('eval', 'report', name, '--html', db=db)}"
        )


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[TaskReport], None] | None]:
    """Show the progress of an evaluation during a `with` block.

    Yield the function that shows the progress, or `None` if `quiet` is set. On a terminal, the function
    updates one line in place.
    """
    if quiet:
        yield None
        return
    from rich.status import Status

    console = terminal.err_console()

    def line(report: TaskReport) -> str:
        label = f"{terminal.one_line(report.task.item.id, 30)} · {terminal.one_line(report.task.arm, 40)}"
        cost_text = live.spent_text(report.budget.tokens, report.budget.cost)
        error_text = f": {terminal.one_line(report.error, 200)}" if report.error else ""
        return f"[{report.done}/{report.total}] {label}{error_text} · {cost_text}"

    if not console.is_terminal:
        yield lambda report: console.print(Text(line(report)), soft_wrap=True)
        return
    with Status("starting", console=console) as status:

        def show(report: TaskReport) -> None:
            status.update(Text(line(report)))
            if report.error:
                console.print(Text(line(report)))

        yield show


def report_parts(report: JsonObject) -> list[RenderableType]:
    """Return an evaluation's report as texts and tables to print."""
    from moot.plugins.evals.report_pages import report_tables, summary_line

    parts: list[RenderableType] = [Text(terminal.one_line(each, 300), "bold") for each in report["headline"]]
    parts += [Text(terminal.one_line(each, 300)) for each in report["findings"]]
    parts.append(Text(summary_line(report)))
    for table in report_tables(report):
        parts.append(Padding(Text(table.title, "bold"), (1, 0, 0, 0)) if table.title else Text(""))
        parts.append(terminal.Grid(table.heading, table.rows, table.numeric).screen())
    parts += [Padding(Text(note, "dim"), (1, 0, 0, 0)) for note in report["notes"]]
    return parts


@app.command("report")
def report_evaluation(
    name: Annotated[
        str, Argument(metavar="NAME", help="Name of the evaluation to report on. Omit it with --feedback.")
    ] = "",
    baseline: Annotated[
        str,
        Option(
            "--baseline",
            metavar="ARM",
            help="Name of the --arm configuration to compare all others with. Default: vote@tokens or "
            "vote@cost, if the evaluation contains one of them.",
        ),
    ] = "",
    feedback: Annotated[
        bool,
        Option(
            "--feedback",
            help="Print the Brier score of each judge and model, calculated from the feedback that you gave "
            "with `moot feedback`.",
        ),
    ] = False,
    html: Annotated[bool, Option("--html", help="Write the report as an HTML page with a chart.")] = False,
    md: Annotated[bool, Option("--md", help="Print the report as Markdown.")] = False,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write, or - for stdout. Default: NAME.html with --html, otherwise stdout.",
        ),
    ] = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Print the report of an evaluation, or write the report to a file.

    The report begins by explaining in plain language how the configurations differ. All confidence intervals
    have a confidence level of 95 %.
    """
    if feedback:
        if name or html or md or output:
            raise InputError("--feedback covers all debates: remove NAME, --html, --md and -o")
        return _report_feedback(db, as_json=as_json)
    if not name:
        raise InputError(
            "no evaluation is given: add the NAME of an evaluation (see `moot eval list`), or add --feedback"
        )
    from moot.plugins.evals.report_pages import report_html, report_markdown
    from moot.plugins.evals.results import Evaluations
    from moot.plugins.evals.run import EvaluationRun

    suffix = output.suffix.lower() if output else ""
    forms = [form for form, is_given in (("html", html), ("md", md), ("json", as_json)) if is_given]
    forms = forms or [
        form for form, ending in (("html", ".html"), ("md", ".md"), ("json", ".json")) if suffix == ending
    ]
    if len(forms) > 1:
        raise InputError("several output formats are given: choose one of --html, --md and --json")
    form = forms[0] if forms else "table"
    with databases.open_database(db) as debates:
        evaluation = Evaluations(debates.records.sql).find(name)
        run = EvaluationRun(debates, evaluation)
        run.collect()
        report = _report_of(run, baseline)
    target = output or (Path(f"{safe_file_name(name)}.html") if form == "html" else terminal.STDOUT)
    if form == "table":
        if output is not None:
            raise InputError(f"the name of the output file {str(output)!r} must end in .html, .md or .json")
        return terminal.print_result(*report_parts(report))
    terminal.check_folder(target)
    render = {"html": report_html, "md": report_markdown}.get(form)
    terminal.write_file(target, render(report) if render else json_text(report) + "\n")
    if target != terminal.STDOUT and not quiet:
        terminal.print_note(f"wrote {target}")


def _report_feedback(db: str | None, *, as_json: bool) -> None:
    """Print a Brier score for each judge and model. The scores cover all debates with feedback."""
    from moot.plugins.evals.statistics import brier_scores

    with databases.present_records(db) as records:
        feedback = records.follow_ups.feedback()
    scores = brier_scores((each.outcome, each.forecasts) for each in feedback)
    if as_json:
        return terminal.print_json({"scores": scores, "feedback": [asdict(each) for each in feedback]})
    if not scores:
        return terminal.print_note(
            "no feedback yet: record it with `moot feedback ID right` (or wrong, mixed)"
        )
    heading = ["judge", "model", "decisions", "Brier", "stated", "right"]
    rows = [
        [
            each["judge"],
            each["model"],
            str(each["decisions"]),
            f"{each['brier']:.3f}",
            f"{each['confidence']:.0f} %",
            f"{each['right']:.0f} %",
        ]
        for each in scores
    ]
    terminal.print_result(terminal.Grid(heading, rows).screen())


def safe_file_name(name: str) -> str:
    """Return a file name in which hyphens replace characters that are special in paths or shells."""
    return (
        "".join(char if char.isalnum() or char in "._-" else "-" for char in name).strip("-.") or "evaluation"
    )


@app.command("list")
def list_evaluations(db: shared.DbOption = None, as_json: shared.JsonOption = False) -> None:
    """List the stored evaluations, their configurations and answer counts."""
    from moot.plugins.evals.results import Evaluations

    with databases.open_database(db) as debates:
        data = Evaluations(debates.records.sql).overview()
    rows = [
        (str(row["name"]), str(row["items"]), ", ".join(row["arms"]), str(row["answers"])) for row in data
    ]
    terminal.print_answer(
        data, terminal.Grid(("evaluation", "items", "arms", "answers"), rows).screen(), as_json=as_json
    )


@app.command("debate")
def evaluate_debates(
    subjects: Annotated[
        list[str],
        Argument(
            metavar="ID|FILE…",
            help="Names or ids of the debates to score, or files with debates. Moot reads its own exports "
            "and files of the program dialectic.",
        ),
    ],
    problem: Annotated[
        str | None,
        Option(
            "--problem",
            "-p",
            metavar="FILE|TEXT",
            help="Problem that the debates were meant to solve. Default: each debate's topic.",
        ),
    ] = None,
    evaluator: Annotated[
        list[str] | None,
        Option(
            "--evaluator",
            "--model",
            "-e",
            metavar="MODEL",
            help="Model that scores the debates. Repeat the option for several models.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        Option(
            "--config",
            "-c",
            metavar="FILE",
            help="File that defines the evaluators: YAML, or JSON in the format of the program dialectic.",
        ),
    ] = None,
    form: Annotated[
        Form | None,
        Option(
            "--format",
            "-f",
            help="Output format. Default: determined by the output file's suffix, otherwise a table.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write. If a .csv file already exists, rows are appended to it.",
        ),
    ] = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Let models score finished debates from 1 to 10 on each criterion.

    Each model that scores a debate is an evaluator. The command prints the average of the evaluators' scores,
    or N/A if no evaluator gave a score. The exit code is 3 if any debate received no score.
    """
    from moot.debates.config_checks import check_model
    from moot.plugins.evals import scorecards
    from moot.plugins.evals.subjects import read_subject, subject_of_document
    from moot.runtime.environment import Environment

    output_form = terminal.form_of(form, output, as_json=as_json, forms=get_args(Form))
    if config is None:
        if not (evaluator or variable("MOOT_MODEL")):
            check_model(DebateConfig())
        evaluators = scorecards.evaluators_named(evaluator or [variable("MOOT_MODEL") or ""])
    else:
        file_evaluators = scorecards.read_evaluators(config)
        evaluators = (
            *file_evaluators,
            *scorecards.evaluators_named(evaluator or [], [seat.id for seat in file_evaluators]),
        )
    problem_text, loaded_subjects = _problem(problem), []
    for each in subjects:
        if path := inputs.file_of(each):
            loaded_subjects.append(read_subject(path, problem=problem_text))
            continue
        with databases.open_database(db) as debates:
            loaded_subjects.append(subject_of_document(debates.get(each).document(), problem=problem_text))
    cards = scorecards.evaluate_subjects(loaded_subjects, evaluators, DebateConfig(), Environment())
    if output_form != "csv":
        terminal.write_or_print(
            output_form, output, scorecards.to_json(cards), table_of(cards).markdown(), _screen(cards)
        )
    elif output is not None:
        add_rows(output, cards)
    else:
        terminal.print_text(scorecards.to_csv(cards))
    _report_warnings(cards, quiet=quiet)
    if not all(map(_has_score, cards)):
        raise Exit(RunError.exit_code)


def _has_score(card: Scorecard) -> bool:
    """Return True if an evaluator gave a score, or if the built-in model took an evaluator's place."""
    verdicts = [each.verdict for each in card.evaluations]
    return any(verdict.get("placeholder") or verdict["scores"] for verdict in verdicts)


def _report_warnings(cards: Sequence[Scorecard], *, quiet: bool) -> None:
    """Print the evaluators' errors and notes. With `quiet`, print only the errors."""
    evaluations = [
        (card.name, evaluation.name, evaluation.verdict) for card in cards for evaluation in card.evaluations
    ]
    for name, evaluator, verdict in evaluations:
        if verdict["status"] == "failed":
            terminal.print_error(f"evaluator {evaluator} failed on {name}: {verdict['error'][:500]}")
    for name, evaluator, verdict in [] if quiet else evaluations:
        for note in verdict["notes"]:
            terminal.print_note(f"{name}, {evaluator}: {note}")


def _problem(problem: str | None) -> str:
    """Return the problem statement, from a file if the argument names one."""
    from moot.config.file_references import read_text

    if problem is None:
        return ""
    path = Path(problem.removeprefix("@"))
    try:
        is_file = problem.startswith("@") or path.is_file()
    except OSError:  # the text is too long for a file name
        is_file = False
    return read_text(path, "the problem") if is_file else problem


def add_rows(path: Path, cards: Sequence[Scorecard]) -> None:
    """Append the scores of the evaluated debates to a CSV file. A new or empty file gets the header first.

    Raises:
        InputError: the file cannot be written.
    """
    from moot.plugins.evals.scorecards import to_csv

    if path.is_symlink():
        raise InputError(
            f"cannot append to {str(path)!r}, because it is a symbolic link: give the file itself"
        )
    try:
        with path.open("a+", encoding="utf-8", newline="") as file:
            is_empty = file.tell() == 0
            has_partial_line = not is_empty and not path.read_bytes().endswith(b"\n")
            file.write(("\n" if has_partial_line else "") + to_csv(cards, heading=is_empty))
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {file_error_reason(error)}") from error


def table_of(cards: Sequence[Scorecard]) -> terminal.Grid:
    """Return a table of average scores with one row per debate."""
    from moot.plugins.evals.scorecards import figures, header

    return terminal.Grid(header(), [[card.name, *figures(card)] for card in cards])


def _screen(cards: Sequence[Scorecard]) -> list[RenderableType]:
    # There are few debates and many criteria, so each debate is a column on the screen.
    table = table_of(cards)
    (_, *names), *rows = zip(table.heading, *table.rows, strict=True)
    parts: list[RenderableType] = [terminal.Grid(["", *names], rows).screen()]
    for card in cards:
        for evaluation in (each for each in card.evaluations if each.verdict["status"] == "ok"):
            model = terminal.one_line(evaluation.verdict["model"], 40)
            heading = (
                f"{terminal.one_line(card.name, 40)} · {terminal.one_line(evaluation.name, 40)} ({model})"
            )
            review = f"+ {terminal.safe(evaluation.strengths)}\n– {terminal.safe(evaluation.weaknesses)}"
            review = PLACEHOLDER if evaluation.verdict.get("placeholder") else review
            parts += [Padding(Text(heading, "bold"), (1, 0, 0, 0)), Text(review)]
    return parts
