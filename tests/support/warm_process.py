"""Processes of the command that begin with everything imported: forked from a server that never runs it.

Each is a real process with an id of its own, which takes signals and can be killed; only the import, most of
what a short command costs, is paid once for all tests of a worker. What depends on how a process starts (the
time of `--help`, what is imported when) is tried with a cold one.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["langchain_openai", "tests.support.preload", "tests.support.warm_process"])
_lock = threading.Lock()


def _run(
    words: Sequence[str], folder: str, environment: Mapping[str, str], files: Sequence[str], disk_bytes: int
) -> None:
    """Run the command in a forked child, its streams in files."""
    if disk_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (disk_bytes, resource.RLIM_INFINITY))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, (path, flags) in enumerate(
        zip(files, (os.O_RDONLY, *[os.O_WRONLY | os.O_APPEND] * 2), strict=True)
    ):
        descriptor = os.open(path, flags)
        os.dup2(descriptor, number)
        os.close(descriptor)
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(os.dup(0), encoding=encoding),
        os.fdopen(os.dup(1), "w", encoding=encoding),
        os.fdopen(os.dup(2), "w", encoding=encoding, errors="backslashreplace", buffering=1),
    )
    sys.argv = ["moot", *words]
    from moot.cli import main

    try:
        main()
    finally:
        sys.stdout.flush()


class WarmProcess:
    """What `subprocess.Popen` is, as far as tests need it; its streams are read when it has ended."""

    def __init__(
        self,
        words: Sequence[object],
        *,
        folder: Path,
        environment: Mapping[str, str],
        stdin: bytes = b"",
        disk_bytes: int = 0,
    ) -> None:
        """Start it; where `room` is given, no file of its grows beyond so many bytes, as on a full disk."""
        self._files = Path(tempfile.mkdtemp(prefix="moot-warm-"))
        self._said = ("", "")
        paths = [self._files / name for name in ("in", "out", "err")]
        for path, content in zip(paths, (stdin, b"", b""), strict=True):
            path.write_bytes(content)
        self._out, self._err = paths[1:]
        arguments = (
            [str(word) for word in words],
            str(folder),
            dict(environment),
            [str(path) for path in paths],
            disk_bytes,
        )
        with _lock:
            self._process = _context.Process(target=_run, args=arguments)
            self._process.start()
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal's number."""
        return int(self._process.exitcode or 0)

    def poll(self) -> int | None:
        """Return the exit code, `None` while it runs."""
        code: int | None = self._process.exitcode
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("moot", timeout or 0.0)
        if self._files.exists():
            self._said = self._out.read_text(encoding="utf-8", errors="replace"), self.errors()
            shutil.rmtree(self._files)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end and return what it wrote to stdout and stderr."""
        self.wait(timeout)
        return self._said

    def errors(self) -> str:
        """Return what it has written to stderr so far."""
        return (
            self._err.read_text(encoding="utf-8", errors="replace") if self._files.exists() else self._said[1]
        )

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> WarmProcess:
        """Give it to a `with`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for it as `Popen` does."""
        self.wait()
