"""All tools of a debate (built-in, from the program, from MCP servers), and its context."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType, new_class
from typing import IO, TYPE_CHECKING, ClassVar, TextIO, TypeVar, cast

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, ValidationError

from moot.config import DebateConfig, boundary
from moot.config.file_references import check_local
from moot.config.model_settings import McpServerConfig, McpToolDefinition
from moot.state.entries import JsonObject, clean_text, memoize_by_identity
from moot.state.errors import ConfigError, file_error_reason
from moot.state.settings import api_key, load_plugin, plugin_entry_points, redact, variable
from moot.text.plain_text import break_template_tokens, left_out_notice
from moot.text.tokens import TokenCounter
from moot.tools import tool as tool_types
from moot.tools.built_in import ListFiles, ReadFile, Search, SearchDebate

if TYPE_CHECKING:
    from mcp import ClientSession


ENTRY_POINT_GROUP = "moot.tools"
"""Name of the entry point group for tool plug-ins. Each entry point has the tool's name and refers to its
class."""

TOOLS: dict[str, type[tool_types.Tool]] = {
    tool.name: tool for tool in (Search, ReadFile, ListFiles, SearchDebate)
}
"""Classes of the registered tools, keyed by tool name."""


GivenTools = Mapping[str, type[tool_types.Tool]]
"""Tools supplied by the calling program, keyed by tool name."""
NO_TOOLS: GivenTools = MappingProxyType({})


def register(tool: type[tool_types.Tool]) -> None:
    """Register a tool class for use by debates in this process.

    An installed package uses an entry point of the group `moot.tools` instead.

    Raises:
        ConfigError: the class is not a tool, or its name is empty or taken.
    """
    if getattr(tool, "name", "") in plugin_entry_points(ENTRY_POINT_GROUP):
        get_tool(tool.name)
    _add(tool)


def _add(tool: type[tool_types.Tool]) -> None:
    if not (isinstance(tool, type) and issubclass(tool, tool_types.Tool)):
        raise ConfigError(f"tool {tool!r} is not a subclass of `moot.tools.Tool`")
    name = getattr(tool, "name", "")
    if not name or TOOLS.get(name, tool) is not tool:
        raise ConfigError(f"the tool name {name!r} is empty or already registered: choose another `name`")
    TOOLS[name] = tool


def get_tool(name: str, extra_tools: GivenTools = NO_TOOLS) -> type[tool_types.Tool]:
    """Return the tool class that is registered under this name.

    Raises:
        ConfigError: no tool has this name, or its plug-in cannot be imported.
    """
    if name in extra_tools:
        return extra_tools[name]
    if name not in TOOLS and (point := plugin_entry_points(ENTRY_POINT_GROUP).get(name)):
        _add(load_plugin(point, "tools", create=False))
    if name not in TOOLS:
        known = sorted({*extra_tools, *tool_names()})
        raise ConfigError(f"unknown tool {name!r}: choose from {', '.join(known)}")
    return TOOLS[name]


def tool_names() -> list[str]:
    """Return the sorted names of all tools, including those of plug-ins."""
    return sorted({*TOOLS, *plugin_entry_points(ENTRY_POINT_GROUP)})


def functions_of(names: Sequence[str], extra_tools: GivenTools = NO_TOOLS) -> list[JsonObject]:
    """Return the JSON definitions of several tools."""
    tools = [get_tool(name, extra_tools) for name in names]
    return [tool_types.function_of(tool) for tool in tools]


def functions_tokens(names: Sequence[str], count: TokenCounter, extra_tools: GivenTools = NO_TOOLS) -> int:
    """Count the tokens in the JSON definitions of several tools."""
    return sum(count(json.dumps(each)) for each in functions_of(names, extra_tools))


T = TypeVar("T")
SEPARATOR = "__"
"""Separator between an MCP server's name and its tool's name, as in `docs__search`."""
TOOL_NAME_CHARS = 64
"""Maximum length of a tool name that is sent to a model, in characters. The limit applies to tools of MCP
servers. Providers refuse longer names."""
DEFINITION_CHARS = 20_000
"""Maximum length of a tool's definition in characters."""
MAX_PAGES = 20
"""Maximum number of pages to read from an MCP server's list of tools."""
LOG_CHARS = 20_000
"""Maximum number of characters of an MCP server's log to search for an error."""
KEPT_S = 60.0
"""Number of seconds for which an MCP server's tools are cached."""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_listed: dict[str, tuple[float, dict[str, McpToolDefinition]]] = {}
_listing = Lock()


