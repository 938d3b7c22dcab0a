"""`moot serve`, `moot mcp` and `moot studio`: servers for browsers, agents and LangGraph Studio."""

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from typer import Exit, Option

from moot.cli.group import INTERRUPTED, command
from moot.cli.options import ConfigOption, DbOption
from moot.cli.terminal import print_error, print_note
from moot.state import settings

OPEN_AFTER_S = 1.5
"""Seconds that `--open` waits for the server to start before it opens the browser."""
HostOption = Annotated[str, Option("--host", help="IP address or host name that the server listens on.")]
PortOption = Annotated[int, Option("--port", min=1, max=65535, help="Port that the server listens on.")]
DefaultModelOption = Annotated[
    str | None,
    Option(
        "--model",
        "-m",
        metavar="NAME",
        help="Model for all debaters and judges that have no model of their own.",
    ),
]


@command(panel="Run debates", examples=("--open", "--model gpt-4o-mini"))
def serve(
    host: HostOption = "127.0.0.1",
    port: PortOption = 2025,
    config: ConfigOption = None,
    model: DefaultModelOption = None,
    show: Annotated[bool, Option("--open", help="Open the web page in the browser.")] = False,
    db: DbOption = None,
) -> None:
    """Serve a web page for starting, watching and controlling debates.

    `moot serve` prints the address of the web page, which includes a launch token. Whoever opens this address
    is the operator, so keep the address to yourself. The operator may use every model at your endpoint, and
    may configure other endpoints and the variables that contain their API keys. The value of MOOT_TOKEN gives
    the same rights as the launch token.

    Everybody else is a visitor. The options --config and --model set the defaults for debates that visitors
    start. Visitors need your permission to use other models, tools, files or endpoints than the defaults. By
    default, only this machine can access the web page, and visitors need no token. If --host makes the web
    page reachable from other machines and MOOT_TOKEN is not set, Moot creates a token for visitors. If
    MOOT_TOKEN is set, all access requires a token, even from this machine.
    """
    if not (find_spec("starlette") and find_spec("uvicorn") and find_spec("sse_starlette")):
        raise settings.missing_extra("the live page", "serve")
    from moot.config.stages import read_config
    from moot.plugins.web.auth_middleware import is_loopback
    from moot.plugins.web.page_routes import serve_page

    database, default_config = settings.check_database(db), read_config(config, {"model": model}, print_error)
    own_token = settings.variable("MOOT_TOKEN")
    visitor_token = None if own_token or is_loopback(host) else secrets.token_urlsafe(24)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/moot"
    launch_token = secrets.token_urlsafe(24)
    print_note(f"Debates of {settings.redact_urls(database)}")
    print_note(f"  for you      {address}?token={launch_token}")
    if own_token:
        print_note("  also for you the same address, with the value of MOOT_TOKEN")
    else:
        access = f"?token={visitor_token}" if visitor_token else " (on this machine only)"
        print_note(f"  for visitors {address}{access}")
    if show:
        opening = threading.Timer(OPEN_AFTER_S, webbrowser.open, [f"{address}?token={launch_token}"])
        opening.daemon = True  # a server that cannot start ends at once
        opening.start()
    serve_page(database, default_config, host, port, visitor_token, launch_token)


@command(panel="Set up and inspect", examples=("--model gpt-4o-mini",))
def mcp(
    config: ConfigOption = None,
    model: DefaultModelOption = None,
    http: Annotated[
        int | None,
        Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve over HTTP at http://127.0.0.1:PORT/mcp instead of over stdio.",
        ),
    ] = None,
    db: DbOption = None,
) -> None:
    """Start a Model Context Protocol (MCP) server for agents.

    The server communicates over stdio, or over HTTP if --http is given.

    The options --config and --model set the defaults for debates that agents start. Agents need your
    permission to use other models, tools, files or endpoints than the defaults. If MOOT_TOKEN is set, every
    HTTP request must include this token. HTTP clients that send the token may use any model.
    """
    if find_spec("mcp") is None:
        raise settings.missing_extra("the MCP server", "mcp")
    from moot.cli.running import handle_sigterm_as_interrupt
    from moot.config.stages import read_config
    from moot.plugins.web.mcp_server import serve as serve_agents

    default_config = read_config(config, {"model": model}, print_error)
    with handle_sigterm_as_interrupt(), _stdin_that_ends() if http is None else nullcontext():
        asyncio.run(serve_agents(settings.check_database(db), default_config, http))


@command(panel="Set up and inspect", examples=("--no-browser",))
def studio(
    host: HostOption = "127.0.0.1",
    port: PortOption = 2024,
    no_browser: Annotated[bool, Option("--no-browser", help="Do not open a browser.")] = False,
    db: DbOption = None,
) -> None:
    """Open the stored debates in LangGraph Studio.

    `moot studio` runs `langgraph dev` with Moot's graph and database.
    """
    from moot.cli.running import handle_sigterm_as_interrupt

    url = settings.check_database(db)
    if not settings.is_postgres(url):
        url = str(settings.sqlite_path(url).resolve())  # the server runs in another directory
    beside = str(Path(sys.executable).parent)
    langgraph = shutil.which("langgraph", path=beside) or shutil.which("langgraph")
    if langgraph is None or find_spec("langgraph_api") is None:
        raise settings.missing_extra("LangGraph Studio", "studio")
    arguments = [langgraph, "dev", "--config", str(_server_config()), "--host", host, "--port", str(port)]
    arguments += ["--no-reload", *(["--no-browser"] if no_browser else [])]
    token = "?token=… with the value of MOOT_TOKEN" if settings.variable("MOOT_TOKEN") else ""
    print_note(f"The live page is at http://{host}:{port}/moot{token}")
    try:
        with handle_sigterm_as_interrupt():
            # No part of the command comes from a request.
            done = subprocess.run(arguments, env=settings.environment_with(MOOT_DB=url), check=False)  # noqa: S603
    except KeyboardInterrupt:
        raise Exit(INTERRUPTED) from None
    raise Exit(done.returncode)


@contextmanager
def _stdin_that_ends() -> Iterator[None]:
    """Replace stdin by a copy that ends with the block, even if the client keeps its end open.

    The thread that reads stdin for `mcp` cannot be cancelled, and Python waits for it at its exit.
    """
    original = os.dup(0)
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    copy = os.fdopen(writing, "wb", buffering=0)

    def forward() -> None:
        with copy, suppress(OSError, ValueError):  # the copy is closed
            while data := os.read(original, 65536):
                copy.write(data)

    threading.Thread(target=forward, daemon=True).start()
    try:
        yield
    finally:
        copy.close()


def _server_config() -> Path:
    """Return the path of the `langgraph.json` file to pass to `langgraph dev`."""
    package = Path(str(files("moot"))).resolve()
    shipped = package / "langgraph.json"
    if not shipped.is_file():
        return package.parent / "langgraph.json"
    from platformdirs import user_data_path

    written = user_data_path("moot", appauthor=False) / "studio" / "langgraph.json"
    written.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(shipped, written)
    return written
