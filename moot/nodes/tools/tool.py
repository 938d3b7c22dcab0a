"""What a tool is: a name, what it says of itself to a model, and a function of its arguments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from moot.nodes.tools.sandbox import Refused, Sandbox
from moot.state.entries import Entry, JsonObject

MAX_RESULT_CHARS = 20_000
"""Characters of one result that are kept; what a prompt shows of it is less."""


class ToolFailed(Exception):
    """A tool cannot do what was asked; the message goes to the model, which may ask otherwise."""


class Arguments(BaseModel):
    """Base of tools' arguments: what a model says is checked before it counts."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@dataclass(frozen=True)
class Surroundings:
    """What tools may look at."""

    sandbox: Callable[[], Sandbox | None] = lambda: None
    """Opens the context folder, on a thread that may block; `None` where there is none."""
    transcript: Sequence[Entry] = ()
    """What has been said."""


class Tool(Protocol):
    """One tool."""

    name: ClassVar[str]
    about: ClassVar[str]
    """What it does and when to use it, for the model."""
    arguments: ClassVar[type[Arguments]]
    needs_context: ClassVar[bool]
    """Whether it is of no use without a context folder."""

    def run(self, given: Any, around: Surroundings) -> str:
        """Return the result.

        Raises:
            ToolFailed: what was asked cannot be done.
        """
        ...


def function_of(tool: Tool) -> JsonObject:
    """Return a tool in OpenAI's function form."""
    schema = tool.arguments.model_json_schema()
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema["properties"].items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.about, "parameters": parameters},
    }


def run_tool(tool: Tool, arguments: JsonObject, around: Surroundings) -> str:
    """Run a tool and return its result; what goes wrong is a result too, beginning with `error: `."""
    try:
        return tool.run(tool.arguments.model_validate(dict(arguments)), around)[:MAX_RESULT_CHARS]
    except ValidationError as error:
        detail = error.errors()[0]
        return f"error: argument {'.'.join(map(str, detail['loc']))!r}: {detail['msg']}"
    except (ToolFailed, Refused) as error:
        return f"error: {error}"
    except OSError as error:  # whose text would name the folder's place on this machine
        return f"error: {error.strerror or 'cannot be read'}"