class McpTool(tool_types.Tool):
    """Base class of tools that run on an MCP server. The arguments are extra fields."""

    model_config = ConfigDict(extra="allow", frozen=True)

    server_name: ClassVar[str]
    server: ClassVar[McpServerConfig]
    definition: ClassVar[McpToolDefinition]

    @classmethod
    def parameters(cls) -> JsonObject:
        """Return the JSON Schema of the tool's arguments, as the MCP server defines it."""
        return cls.definition.parameters

    def run(self, context: tool_types.ToolContext) -> str:
        """Call the tool on its server, and return its text. An unpermitted server is a `ConfigError`."""
        context.authorize()
        name, arguments = self.definition.name, dict(self.model_extra or {})

        async def call(session: ClientSession) -> JsonObject:
            result = await session.call_tool(name, arguments)
            return result.model_dump(mode="json", by_alias=True)

        try:
            result = _use(self.server_name, self.server, call)
        except ConfigError:
            raise
        except Exception as error:
            raise tool_types.ToolFailed(_reason(error, self.server)[:FAULT_CHARS]) from error
        text = _result_text(result)
        if result.get("isError"):
            raise tool_types.ToolFailed(text[:FAULT_CHARS] or "the tool failed")
        return text


def _result_text(result: JsonObject) -> str:
    """Return a result's text, or else its structured content. Images and sounds are only named."""
    texts = []
    for block in result.get("content") or []:
        resource = block.get("resource") or {}
        if (text := block.get("text", resource.get("text"))) is not None:
            texts.append(str(text)[: tool_types.MAX_RESULT_CHARS])
        elif uri := block.get("uri", resource.get("uri")):
            texts.append(str(uri)[:FAULT_CHARS])
        else:
            texts.append(f"({block.get('type', 'content')} left out)")
    if not texts and (data := result.get("structuredContent")) is not None:
        texts = [json.dumps(data, ensure_ascii=False)]
    return redact(clean_text("\n".join(texts)[: tool_types.MAX_RESULT_CHARS]))


@memoize_by_identity()
def debate_tools(config: DebateConfig, program_tools: GivenTools) -> GivenTools:
    """Return the tools of the calling program, and MCP tools whose definitions are known."""
    tools = dict(program_tools)
    for name, server in config.mcp_servers.items():
        tools |= {tool: _tool(tool, name, server, known) for tool, known in server.tools.items()}
    return tools


@memoize_by_identity()  # every turn needs the number several times
def most_functions_tokens(config: DebateConfig, count: TokenCounter, program_tools: GivenTools) -> int:
    """Return the highest token count of any debater's tool definitions."""
    tools = debate_tools(config, program_tools)
    return max(functions_tokens(debater.tools, count, tools) for debater in config.debaters)


def _tool(
    tool: str, server_name: str, server: McpServerConfig, definition: McpToolDefinition
) -> type[tool_types.Tool]:
    fields: JsonObject = {
        "__module__": __name__,
        "__doc__": "Tool of an MCP server.",
        "__annotations__": {},
        "name": tool,
        "description": definition.description,
        "server_name": server_name,
        "server": server,
        "definition": definition,
    }
    kind: type[tool_types.Tool] = new_class("OneMcpTool", (McpTool,), {}, lambda body: body.update(fields))
    return kind


def server_of(tool: str, servers: Mapping[str, McpServerConfig]) -> str | None:
    """Return the name of the MCP server to which a tool such as `docs__search` belongs, or None."""
    name, separator, _ = tool.partition(SEPARATOR)
    return name if separator and name in servers else None


