"""Runs the real command `moot` as a process, without the user's settings and data."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.patience import LONG_TIMEOUT_S
from tests.support.warm_process import WarmProcess

OURS = ("MOOT_", "OPENAI_")


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Moot:
    """The command, with a folder of its own for everything."""

    folder: Path

    @property
    def db(self) -> Path:
        """The database that it uses unless told otherwise."""
        return self.folder / "debates.sqlite"

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment of the process."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
        return {
            **kept,
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "MOOT_DB": str(self.db),
            "NO_COLOR": "1",
            **variables,
        }

    def __call__(
        self, *words: object, stdin: bytes = b"", timeout_s: float = LONG_TIMEOUT_S, **variables: str
    ) -> Result:
        """Run to the end."""
        with self.start(*words, stdin=stdin, disk_bytes=0, **variables) as process:
            out, err = process.communicate(timeout=timeout_s)
        return Result(process.returncode, out, err)

    def start(self, *words: object, stdin: bytes = b"", disk_bytes: int = 0, **variables: str) -> WarmProcess:
        """Start it and let it run."""
        environment = self.environment(**variables)
        return WarmProcess(
            words, folder=self.folder, environment=environment, stdin=stdin, disk_bytes=disk_bytes
        )


def command(*words: object) -> list[str]:
    """Return the words of a `moot` command in this interpreter."""
    return [sys.executable, "-c", "from moot.cli import main; main()", *map(str, words)]
