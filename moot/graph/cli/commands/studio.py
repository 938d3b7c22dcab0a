"""`moot studio`."""

import shutil
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from moot.graph.cli.database import check_database
from moot.graph.cli.group import INTERRUPTED
from moot.graph.cli.options import DbOption
from moot.graph.cli.screen.output import remark
from moot.state.errors import ConfigError
from moot.state.settings import environment_with, is_postgres, sqlite_path


def studio(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 2024,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    db: DbOption = None,
) -> None:
    """Open the debates in LangGraph Studio: `langgraph dev` with Moot's graph, on the same database."""
    from moot.graph.cli.running import terminated_like_interrupted

    url = check_database(db)
    if not is_postgres(url):
        url = str(sqlite_path(url).resolve())  # the server works in a directory of its own
    command = [_langgraph(), "dev", "--config", str(_server_config()), "--host", host, "--port", str(port)]
    command += ["--no-reload", *(["--no-browser"] if no_browser else [])]
    remark(f"The live page is at http://{host}:{port}/moot")
    try:
        with terminated_like_interrupted():
            done = subprocess.run(command, env=environment_with(MOOT_DB=url), check=False)  # noqa: S603  # our own command
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(done.returncode)


def _langgraph() -> str:
    """Return the `langgraph` command of this environment.

    Raises:
        ConfigError: it or its server is not installed.
    """
    beside = Path(sys.executable).parent
    found = shutil.which("langgraph", path=str(beside)) or shutil.which("langgraph")
    if found is None or find_spec("langgraph_api") is None:
        raise ConfigError("LangGraph Studio's server is not installed: pip install 'moot[studio]'")
    return found


def _server_config() -> Path:
    """Return the checkout's `langgraph.json`, else a copy of the wheel's in the user's data folder."""
    package = Path(str(files("moot"))).resolve()
    shipped = package / "langgraph.json"
    if not shipped.is_file():
        return package.parent / "langgraph.json"
    from platformdirs import user_data_path

    written = user_data_path("moot", appauthor=False) / "studio" / "langgraph.json"
    written.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(shipped, written)
    return written