def with_definitions(config: DebateConfig) -> Mapping[str, McpServerConfig]:
    """Return the MCP servers with the definitions of the tools that debaters use.

    Servers are asked only for definitions that are missing.

    Raises:
        ConfigError: a server cannot be used, or has no such tool.
    """
    servers = dict(config.mcp_servers)
    for debater in config.debaters:
        for tool in debater.tools:
            name = server_of(tool, servers)
            if name is None or tool in servers[name].tools:
                continue
            definitions = _offered(name, servers[name])
            if tool not in definitions:
                raise ConfigError(
                    f"debater {debater.id!r} uses the tool {tool!r}, but the MCP server {name!r} does not "
                    "offer it: choose from "
                    f"{', '.join(sorted(definitions)) or 'another server, because this one has no tools'}"
                )
            tools = {**servers[name].tools, tool: definitions[tool]}
            servers[name] = servers[name].model_copy(update={"tools": tools})
    return servers


def _offered(name: str, server: McpServerConfig) -> dict[str, McpToolDefinition]:
    """Return a server's tool definitions by the names by which debaters call them."""
    with _listing:
        key = json.dumps(server.capability(name))
        listed_at, definitions = _listed.get(key, (0.0, {}))
        if definitions and time.monotonic() - listed_at < KEPT_S:
            return definitions
        try:
            tools = _use(name, server, _list_tools)
        except ConfigError:
            raise
        except Exception as error:
            notes = filter(None, getattr(error, "__notes__", ()))
            message = "; it wrote: ".join([_reason(error, server), *notes])
            raise ConfigError(f"mcp_servers.{name}: {redact(message)[:FAULT_CHARS]}") from error
        definitions = {}
        for tool in tools:
            clean_tool = cast(JsonObject, json.loads(break_template_tokens(clean_text(json.dumps(tool)))))
            definition = McpToolDefinition(
                name=tool["name"],
                description=clean_tool.get("description") or "",
                parameters=clean_tool.get("inputSchema") or {},
            )
            function = f"{name}{SEPARATOR}{_NOT_IN_NAMES.sub('_', tool['name'])}"
            if len(function) <= TOOL_NAME_CHARS and len(definition.model_dump_json()) <= DEFINITION_CHARS:
                definitions.setdefault(function, definition)
        _listed[key] = time.monotonic(), definitions
        return definitions


async def _list_tools(session: ClientSession) -> list[JsonObject]:
    from mcp.types import PaginatedRequestParams

    tools: list[JsonObject] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = (await session.list_tools(params=PaginatedRequestParams(cursor=cursor))).model_dump(
            mode="json", by_alias=True
        )
        tools += page["tools"]
        if not (cursor := page.get("nextCursor")):
            break
    return tools


def _use(name: str, server: McpServerConfig, work: Callable[[ClientSession], Awaitable[T]]) -> T:
    """Call `work` with a session of an MCP server, in a thread of its own and within a time limit.

    Raises:
        ConfigError: the package `mcp` or an environment variable is missing.
    """
    try:
        import mcp  # noqa: F401  # an optional package
    except ImportError as error:
        raise ConfigError(
            f"mcp_servers.{name} needs the package mcp: run `pip install 'moot[mcp]'`"
        ) from error
    variables = (*server.env, *filter(None, [server.api_key_env]))
    if missing := [each for each in variables if variable(each) is None]:
        raise ConfigError(f"mcp_servers.{name}: {missing[0]} is not set: set this environment variable")

    async def run(log: IO[str]) -> T:
        async with asyncio.timeout(server.timeout_s):
            async with _session(server, log) as session:
                return await work(session)

    with ThreadPoolExecutor(1) as thread, tempfile.TemporaryFile("w+", errors="replace") as log:
        try:
            return thread.submit(asyncio.run, run(log)).result()
        except Exception as error:
            log.seek(0)
            if lines := log.read(LOG_CHARS).split("\n"):
                error.add_note(next(filter(None, map(str.strip, reversed(lines))), ""))
            raise


