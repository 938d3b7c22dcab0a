"""What other installed packages bring, by entry points that name a class."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from moot.state.errors import ConfigError


def plugged_in(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by their names."""
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
