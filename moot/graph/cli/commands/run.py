"""`moot run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from moot.graph.cli import options as shared
from moot.graph.cli.database import open_database
from moot.graph.cli.screen.output import remark
from moot.state.errors import InputError
from moot.state.settings import check_database


def run(
    topic: Annotated[
        str | None,
        Argument(
            metavar="TOPIC|@FILE|-",
            help="What is argued: words, a file, or - for stdin; optional where the configuration says it.",
        ),
    ] = None,
    config: shared.ConfigOption = None,
    debater: shared.DebaterOption = None,
    turns: shared.TurnsOption = None,
    rounds: shared.RoundsOption = None,
    protocol: shared.ProtocolOption = None,
    model: shared.ModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    temperature: Annotated[
        float | None,
        Option("--temperature", min=0, max=2, metavar="T", help="Sampling temperature of debaters."),
    ] = None,
    seed: Annotated[int | None, Option("--seed", metavar="N", help="Seed, for models that take one.")] = None,
    summarizer: Annotated[
        str | None,
        Option(
            "--summarizer",
            metavar="NAME",
            help="Of older messages: rule-based (the default), llm, hierarchical or none.",
        ),
    ] = None,
    rubric: Annotated[
        str | None,
        Option("--rubric", metavar="NAME|FILE", help="What the judge scores: debate, design, or a file."),
    ] = None,
    no_judge: Annotated[bool, Option("--no-judge", help="End without a verdict.")] = False,
    context: Annotated[
        list[Path] | None,
        Option(
            "--context",
            metavar="FILE|DIR",
            help="A file is shown to everybody, repeatable; one folder is there for the tools.",
        ),
    ] = None,
    tools: Annotated[
        str | None,
        Option(
            "--tools",
            metavar="NAME,…",
            help="Tools of debaters who list none: search, read_file, list_files, search_debate, calculator.",
        ),
    ] = None,
    answers: shared.AnswersOption = None,
    replay: Annotated[
        str | None,
        Option(
            "--replay", metavar="ID", help="Argue a stored debate again from its journal, without a model."
        ),
    ] = None,
    name: shared.NameOption = None,
    output: shared.OutputOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
    bell: shared.BellOption = False,
    log_json: shared.LogOption = False,
) -> None:
    """Argue a topic to its end, with a verdict.

    What is given here overrides the configuration file. The debate is saved at every step: after Ctrl-C, a
    crash or a failing model, `moot resume` goes on where it was.
    """
    from moot.graph.cli.named_files import read_answers, read_documents, read_topic
    from moot.graph.cli.running import Delivery, run_to_end
    from moot.graph.cli.screen.answerer import check_answers
    from moot.graph.cli.usual_config import parse_debaters, run_config, warn_of_idle
    from moot.graph.operator_config import read_rubric

    delivery = Delivery(db, as_json, quiet, output, read_answers(answers), bell, log_json)
    if replay:
        with open_database(db) as debates:
            raise Exit(run_to_end(debates.replay(replay, name=name), delivery))

    folders = [path for path in context or () if path.is_dir()]
    if len(folders) > 1:
        raise InputError(f"--context: give one folder, not {', '.join(map(str, folders))}")
    flags = {
        "debaters": parse_debaters(debater),
        "turns": turns,
        "rounds": rounds,
        "protocol": protocol,
        "model": model,
        "temperature": temperature,
        "seed": seed,
        "memory.summarizer": summarizer,
        "judge.model": judge_model,
        "judge.rubric": read_rubric(rubric, Path()) if rubric else None,
        "judge.enabled": False if no_judge else None,
        "context": str(folders[0].absolute()) if folders else None,
    }
    asked = read_topic(topic)
    check_database(db)
    documents = read_documents([path for path in context or () if path not in folders])
    given_tools = [each.strip() for each in (tools or "").split(",") if each.strip()]
    settings = run_config(config, flags, given_tools, topic=asked)
    if asked is None and not (settings.topic or "").strip():
        raise InputError("no topic: give TOPIC, @FILE or -, or `topic` in the configuration")
    warn_of_idle(flags, settings)
    if settings.context and Path(settings.context).is_dir() and not any(d.tools for d in settings.debaters):
        remark("warning: nobody has tools to look into the context folder: give --tools search,read_file")
    check_answers(delivery.answers, settings)

    with open_database(db, make=True) as debates:
        debate = debates.start(asked, settings, name=name, documents=documents)
        raise Exit(run_to_end(debate, delivery))