@asynccontextmanager
async def _session(server: McpServerConfig, log: IO[str]) -> AsyncIterator[ClientSession]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with AsyncExitStack() as stack:
        if server.command:
            secrets = {name: api_key(name) or "" for name in server.env}
            program, *words = server.command
            parameters = StdioServerParameters(command=program, args=words, env=secrets)
            streams = await stack.enter_async_context(stdio_client(parameters, errlog=cast(TextIO, log)))
        else:
            key = api_key(server.api_key_env) if server.api_key_env else None
            headers = {"Authorization": f"Bearer {key}"} if key else None
            client = await stack.enter_async_context(create_mcp_http_client(headers=headers))
            transport = streamable_http_client(server.url or "", http_client=client)
            streams = await stack.enter_async_context(transport)
        reading, writing = streams[0], streams[1]  # version 1 of `mcp` returns a third value for HTTP
        session = await stack.enter_async_context(ClientSession(reading, writing))
        await session.initialize()
        yield session


def _reason(error: BaseException, server: McpServerConfig) -> str:
    """Return the cause of an MCP server's failure on one line, without secrets."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no result within timeout_s, {server.timeout_s:g} s"
    if isinstance(error, FileNotFoundError) and server.command:
        return f"program {server.command[0]!r} not found: install it, or give its full path"
    return redact(f"{type(error).__name__}: {error}").replace("\n", " ")


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FAULT_CHARS = 500
"""Maximum number of characters of a tool's error message that a debater sees."""


class LangChainTool(tool_types.Tool):
    """Base class of tools that wrap a LangChain tool. The arguments are extra fields."""

    model_config = ConfigDict(extra="allow", frozen=True)

    source: ClassVar[BaseTool]

    @classmethod
    def parameters(cls) -> JsonObject:
        """Return the JSON Schema of the LangChain tool's arguments."""
        function: JsonObject = convert_to_openai_tool(cls.source)["function"]
        schema: JsonObject = function.get("parameters") or {}
        return schema

    def run(self, context: tool_types.ToolContext) -> str:
        """Call the LangChain tool, and return its result as text."""
        arguments = dict(self.model_extra or {})
        has_function = getattr(self.source, "func", self.source) is not None
        try:
            if not has_function and callable(getattr(self.source, "coroutine", None)):
                result = asyncio.run(self.source.ainvoke(arguments))
            else:
                result = self.source.invoke(arguments)
        except (ToolException, ValidationError) as error:
            raise tool_types.ToolFailed(redact(str(error))[:FAULT_CHARS]) from error
        except Exception as error:
            raise tool_types.ToolFailed(redact(f"{type(error).__name__}: {error}")[:FAULT_CHARS]) from error
        return clean_text(_text(result))


def _text(result: object) -> str:
    """Return a tool's result as text, with a notice about content blocks that have none."""
    if isinstance(result, str):
        return result
    if isinstance(result, list) and all(isinstance(each, dict | str) for each in result):
        texts = [each if isinstance(each, str) else each.get("text") for each in result]
        texts += filter(None, [left_out_notice(result)])
        if any(isinstance(each, str) for each in texts):
            return "\n".join(each for each in texts if isinstance(each, str))
    return json.dumps(result, ensure_ascii=False, default=str)


def given_tools(tools: Mapping[str, BaseTool]) -> GivenTools:
    """Wrap LangChain tools for use by debaters.

    Raises:
        ConfigError: a value is not a LangChain tool, or a name is invalid or taken by a tool of Moot.
    """
    return {name: _given_tool(name, tool) for name, tool in tools.items()}


def _given_tool(name: str, tool: object) -> type[tool_types.Tool]:
    if not isinstance(tool, BaseTool):
        raise ConfigError(
            f"tools[{name!r}] has the type {type(tool).__name__}: pass a LangChain tool, such as a "
            "function with the decorator `langchain_core.tools.tool`"
        )
    if not _NAME.fullmatch(name):
        raise ConfigError(f"tools: {name!r} is not a valid tool name: use a-z, A-Z, 0-9, _ and -")
    if name in tool_names():
        raise ConfigError(f"tools: {name!r} is already the name of another tool: choose another name")
    fields: JsonObject = {
        "__module__": __name__,
        "__doc__": "Tool of the calling program.",
        "__annotations__": {},
        "name": name,
        "description": tool.description,
        "source": tool,
    }
    kind: type[tool_types.Tool] = new_class(
        "GivenTool", (LangChainTool,), {}, lambda body: body.update(fields)
    )
    return kind


