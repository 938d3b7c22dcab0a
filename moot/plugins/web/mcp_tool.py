"""How a method becomes an MCP tool: its arguments, its errors, and the status of a debate as its result."""

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, Self, TypeVar, cast

import pydantic
from mcp.types import CallToolResult, ToolAnnotations

from moot.config.section import MAX_KEY_CHARS, errors_in
from moot.state.errors import MootError, advice_for
from moot.text.plain_text import clip

MCP_1 = version("mcp").startswith("1.")
"""True if a version 1.x of the `mcp` package is installed."""
if TYPE_CHECKING or not MCP_1:
    from mcp.server.mcpserver.exceptions import ResourceError, ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
else:
    from mcp.server.fastmcp.exceptions import ResourceError, ToolError
    from mcp.server.fastmcp.tools import Tool
    from mcp.server.fastmcp.utilities.func_metadata import ArgModelBase


class DebateOutcome(pydantic.BaseModel):
    """Status of a debate, and its result once it is finished."""

    decision: str = pydantic.Field(
        "", description="Decision of the debate in one line. Empty until the debate is finished."
    )
    debate: str = pydantic.Field(
        description="Id of the debate. Pass this id to the other tools, or use it as ID in "
        "moot://debates/ID/report."
    )
    status: str = pydantic.Field(
        description=(
            "Status of the debate: done, limit, running, waiting (call `answer`) or paused (call `start`)."
        )
    )
    turns: int
    cost_usd: float
    winner: str | None = None
    verdict: str = pydantic.Field(
        "",
        description="Decision, reasons and open questions in Markdown. Empty until the debate is finished.",
    )
    latest: str = pydantic.Field("", description="The latest message of an unfinished debate.")
    questions: dict[str, str] = pydantic.Field(
        default_factory=dict, description="Open questions, keyed by id. Answer them with the tool `answer`."
    )
    error: str = pydantic.Field("", description="Error that stopped the debate.")

    def text(self) -> str:
        """Return the status and result of the debate as text.

        The first line is the decision, or the status of an unfinished debate. The verdict's own first line is
        left out if it repeats the decision.
        """
        cost = f", US$ {self.cost_usd:g}" if self.cost_usd else ""  # 0: no call has a known price
        facts = f"Debate {self.debate}: {self.status}, {self.turns} turns{cost}"
        question_lines = [f"Question {key}: {question}" for key, question in self.questions.items()]
        first_line, _, rest = self.verdict.partition("\n")
        verdict = rest.strip() if first_line.strip("*") == self.decision else self.verdict
        return "\n\n".join(
            filter(None, (self.decision, facts, verdict, self.latest, *question_lines, self.error))
        )


P = ParamSpec("P")
T = TypeVar("T")


def reporting_errors(
    tool: Callable[P, Coroutine[object, None, T]],
) -> Callable[P, Coroutine[object, None, T]]:
    """Wrap an MCP tool so that agents see Moot's error messages."""

    @wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with advice_for("agent"):
            try:
                return await tool(*args, **kwargs)
            except MootError as error:
                raise ResourceError(str(error)) from error

    return call


MAX_SHOWN_ERRORS = 5
"""Maximum number of argument errors that an MCP tool lists in one error message."""


class _KnownArguments(pydantic.BaseModel):
    """Base class for the arguments of MCP tools.

    It rejects unknown arguments. The error messages repeat at most a short part of the arguments.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _check(cls, arguments: object, handler: pydantic.ModelWrapValidatorHandler[Self]) -> Self:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        unknown = [name for name in arguments if name not in known] if isinstance(arguments, dict) else []
        if unknown:
            names = ", ".join(repr(clip(str(name), MAX_KEY_CHARS)) for name in unknown[:MAX_SHOWN_ERRORS])
            raise ValueError(f"unknown argument {names}: use only {', '.join(known)}")
        try:
            return handler(arguments)
        except pydantic.ValidationError as error:
            raise ValueError("; ".join(errors_in(error)[:MAX_SHOWN_ERRORS])) from error


class _PlainTool(Tool):
    """MCP tool that reports invalid arguments without the package's frame around the message."""

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool.

        Raises:
            ToolError: The arguments are invalid, or the tool failed.
        """
        try:
            return await super().run(*args, **kwargs)
        except ToolError as error:
            if not isinstance(invalid := error.__cause__, pydantic.ValidationError):
                raise
            # Pydantic's own text has a link to its website. `_KnownArguments` raised the `ctx` errors.
            messages = [str(each.get("ctx", {}).get("error", each["msg"])) for each in invalid.errors()]
            raise ToolError("; ".join(messages)) from error


def _outcome_as_text(
    method: Callable[P, Coroutine[object, None, DebateOutcome]],
) -> Callable[P, Coroutine[object, None, CallToolResult]]:
    """Make an MCP tool return its outcome as text and as structured data."""

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        outcome = await method(*args, **kwargs)
        content = [{"type": "text", "text": outcome.text()}]
        return CallToolResult.model_validate(
            {"content": content, "structuredContent": outcome.model_dump(mode="json")}
        )

    result = Annotated[CallToolResult, DebateOutcome]
    signature = inspect.signature(method, eval_str=True).replace(return_annotation=result)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _brief_schema(schema: object, *left_out: str) -> Any:
    """Return a JSON Schema without generated titles, defaults and limits on lengths.

    Agents read the schemas of all tools in every prompt. The arguments are checked all the same.
    """
    if isinstance(schema, list):
        return [_brief_schema(each, *left_out) for each in schema]
    if not isinstance(schema, dict):
        return schema
    brief = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            nested = ("examples",) if key == "$defs" else ()
            brief[key] = {name: _brief_schema(each, *left_out, *nested) for name, each in value.items()}
        elif key not in ("title", "default", "maxLength", "maxItems", *left_out):
            brief[key] = _brief_schema(value, *left_out)
    return brief


def tool_of(
    method: Callable[..., Coroutine[object, None, object]],
    title: str,
    *,
    reads: bool = False,
    asks_model: bool = False,
) -> Tool:
    """Convert a method to an MCP tool that rejects unknown arguments.

    The annotations tell a client that no tool deletes or overwrites anything, and which ones call a model.
    """
    outcome = inspect.signature(method, eval_str=True).return_annotation is DebateOutcome
    tells = cast(Callable[..., Coroutine[object, None, DebateOutcome]], method)
    function = reporting_errors(_outcome_as_text(tells) if outcome else method)
    hints = {"readOnlyHint": reads, "destructiveHint": False, "openWorldHint": asks_model}
    tool = _PlainTool.from_function(
        function,
        title=title,
        description=inspect.getdoc(method),
        annotations=ToolAnnotations.model_validate(hints),
    )
    arguments = tool.fn_metadata.arg_model
    strict = pydantic.create_model(arguments.__name__, __base__=(_KnownArguments, arguments))
    tool.fn_metadata.arg_model = cast(type[ArgModelBase], strict)
    tool.parameters = _brief_schema(strict.model_json_schema(by_alias=True))
    # The text of a result says what each value means. Only two tools show the schema of an outcome.
    hidden = outcome and method.__name__ not in ("debate", "result")
    output_schema = tool.fn_metadata.output_schema
    tool.fn_metadata.output_schema = None if hidden else _brief_schema(output_schema, "description")
    return tool
