"""The context of a debate: a folder for the tools, or one text file that everybody is shown."""

import os
from pathlib import Path

from moot.nodes.text.tokens import TokenCounter
from moot.nodes.tools.sandbox import Refused, Sandbox
from moot.nodes.tools.tool_table import functions_tokens, tool_named
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim
from moot.state.errors import ConfigError
from moot.state.settings import variable


def check_tools(config: DebateConfig, count: TokenCounter) -> dict[str, str] | None:
    """Refuse tools and a context that could not be used, and return a context file as a document.

    Raises:
        ConfigError: an unknown tool, a tool without the folder that it needs, a budget too small for it, or a
            context that does not exist or may not be read.
    """
    document = None if config.context is None else read_context(config.context)
    has_folder = config.context is not None and document is None
    for debater in config.debaters:
        for name in debater.tools:
            if tool_named(name).needs_context and not has_folder:
                raise ConfigError(f"tool {name!r} of {debater.id!r} needs a folder: give it as `context`")
        offered = functions_tokens(debater.tools, count)
        if offered > config.memory.budget.messages // 4:
            raise ConfigError(
                f"memory.budget.messages is {config.memory.budget.messages} tokens, too few for the tools of "
                f"{debater.id!r}: give at least {4 * offered}, or fewer tools"
            )
    return document


def read_context(context: str) -> dict[str, str] | None:
    """Return a context file as a document, `{name, content}`, `None` for a folder.

    Raises:
        ConfigError: it does not exist, cannot be read, is no text, or lies outside `MOOT_CONTEXT_ROOT`.
    """
    path, root = Path(context), variable("MOOT_CONTEXT_ROOT")
    if not path.exists():
        raise ConfigError(f"context {context!r} does not exist: give a folder or a text file")
    real = path.resolve()
    if root is not None and not real.is_relative_to(Path(root).resolve()):
        raise ConfigError(
            f"context {context!r} lies outside {root!r}, the folder that MOOT_CONTEXT_ROOT allows"
        )
    if path.is_dir():
        if os.open not in os.supports_dir_fd:
            raise ConfigError("tools on a context folder need a system that opens files relative to a folder")
        return None
    try:  # through the folder that it really lies in: a link to it is meant by whoever configured it
        return {"name": path.name, "content": Sandbox(real.parent).read(real.name)}
    except (Refused, OSError) as error:
        raise ConfigError(f"cannot read context {context!r}: {error}") from error


def context_sandbox(claim: Claim) -> Sandbox | None:
    """Return the folder that a debate's tools may read, `None` where it has none.

    Raises:
        ConfigError: it is not admitted, or lies outside `MOOT_CONTEXT_ROOT` by now.
    """
    context = claim.admit("context", "tool").context
    if context is None:
        return None
    read_context(context)
    return Sandbox(Path(context).resolve())
