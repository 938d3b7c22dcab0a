"""What stands above the state or outside Moot: the table of protocols, what other packages bring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from moot.state.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_modules: dict[str, str] = {}


def protocols_are_in(module: str) -> None:
    """Say which module holds the table of protocols, which whoever puts Moot together knows."""
    _modules["protocols"] = module


def protocol_table() -> ModuleType:
    """Return the module that holds the table of protocols, imported when it is first asked for."""
    return import_module(_modules["protocols"])


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Say which extra of Moot's installs what a `with` block imports, where that is missing.

    Raises:
        ConfigError: it is.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{what} needs more packages: pip install 'moot[{name}]'") from error


def plugged_in(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by their names."""
    from importlib.metadata import entry_points  # takes 13 ms, which most commands need not spend

    return {point.name: point for point in entry_points(group=group)}


def plugin_of(point: EntryPoint, setting: str) -> Any:
    """Return an instance of the class that an entry point names.

    Raises:
        ConfigError: it cannot be imported or made; the message names the setting that asks for it.
    """
    try:
        return point.load()()
    except Exception as error:  # whatever another package raises as it is imported or made
        raise ConfigError(
            f"{setting}: cannot make {point.name!r} ({point.value}): {type(error).__name__}: {error}"
        ) from error
