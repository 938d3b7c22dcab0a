"""The table of tools."""

from __future__ import annotations

from nodes.tools.base import Tool
from nodes.tools.calculator import Calculator
from nodes.tools.debate_search import SearchDebate
from nodes.tools.files import ListFiles, ReadFile, Search
from state.errors import ConfigError

TOOLS: dict[str, Tool] = {
    tool.name: tool for tool in (Search(), ReadFile(), ListFiles(), SearchDebate(), Calculator())
}
"""Tools by name; a new one is a class with the fields of `Tool` and a row here."""


def tool_named(name: str) -> Tool:
    """Return the tool of this name.

    Raises:
        ConfigError: there is none.
    """
    if name not in TOOLS:
        raise ConfigError(f"unknown tool {name!r}: use some of {', '.join(sorted(TOOLS))}")
    return TOOLS[name]
