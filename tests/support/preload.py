"""Imports everything that commands need, in the server from which warm processes are forked."""

import importlib
import pkgutil
from contextlib import suppress

import moot
from moot.text.tokens import DEFAULT_ENCODING, counter

for _module in pkgutil.walk_packages(moot.__path__, "moot."):
    if not _module.name.startswith(("moot.plugins.web", "moot.testing", "moot.__main__")):
        with suppress(ImportError):  # the module's extra is not installed
            importlib.import_module(_module.name)
for _name in (
    "choix",
    "jinja2",
    "langgraph.checkpoint.sqlite.aio",
    "rich.live",
    "rich.markdown",
    "scipy.stats",
):
    with suppress(ImportError):
        importlib.import_module(_name)
counter(DEFAULT_ENCODING)("warm")
