"""Base class of tools, their read-only access to one folder, and their calls as messages of a prompt.

A path is opened one component at a time, relative to the descriptor of the folder. Symbolic links and `..`
are refused, so no path leads outside, even if a link is created during the access. Hidden, binary and
oversize files, devices and pipes are refused too.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from moot.calls.model_calls import Reply, WireMessage
from moot.prompts.templates import break_fence, fenced, truncate_fenced
from moot.state.entries import Entry, JsonObject
from moot.text.plain_text import break_template_tokens, sanitize_line
from moot.text.tokens import TokenCounter, message_tokens, truncate_middle

RESULT_TOKENS = 1000
"""Maximum length of a tool's result in tokens. It applies to prompts and to the transcript."""
REPLY_TEXT_TOKENS = 200
"""Maximum number of tokens in the text that accompanies a tool call."""
CALL_TOKENS = 12
"""Maximum number of tokens in a tool call, excluding its arguments."""
LEFT_OUT = "(omitted to save tokens; call the tool again if you need it)"
"""Text that replaces the results of older tool calls in a prompt."""


@dataclass(frozen=True)
class ToolCall:
    """A model's tool call, together with the tool's result."""

    id: str
    """Id of the tool call, such as `call_3`. Calls are numbered within their turn. Ids from providers need
    not be unique."""
    name: str
    arguments: str
    """Arguments of the tool call as JSON text."""
    result: str


@dataclass(frozen=True)
class ToolExchange:
    """Model reply that contains tool calls, and the results of these calls."""

    reply: Reply
    calls: tuple[ToolCall, ...]


def exchange_messages(
    exchanges: Sequence[ToolExchange], remaining: int, fence: str, count: TokenCounter
) -> list[WireMessage]:
    """Convert tool calls and their results to chat messages.

    The messages use at most `remaining` tokens. The newest exchanges keep their results. Older ones lose
    their results first, and are then dropped.
    """
    kept: list[list[WireMessage]] = []
    for exchange in reversed(exchanges):
        for full in (True, False):
            messages = _messages(exchange, fence, count, full=full)
            cost = wire_tokens(messages, count)
            if cost <= remaining:
                break
        else:
            break
        remaining -= cost
        kept.append(messages)
    return [message for messages in reversed(kept) for message in messages]


def exchange_report(
    exchanges: Sequence[ToolExchange], remaining: int, fence: str, count: TokenCounter
) -> WireMessage:
    """Return one user message with all tool calls and results, for a call without tools."""
    parts = [
        _result(call, fence, count, f"## {call.name} {break_fence(sanitize_line(call.arguments), fence)}")
        for exchange in exchanges
        for call in exchange.calls
    ]
    frame: WireMessage = {
        "role": "user",
        "content": "# Results of your tool calls\n\nDo not call tools again. Write your message now.",
    }
    left = max(1, remaining - message_tokens(frame, count) - 4)
    return {**frame, "content": f"{frame['content']}\n\n{truncate_fenced(chr(10).join(parts), left, count)}"}


def wire_tokens(messages: Sequence[WireMessage], count: TokenCounter) -> int:
    """Return the number of tokens in chat messages, including tool calls."""
    return sum(
        message_tokens(message, count)
        + sum(CALL_TOKENS + count(json.dumps(call["function"])) for call in message.get("tool_calls", ()))
        for message in messages
    )


def _messages(exchange: ToolExchange, fence: str, count: TokenCounter, *, full: bool) -> list[WireMessage]:
    reply: WireMessage = {
        "role": "assistant",
        "content": break_template_tokens(
            truncate_middle(exchange.reply.text, REPLY_TEXT_TOKENS if full else 1, count)
        ),
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": break_template_tokens(call.arguments)},
            }
            for call in exchange.calls
        ],
    }
    results: list[WireMessage] = [
        {
            "role": "tool",
            "content": fenced(truncate_middle(call.result, RESULT_TOKENS, count), fence)
            if full
            else LEFT_OUT,
            "tool_call_id": call.id,
        }
        for call in exchange.calls
    ]
    return [reply, *results]


def _result(call: ToolCall, fence: str, count: TokenCounter, title: str = "") -> str:
    return fenced(truncate_middle(call.result, RESULT_TOKENS, count), fence, title)


MAX_FILE_BYTES = 1_000_000
"""Maximum size in bytes of a file that tools can read."""
MAX_LISTED_FILES = 2_000
"""Maximum number of files in one search or listing."""
FOLDER_DEPTH = 20
"""Maximum depth of nested folders that tools can read."""

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class AccessRefused(Exception):
    """Error for a path or file that tools must not read. Its message hides the folder's path."""


@dataclass(frozen=True)
class ListedFile:
    """Path and size of a file in the context folder."""

    path: str
    """Path of the file relative to the context folder, with `/` as the separator."""
    size: int
    """Size of the file in bytes."""


