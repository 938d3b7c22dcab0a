"""The command `moot`. Nothing heavy is imported here: `moot --help` must answer at once."""

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from moot.graph.cli.entry import run_command_line

        run_command_line()
    except KeyboardInterrupt:  # before there was anything that could be saved
        raise SystemExit(130) from None
