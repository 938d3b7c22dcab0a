"""Environment variables, which only this module reads, redaction of secrets, and plug-ins."""

from __future__ import annotations

import os
import re
import shlex
import sys
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from moot.state.errors import ConfigError, InputError, file_error_reason

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


MIN_SECRET_CHARS = 8
"""Length of the shortest secret that is redacted in output, in characters. Redacting shorter values would
hide ordinary words."""
MIN_PART_CHARS = 4
"""Length of the shortest part of a database password that is redacted, in characters. Parts are redacted if
unescaped characters such as `@` split the password."""
REDACTED = "***"

_secrets: set[str] = set()
_PASSWORD = re.compile(r"://([^/\s:@]*):([^/\s]+)@")
_SEPARATOR = re.compile(r"[@/?#\s]")
"""Pattern for characters that end a password in a URL unless they are escaped."""
_QUERY_PASSWORD = re.compile(r"[?&](?:password|sslpassword)=([^&]*)", re.IGNORECASE)
_IN_URL = (
    re.compile(r"(://[^/\s:@]*:)[^/\s]+(?=@)"),
    re.compile(r"(https?://)[^/\s:@]+(?=@)"),
    re.compile(r"([?&](?:password|api[-_]?key|key|token)=)[^&\s]+", re.I),
)


def register_secret(value: str | None) -> str | None:
    """Register a secret for redaction in all later output, and return it."""
    if value and len(value) >= MIN_SECRET_CHARS:
        _secrets.add(value)
    return value


def register_password(url: str | None) -> str | None:
    """Register the password in a URL for redaction, and return the URL.

    The password is registered raw, decoded, and as the credentials that HTTP's basic authentication sends.
    """
    if match := _PASSWORD.search(url or ""):
        user, password = (unquote(part) for part in match.groups())
        for secret in (match[2], password, b64encode(f"{user}:{password}".encode()).decode()):
            register_secret(secret)
    return url


def register_database_password(url: str) -> str:
    """Register the password in a database URL for redaction, and return the URL.

    Every part of the URL that may be a password is registered. If a password contains an unescaped `@`, `/`
    or space, the database driver takes its parts for a host, a port or a database, and prints them in its
    errors.
    """
    register_password(url)
    for query_password in _QUERY_PASSWORD.findall(url):
        _secrets.update(filter(None, (query_password, unquote(query_password))))
    password = url.partition("://")[2].partition(":")[2].rpartition("@")[0]
    if _SEPARATOR.search(password):
        starts = [0, *(separator.end() for separator in _SEPARATOR.finditer(password))]
        parts = [*_SEPARATOR.split(password), *(password[start:] for start in starts)]
        candidates = {form for part in parts for form in (part, unquote(part))}
        _secrets.update(part for part in candidates if len(part) >= MIN_PART_CHARS)
    return url


def redact_values(value: object) -> object:
    """Return JSON data with all registered secrets redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_values(each) for key, each in value.items()}
    return [redact_values(each) for each in value] if isinstance(value, list | tuple) else value


def redact(text: str) -> str:
    """Return `text` with all registered secrets redacted."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


class StreamRedactor:
    """Redactor for streamed text, in which a secret may be split between pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the redacted text without an end that may be the beginning of a secret."""
        text = redact(self._held + piece)
        longest = min(len(text), max(map(len, _secrets), default=1) - 1)
        ends = (text[-length:] for length in range(longest, 0, -1))
        self._held = next((end for end in ends if any(each.startswith(end) for each in _secrets)), "")
        return text.removesuffix(self._held)

    def close(self) -> str:
        """Return the text that is still held back at the end of the stream."""
        rest, self._held = self._held, ""
        return rest


def redact_urls(text: str) -> str:
    """Redact the passwords and keys in the URLs of a text, and all known secrets."""
    for place in _IN_URL:
        text = place.sub(rf"\g<1>{REDACTED}", text)
    return redact(text)


VARIABLES = {
    "OPENAI_API_KEY": "API key of OpenAI, or of the server at `OPENAI_BASE_URL`",
    "OPENAI_BASE_URL": "URL of an OpenAI-compatible server",
    "MOOT_MODEL": "default model, if neither `--model` nor the configuration sets one",
    "MOOT_CONFIG": "configuration file, if `--config` is not set; requests may use its models and tools",
    "MOOT_ALLOW_MODELS": "models that requests and imported debates may use: names or patterns, with commas",
    "MOOT_ALLOW_TOOLS": "tools that requests and imported debates may use: names, separated by commas",
    "MOOT_CONTEXT_ROOT": "folder in which the files and folders of every `context` must be",
    "MOOT_TOKEN": "token that a server requires of every client; it gives the operator's permissions",
    "MOOT_ALLOW_HOSTS": "host names that a server accepts without a token; use a proxy that checks access",
    "MOOT_ALLOW_ORIGINS": "origins of web pages that may use a LangGraph server, such as http://localhost:3000",
    "MOOT_DB": "default database, if `--db` is not set",
    "MOOT_BELL": "`1` rings the terminal's bell at the end of every run, as `--bell` does",
    "MOOT_OTEL": "`1` exports OpenTelemetry data; needs `pip install 'moot[otel]'` and variables `OTEL_…`",
    "MOOT_DEBUG": "`1` shows the traceback of an internal error",
    "NO_COLOR": "any value disables colours",
}
"""Environment variables that Moot reads, each with a description."""


