"""`moot config init`, `check` and `schema`: commands for configuration files."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer import Argument, Option

from moot.cli.group import command, new_app
from moot.cli.inputs import run_config
from moot.cli.live import header_lines
from moot.cli.options import JsonOption
from moot.cli.terminal import STDOUT, check_folder, print_answer, print_json, print_note, write_file
from moot.config import DebaterConfig, PanelJudge
from moot.config.model_settings import McpServerConfig, ModelSettings
from moot.graph.json_schemas import config_schema, field_docs, whole_config
from moot.state.entries import JsonObject
from moot.state.errors import InputError

app = new_app(no_args_is_help=True)


@command(panel="Set up and inspect", app=app)
@app.callback()
def config() -> None:
    """Write or check a configuration file, or print its JSON Schema."""


@app.command()
def init(
    path: Annotated[
        Path, Argument(metavar="[FILE]", help="File to write, or - for stdout.", show_default=True)
    ] = Path("moot.yaml"),
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a YAML file that lists every setting with its description and default."""
    check_folder(path)
    if path != STDOUT and path.exists() and not force:
        raise InputError(f"{str(path)!r} already exists: add --force to replace it")
    write_file(path, template())
    if path != STDOUT:
        print_note(f"wrote {path}: use it with `moot run TOPIC --config {path}`")


@app.command()
def check(
    path: Annotated[Path, Argument(metavar="FILE", help="Configuration file in YAML, TOML or JSON.")],
    as_json: JsonOption = False,
) -> None:
    """Check a configuration file and print its debaters, protocol and models.

    `moot config check` performs the same checks as `moot run`, but does not import the Python objects that
    the configuration file names.
    """
    settings = run_config(path, {}, imports=False)
    lines = header_lines(settings.topic or "(no topic: give it to `moot run`)", settings)
    print_answer({"topic": settings.topic, **settings.to_json()}, "ok", *lines, as_json=as_json)


@app.command()
def schema() -> None:
    """Print the JSON Schema for configuration files."""
    print_json(config_schema())


TEMPLATE_HEADING = """\
# Configuration of a debate. Every key is optional. Lines without # have their default value.
# Use it with: moot run "TOPIC" --config FILE
"""
EXAMPLES: dict[type[BaseModel], JsonObject] = {
    DebaterConfig: {"name": "Economist", "role": "economist", "stance": "in favour", "model": "gpt-4o-mini"},
    PanelJudge: {"id": "strict", "model": "gpt-4o"},
    McpServerConfig: {"command": ["npx", "-y", "some-server"], "env": ["SOME_KEY"]},
    ModelSettings: {"context_size": 128_000, "input_usd_per_million": 0.15, "output_usd_per_million": 0.6},
}
"""Example values for settings whose default is an empty list or mapping."""
FROM_ENVIRONMENT = ("model",)
"""Settings that take their default from an environment variable. The template must not override the
variable."""
WIDTH = 100  # columns of a comment in the template


def template() -> str:
    """Return the commented YAML template, which loads as the default configuration."""
    return TEMPLATE_HEADING + "".join(f"{line}\n".replace(" \n", "\n") for line in _section(whole_config()()))


def _section(values: BaseModel, indent: str = "") -> Iterator[str]:
    docs = field_docs(type(values))
    for name, field in type(values).model_fields.items():
        if not indent:
            yield ""
        description = (docs.get(name) or field.description or "").replace("`None`", "`null`")
        yield from (f"{indent}# {line}" for line in textwrap.wrap(description, WIDTH - len(indent)))
        yield from _setting(name, getattr(values, name), field, indent)


def _setting(name: str, value: Any, field: FieldInfo, indent: str) -> Iterator[str]:
    example = next((EXAMPLES[kind] for kind in _types_in(field.annotation) if kind in EXAMPLES), None)
    if isinstance(value, BaseModel):
        yield f"{indent}{name}:"
        yield from _section(value, indent + "  ")
    elif value is None:
        yield f"{indent}# {name}:"
    elif name in FROM_ENVIRONMENT and not indent:
        yield f"{indent}# {name}: {value}"
    elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
        # The default depends on the protocol, so a value here would override it.
        rows = [item.model_dump(mode="json", exclude_unset=True) for item in value]
        yield from _comment({name: rows}, indent)
    elif not value and example is not None:
        yield f"{indent}{name}: {'{}' if isinstance(value, dict) else '[]'}"
        key = "docs" if name == "mcp_servers" else "gpt-4o-mini"
        yield from _comment({name: {key: example} if isinstance(value, dict) else [example]}, indent)
    else:
        plain = list(value) if isinstance(value, tuple) else value
        text = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=1000)
        scalar = text.removesuffix("...\n").strip()
        yield f"{indent}{name}: {scalar}"


def _comment(setting: JsonObject, indent: str) -> Iterator[str]:
    text = yaml.safe_dump(setting, sort_keys=False, allow_unicode=True)
    return (f"{indent}# {line}" for line in text.splitlines())


def _types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    for argument in get_args(annotation):
        yield from _types_in(argument)
