"""Registry of tools, and the token cost of their definitions."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from moot.state.errors import ConfigError
from moot.state.plugins import load_plugin, plugin_entry_points
from moot.text.tokens import TokenCounter
from moot.tools.calculator import Calculator
from moot.tools.files import ListFiles, ReadFile, Search, SearchDebate
from moot.tools.tool import Tool, function_of

ENTRY_POINT_GROUP = "moot.tools"
"""Name of the entry point group for tool plug-ins. Each entry point has the tool's name and refers to its
class."""

TOOLS: dict[str, type[Tool]] = {
    tool.name: tool for tool in (Search, ReadFile, ListFiles, SearchDebate, Calculator)
}
"""Classes of the registered tools, keyed by tool name."""


GivenTools = Mapping[str, type[Tool]]
"""Tools supplied by the calling program, keyed by the names that debaters use."""
NO_TOOLS: GivenTools = MappingProxyType({})


def register(tool: type[Tool]) -> None:
    """Register a tool class for use by debates in this process.

    An installed package uses an entry point of the group `moot.tools` instead.

    Raises:
        ConfigError: the class is no tool, or its name is empty or taken.
    """
    if not (isinstance(tool, type) and issubclass(tool, Tool)):
        raise ConfigError(f"tool {tool!r} is not a subclass of `moot.tools.Tool`")
    name = getattr(tool, "name", "")
    if not name or TOOLS.get(name, tool) is not tool:
        raise ConfigError(f"the tool name {name!r} is empty or already registered: choose another `name`")
    TOOLS[name] = tool


def get_tool(name: str, given: GivenTools = NO_TOOLS) -> type[Tool]:
    """Return the tool class that is registered under this name.

    Args:
        name: name of the tool.
        given: tools that the calling program provides.

    Raises:
        ConfigError: no tool has this name, or its plug-in cannot be imported.
    """
    if name in given:
        return given[name]
    if name not in TOOLS and (point := plugin_entry_points(ENTRY_POINT_GROUP).get(name)):
        register(load_plugin(point, "tools", create=False))
    if name not in TOOLS:
        known = sorted({*given, *tool_names()})
        raise ConfigError(f"unknown tool {name!r}: choose from {', '.join(known)}")
    return TOOLS[name]


def tool_names() -> list[str]:
    """Return the sorted names of all tools, including those of plug-ins."""
    return sorted({*TOOLS, *plugin_entry_points(ENTRY_POINT_GROUP)})


def functions_tokens(names: Sequence[str], count: TokenCounter, given: GivenTools = NO_TOOLS) -> int:
    """Return the total number of tokens in the JSON definitions of several tools."""
    return sum(count(json.dumps(function_of(get_tool(name, given)))) for name in names)
