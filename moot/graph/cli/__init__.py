"""The command `moot`. Nothing heavy is imported here: `moot --help` must answer at once."""

import gc

__all__ = ["main"]

ALLOCATIONS = 50_000
"""Between two looks for cycles: at Python's own 700, imports, whose objects stay, are a sixth slower."""


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(ALLOCATIONS)
    try:
        from moot.graph.cli.entry import run_command_line

        run_command_line()
    except KeyboardInterrupt:  # before there was anything that could be saved
        raise SystemExit(130) from None
    finally:
        gc.freeze()  # an interpreter that ends looks through everything for cycles once more, for 0.3 s