def variable(name: str) -> str | None:
    """Return the value of an environment variable, or None if it is unset or empty."""
    return os.environ.get(name) or None


def is_on(name: str) -> bool:
    """Return True if an environment variable is set to a non-empty value other than `0`."""
    return os.environ.get(name, "") not in ("", "0")


def names_in(name: str) -> tuple[str, ...]:
    """Return the comma-separated names that are stored in the environment variable `name`."""
    return tuple(filter(None, (each.strip() for each in os.environ.get(name, "").split(","))))


def api_key(name: str) -> str | None:
    """Return the API key or token stored in an environment variable, and register it for redaction."""
    return register_secret(variable(name))


DOTENV = re.compile(r"OPENAI_BASE_URL|MOOT_MODEL|MOOT_DB|MOOT_BELL|[A-Z0-9_]+_API_KEY")
"""Pattern for the names of environment variables that a `.env` file may set. The pattern excludes variables
that extend the permissions of requests."""
_ENDPOINT = ("OPENAI_BASE_URL", "OPENAI_API_KEY")


_origins: dict[str, str] = {}
"""Mapping from each environment variable to the settings file that set it."""


def origin_of(name: str) -> str:
    """Return the file that set an environment variable, or `the environment` if no file did."""
    return _origins.get(name, "the environment")


def user_settings_file() -> Path:
    """Return the path of the file where `moot setup` stores the user's key, endpoint and model."""
    from platformdirs import user_config_path

    return user_config_path("moot", appauthor=False) / "settings.env"


def read_settings_files() -> list[str]:
    """Set environment variables from `.env` in the current folder and from the user's settings file.

    The user's settings file may refer to other variables as `${NAME}`. A `.env` file may not, because
    somebody else may have written it.

    Returns:
        Warnings about variables that are ignored.

    Raises:
        ConfigError: A file cannot be read.
    """
    own_model = variable("MOOT_MODEL") is None
    project = read_dotenv(Path.cwd() / ".env", ignored=("MOOT_DB",))  # debates could go to somebody's server
    own_model = own_model and variable("MOOT_MODEL") is None
    user = read_dotenv(user_settings_file(), interpolate=True)
    # A project with its own endpoint and model needs no warning about the user's default endpoint.
    return [each for each in (project, user if own_model else "") if each]


def read_dotenv(path: Path, *, interpolate: bool = False, ignored: Collection[str] = ()) -> str:
    """Set environment variables from a `.env` file, except variables that are already set.

    The variables in `ignored` are left alone. The URL and the key of an OpenAI-compatible endpoint are taken
    from the same source, because a key belongs to an endpoint. The environment takes precedence.

    Returns:
        Warning about variables in the file that are ignored, `""` for none.

    Raises:
        ConfigError: The file cannot be read.
    """
    if not path.is_file():
        return ""
    from dotenv import dotenv_values

    try:
        file_values = dotenv_values(path, interpolate=interpolate, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {str(path)!r}: {file_error_reason(error)}") from error
    if any("\0" in (value or "") for value in file_values.values()):
        raise ConfigError(f"cannot read {str(path)!r}: a value contains a NUL character")
    new_values = {
        name: value for name, value in file_values.items() if value and value != os.environ.get(name)
    }
    endpoint_names = [name for name in _ENDPOINT if os.environ.get(name)]
    ignored_names = [
        name for name in _ENDPOINT if name in new_values and endpoint_names and name not in endpoint_names
    ]
    for name in new_values.keys() - {*ignored_names, *ignored}:
        if DOTENV.fullmatch(name) and not os.environ.get(name):
            os.environ[name], _origins[name] = new_values[name], str(path)
    warning = (
        f"{' and '.join(ignored_names)} in {path.name} is ignored: {' and '.join(endpoint_names)} is set in "
        f"{' and '.join(dict.fromkeys(map(origin_of, endpoint_names)))} and "
    )
    if ignored_names:
        return f"{warning}belongs to another endpoint"
    unused = " and ".join(name for name in ignored if name in new_values)
    return f"{unused} in {path.name} is ignored: set it in the environment" if unused else ""


def set_variables(values: Mapping[str, str]) -> None:
    """Set several environment variables in the current process. An empty value removes the variable."""
    for name, value in values.items():
        _origins.pop(name, None)
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)


