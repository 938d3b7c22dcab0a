"""`moot batch`: run many debates at the same time, or queue them for workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text
from typer import Argument, Exit, Option

from moot.cli import options as shared, terminal
from moot.cli.databases import open_database, open_queue
from moot.cli.group import command
from moot.cli.live import spent_text
from moot.config import slug
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, DebateNotFound, InputError, RunError
from moot.state.settings import redact

if TYPE_CHECKING:
    from moot.api import Debates
    from moot.plugins.evals.planned_debates import PlannedDebate

QueueOption = Annotated[
    bool,
    Option(
        "--queue", help="Do not run the debates now, but queue them in a Postgres database for `moot worker`."
    ),
]


@command(
    panel="Run debates",
    examples=("topics.txt --workers 8 -o results.jsonl", "topics.yaml --queue --priority 5"),
)
def batch(
    path: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="File with one topic per line, or a .jsonl or .yaml file with a list of configurations.",
        ),
    ],
    workers: shared.WorkersOption = 4,
    config: shared.ConfigOption = None,
    protocol: shared.ProtocolOption = None,
    turns: shared.TurnsOption = None,
    rounds: shared.RoundsOption = None,
    model: shared.ModelOption = None,
    output: Annotated[
        Path | None,
        Option("-o", "--output", metavar="FILE", help="Write the debates' results to a .jsonl file."),
    ] = None,
    queue: QueueOption = False,
    priority: Annotated[
        int | None,
        Option(
            "--priority",
            metavar="N",
            help=(
                "Priority of the debates in the queue. Debates with a higher priority run first. Default: 0. "
                "Needs --queue."
            ),
        ),
    ] = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Run the debates that a file lists, several at the same time.

    Settings in FILE override the command-line options. After Ctrl-C or a failure, run the same command again
    to continue. When you repeat a command, Moot skips finished debates and continues unfinished debates.
    Several processes may use the same database. With --queue, `moot batch` runs no debates, but adds the
    debates to a queue. `moot worker` runs the queued debates on this machine or on other machines. The exit
    code is 3 if any debate fails.
    """
    from moot.cli.running import handle_sigterm_as_interrupt
    from moot.config.config_files import merge_settings
    from moot.config.stages import read
    from moot.plugins.evals.planned_debates import run_many

    if priority is not None and not queue:
        raise InputError("--priority needs --queue")
    if output is not None:
        if queue:
            raise InputError(
                "-o cannot be used with --queue, because `moot worker` runs the queued debates later: "
                "remove -o"
            )
        terminal.check_folder(output)
    flags = {"protocol": protocol, "turns": turns, "rounds": rounds, "model": model}
    planned = read_batch(path, merge_settings(*read(config, flags, terminal.print_error)))
    if queue:
        return _enqueue(planned, priority, db, as_json=as_json)
    errors: dict[str, str] = {}
    with open_database(db, make=True) as debates:
        try:
            with handle_sigterm_as_interrupt(), _progress(debates, planned, errors, quiet=quiet) as say:
                for each, error in run_many(debates, planned, workers):
                    errors[each.id] = error
                    say(each)
        finally:
            results = [_debate_result(debates, each, errors.get(each.id, "not finished")) for each in planned]
            if output is not None:
                lines = [redact(json.dumps(result, ensure_ascii=False)) for result in results]
                terminal.write_file(output, "\n".join(lines) + "\n")
    if as_json:
        terminal.print_json(results)
    elif not quiet or output is None:
        heading = ("debate", "topic", "status", "winner", "turns", "tokens")
        rows = [[str(result[key]) for key in heading] for result in results]
        terminal.print_result(terminal.Grid(heading, rows).screen())
    if any(errors.values()):
        raise Exit(RunError.exit_code)


def _enqueue(
    planned: Sequence[PlannedDebate], priority: int | None, db: str | None, *, as_json: bool
) -> None:
    """Add debates to the work queue, except debates that are already queued or finished."""
    from moot.api import is_judged
    from moot.plugins.evals.planned_debates import create_planned_debate

    queue = open_queue(db)
    with open_database(db, make=True) as debates:
        stored = [create_planned_debate(debates, each) for each in planned]
        waiting_ids = [each.id for each in stored if not is_judged(each)]
    added_count = queue.add(waiting_ids, priority)
    summary = (
        f"{added_count} queued, {len(waiting_ids) - added_count} queued before, "
        f"{len(stored) - len(waiting_ids)} finished"
    )
    terminal.acknowledge(
        {"debates": [each.name for each in stored], "added": added_count}, summary, as_json=as_json
    )


