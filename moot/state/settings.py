"""The process's environment, read in this module only."""

import os
import re
from pathlib import Path

from moot.state.errors import ConfigError
from moot.state.redaction import keep_secret


def api_key(variable: str) -> str | None:
    """Return the key that an environment variable holds, `None` where it is unset or empty."""
    return keep_secret(os.environ.get(variable) or None)


def base_url() -> str | None:
    """Return the configured OpenAI-compatible endpoint."""
    return os.environ.get("OPENAI_BASE_URL") or None


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


def default_model() -> str | None:
    """Return the model that `MOOT_MODEL` names."""
    return os.environ.get("MOOT_MODEL") or None


def default_config_path() -> str | None:
    """Return the configuration file that `MOOT_CONFIG` names."""
    return os.environ.get("MOOT_CONFIG") or None


def context_root() -> str | None:
    """Return the folder that every context must lie in, from `MOOT_CONTEXT_ROOT`; `None` allows any."""
    return os.environ.get("MOOT_CONTEXT_ROOT") or None


def allowed_models() -> tuple[str, ...]:
    """Return the models that requests may name, from `MOOT_ALLOW_MODELS`: names or patterns."""
    return _listed("MOOT_ALLOW_MODELS")


def allowed_tools() -> tuple[str, ...]:
    """Return the tools that requests may give debaters, from `MOOT_ALLOW_TOOLS`."""
    return _listed("MOOT_ALLOW_TOOLS")


def allowed_hosts() -> tuple[str, ...]:
    """Return the names under which a server may be asked from elsewhere, from `MOOT_ALLOW_HOSTS`."""
    return _listed("MOOT_ALLOW_HOSTS")


def server_token() -> str | None:
    """Return what clients from elsewhere prove themselves with, from `MOOT_TOKEN`."""
    return os.environ.get("MOOT_TOKEN") or None


def _listed(variable: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in os.environ.get(variable, "").split(","))))


def debug() -> bool:
    """Return whether `MOOT_DEBUG` asks for tracebacks."""
    return os.environ.get("MOOT_DEBUG", "") not in ("", "0")


def asks_for_spans() -> bool:
    """Return whether `MOOT_OTEL` asks the command to send OpenTelemetry's spans."""
    return os.environ.get("MOOT_OTEL", "") not in ("", "0")


def bell() -> bool:
    """Return whether `MOOT_BELL` asks for a terminal's bell at the end of every run."""
    return os.environ.get("MOOT_BELL", "") not in ("", "0")


def environment_with(**variables: str) -> dict[str, str]:
    """Return the process's environment with some variables set, for a child process."""
    return {**os.environ, **variables}


def database_url() -> str:
    """Return the database: `MOOT_DB`, else `moot.sqlite` under the user's data directory."""
    configured = os.environ.get("MOOT_DB")
    if configured:
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
