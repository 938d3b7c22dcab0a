"""The table of tools."""

from moot.nodes.tools.calculator import Calculator
from moot.nodes.tools.debate_search import SearchDebate
from moot.nodes.tools.files import ListFiles, ReadFile, Search
from moot.nodes.tools.tool import Tool
from moot.state.errors import ConfigError

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
