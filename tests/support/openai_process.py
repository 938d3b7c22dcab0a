"""Runs the local OpenAI server in its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serve_openai(*options: object) -> Iterator[str]:
    """Start the server with command-line options of `tests.support.openai_server`; yield its base URL."""
    command = [sys.executable, "-m", "tests.support.openai_server", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
