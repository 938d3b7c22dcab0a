"""Every error that Moot raises, split by whose fault it is.

    MootError
    ├── UserError               the input or the request is wrong; the message says what to do
    │   ├── ConfigError         a configuration that cannot be used
    │   ├── InputError          a file, topic or transcript that cannot be used
    │   ├── DebateExists        a new debate under an id that is taken
    │   ├── DebateNotFound      no debate under this id
    │   └── DebateBusy          another run is writing this debate
    └── RunError                the run failed; the debate is saved and can be resumed
        ├── ModelError          a model or its provider failed, after retries and fallbacks
        ├── StorageError        the database cannot be read or written; what it holds is saved
        ├── JudgeFailed         no judge gave a usable verdict
        ├── WaitingForPerson    the debate waits for an answer from a person
        └── DebatePaused        somebody asked for a pause; the debate stands at a step's boundary

`exit_code` is what the command line exits with. All are `RuntimeError`s: the LangGraph server shows its
clients the messages of errors that Python or itself defines and hides those of others.
"""


class MootError(RuntimeError):
    """Base of every error of ours."""

    exit_code = 1


class UserError(MootError):
    """The caller's input is at fault; shown without a traceback."""

    exit_code = 2


class ConfigError(UserError):
    """A configuration value is missing, unknown, out of range or contradictory."""


class InputError(UserError):
    """A topic, file or transcript cannot be read or used."""


class DebateExists(UserError):
    """A debate with this id exists already."""


class DebateNotFound(UserError):
    """No debate has this id."""

    exit_code = 4


class DebateBusy(UserError):
    """Another run, in this process or another, holds this debate, or has taken it from one that stood still.

    Attributes:
        pid: the holder's process id, `None` where it could not be read.
    """

    exit_code = 5

    def __init__(self, message: str, *, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class RunError(MootError):
    """Something failed while the debate ran; what had been said is saved."""

    exit_code = 3


class ModelError(RunError):
    """A model call failed for good.

    Attributes:
        status: the HTTP status of the last attempt, `None` where there was none.
        retryable: whether the same call may succeed later.
    """

    def __init__(self, message: str, *, status: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable


class StorageError(RunError):
    """The database cannot be read or written: a full or read-only disk, a lock, a damaged file."""


class JudgeFailed(RunError):
    """No judge returned a usable verdict."""


class WaitingForPerson(RunError):
    """The debate is saved and waits for a person.

    Attributes:
        questions: the interrupt's payload, JSON.
    """

    exit_code = 6

    def __init__(self, message: str, *, questions: object = None) -> None:
        super().__init__(message)
        self.questions = questions


class DebatePaused(RunError):
    """The run stopped at a step's boundary because somebody asked for it; the debate is saved."""

    exit_code = 130
