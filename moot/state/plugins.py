"""Entry points of plug-ins, and the table of protocols that the package passes in."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moot.state.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from moot.state.config.section import ProtocolSpecTable

_passed_in: dict[str, Callable[[], ProtocolSpecTable]] = {}


def use_protocols(load: Callable[[], ProtocolSpecTable]) -> None:
    """Set the protocols that `DebateConfig` uses if the caller passes none.

    The `moot` package calls this once.

    Args:
        load: Function that imports and returns the table when the first configuration is created.
    """
    _passed_in["protocols"] = load


def default_protocols() -> ProtocolSpecTable:
    """Return the table of protocols that was set with `use_protocols`."""
    return _passed_in["protocols"]()


@contextmanager
def require_extra(name: str, what: str) -> Iterator[None]:
    """Convert an `ImportError` in a `with` block to an error that names the package extra to install.

    Raises:
        ConfigError: A package is missing.
    """
    try:
        yield
    except ImportError as error:
        raise missing_extra(what, name) from error


def missing_extra(what: str, name: str) -> ConfigError:
    """Return the error for missing packages of an extra. It says how to install the extra."""
    pip = f"{shlex.quote(sys.executable)} -m pip"  # the bare command may belong to another Python
    return ConfigError(f"{what} needs additional packages: run `{pip} install 'moot[{name}]'`")


def plugin_entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the installed entry points in a group, keyed by name."""
    from importlib.metadata import entry_points  # slow (13 ms), and most commands need no plug-ins

    return {point.name: point for point in entry_points(group=group)}


def load_plugin(point: EntryPoint, setting: str, *, create: bool = True) -> Any:
    """Import an entry point and return its object. With `create`, call the class or function first.

    Raises:
        ConfigError: the import or the call fails. The message names the setting that asks for the plug-in.
    """
    try:
        plugin = point.load()
        return plugin() if create and callable(plugin) else plugin
    except Exception as error:  # code of another package may raise any exception
        raise ConfigError(
            f"{setting}: cannot create the plug-in {point.name!r} ({point.value}): {type(error).__name__}: "
            f"{error}"
        ) from error
