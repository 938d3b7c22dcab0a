"""`moot serve`."""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from typing import Annotated

import typer

from moot.graph.cli.database import check_database
from moot.graph.cli.options import ConfigOption, DbOption
from moot.graph.cli.screen.output import remark
from moot.state.errors import ConfigError
from moot.state.settings import server_token


def serve(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 2025,
    config: ConfigOption = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Model of everybody who names none.")
    ] = None,
    db: DbOption = None,
) -> None:
    """Serve the live page: all debates in a browser, as they happen, at http://HOST:PORT/moot.

    What a visitor leaves out is --config's and --model's; what it asks for beyond them is yours to allow.
    Only this machine is let in; on another address, whoever has the token: MOOT_TOKEN, else a new one.
    """
    if not (find_spec("starlette") and find_spec("uvicorn") and find_spec("sse_starlette")):
        raise ConfigError("the live page's server is not installed: pip install 'moot[serve]'")
    from moot.graph.cli.usual_config import configured
    from moot.graph.live.doorkeeper import is_loopback
    from moot.graph.live.page_routes import serve_page

    database, usual = check_database(db), configured(config, {"model": model})
    token = None if is_loopback(host) else server_token() or secrets.token_urlsafe(24)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/moot"
    remark(f"Debates of {database} at {address}{f'?token={token}' if token else ''}")
    serve_page(database, usual, host, port, token)
