"""One folder that tools may read, and nothing beside it.

A path is followed one component at a time from the folder's own descriptor, refusing every symbolic link on
the way, so that neither `..` nor a link, nor one that is put in place meanwhile, leads outside. Hidden files,
devices, pipes, binary and oversize files are refused.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MAX_FILE_BYTES = 1_000_000
"""Largest file that is read."""
MAX_FILES = 2_000
"""Files that a search or a listing looks at."""
MAX_DEPTH = 20
"""Folders within folders."""

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Refused(Exception):
    """A path or a file that may not be read; says why, without the folder's own place."""


@dataclass(frozen=True)
class Listed:
    """One file of the folder."""

    path: str
    """From the folder, with `/`."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class Sandbox:
    """A folder to read in."""

    root: Path
    """With its links resolved: what has become one since is refused."""

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            Refused: it is outside, hidden, no regular file, too large or no text.
            OSError: it cannot be read.
        """
        *folders, name = _components(path)
        with (
            self._open_folder(folders) as folder,
            os.fdopen(_open_at(name, _FILE, folder, path), "rb") as file,
        ):
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused(f"{path!r} is no regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise Refused(
                    f"{path!r} has {status.st_size:,} bytes, more than the {MAX_FILE_BYTES:,} allowed"
                )
            data = file.read(MAX_FILE_BYTES + 1)
        if b"\x00" in data:
            raise Refused(f"{path!r} is a binary file")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Refused(f"{path!r} is no UTF-8 text") from None

    def files(self, path: str = ".") -> Iterator[Listed]:
        """Yield the visible files below a folder, in order of their paths, at most `MAX_FILES`.

        Raises:
            Refused: it is outside or hidden.
            OSError: it is no folder, or cannot be read.
        """
        components = _components(path, folder=True)
        with self._open_folder(components) as folder:
            yield from islice(_walk(folder, "/".join(components), MAX_DEPTH), MAX_FILES)

    @contextmanager
    def _open_folder(self, components: list[str]) -> Iterator[int]:
        descriptor = os.open(self.root, _FOLDER)
        try:
            for component in components:
                inner = _open_at(component, _FOLDER, descriptor, "/".join(components))
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


def _components(path: str, *, folder: bool = False) -> list[str]:
    given = path.replace("\\", "/")
    parts = [part for part in given.split("/") if part not in ("", ".")]
    if given.startswith("/") or ":" in given.split("/", 1)[0] or ".." in parts or "\x00" in given:
        raise Refused(f"{path!r} is outside the context folder: give a path within it, such as 'notes/a.md'")
    if any(part.startswith(".") for part in parts):
        raise Refused(f"{path!r} is hidden")
    if not parts and not folder:
        raise Refused(f"{path!r} is the context folder itself: name a file in it")
    if len(parts) > MAX_DEPTH:
        raise Refused(f"{path!r} lies too deep")
    return parts


def _open_at(name: str, flags: int, folder: int, path: str) -> int:
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise Refused(f"{path!r} leads through a symbolic link")
    return os.open(name, flags, dir_fd=folder)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[Listed]:
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    for name in names:
        path = f"{prefix}/{name}" if prefix else name
        with suppress(OSError, Refused):  # what vanishes or may not be read is not listed
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield Listed(path, status.st_size)
            elif stat.S_ISDIR(status.st_mode) and depth:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(inner, path, depth - 1)
                finally:
                    os.close(inner)
