"""`moot run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from moot.graph.cli import options as shared
from moot.graph.cli.database import open_database
from moot.graph.cli.screen.output import remark
from moot.state.errors import InputError
from moot.state.settings import check_database


@dataclass(frozen=True)
class RunOptions:
    """What `moot run` alone asks for."""

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
    replay: Annotated[
        str | None,
        Option(
            "--replay", metavar="ID", help="Argue a stored debate again from its journal, without a model."
        ),
    ] = None
    name: shared.NameOption = None


@shared.with_groups
def run(
    topic: Annotated[
        str | None,
        Argument(
            metavar="TOPIC|@FILE|-",
            help="What is argued: words, a file, or - for stdin; optional where the configuration says it.",
        ),
    ] = None,
    *,
    setup: shared.SetupOptions,
    own: RunOptions,
    delivery: shared.Delivery,
) -> None:
    """Argue a topic to its end, with a verdict.

    What is given here overrides the configuration file. The debate is saved at every step: after Ctrl-C, a
    crash or a failing model, `moot resume` goes on where it was.
    """
    from moot.graph.cli.named_files import read_documents, read_topic
    from moot.graph.cli.running import run_to_end
    from moot.graph.cli.screen.answerer import check_answers
    from moot.graph.cli.usual_config import run_config, warn_of_idle
    from moot.graph.operator_config import read_rubric

    if own.replay:
        with open_database(delivery.db) as debates:
            raise Exit(run_to_end(debates.replay(own.replay, name=own.name), delivery))

    folders = [path for path in own.context or () if path.is_dir()]
    if len(folders) > 1:
        raise InputError(f"--context: give one folder, not {', '.join(map(str, folders))}")
    flags = {
        **setup.flags(),
        "temperature": own.temperature,
        "seed": own.seed,
        "memory.summarizer": own.summarizer,
        "judge.rubric": read_rubric(own.rubric, Path()) if own.rubric else None,
        "judge.enabled": False if own.no_judge else None,
        "context": str(folders[0].absolute()) if folders else None,
    }
    asked = read_topic(topic)
    check_database(delivery.db)
    documents = read_documents([path for path in own.context or () if path not in folders])
    given_tools = [each.strip() for each in (own.tools or "").split(",") if each.strip()]
    settings = run_config(setup.config, flags, given_tools, topic=asked)
    if asked is None and not (settings.topic or "").strip():
        raise InputError("no topic: give TOPIC, @FILE or -, or `topic` in the configuration")
    warn_of_idle(flags, settings)
    if settings.context and Path(settings.context).is_dir() and not any(d.tools for d in settings.debaters):
        remark("warning: nobody has tools to look into the context folder: give --tools search,read_file")
    check_answers(delivery.answers, settings)

    with open_database(delivery.db, make=True) as debates:
        debate = debates.start(asked, settings, name=own.name, documents=documents)
        raise Exit(run_to_end(debate, delivery))
