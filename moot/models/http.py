"""The package of HTTP clients that Moot uses. All other modules import it from here.

The SDK of OpenAI has moved from `httpx` to its successor `httpx2`, which has the same names. Moot passes
streams to the SDK, so it uses the same package, even if both are installed.
"""

from importlib import import_module
from importlib.metadata import requires
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx as httpx
else:
    _uses_httpx2 = any(each.startswith("httpx2") for each in requires("openai") or ())
    httpx = import_module("httpx2" if _uses_httpx2 else "httpx")

__all__ = ["httpx"]
