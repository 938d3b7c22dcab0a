"""`moot run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import (
    AnswersOption,
    ConfigOption,
    DbOption,
    DebaterOption,
    JsonOption,
    NameOption,
    OutputOption,
    ProtocolOption,
    QuietOption,
    RoundsOption,
    TurnsOption,
)

if TYPE_CHECKING:
    from moot.graph.cli.running import Delivery

app = new_app()


@app.command()
def run(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC|@FILE|-",
            help="What is argued: words, a file, or - for stdin; optional where the configuration says it.",
        ),
    ] = None,
    config: ConfigOption = None,
    debater: DebaterOption = None,
    turns: TurnsOption = None,
    rounds: RoundsOption = None,
    protocol: ProtocolOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Model of everybody who names none; MOOT_MODEL, else the built-in offline model.",
        ),
    ] = None,
    judge_model: Annotated[
        str | None, typer.Option("--judge-model", metavar="NAME", help="Model of the judge.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", min=0, max=2, metavar="T", help="Sampling temperature of debaters."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed, for models that take one.")
    ] = None,
    summarizer: Annotated[
        str | None, typer.Option("--summarizer", metavar="NAME", help="Method of the rolling summary.")
    ] = None,
    rubric: Annotated[
        str | None,
        typer.Option(
            "--rubric", metavar="NAME|FILE", help="What the judge scores: a shipped rubric or a file."
        ),
    ] = None,
    no_judge: Annotated[bool, typer.Option("--no-judge", help="End without a verdict.")] = False,
    context: Annotated[
        list[Path] | None,
        typer.Option(
            "--context",
            metavar="FILE|DIR",
            help="A file is shown to everybody, repeatable; one folder is there for the tools.",
        ),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(
            "--tools",
            metavar="NAME,…",
            help="Tools of debaters who list none: search, read_file, list_files, search_debate, calculator.",
        ),
    ] = None,
    answers: AnswersOption = None,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay", metavar="ID", help="Argue a stored debate again from its journal, without a model."
        ),
    ] = None,
    name: NameOption = None,
    output: OutputOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Argue a topic to its end, with a verdict.

    What is given here overrides the configuration file. The debate is saved at every step: after Ctrl-C, a
    crash or a failing model, `moot resume` goes on where it was.
    """
    from moot.graph.cli import request
    from moot.graph.cli.context_options import context_folder, give_tools
    from moot.graph.cli.database import check_database, opened
    from moot.graph.cli.running import Delivery, run_to_end
    from moot.graph.cli.screen.answerer import check_answers, read_answers

    if replay:
        raise typer.Exit(_replay(replay, name, Delivery(db, as_json, quiet, output, _form(output))))
    flags = {
        "debaters": [request.parse_debater(each) for each in debater] if debater else None,
        "turns": turns,
        "rounds": rounds,
        "protocol": protocol,
        "model": model,
        "temperature": temperature,
        "seed": seed,
        "memory.summarizer": summarizer,
        "judge.model": judge_model,
        "judge.rubric": request.read_rubric(rubric, Path()) if rubric else None,
        "judge.enabled": False if no_judge else None,
        "context": context_folder(context or []),
    }
    said = request.read_topic(topic)
    request.check_new_name(name)
    check_database(db)
    form = _form(output)
    prepared = read_answers(answers)
    documents = request.read_documents([path for path in context or [] if not path.is_dir()])
    settings = give_tools(request.run_config(config, flags), tools)
    request.require_topic(said, settings)
    request.warn_of_idle(flags, settings)
    check_answers(prepared, settings)
    with opened(db, make=True) as debates:
        debate = debates.start(said, settings, name=name, documents=documents)
        code = run_to_end(debate, Delivery(db, as_json, quiet, output, form, prepared))
    raise typer.Exit(code)


def _form(output: Path | None) -> str:
    from moot.graph.cli.screen.output import format_of

    return format_of(output) if output else ""


def _replay(source: str, name: str | None, delivery: Delivery) -> int:
    from moot.graph.cli.database import opened
    from moot.graph.cli.running import run_to_end

    with opened(delivery.db) as debates:
        return run_to_end(debates.replay(source, name=name), delivery)
