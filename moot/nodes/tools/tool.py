"""What a tool is: a name, what it says of itself to a model, its arguments, and what it does with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from moot.nodes.tools.sandbox import Refused, Sandbox
from moot.state.entries import Entry, JsonObject

MAX_RESULT_CHARS = 20_000
"""Characters of one result that are kept; what a prompt shows of it is less."""


class ToolFailed(Exception):
    """A tool cannot do what was asked; the message goes to the model, which may ask otherwise."""


@dataclass(frozen=True)
class Surroundings:
    """What tools may look at."""

    sandbox: Callable[[], Sandbox | None] = lambda: None
    """Opens the context folder, on a thread that may block; `None` where there is none."""
    transcript: Sequence[Entry] = ()
    """What has been said."""

    def folder(self) -> Sandbox:
        """Return the context folder.

        Raises:
            ToolFailed: there is none.
        """
        sandbox = self.sandbox()
        if sandbox is None:
            raise ToolFailed("there is no context folder")
        return sandbox


class Tool(BaseModel):
    """One call of a tool; its fields are the arguments: what a model says is checked before it counts."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: ClassVar[str]
    about: ClassVar[str]
    """What it does and when to use it, for the model."""
    needs_context: ClassVar[bool] = False
    """Whether it is of no use without a context folder."""

    def run(self, around: Surroundings) -> str:
        """Return the result.

        Raises:
            ToolFailed: what was asked cannot be done.
        """
        raise NotImplementedError


def function_of(tool: type[Tool]) -> JsonObject:
    """Return a tool in OpenAI's function form."""
    schema = tool.model_json_schema()
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema["properties"].items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.about, "parameters": parameters},
    }


def run_tool(tool: type[Tool], arguments: JsonObject, around: Surroundings) -> str:
    """Run a tool and return its result; what goes wrong is a result too, beginning with `error: `."""
    try:
        return tool.model_validate(dict(arguments)).run(around)[:MAX_RESULT_CHARS]
    except ValidationError as error:
        detail = error.errors()[0]
        return f"error: argument {'.'.join(map(str, detail['loc']))!r}: {detail['msg']}"
    except (ToolFailed, Refused) as error:
        return f"error: {error}"
    except OSError as error:  # whose text would name the folder's place on this machine
        return f"error: {error.strerror or 'cannot be read'}"
