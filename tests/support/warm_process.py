"""Processes of the command `moot` that start with all modules imported.

They are forked from a server that has imported the modules. Each has its own id, receives signals and can be
killed. Import takes most of the time of a short command, and here it happens once for all tests of a pytest
worker. Tests of the start of a process (the time of `--help`, the imported modules) need an ordinary process.
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
    """Run the command in a forked child process with files for its streams."""
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
    """Process with the parts of `subprocess.Popen` that tests need. Its output is read after its end."""

    def __init__(
        self,
        words: Sequence[object],
        *,
        folder: Path,
        environment: Mapping[str, str],
        stdin: bytes = b"",
        disk_bytes: int = 0,
    ) -> None:
        """Start the process. With `disk_bytes` no file may grow beyond this size, as on a full disk."""
        self._files = Path(tempfile.mkdtemp(prefix="moot-warm-"))
        self._output = ("", "")
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
        """Exit code, or the negative number of the signal that ended the process."""
        return int(self._process.exitcode or 0)

    def poll(self) -> int | None:
        """Return the exit code, `None` while the process runs."""
        code: int | None = self._process.exitcode
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("moot", timeout or 0.0)
        if self._files.exists():
            self._output = self._out.read_text(encoding="utf-8", errors="replace"), self.errors()
            shutil.rmtree(self._files)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end of the process and return its stdout and stderr."""
        self.wait(timeout)
        return self._output

    def errors(self) -> str:
        """Return the content of stderr so far."""
        return (
            self._err.read_text(encoding="utf-8", errors="replace")
            if self._files.exists()
            else self._output[1]
        )

    def send_signal(self, number: int) -> None:
        """Send a signal to the process if it is still running."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the end of the process, as `Popen` does."""
        self.wait()
