"""Reading what the command line names: a file's text, or stdin's."""

import sys
from pathlib import Path

from moot.state.errors import InputError

STDIN = Path("-")
"""The file that stands for stdin."""


def read_text(path: Path, what: str) -> str:
    """Return the text of a file, UTF-8 with or without a mark at its beginning; `-` is stdin.

    Raises:
        InputError: it cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: it is not UTF-8 text") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {error}") from error