def write_user_settings(values: Mapping[str, str]) -> Path:
    """Save variables in the user's settings file, and return the file's path.

    Only the user can access the file. Other variables and comments in it are kept. An empty value removes the
    variable.

    Raises:
        InputError: The file cannot be written.
    """
    from dotenv import set_key, unset_key

    path = user_settings_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:  # a key is never stored without its endpoint
            draft = Path(folder) / path.name
            draft.touch(mode=0o600)
            if path.exists():
                draft.write_bytes(path.read_bytes())
            for name, value in values.items():
                if value:
                    set_key(draft, name, value)
                else:
                    unset_key(draft, name)
            draft.chmod(0o600)
            draft.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {file_error_reason(error)}") from error
    return path


def environment_with(**variables: str) -> dict[str, str]:
    """Return the environment of a child process: this process's, and the given variables."""
    return {**os.environ, **variables}


def database_url() -> str:
    """Return the default database: `MOOT_DB`, or a file in the user's data directory."""
    if configured := variable("MOOT_DB"):
        return configured
    from platformdirs import user_data_path

    return str(user_data_path("moot", appauthor=False) / "moot.sqlite")


def is_postgres(url: str) -> bool:
    """Return True if a database URL refers to a Postgres server."""
    return url.startswith(("postgresql://", "postgres://"))


def sqlite_path(url: str) -> Path:
    """Return the file of a path or of `sqlite:///path`. A URL without a file is a `ConfigError`."""
    if url.endswith(":memory:"):
        raise ConfigError(
            "':memory:' creates a new database for each connection: give a file path. In Python, "
            "`open_debates(':memory:')` uses a temporary file"
        )
    return Path(url.removeprefix("sqlite:///")).expanduser()


def check_database(db: str | None = None) -> str:
    """Return a valid path or URL, by default the default database's, or raise an `InputError`."""
    url = database_url() if db is None else db
    register_database_password(url)
    known = is_postgres(url) or url.startswith("sqlite:///") or "://" not in url
    if not url.strip() or not known:
        raise InputError(
            f"{redact_urls(url)!r} is not a valid database: give a path, sqlite:///path or postgresql://…"
        )
    return url


def database_exists(url: str) -> bool:
    """Return True if the database at the given URL exists. A database on a server is assumed to exist."""
    return is_postgres(url) or sqlite_path(url).exists()


_passed_in: dict[str, Callable[[], object]] = {}


def use_protocols(load: Callable[[], object]) -> None:
    """Set the default table of protocols.

    `DebateConfig` uses it if its caller passes none. The `moot` package calls this once.

    Args:
        load: Function that imports and returns the table when the first configuration is created. The table
            is a `moot.config.section.ProtocolSpecTable`.
    """
    _passed_in["protocols"] = load


def passed_protocols() -> object:
    """Return the table of protocols that `use_protocols` set."""
    return _passed_in["protocols"]()


@contextmanager
def require_extra(name: str, what: str) -> Iterator[None]:
    """Turn an `ImportError` in a `with` block into a `ConfigError` that names the extra to install."""
    try:
        yield
    except ImportError as error:
        raise missing_extra(what, name) from error


def missing_extra(what: str, name: str) -> ConfigError:
    """Return an error with the command that installs the extra of a feature."""
    pip = f"{shlex.quote(sys.executable)} -m pip"  # the bare command may belong to another Python
    return ConfigError(f"{what} needs additional packages: run `{pip} install 'moot[{name}]'`")


def plugin_entry_points(group: str) -> dict[str, EntryPoint]:
    """Return a group's entry points by name. Of equal names, Moot's own plug-in is preferred."""
    from importlib.metadata import entry_points  # slow (13 ms), and most commands need no plug-ins

    points = sorted(entry_points(group=group), key=is_shipped)
    return {point.name: point for point in points}


def is_shipped(point: EntryPoint) -> bool:
    """Return True if an entry point belongs to one of Moot's own plug-ins."""
    return point.value.startswith("moot.")


def load_plugin(point: EntryPoint, setting: str, *, create: bool = True) -> Any:
    """Import the plug-in that an entry point refers to, and return it.

    With `create`, a class or function is called, and its result is returned.

    Raises:
        ConfigError: The import or the call fails. The message names the setting that asks for the plug-in.
    """
    try:
        plugin = point.load()
        return plugin() if create and callable(plugin) else plugin
    except Exception as error:  # code of another package may raise any exception
        raise ConfigError(
            f"{setting}: cannot create the plug-in {point.name!r} ({point.value}): {type(error).__name__}: "
            f"{error}"
        ) from error
