"""Runs the command `moot` in a process, without the user's settings and data."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.waiting import LONG_TIMEOUT_S
from tests.support.warm_process import WarmProcess

HIDDEN_PREFIXES = ("MOOT_", "OPENAI_")


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """JSON document on stdout."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Moot:
    """The command `moot` with its own folder for settings, data and the database."""

    folder: Path
    model: str = field(default="offline", kw_only=True)
    """Value of `MOOT_MODEL`. Without a model, a command refuses to run a debate."""

    @property
    def db(self) -> Path:
        """Default database of the command."""
        return self.folder / "debates.sqlite"

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment variables of the process."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(HIDDEN_PREFIXES)}
        return {
            **kept,
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "MOOT_DB": str(self.db),
            "MOOT_MODEL": self.model,
            "NO_COLOR": "1",
            **variables,
        }

    def __call__(
        self, *words: object, stdin: bytes = b"", timeout_s: float = LONG_TIMEOUT_S, **variables: str
    ) -> CommandResult:
        """Run the command and wait for its end."""
        with self.start(*words, stdin=stdin, disk_bytes=0, **variables) as process:
            out, err = process.communicate(timeout=timeout_s)
        return CommandResult(process.returncode, out, err)

    def start(self, *words: object, stdin: bytes = b"", disk_bytes: int = 0, **variables: str) -> WarmProcess:
        """Start the command and return its process."""
        environment = self.environment(**variables)
        return WarmProcess(
            words, folder=self.folder, environment=environment, stdin=stdin, disk_bytes=disk_bytes
        )


def moot_argv(*words: object) -> list[str]:
    """Return the arguments of a `moot` process in this interpreter."""
    return [sys.executable, "-c", "from moot.cli import main; main()", *map(str, words)]
