"""Read-only access of tools to one folder.

A path is opened one component at a time, relative to the descriptor of the folder. Symbolic links and `..`
are refused, so no path leads outside, even if a link is created during the access. Hidden, binary and
oversize files, devices and pipes are refused too.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MAX_FILE_BYTES = 1_000_000
"""Maximum size in bytes of a file that tools can read."""
MAX_FILES = 2_000
"""Maximum number of files in one search or listing."""
MAX_DEPTH = 20
"""Maximum depth of nested folders that tools can read."""

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class AccessRefused(Exception):
    """Error raised for a path or file that tools must not read.

    Its message does not reveal the folder's path.
    """


@dataclass(frozen=True)
class ListedFile:
    """A file in the context folder, with its size."""

    path: str
    """Path of the file relative to the context folder, with `/` as the separator."""
    size: int
    """Size of the file in bytes."""


@dataclass(frozen=True)
class Sandbox:
    """Sandbox that lets tools read one folder and nothing else."""

    root: Path
    """Absolute path of the folder, with all symbolic links resolved. A link created later is refused."""

    def read(self, path: str) -> str:
        """Return the text of a file in the context folder.

        Raises:
            AccessRefused: the file is outside the folder, hidden, not a regular file, too large or not text.
            OSError: the file cannot be read.
        """
        *folders, name = _components(path)
        with (
            self._open_folder(folders) as folder,
            os.fdopen(_open_at(name, _FILE, folder, path), "rb") as file,
        ):
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise AccessRefused(f"{path!r} is not a regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise AccessRefused(
                    f"{path!r} has {status.st_size:,} bytes, but at most {MAX_FILE_BYTES:,} are allowed"
                )
            data = file.read(MAX_FILE_BYTES + 1)
        if b"\x00" in data:
            raise AccessRefused(f"{path!r} is a binary file")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise AccessRefused(f"{path!r} is not UTF-8 text") from None

    def files(self, path: str = ".") -> Iterator[ListedFile]:
        """Yield the visible files in a folder and its subfolders, sorted by path.

        At most `MAX_FILES` are included.

        Raises:
            AccessRefused: the path is outside the folder or hidden.
            OSError: the path is not a folder, or cannot be read.
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
    slashed = path.replace("\\", "/")
    parts = [part for part in slashed.split("/") if part not in ("", ".")]
    if slashed.startswith("/") or ":" in slashed.split("/", 1)[0] or ".." in parts or "\x00" in slashed:
        raise AccessRefused(
            f"{path!r} is outside the context folder: use a path inside it, such as 'notes/a.md'"
        )
    if any(part.startswith(".") for part in parts):
        raise AccessRefused(f"{path!r} is hidden")
    if not parts and not folder:
        raise AccessRefused(f"{path!r} is the context folder itself: give a file in this folder")
    if len(parts) > MAX_DEPTH:
        raise AccessRefused(f"{path!r} is nested more than {MAX_DEPTH} folders deep: use a shorter path")
    return parts


def _open_at(name: str, flags: int, folder: int, path: str) -> int:
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise AccessRefused(f"{path!r} contains a symbolic link")
    return os.open(name, flags, dir_fd=folder)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[ListedFile]:
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    for name in names:
        path = f"{prefix}/{name}" if prefix else name
        with suppress(OSError, AccessRefused):  # skip files that vanish or cannot be read
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield ListedFile(path, status.st_size)
            elif stat.S_ISDIR(status.st_mode) and depth:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(inner, path, depth - 1)
                finally:
                    os.close(inner)