@dataclass(frozen=True)
class Sandbox:
    """Sandbox that lets tools read one folder and nothing else."""

    root: Path
    """Absolute path of the folder, with all symbolic links resolved. A link created later is refused."""

    def read(self, path: str) -> str:
        """Return the text of a file in the context folder.

        Raises:
            AccessRefused: the file is outside the folder, hidden, not a regular file, too large or not text.
            OSError: the file cannot be read.
        """
        *folders, name = _components(path)
        with (
            self._open_folder(folders) as folder,
            os.fdopen(_open_at(name, _FILE, folder, path), "rb") as file,
        ):
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise AccessRefused(f"{path!r} is not a regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise AccessRefused(
                    f"{path!r} has {status.st_size:,} bytes, but at most {MAX_FILE_BYTES:,} are allowed"
                )
            data = file.read(MAX_FILE_BYTES + 1)
        if b"\x00" in data:
            raise AccessRefused(f"{path!r} is a binary file")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise AccessRefused(f"{path!r} is not UTF-8 text") from None

    def files(self, path: str = ".") -> Iterator[ListedFile]:
        """Yield the visible files in a folder and its subfolders, sorted by path.

        At most `MAX_LISTED_FILES` are included.

        Raises:
            AccessRefused: the path is outside the folder or hidden.
            OSError: the path is not a folder, or cannot be read.
        """
        components = _components(path, folder=True)
        with self._open_folder(components) as folder:
            yield from islice(_walk(folder, "/".join(components), FOLDER_DEPTH), MAX_LISTED_FILES)

    @contextmanager
    def _open_folder(self, components: list[str]) -> Iterator[int]:
        descriptor = os.open(self.root, _FOLDER)
        try:
            for component in components:
                inner = _open_at(component, _FOLDER, descriptor, "/".join(components))
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


def _components(path: str, *, folder: bool = False) -> list[str]:
    slashed = path.replace("\\", "/")
    parts = [part for part in slashed.split("/") if part not in ("", ".")]
    if slashed.startswith("/") or ":" in slashed.split("/", 1)[0] or ".." in parts or "\x00" in slashed:
        raise AccessRefused(
            f"{path!r} is outside the context folder: use a path inside it, such as 'notes/a.md'"
        )
    if any(part.startswith(".") for part in parts):
        raise AccessRefused(f"{path!r} is hidden")
    if not parts and not folder:
        raise AccessRefused(
            f"{path!r} is the context folder, not a file: use the path of a file in this folder"
        )
    if len(parts) > FOLDER_DEPTH:
        raise AccessRefused(f"{path!r} is nested more than {FOLDER_DEPTH} folders deep: use a shorter path")
    return parts


def _open_at(name: str, flags: int, folder: int, path: str) -> int:
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise AccessRefused(f"{path!r} contains a symbolic link")
    return os.open(name, flags, dir_fd=folder)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[ListedFile]:
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    for name in names:
        path = f"{prefix}/{name}" if prefix else name
        with suppress(OSError, AccessRefused):  # skip files that vanish or cannot be read
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield ListedFile(path, status.st_size)
            elif stat.S_ISDIR(status.st_mode) and depth:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(inner, path, depth - 1)
                finally:
                    os.close(inner)


MAX_RESULT_CHARS = 20_000
"""Maximum number of characters stored for a tool result. Prompts show fewer characters."""


class ToolFailed(Exception):
    """Error raised when a tool call fails. The model receives the error's message as the result."""


@dataclass(frozen=True)
class ToolContext:
    """Parts of a debate that its tools may read, such as the context folder and the transcript."""

    sandbox: Callable[[], Sandbox | None] = lambda: None
    """Function that returns a `Sandbox` for the context folder, or `None` if there is no such folder. It is
    called on a worker thread."""
    transcript: Sequence[Entry] = ()
    """Transcript entries of the debate so far."""
    authorize: Callable[[], object] = lambda: None
    """Function that raises an error if the debate may not use its tools or MCP servers."""

    def folder(self) -> Sandbox:
        """Return the context folder. A debate without one is a `ToolFailed`."""
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
        """Run the tool call, and return its result as text. A call that is impossible raises `ToolFailed`."""
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
    """Run a tool, and return its result, or an error as a text that begins with `error: `."""
    try:
        return tool.model_validate(dict(arguments)).run(context)[:MAX_RESULT_CHARS]
    except ValidationError as error:
        detail = error.errors()[0]
        return f"error: argument {'.'.join(map(str, detail['loc']))!r}: {detail['msg']}"
    except (ToolFailed, AccessRefused) as error:
        return f"error: {error}"
    except OSError as error:  # the error text would reveal the path of the folder
        return f"error: {error.strerror or 'cannot be read'}"
