"""`moot mcp`."""

import asyncio
from importlib.util import find_spec
from typing import Annotated

import typer

from moot.graph.cli.database import check_database
from moot.graph.cli.options import ConfigOption, DbOption
from moot.state.errors import ConfigError


def mcp(
    config: ConfigOption = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Model of everybody who names none.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(
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
    from moot.graph.cli.usual_config import configured
    from moot.graph.mcp_server import serve

    usual = configured(config, {"model": model})
    with terminated_like_interrupted():
        asyncio.run(serve(check_database(db), usual, http))
