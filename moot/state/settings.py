"""The process's environment, read in this module only."""

import os
import re
from pathlib import Path

from moot.state.errors import ConfigError, InputError
from moot.state.redaction import keep_secret, shown_url

VARIABLES = {
    "OPENAI_API_KEY": "key of OpenAI, or of the server that `OPENAI_BASE_URL` names",
    "OPENAI_BASE_URL": "address of an OpenAI-compatible server",
    "MOOT_MODEL": "model where neither `--model` nor the configuration names one, servers' too",
    "MOOT_CONFIG": "configuration file where `--config` gives none, servers' too; all may reach what it does",
    "MOOT_ALLOW_MODELS": "models that requests and imports may name, or patterns, separated by commas",
    "MOOT_ALLOW_TOOLS": "tools that they may give debaters, separated by commas",
    "MOOT_CONTEXT_ROOT": "folder that every context lies in, and that those may choose contexts from",
    "MOOT_TOKEN": "API key of those who may use a server from elsewhere",
    "MOOT_ALLOW_HOSTS": "names under which a server that something else guards may be asked",
    "MOOT_DB": "database where `--db` gives none",
    "MOOT_BELL": "`1` rings the terminal's bell at the end of every run, as `--bell` does",
    "MOOT_OTEL": "`1` sends OpenTelemetry's spans as its `OTEL_…` variables say: `pip install 'moot[otel]'`",
    "MOOT_DEBUG": "`1` shows the traceback of an internal error",
    "NO_COLOR": "any value: no colours",
}
"""What the environment may say, and what that means."""


def variable(name: str) -> str | None:
    """Return what a variable says, `None` where it is unset or empty."""
    return os.environ.get(name) or None


def is_on(name: str) -> bool:
    """Return whether a variable switches something on."""
    return os.environ.get(name, "") not in ("", "0")


def names_in(name: str) -> tuple[str, ...]:
    """Return the names, separated by commas, that a variable holds."""
    return tuple(filter(None, (each.strip() for each in os.environ.get(name, "").split(","))))


def api_key(name: str) -> str | None:
    """Return the key that a variable holds, which is never shown from now on."""
    return keep_secret(variable(name))


DOTENV = re.compile(r"OPENAI_BASE_URL|MOOT_MODEL|MOOT_DB|MOOT_BELL|[A-Z0-9_]+_API_KEY")
"""What a `.env` may say: imports, folders and what requests may reach are no matter of a file found here."""
_ENDPOINT = ("OPENAI_BASE_URL", "OPENAI_API_KEY")


def read_dotenv(folder: Path) -> str:
    """Take over what the `.env` of a folder says and the environment does not.

    A key belongs to an endpoint: address and key of OpenAI's way come from one place together, the
    environment where it has either.

    Returns:
        What the file says in vain, in words, `""` for nothing.

    Raises:
        ConfigError: it cannot be read.
    """
    path = folder / ".env"
    if not path.is_file():
        return ""
    from dotenv import dotenv_values

    try:
        found = dotenv_values(path, interpolate=False, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error}") from error
    said = {name: value for name, value in found.items() if value and value != os.environ.get(name)}
    pair = [name for name in _ENDPOINT if os.environ.get(name)]
    idle = [name for name in _ENDPOINT if name in said and pair and name not in pair]
    for name in said.keys() - idle:
        if DOTENV.fullmatch(name):
            os.environ.setdefault(name, said[name])
    words = f"{' and '.join(idle)} of .env is not used: {' and '.join(pair)} of the environment goes with "
    return f"{words}another endpoint" if idle else ""


def environment_with(**variables: str) -> dict[str, str]:
    """Return the process's environment with some variables set, for a child process."""
    return {**os.environ, **variables}


def database_url() -> str:
    """Return the database: `MOOT_DB`, else `moot.sqlite` under the user's data directory."""
    if configured := variable("MOOT_DB"):
        return configured
    from platformdirs import user_data_path

    return str(user_data_path("moot", appauthor=False) / "moot.sqlite")


def is_postgres(url: str) -> bool:
    """Return whether a database is a Postgres server's."""
    return url.startswith(("postgresql://", "postgres://"))


def sqlite_path(url: str) -> Path:
    """Return the file of a SQLite database given as a path or `sqlite:///path`.

    Raises:
        ConfigError: it names no file.
    """
    if url.endswith(":memory:"):
        raise ConfigError(
            "a database in memory would be gone with each connection: give a file, or build the graph "
            "with LangGraph's InMemorySaver"
        )
    return Path(url.removeprefix("sqlite:///")).expanduser()


def check_database(db: str | None = None) -> str:
    """Return the address of a database, of the usual one where none is given.

    Raises:
        InputError: it is neither a path nor an address that Moot knows.
    """
    url = database_url() if db is None else db
    known = is_postgres(url) or url.startswith("sqlite:///") or "://" not in url
    if not url.strip() or not known:
        raise InputError(f"database {shown_url(url)!r}: give a path, sqlite:///path or postgresql://…")
    return url


def database_exists(url: str) -> bool:
    """Return whether there is a database at an address; servers always count."""
    return is_postgres(url) or sqlite_path(url).exists()
