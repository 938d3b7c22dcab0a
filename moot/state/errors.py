"""Exceptions of Moot, divided by cause.

    MootError
    ├── UserError               the input or the request is wrong; the message says what to do
    │   ├── ConfigError         invalid configuration
    │   ├── InputError          invalid file, topic or transcript
    │   ├── DebateExists        the id of a new debate is taken
    │   ├── DebateNotFound      no debate has this id
    │   └── DebateBusy          another run is writing this debate
    └── RunError                the run failed; the debate is saved and can be resumed
        ├── ModelError          a model or its provider failed, after retries and fallbacks
        ├── StorageError        the database cannot be read or written; its content is saved
        ├── JudgeFailed         no judge gave a usable verdict
        ├── BudgetReached       the spending limit of several debates together is reached
        ├── WaitingForPerson    the debate waits for a reply from a person
        └── DebatePaused        the run was paused by a person at the end of a step

`exit_code` is the exit code of the command line. All classes are `RuntimeError`s, because the LangGraph
server shows clients the messages of built-in exceptions and hides those of others.
"""

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

Caller = Literal["command", "python", "agent"]
_CALLER: ContextVar[Caller] = ContextVar("caller", default="python")


@contextmanager
def advice_for(caller: Caller) -> Iterator[None]:
    """Give errors in a `with` block the advice for a `command` line, a `python` program or an MCP `agent`."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


def advise(command: str, python: str, agent: str = "") -> str:
    """Return the advice that the current caller can follow. Default of `agent`: that for Python."""
    return {"command": command, "python": python, "agent": agent or python}[_CALLER.get()]


def option(flag: str, name: str = "") -> str:
    """Return what the current caller calls an option of the command line. Default of `name`: the same."""
    return advise(f"--{flag}", f"`{name or flag}`")


class MootError(RuntimeError):
    """Base class of all exceptions that Moot raises."""

    exit_code = 1


def file_error_reason(error: Exception) -> str:
    """Return why a file cannot be read or written. The caller's message names the file."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def read_file(path: Path, *, regular: bool = False) -> bytes:
    """Return the content of a file that a user names. Devices are refused, because they may have no end.

    With `regular`, pipes are refused, too.

    Raises:
        OSError: The file cannot be read.
    """
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or (regular and stat.S_ISFIFO(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return path.read_bytes()


class UserError(MootError):
    """Error raised when the caller's input is wrong. The command line shows no traceback."""

    exit_code = 2


class ConfigError(UserError):
    """Error raised when a configuration value is missing, unknown, out of range or contradictory."""


class InputError(UserError):
    """Error raised when a topic, file or transcript cannot be read or used."""


class DebateExists(UserError):
    """Error raised when a new debate is given the id of an existing debate."""


class DebateNotFound(UserError):
    """Error raised when no debate with the given id exists."""

    exit_code = 4


class DebateBusy(UserError):
    """Error raised when another run, in this or another process, is using the debate.

    Attributes:
        pid: Process id of the holder, `None` if it is not known.
    """

    exit_code = 5

    def __init__(self, message: str, *, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class RunError(MootError):
    """Error raised when a run of a debate fails. All entries written so far are saved."""

    exit_code = 3


class ModelError(RunError):
    """Error raised when a model call still fails after all retries.

    Attributes:
        status: HTTP status of the last attempt, `None` if there was none.
        retryable: True if the same call may succeed later.
    """

    def __init__(self, message: str, *, status: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable


class StorageError(RunError):
    """Error raised when the database cannot be read or written, for example because the disk is full."""


class JudgeFailed(RunError):
    """Error raised when none of the judges gave a usable verdict."""


class BudgetReached(RunError):
    """Error raised when a group of debates has reached its shared spending limit.

    A higher limit lets them go on.
    """


class WaitingForPerson(RunError):
    """Exception raised when a saved debate is waiting for a person's reply.

    Attributes:
        questions: Payload of the interrupt, as JSON.
    """

    exit_code = 6

    def __init__(self, message: str, *, questions: object = None) -> None:
        super().__init__(message)
        self.questions = questions


class DebatePaused(RunError):
    """Exception raised at the end of a step if a person paused the debate. The debate is saved."""

    exit_code = 130
