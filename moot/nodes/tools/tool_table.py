"""The table of tools, and what offering some of them costs."""

import json
from collections.abc import Sequence

from moot.nodes.text.tokens import TokenCounter
from moot.nodes.tools.calculator import Calculator
from moot.nodes.tools.debate_search import SearchDebate
from moot.nodes.tools.files import ListFiles, ReadFile, Search
from moot.nodes.tools.tool import Tool, function_of
from moot.state.errors import ConfigError

TOOLS: dict[str, type[Tool]] = {
    tool.name: tool for tool in (Search, ReadFile, ListFiles, SearchDebate, Calculator)
}
"""Tools by name; a new one is a class with the fields of `Tool` and a row here."""


def tool_named(name: str) -> type[Tool]:
    """Return the tool of this name.

    Raises:
        ConfigError: there is none.
    """
    if name not in TOOLS:
        raise ConfigError(f"unknown tool {name!r}: use some of {', '.join(sorted(TOOLS))}")
    return TOOLS[name]


def functions_tokens(names: Sequence[str], count: TokenCounter) -> int:
    """Return what offering tools costs, by their definitions as JSON."""
    return sum(count(json.dumps(function_of(tool_named(name)))) for name in names)
