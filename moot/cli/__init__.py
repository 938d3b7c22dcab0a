"""The `moot` command. The decorator `command` declares a subcommand. Importing this package is fast.

Another package adds a subcommand with an entry point in the group `moot.commands` that names a function
decorated with `command`.
"""

import gc
import signal

from moot.cli.group import command

__all__ = ["command", "main"]

ALLOCATIONS = 50_000
"""Number of object allocations after which Python collects garbage. With Python's default of 700, imports
take a sixth longer."""


def main() -> None:
    """Run the `moot` command line and exit with the command's exit code."""
    gc.set_threshold(ALLOCATIONS)
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a command ends as after Ctrl-C
        from moot.cli.group import run_command_line

        run_command_line()
    except KeyboardInterrupt:  # pressed before a debate was opened, so nothing needs saving
        raise SystemExit(130) from None
    finally:
        gc.freeze()  # skips the interpreter's last collection, which takes 0.3 s