def read_batch(path: Path, base: JsonObject) -> list[PlannedDebate]:
    """Read a batch file and return the debates to run, without duplicates.

    A debate without an `id` gets one that follows from its settings.

    Raises:
        ConfigError: a line is not a valid topic or configuration.
    """
    from moot.config.boundary import Permissions
    from moot.config.config_files import make_config, merge_settings
    from moot.config.file_references import with_files
    from moot.debates.config_checks import check_config, check_model
    from moot.plugins.evals.planned_debates import PlannedDebate, planned_name
    from moot.runtime.environment import Environment
    from moot.storage.catalogue import check_name

    planned: dict[str, PlannedDebate] = {}
    for place, item in _items(path):
        settings = {"topic": item} if isinstance(item, str) else item
        if not isinstance(settings, dict):
            raise ConfigError(
                f"{place}: the value is neither a topic nor a configuration: write a topic as text, or "
                "settings as keys and values"
            )
        name = settings.pop("id", None)
        try:
            config = make_config(
                merge_settings(base, with_files(settings, path.parent, terminal.print_error))
            )
            topic = (config.topic or "").strip()
            if not topic:
                raise ConfigError("the topic is missing")
            check_model(config)
            check_config(Permissions.of_operator(config), Environment())
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        if name is None:
            name = planned_name(slug(path.stem) or "batch", config, topic)
        check_name(name)
        planned[name] = PlannedDebate(name, topic, config)
    if not planned:
        raise ConfigError(f"{str(path)!r} is empty: write one topic per line")
    return list(planned.values())


def _items(path: Path) -> Iterator[tuple[str, object]]:
    """Yield each topic or configuration in a batch file with its position."""
    from moot.config.config_files import data_in
    from moot.config.file_references import read_text

    text, kind = read_text(path, "batch"), path.suffix.lower()
    try:
        if kind in {".yaml", ".yml"}:
            items = data_in(text, path, "batch")
            if not isinstance(items, list):
                raise ConfigError("the file must contain a list of topics or configurations")
            yield from ((f"{path.name}, item {number}", each) for number, each in enumerate(items, start=1))
            return
        for number, line in enumerate(text.splitlines(), start=1):
            place = f"{path.name}, line {number}"
            if line.strip() and (kind == ".jsonl" or not line.lstrip().startswith("#")):
                yield place, json.loads(line) if kind == ".jsonl" else line.strip()
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error}") from error


def _debate_result(debates: Debates, planned: PlannedDebate, error: str) -> JsonObject:
    """Return a debate's result for `moot batch`, with the `error` that stopped it."""
    facts: JsonObject = {"debate": planned.id, "topic": planned.topic, "error": error}
    try:
        debate = debates.get(planned.id)
    except DebateNotFound:
        return {**facts, "status": "not started", "winner": "", "turns": 0, "tokens": 0, "cost_usd": 0.0}
    row, values = debate.row, debate.state().values
    verdict = values.get("verdict") or {}
    return {
        **facts,
        "status": row.status,
        "turns": row.turns,
        "tokens": row.tokens,
        "cost_usd": row.cost_usd,
        "winner": verdict.get("winner", ""),
        "verdict": verdict or None,
        "solution": values.get("solution") or "",
    }


@contextmanager
def _progress(
    debates: Debates, planned: Sequence[PlannedDebate], errors: Mapping[str, str], *, quiet: bool
) -> Iterator[Callable[[PlannedDebate], None]]:
    """Show the running debates in a table during a `with` block.

    The table is shown only if stderr is a terminal. Yield a function that prints a finished debate.
    """
    console, names = terminal.err_console(), {each.id for each in planned}

    def table() -> RenderableType:
        rows = [row for row in debates.rows() if row.name in names]
        running = [(row.topic, str(row.turns), f"{row.tokens:,}") for row in rows if row.status == "running"]
        cost_text = spent_text(sum(row.tokens for row in rows), sum(row.cost_usd for row in rows))
        progress = f"{len(errors)} of {len(planned)} ended · {cost_text}"
        return Group(terminal.Grid(("running", "turns", "tokens"), running).screen(), Text(progress, "dim"))

    def say(each: PlannedDebate) -> None:
        outcome = f"stopped: {terminal.one_line(errors[each.id], 300)}" if errors[each.id] else "done"
        if not quiet:
            console.print(
                Text(f"[{len(errors)}/{len(planned)}] {terminal.one_line(each.topic, 60)}: {outcome}")
            )

    if quiet or not console.is_terminal:
        yield say
        return
    with Live(console=console, get_renderable=table, transient=True, refresh_per_second=1):
        yield say
