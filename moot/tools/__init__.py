"""Public interface for tool plug-ins; every name here is stable.

A tool is a subclass of `Tool`, whose fields are its arguments. `register` adds it to this process. An
installed package names the class in an entry point of the group `moot.tools` instead. The setting `tools` of
a debater selects it by name.
"""

from moot.state.entries import Entry
from moot.tools.registry import register
from moot.tools.tool import Tool, ToolContext, ToolFailed

__all__ = ["Entry", "Tool", "ToolContext", "ToolFailed", "register"]
