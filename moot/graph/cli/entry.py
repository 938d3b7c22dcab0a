"""Runs the command line: every failure becomes one message and one exit code."""

from __future__ import annotations

import io
import sys

from moot.state.errors import MootError


def run_command_line() -> None:
    """Run `moot` with the process's arguments and exit.

    Errors of ours are shown without a traceback and exit with their own code; anything else is a bug.
    """
    from moot.graph.cli.group import make_group

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # a terminal that cannot show a letter is no reason to stop
    try:
        make_group().main(prog_name="moot")
    except MootError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _forget_stdout()
        sys.exit(0)
    except Exception as error:  # the command line's edge: what reaches it is a bug of ours
        _report_bug(error)
        sys.exit(1)


def complain(message: str) -> None:
    """Say on stderr what went wrong, safe for a terminal."""
    from moot.graph.cli.screen.terminal_text import safe

    print(f"moot: {safe(message)}", file=sys.stderr)


def _forget_stdout() -> None:
    """Keep the interpreter from flushing into the closed pipe once more at its exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_bug(error: Exception) -> None:
    from moot.state.settings import debug

    if debug():
        import traceback

        traceback.print_exception(error)
    else:
        complain(f"internal error: {type(error).__name__}: {error} (MOOT_DEBUG=1 shows where)")
