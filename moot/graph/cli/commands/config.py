"""`moot config init | check | schema`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from moot.graph.cli.group import new_app
from moot.graph.cli.options import JsonOption
from moot.graph.cli.screen.output import STDOUT, check_folder, print_answer, print_json, remark, write_file
from moot.graph.cli.screen.progress_lines import header_lines
from moot.state.errors import InputError

app = new_app(no_args_is_help=True)


@app.callback()
def config() -> None:
    """Write, check or describe a configuration file."""


@app.command()
def init(
    path: Annotated[
        Path, Argument(metavar="[FILE]", help="File to write, - for stdout.", show_default=True)
    ] = Path("moot.yaml"),
    force: Annotated[bool, Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a YAML file with every setting, its meaning and its default."""
    from moot.graph.cli.config_template import template

    check_folder(path)
    if path != STDOUT and path.exists() and not force:
        raise InputError(f"{str(path)!r} exists already: add --force to replace it")
    write_file(path, template())
    if path != STDOUT:
        remark(f"wrote {path}: run it with `moot run TOPIC --config {path}`")


@app.command()
def check(
    path: Annotated[Path, Argument(metavar="FILE", help="YAML, TOML or JSON.")], as_json: JsonOption = False
) -> None:
    """Check a file as a run would, but for importing what it names, and say what it comes to."""
    from moot.graph.cli.usual_config import run_config

    checked = run_config(path, {}, imports=False)
    lines = header_lines(checked.topic or "(the topic is given with the run)", checked)
    print_answer({"topic": checked.topic, **checked.to_json()}, "ok", *lines, as_json=as_json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of configuration files."""
    from moot.graph.json_schemas import config_schema

    print_json(config_schema())
