"""`moot studio`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moot.graph.cli.options import DbOption

SERVER = {
    "dependencies": ["."],
    "graphs": {"debate": "moot.graph.debate:graph"},
    "checkpointer": {"path": "moot.state.checkpoints.make"},
}
"""What `langgraph.json` says, for an installation without the checkout."""


def studio(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 2024,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    db: DbOption = None,
) -> None:
    """Open the debates in LangGraph Studio: `langgraph dev` with Moot's graph, on the same database."""
    import subprocess

    from moot.graph.cli.database import check_database
    from moot.graph.cli.running import terminated_like_interrupted
    from moot.graph.cli.studio_threads import registering
    from moot.state.settings import environment_with

    url = _absolute(check_database(db))
    command = [_langgraph(), "dev", "--config", str(_server_config()), "--host", host, "--port", str(port)]
    command.append("--no-reload")
    if no_browser:
        command.append("--no-browser")
    known = registering(f"http://{host}:{port}", lambda: _debates(url))
    try:
        with terminated_like_interrupted(), known:
            done = subprocess.run(command, env=environment_with(MOOT_DB=url), check=False)  # noqa: S603  # our own command
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(done.returncode)


def _debates(url: str) -> list[str]:
    """Return the ids of the stored debates."""
    from moot.graph.cli.database import opened_records

    with opened_records(url) as records:
        return [row.id for row in records.catalogue.rows()] if records else []


def _langgraph() -> str:
    """Return the `langgraph` command of this environment.

    Raises:
        ConfigError: it or its server is not installed.
    """
    import shutil
    import sys
    from importlib.util import find_spec

    from moot.state.errors import ConfigError

    beside = Path(sys.executable).parent
    found = shutil.which("langgraph", path=str(beside)) or shutil.which("langgraph")
    if found is None or find_spec("langgraph_api") is None:
        raise ConfigError("LangGraph Studio's server is not installed: pip install 'moot[studio]'")
    return found


def _server_config() -> Path:
    """Return the checkout's `langgraph.json`, else one written to the user's data folder."""
    import json
    from importlib.resources import files

    shipped = Path(str(files("moot"))).resolve().parent / "langgraph.json"
    if shipped.is_file():
        return shipped
    from platformdirs import user_data_path

    written = user_data_path("moot", appauthor=False) / "studio" / "langgraph.json"
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(SERVER), encoding="utf-8")
    return written


def _absolute(url: str) -> str:
    """Return the database's address, good in any working directory."""
    from moot.state.settings import is_postgres, sqlite_path

    return url if is_postgres(url) else str(sqlite_path(url).resolve())
