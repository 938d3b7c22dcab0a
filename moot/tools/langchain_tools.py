"""LangChain tools that a program passes as tools of debaters."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from types import new_class
from typing import ClassVar

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, ValidationError

from moot.state.entries import JsonObject, clean_text
from moot.state.errors import ConfigError
from moot.state.settings import redact
from moot.tools.registry import GivenTools, tool_names
from moot.tools.tool import Tool, ToolContext, ToolFailed

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ERROR_CHARS = 500
"""Maximum number of characters of a tool's error message that the debater sees."""


class LangChainTool(Tool):
    """Base class of tools that call a LangChain tool. The arguments are extra fields."""

    model_config = ConfigDict(extra="allow", frozen=True)

    source: ClassVar[BaseTool]

    @classmethod
    def parameters(cls) -> JsonObject:
        """Return the JSON Schema of the arguments that the model supplies."""
        function: JsonObject = convert_to_openai_tool(cls.source)["function"]
        schema: JsonObject = function.get("parameters") or {}
        return schema

    def run(self, context: ToolContext) -> str:
        """Call the LangChain tool on this worker thread, and return its result as text."""
        arguments = dict(self.model_extra or {})
        try:
            if _is_async_only(self.source):
                result = asyncio.run(self.source.ainvoke(arguments))
            else:
                result = self.source.invoke(arguments)
        except (ToolException, ValidationError) as error:
            raise ToolFailed(redact(str(error))[:ERROR_CHARS]) from error
        except Exception as error:
            raise ToolFailed(redact(f"{type(error).__name__}: {error}")[:ERROR_CHARS]) from error
        return clean_text(_text(result))


def _is_async_only(tool: BaseTool) -> bool:
    return getattr(tool, "func", tool) is None and callable(getattr(tool, "coroutine", None))


def _text(result: object) -> str:
    """Return a tool's result as text. Content blocks that contain no text are left out."""
    if isinstance(result, str):
        return result
    if isinstance(result, list) and all(isinstance(each, dict | str) for each in result):
        texts = [each if isinstance(each, str) else each.get("text") for each in result]
        if any(isinstance(each, str) for each in texts):
            return "\n".join(each for each in texts if isinstance(each, str))
    return json.dumps(result, ensure_ascii=False, default=str)


def given_tools(tools: Mapping[str, BaseTool]) -> GivenTools:
    """Convert LangChain tools to tools for debaters.

    Raises:
        ConfigError: a value is not a LangChain tool, or a name is invalid or taken by a tool of Moot.
    """
    return {name: _given_tool(name, tool) for name, tool in tools.items()}


def _given_tool(name: str, tool: object) -> type[Tool]:
    if not isinstance(tool, BaseTool):
        raise ConfigError(
            f"tools[{name!r}] is a {type(tool).__name__}: pass a LangChain tool, such as a function with the "
            "decorator `langchain_core.tools.tool`"
        )
    if not _NAME.fullmatch(name):
        raise ConfigError(f"tools: {name!r} is not a valid name: use a-z, A-Z, 0-9, _ and -")
    if name in tool_names():
        raise ConfigError(f"tools: {name!r} is the name of a tool of Moot: choose another name")
    fields: JsonObject = {
        "__module__": __name__,
        "__doc__": "Tool of the calling program.",
        "__annotations__": {},
        "name": name,
        "description": tool.description,
        "source": tool,
    }
    kind: type[Tool] = new_class("GivenTool", (LangChainTool,), {}, lambda body: body.update(fields))
    return kind
