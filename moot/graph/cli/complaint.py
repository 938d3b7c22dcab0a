"""What goes wrong, said on stderr."""

import sys

from moot.graph.cli.screen.terminal_text import safe


def complain(message: str) -> None:
    """Say on stderr what went wrong, safe for a terminal."""
    from moot.graph.cli.screen.output import fitted

    print(fitted(f"moot: {safe(message)}", sys.stderr), file=sys.stderr)
