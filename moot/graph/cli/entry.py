"""Runs the command line: every failure becomes one message and one exit code."""

import io
import os
import sys
import traceback
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from moot.graph.cli.complaint import complain
from moot.state.errors import MootError
from moot.state.redaction import shown_url
from moot.state.settings import asks_for_spans, debug, read_dotenv


def run_command_line() -> None:
    """Run `moot` with the process's arguments and exit.

    Errors of ours are shown without a traceback and exit with their own code; anything else is a bug.
    """
    from moot.graph.cli.group import make_group

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a letter is no reason to stop.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if idle := read_dotenv(Path.cwd()):
            complain(f"warning: {idle}")
        with _exporting():
            make_group().main(prog_name="moot")
    except MootError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Keeps the interpreter from flushing into the closed pipe once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the command line's edge: what reaches it is a bug of ours
        if debug():
            complain(shown_url("".join(traceback.format_exception(error))))
        else:
            complain(f"internal error: {type(error).__name__}: {error} (MOOT_DEBUG=1 shows where)")
        sys.exit(1)


def _exporting() -> AbstractContextManager[None]:
    if not asks_for_spans():
        return nullcontext()
    from moot.graph.cli.telemetry import exporting_spans

    return exporting_spans()
