"""Settings of the MCP servers whose tools debaters may call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from moot.state.config.section import Section
from moot.state.settings import redact_url

SEPARATOR = "__"
"""Text between the name of an MCP server and the name of its tool, as in `docs__search`."""
SERVER_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9]){0,19}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class McpToolDefinition(Section):
    """Definition of a tool, as reported by its MCP server at the start of the debate."""

    name: str
    """Name of the tool on the server that provides it."""
    description: str = ""
    """Text that tells the model what the tool does."""
    parameters: dict[str, object] = Field(default_factory=dict)
    """JSON Schema of the tool's arguments."""


class McpServerConfig(Section):
    """MCP server whose tools debaters may call. It has either a `command` or a `url`."""

    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Command that starts the server, such as `[npx, -y, some-server]`. Moot talks to it over stdin and
    stdout. A request cannot set it."""
    env: tuple[str, ...] = ()
    """Names of environment variables passed to the command in addition to basic ones such as `PATH` and
    `HOME`. The values are never stored."""
    url: str | None = None
    """URL of a server that uses the streamable HTTP transport; the URL must not contain a password or key.
    A request cannot set it."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the bearer token sent to `url`."""
    timeout_s: float = Field(default=60.0, gt=0, le=3600)
    """Time limit in seconds for one tool call, including the time to start the server."""
    tools: dict[str, McpToolDefinition] = Field(default_factory=dict)
    """Definitions of the tools that debaters use, keyed by the names given in `debaters.tools`. Moot asks
    the server for them when the debate starts, and stores them with the debate. Leave it empty."""

    @field_validator("env", "api_key_env")
    @classmethod
    def _check_variables(cls, value: tuple[str, ...] | str | None) -> tuple[str, ...] | str | None:
        names = (value,) if isinstance(value, str) else value or ()
        if wrong := [name for name in names if not _VARIABLE.fullmatch(name)]:
            raise ValueError(f"{wrong[0][:4]!r}… is not the name of an environment variable: give names only")
        return value

    @model_validator(mode="after")
    def _check_transport(self) -> McpServerConfig:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either `command` or `url`")
        if self.url is not None:
            if redact_url(self.url) != self.url:
                raise ValueError(
                    "`url` contains a password or key: remove the secret, and set `api_key_env` to the name "
                    "of the variable that holds it"
                )
            if not self.url.startswith(("http://", "https://")):
                raise ValueError(f"{self.url!r} is not an HTTP URL")
        if self.env and self.url:
            raise ValueError(
                "`env` works only with `command`, not with `url`: remove `env`, or use `api_key_env` instead"
            )
        if self.api_key_env and self.command:
            raise ValueError(
                "`api_key_env` works only with `url`, not with `command`: name the variable in `env` instead"
            )
        return self

    def capability(self, name: str) -> dict[str, object]:
        """Return the MCP server's name and all of its settings that need the operator's permission."""
        return {"name": name, **self.model_dump(include={"command", "env", "url", "api_key_env"})}


def without_definitions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in JSON form, excluding the tool definitions of MCP servers."""
    servers = settings.get("mcp_servers") or {}
    stated = {
        name: {key: value for key, value in server.items() if key != "tools"}
        for name, server in servers.items()
    }
    return {**settings, "mcp_servers": stated}


def server_of(tool: str, servers: Mapping[str, McpServerConfig]) -> str | None:
    """Return the name of the MCP server that a tool name such as `docs__search` refers to, or None."""
    name, separator, _ = tool.partition(SEPARATOR)
    return name if separator and name in servers else None
