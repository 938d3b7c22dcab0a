"""Context of a debate: a folder for the tools, and text files that every prompt shows."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moot.state.config import DebateConfig
from moot.state.config.boundary import Permissions
from moot.state.config.mcp_servers import McpServerConfig
from moot.state.errors import ConfigError, file_error_reason
from moot.state.settings import variable
from moot.text.tokens import TokenCounter
from moot.tools.mcp_tools import debate_tools, with_definitions
from moot.tools.registry import NO_TOOLS, GivenTools, functions_tokens, get_tool
from moot.tools.sandbox import AccessRefused, Sandbox


@dataclass(frozen=True)
class CheckedTools:
    """Results of checking a configuration's tools and its context file or folder."""

    documents: Sequence[Mapping[str, str]]
    """Context files as documents with `name` and `content`."""
    mcp_servers: Mapping[str, McpServerConfig]
    """Configured MCP servers, including definitions of the tools that debaters use."""


def check_tools(config: DebateConfig, count: TokenCounter, given: GivenTools = NO_TOOLS) -> CheckedTools:
    """Check that the configured tools and the context file or folder can be used.

    MCP servers are asked for definitions that are missing.

    Raises:
        ConfigError: a tool is unknown, lacks its folder or exceeds the token budget, or the context does not
            exist or cannot be read.
    """
    read = {path: read_context(path) for path in config.context_paths()}
    folders = [path for path, document in read.items() if document is None]
    if len(folders) > 1:
        raise ConfigError(f"context takes at most one folder: choose one of {', '.join(map(repr, folders))}")
    servers = with_definitions(config)
    given = debate_tools(config.model_copy(update={"mcp_servers": servers}), given)
    for debater in config.debaters:
        for name in debater.tools:
            if get_tool(name, given).needs_context and not folders:
                raise ConfigError(
                    f"tool {name!r} of debater {debater.id!r} needs a folder: set `context` to a folder"
                )
        offered = functions_tokens(debater.tools, count, given)
        if offered > config.memory.budget.messages // 4:
            raise ConfigError(
                f"memory.budget.messages is {config.memory.budget.messages} tokens, too few for the "
                f"tools of debater {debater.id!r}: set it to at least {4 * offered}, or use fewer "
                "tools"
            )
    return CheckedTools([each for each in read.values() if each is not None], servers)


def read_context(context: str) -> dict[str, str] | None:
    """Read the context file, or return `None` if the context is a folder.

    Raises:
        ConfigError: the path does not exist, cannot be read, is not text, or is outside `MOOT_CONTEXT_ROOT`.
    """
    path, root = Path(context), variable("MOOT_CONTEXT_ROOT")
    if not path.exists():
        raise ConfigError(f"context {context!r} does not exist: give a folder or a text file")
    real = path.resolve()
    if root is not None and not real.is_relative_to(Path(root).resolve()):
        raise ConfigError(
            f"context {context!r} is outside {root!r}, the folder that MOOT_CONTEXT_ROOT allows"
        )
    if path.is_dir():
        if os.open not in os.supports_dir_fd:
            raise ConfigError(
                "on this operating system, tools cannot be restricted to a folder: set `context` to a file"
            )
        return None
    try:  # resolve the file's real folder, because the operator may configure a link
        return {"name": path.name, "content": Sandbox(real.parent).read(real.name)}
    except (AccessRefused, OSError) as error:
        raise ConfigError(f"cannot read context {context!r}: {file_error_reason(error)}") from error


def context_sandbox(permissions: Permissions) -> Sandbox | None:
    """Return the folder that a debate's tools may read, or `None` if no folder is configured.

    Raises:
        ConfigError: the folder is not authorized, or is now outside `MOOT_CONTEXT_ROOT`.
    """
    paths = permissions.authorize("context", "tool").context_paths()
    folder = next((path for path in paths if read_context(path) is None), None)
    return None if folder is None else Sandbox(Path(folder).resolve())
