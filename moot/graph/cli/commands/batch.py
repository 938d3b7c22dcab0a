"""`moot batch`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from moot.graph.cli import options as shared
from moot.graph.cli.database import open_database
from moot.graph.cli.screen.output import check_folder, err_console, print_json, print_result, write_file
from moot.graph.cli.screen.progress_lines import spent_words
from moot.graph.cli.screen.result_tables import Grid
from moot.graph.cli.screen.terminal_text import one_line
from moot.state.errors import ConfigError, DebateNotFound, RunError
from moot.state.redaction import redact

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.graph.api import Debates
    from moot.graph.many import PlannedDebate
    from moot.state.entries import JsonObject


def batch(
    path: shared.BatchArgument,
    workers: shared.WorkersOption = 4,
    config: shared.ConfigOption = None,
    protocol: shared.ProtocolOption = None,
    turns: shared.TurnsOption = None,
    rounds: shared.RoundsOption = None,
    model: shared.ModelOption = None,
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="FILE", help="Write results to a .jsonl file.")
    ] = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Have many debates at the same time: of each line of a file one, in one process.

    A line's settings count before the options here. Run it again after Ctrl-C or a failure: what is over is
    left alone, the rest goes on where it was. Others may work on the same database. Exits with 3 where one
    failed.
    """
    from moot.graph.cli.running import terminated_like_interrupted
    from moot.graph.cli.screen.output import complain
    from moot.graph.many import run_many
    from moot.graph.operator_config import usual_data

    if output is not None:
        check_folder(output)
    flags = {"protocol": protocol, "turns": turns, "rounds": rounds, "model": model}
    planned = read_batch(path, usual_data(config, flags, complain))
    errors: dict[str, str] = {}
    with open_database(db, make=True) as debates:
        try:
            with terminated_like_interrupted(), _progress(debates, planned, errors, quiet=quiet) as say:
                for each, error in run_many(debates, planned, workers):
                    errors[each.id] = error
                    say(each)
        finally:
            results = [_result(debates, each, errors.get(each.id, "not over")) for each in planned]
            if output is not None:
                lines = [redact(json.dumps(result, ensure_ascii=False)) for result in results]
                write_file(output, "\n".join(lines) + "\n")
    if as_json:
        print_json(results)
    elif not quiet or output is None:
        heading = ("debate", "topic", "status", "winner", "turns", "tokens")
        rows = [[str(result[key]) for key in heading] for result in results]
        print_result(Grid(heading, rows).screen())
    if any(errors.values()):
        raise Exit(RunError.exit_code)


def read_batch(path: Path, base: JsonObject) -> list[PlannedDebate]:
    """Return the debates that a file wants, each once; its id is its own or follows from what it says.

    Raises:
        ConfigError: a line cannot be used.
    """
    from moot.graph.cli.screen.output import complain
    from moot.graph.many import PlannedDebate, planned_name
    from moot.graph.operator_config import with_files
    from moot.graph.preflight import check_config
    from moot.nodes.driving.environment import Environment
    from moot.state.catalogue import check_name
    from moot.state.config import slug
    from moot.state.config.boundary import Claim
    from moot.state.config.config_files import make_config

    planned: dict[str, PlannedDebate] = {}
    for place, given in _items(path):
        said = {"topic": given} if isinstance(given, str) else given
        if not isinstance(said, dict):
            raise ConfigError(f"{place}: give a topic or a configuration")
        name = said.pop("id", None)
        sections = [key for key, value in said.items() if isinstance(value, dict)]
        both = {key: {**base[key], **said[key]} for key in sections if isinstance(base.get(key), dict)}
        try:
            config = make_config(with_files({**base, **said, **both}, path.parent, complain))
            check_config(Claim.of_operator(config), Environment())
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        topic = (config.topic or "").strip()
        if not topic:
            raise ConfigError(f"{place}: no topic")
        if name is None:
            name = planned_name(slug(path.stem) or "batch", config, topic)
        check_name(name)
        planned[name] = PlannedDebate(name, topic, config)
    if not planned:
        raise ConfigError(f"{str(path)!r} says nothing: give topics, one a line")
    return list(planned.values())


def _items(path: Path) -> Iterator[tuple[str, object]]:
    """Yield what a file has, with the place in it."""
    from moot.graph.operator_config import read_text
    from moot.state.config.config_files import data_in

    text, kind = read_text(path, "batch"), path.suffix.lower()
    try:
        if kind in {".yaml", ".yml"}:
            items = data_in(text, path, "batch")
            if not isinstance(items, list):
                raise ConfigError("give a list of topics or configurations")
            yield from ((f"{path.name}, item {number}", each) for number, each in enumerate(items, start=1))
            return
        for number, line in enumerate(text.splitlines(), start=1):
            place = f"{path.name}, line {number}"
            if line.strip() and (kind == ".jsonl" or not line.lstrip().startswith("#")):
                yield place, json.loads(line) if kind == ".jsonl" else line.strip()
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error}") from error


def _result(debates: Debates, planned: PlannedDebate, error: str) -> JsonObject:
    """Return what is told of a debate, over or not; `error` says why it is not."""
    facts: JsonObject = {"debate": planned.id, "topic": planned.topic, "error": error}
    try:
        debate = debates.get(planned.id)
    except DebateNotFound:
        return {**facts, "status": "not begun", "winner": "", "turns": 0, "tokens": 0, "cost_usd": 0.0}
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
    """Show what runs in a table on a terminal, and of each that ended one line; yield what is told of it."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    console, wanted = err_console(), {each.id for each in planned}

    def table() -> RenderableType:
        rows = [row for row in debates.rows() if row.name in wanted]
        running = [(row.topic, str(row.turns), f"{row.tokens:,}") for row in rows if row.status == "running"]
        spent = spent_words(sum(row.tokens for row in rows), sum(row.cost_usd for row in rows))
        way = f"{len(errors)} of {len(planned)} ended · {spent}"
        return Group(Grid(("running", "turns", "tokens"), running).screen(), Text(way, "dim"))

    def say(each: PlannedDebate) -> None:
        how = f"stopped: {one_line(errors[each.id], 300)}" if errors[each.id] else "done"
        if not quiet:
            console.print(Text(f"[{len(errors)}/{len(planned)}] {one_line(each.topic, 60)}: {how}"))

    if quiet or not console.is_terminal:
        yield say
        return
    with Live(console=console, get_renderable=table, transient=True, refresh_per_second=1):
        yield say
