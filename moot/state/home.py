"""Where the table of protocols is: it stands above the state, so whoever puts Moot together says where."""

from importlib import import_module
from types import ModuleType

_modules: dict[str, str] = {}


def protocols_are_in(module: str) -> None:
    """Say which module holds the table of protocols; it is imported when it is first asked for."""
    _modules["protocols"] = module


def protocol_table() -> ModuleType:
    """Return the module that holds the table of protocols."""
    return import_module(_modules["protocols"])
