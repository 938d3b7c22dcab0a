"""Base class of tools, their context, and the function that runs a tool."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from moot.state.entries import Entry, JsonObject
from moot.tools.sandbox import AccessRefused, Sandbox

MAX_RESULT_CHARS = 20_000
"""Maximum number of characters stored for a tool result. Prompts show fewer characters."""


class ToolFailed(Exception):
    """Error raised when a tool call fails. The model receives the error's message as the result."""


@dataclass(frozen=True)
class ToolContext:
    """Parts of a debate that its tools may read, such as the context folder and the transcript."""

    sandbox: Callable[[], Sandbox | None] = lambda: None
    """Function that opens a `Sandbox` for the context folder, whose files the debate's tools may read. It
    is called on a worker thread. The function returns `None` if there is no context folder."""
    transcript: Sequence[Entry] = ()
    """Transcript entries of the debate so far."""
    authorize: Callable[[], object] = lambda: None
    """Function that raises an error if the debate has no permission to use its tools or MCP servers."""

    def folder(self) -> Sandbox:
        """Return the context folder, or raise an error if the debate has none.

        Raises:
            ToolFailed: the debate has no context folder.
        """
        sandbox = self.sandbox()
        if sandbox is None:
            raise ToolFailed("this debate has no context folder")
        return sandbox


class Tool(BaseModel):
    """Base class of the tools that debaters can call.

    An instance is one tool call with validated arguments. A tool is a subclass whose fields are the tool's
    arguments.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: ClassVar[str]
    description: ClassVar[str]
    """Description of the tool for the model, including when to use it."""
    needs_context: ClassVar[bool] = False
    """True if the tool can only be used with a context folder. The default is False."""

    def run(self, context: ToolContext) -> str:
        """Run the tool call, and return its result as text.

        Raises:
            ToolFailed: the call cannot be carried out.
        """
        raise NotImplementedError

    @classmethod
    def parameters(cls) -> JsonObject:
        """Return the JSON Schema of the tool's arguments."""
        return cls.model_json_schema()


def function_of(tool: type[Tool]) -> JsonObject:
    """Return the definition of a tool in OpenAI's function format."""
    schema = tool.parameters()
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema.get("properties", {}).items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    parameters |= {key: schema[key] for key in ("$defs",) if key in schema}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def run_tool(tool: type[Tool], arguments: JsonObject, context: ToolContext) -> str:
    """Run a tool with the given arguments, and return its result.

    An error is returned as a text that begins with `error: `.
    """
    try:
        return tool.model_validate(dict(arguments)).run(context)[:MAX_RESULT_CHARS]
    except ValidationError as error:
        detail = error.errors()[0]
        return f"error: argument {'.'.join(map(str, detail['loc']))!r}: {detail['msg']}"
    except (ToolFailed, AccessRefused) as error:
        return f"error: {error}"
    except OSError as error:  # the error text would reveal the path of the folder
        return f"error: {error.strerror or 'cannot be read'}"