@dataclass(frozen=True)
class CheckedTools:
    """Result of checking a configuration's tools."""

    documents: Sequence[Mapping[str, str]]
    """Context files as documents with `name` and `content`."""
    mcp_servers: Mapping[str, McpServerConfig]
    """MCP servers with the definitions of the tools that debaters use."""


def check_tools(
    config: DebateConfig, count: TokenCounter, program_tools: GivenTools = NO_TOOLS
) -> CheckedTools:
    """Check that the configured tools and the context file or folder can be used.

    MCP servers are asked for definitions that are missing.

    Raises:
        ConfigError: a tool is unknown, lacks its folder or exceeds the token budget, or the context does not
            exist or cannot be read.
    """
    documents = {path: read_context(path) for path in config.context_paths()}
    folders = [path for path, document in documents.items() if document is None]
    if len(folders) > 1:
        raise ConfigError(f"context takes at most one folder: choose one of {', '.join(map(repr, folders))}")
    for folder in folders:
        context = tool_types.ToolContext(partial(tool_types.Sandbox, Path(folder).resolve()))
        try:
            listing = ListFiles(path=".").run(context)
        except (tool_types.AccessRefused, OSError) as error:
            raise ConfigError(f"cannot read context {folder!r}: {file_error_reason(error)}") from error
        documents[folder] = {"name": f"Files of the folder {Path(folder).name!r}", "content": listing}
    servers = with_definitions(config)
    tools = debate_tools(config.model_copy(update={"mcp_servers": servers}), program_tools)
    for debater in config.debaters:
        for name in debater.tools:
            if get_tool(name, tools).needs_context and not folders:
                raise ConfigError(
                    f"tool {name!r} of debater {debater.id!r} needs a folder: set `context` to a folder"
                )
        tool_tokens = functions_tokens(debater.tools, count, tools)
        if tool_tokens > config.memory.budget.messages // 4:
            raise ConfigError(
                f"memory.budget.messages is {config.memory.budget.messages} tokens, too few for the "
                f"tools of debater {debater.id!r}: set it to at least {4 * tool_tokens}, or use fewer "
                "tools"
            )
    return CheckedTools([each for each in documents.values() if each is not None], servers)


def read_context(context: str) -> dict[str, str] | None:
    """Read the context file, or return `None` if the context is a folder.

    Raises:
        ConfigError: the path does not exist, cannot be read, is not text, or is outside `MOOT_CONTEXT_ROOT`.
    """
    path, root = Path(check_local(context)), variable("MOOT_CONTEXT_ROOT")
    if not path.exists():
        raise ConfigError(f"context {context!r} does not exist: give a folder or a text file")
    real = path.resolve()
    if root is not None and not real.is_relative_to(Path(root).resolve()):
        raise ConfigError(
            f"context {context!r} is outside MOOT_CONTEXT_ROOT ({root!r}): choose a path in that folder"
        )
    if path.is_dir():
        if os.open not in os.supports_dir_fd:
            raise ConfigError("this operating system supports no context folders: set `context` to a file")
        return None
    try:  # resolve the file's real folder, because the operator may configure a link
        return {"name": path.name, "content": tool_types.Sandbox(real.parent).read(real.name)}
    except (tool_types.AccessRefused, OSError) as error:
        raise ConfigError(f"cannot read context {context!r}: {file_error_reason(error)}") from error


def context_sandbox(permissions: boundary.Permissions) -> tool_types.Sandbox | None:
    """Return the folder that tools may read, or `None` if none is configured.

    Raises:
        ConfigError: the folder is not authorized, or is now outside `MOOT_CONTEXT_ROOT`.
    """
    paths = permissions.authorize("context", "tool").context_paths()
    folder = next((path for path in paths if read_context(path) is None), None)
    return None if folder is None else tool_types.Sandbox(Path(folder).resolve())
