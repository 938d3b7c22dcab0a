"""`moot serve`, `moot mcp` and `moot studio`: debates for browsers, agents and LangGraph Studio."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from typer import Exit, Option

from moot.graph.cli.group import INTERRUPTED
from moot.graph.cli.options import ConfigOption, DbOption
from moot.graph.cli.screen.output import remark
from moot.state.errors import ConfigError
from moot.state.settings import check_database, environment_with, is_postgres, sqlite_path, variable

HostOption = Annotated[str, Option("--host", help="Address to listen on.")]
PortOption = Annotated[int, Option("--port", min=1, max=65535, help="Port to listen on.")]
UsualModelOption = Annotated[
    str | None, Option("--model", "-m", metavar="NAME", help="Model of everybody who names none.")
]


def serve(
    host: HostOption = "127.0.0.1",
    port: PortOption = 2025,
    config: ConfigOption = None,
    model: UsualModelOption = None,
    db: DbOption = None,
) -> None:
    """Serve the live page: all debates in a browser, as they happen, at http://HOST:PORT/moot.

    What a visitor leaves out is --config's and --model's; what it asks for beyond them is yours to allow.
    Only this machine is let in; on another address, whoever has the token: MOOT_TOKEN, else a new one.
    """
    if not (find_spec("starlette") and find_spec("uvicorn") and find_spec("sse_starlette")):
        raise ConfigError("the live page's server is not installed: pip install 'moot[serve]'")
    from moot.graph.cli.screen.output import complain
    from moot.graph.live.doorkeeper import is_loopback
    from moot.graph.live.page_routes import serve_page
    from moot.graph.operator_config import usual_config

    database, usual = check_database(db), usual_config(config, {"model": model}, complain)
    token = None if is_loopback(host) else variable("MOOT_TOKEN") or secrets.token_urlsafe(24)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/moot"
    remark(f"Debates of {database} at {address}{f'?token={token}' if token else ''}")
    serve_page(database, usual, host, port, token)


def mcp(
    config: ConfigOption = None,
    model: UsualModelOption = None,
    http: Annotated[
        int | None,
        Option(
            "--http", metavar="PORT", min=0, max=65535, help="Serve http://127.0.0.1:PORT/mcp, not stdio."
        ),
    ] = None,
    db: DbOption = None,
) -> None:
    """Serve debates to agents over the Model Context Protocol, on stdin and stdout or over HTTP.

    What an agent leaves out is --config's and --model's; what it asks for beyond them is yours to allow.
    """
    if find_spec("mcp") is None:
        raise ConfigError("the MCP server's package is not installed: pip install 'moot[mcp]'")
    from moot.graph.cli.running import terminated_like_interrupted
    from moot.graph.cli.screen.output import complain
    from moot.graph.mcp_server import serve as serve_agents
    from moot.graph.operator_config import usual_config

    usual = usual_config(config, {"model": model}, complain)
    with terminated_like_interrupted():
        asyncio.run(serve_agents(check_database(db), usual, http))


def studio(
    host: HostOption = "127.0.0.1",
    port: PortOption = 2024,
    no_browser: Annotated[bool, Option("--no-browser", help="Open no browser.")] = False,
    db: DbOption = None,
) -> None:
    """Open the debates in LangGraph Studio: `langgraph dev` with Moot's graph, on the same database."""
    from moot.graph.cli.running import terminated_like_interrupted

    url = check_database(db)
    if not is_postgres(url):
        url = str(sqlite_path(url).resolve())  # the server works in a directory of its own
    beside = str(Path(sys.executable).parent)
    langgraph = shutil.which("langgraph", path=beside) or shutil.which("langgraph")
    if langgraph is None or find_spec("langgraph_api") is None:
        raise ConfigError("LangGraph Studio's server is not installed: pip install 'moot[studio]'")
    command = [langgraph, "dev", "--config", str(_server_config()), "--host", host, "--port", str(port)]
    command += ["--no-reload", *(["--no-browser"] if no_browser else [])]
    remark(f"The live page is at http://{host}:{port}/moot")
    try:
        with terminated_like_interrupted():
            done = subprocess.run(command, env=environment_with(MOOT_DB=url), check=False)  # noqa: S603  # our own command
    except KeyboardInterrupt:
        raise Exit(INTERRUPTED) from None
    raise Exit(done.returncode)


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
