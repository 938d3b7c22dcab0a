"""`moot run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from moot.graph.cli import options as shared
from moot.graph.cli.database import check_database, opened
from moot.graph.cli.named_files import read_rubric
from moot.graph.cli.screen.output import remark
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.graph.cli.running import Delivery


@dataclass(frozen=True)
class RunRequest:
    """What `moot run` is asked to do."""

    topic: Annotated[
        str | None,
        Argument(
            metavar="TOPIC|@FILE|-",
            help="What is argued: words, a file, or - for stdin; optional where the configuration says it.",
        ),
    ] = None
    config: shared.ConfigOption = None
    debater: shared.DebaterOption = None
    turns: shared.TurnsOption = None
    rounds: shared.RoundsOption = None
    protocol: shared.ProtocolOption = None
    model: shared.ModelOption = None
    judge_model: shared.JudgeModelOption = None
    temperature: Annotated[
        float | None,
        Option("--temperature", min=0, max=2, metavar="T", help="Sampling temperature of debaters."),
    ] = None
    seed: Annotated[int | None, Option("--seed", metavar="N", help="Seed, for models that take one.")] = None
    summarizer: Annotated[
        str | None,
        Option(
            "--summarizer",
            metavar="NAME",
            help="Of older messages: rule-based (the default), llm, hierarchical or none.",
        ),
    ] = None
    rubric: Annotated[
        str | None,
        Option("--rubric", metavar="NAME|FILE", help="What the judge scores: debate, design, or a file."),
    ] = None
    no_judge: Annotated[bool, Option("--no-judge", help="End without a verdict.")] = False
    context: Annotated[
        list[Path] | None,
        Option(
            "--context",
            metavar="FILE|DIR",
            help="A file is shown to everybody, repeatable; one folder is there for the tools.",
        ),
    ] = None
    tools: Annotated[
        str | None,
        Option(
            "--tools",
            metavar="NAME,…",
            help="Tools of debaters who list none: search, read_file, list_files, search_debate, calculator.",
        ),
    ] = None
    answers: shared.AnswersOption = None
    replay: Annotated[
        str | None,
        Option(
            "--replay", metavar="ID", help="Argue a stored debate again from its journal, without a model."
        ),
    ] = None
    name: shared.NameOption = None
    output: shared.OutputOption = None
    db: shared.DbOption = None
    as_json: shared.JsonOption = False
    quiet: shared.QuietOption = False
    bell: shared.BellOption = False
    log_json: shared.LogOption = False


@shared.with_options(RunRequest)
def run(asked: RunRequest) -> None:
    """Argue a topic to its end, with a verdict.

    What is given here overrides the configuration file. The debate is saved at every step: after Ctrl-C, a
    crash or a failing model, `moot resume` goes on where it was.
    """
    from moot.graph.cli.run_request import read_answers
    from moot.graph.cli.running import Delivery, run_to_end

    answers = read_answers(asked.answers)
    delivery = Delivery(
        asked.db, asked.as_json, asked.quiet, asked.output, answers, asked.bell, asked.log_json
    )
    if asked.replay:
        with opened(asked.db) as debates:
            code = run_to_end(debates.replay(asked.replay, name=asked.name), delivery)
    else:
        code = _run_new(asked, delivery)
    raise Exit(code)


def _run_new(asked: RunRequest, delivery: Delivery) -> int:
    from moot.graph.cli import run_request
    from moot.graph.cli.running import run_to_end
    from moot.graph.cli.screen.answerer import check_answers

    folders = [path for path in asked.context or () if path.is_dir()]
    if len(folders) > 1:
        raise InputError(f"--context: give one folder, not {', '.join(map(str, folders))}")
    flags = {
        "debaters": run_request.parse_debaters(asked.debater),
        "turns": asked.turns,
        "rounds": asked.rounds,
        "protocol": asked.protocol,
        "model": asked.model,
        "temperature": asked.temperature,
        "seed": asked.seed,
        "memory.summarizer": asked.summarizer,
        "judge.model": asked.judge_model,
        "judge.rubric": read_rubric(asked.rubric, Path()) if asked.rubric else None,
        "judge.enabled": False if asked.no_judge else None,
        "context": str(folders[0].absolute()) if folders else None,
    }
    topic = run_request.read_topic(asked.topic)
    check_database(asked.db)
    documents = run_request.read_documents([path for path in asked.context or () if path not in folders])
    tools = [name.strip() for name in (asked.tools or "").split(",") if name.strip()]
    settings = run_request.run_config(asked.config, flags, tools, topic=topic)
    if topic is None and not (settings.topic or "").strip():
        raise InputError("no topic: give TOPIC, @FILE or -, or `topic` in the configuration")
    run_request.warn_of_idle(flags, settings)
    if settings.context and Path(settings.context).is_dir() and not any(d.tools for d in settings.debaters):
        remark("warning: nobody has tools to look into the context folder: give --tools search,read_file")
    check_answers(delivery.answers, settings)
    with opened(asked.db, make=True) as debates:
        debate = debates.start(topic, settings, name=asked.name, documents=documents)
        return run_to_end(debate, delivery)
