"""Reader for context documents: text files as they are, and PDF, Word, Excel and HTML files as Markdown.

`python -m moot.plugins.importing.read_context FILE` prints the text of one file.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from moot.config.file_references import read_bytes
from moot.state.entries import clean_text
from moot.state.errors import InputError, UserError, file_error_reason
from moot.state.settings import require_extra

CONVERTED = {".docx": "Word", ".htm": "HTML", ".html": "HTML", ".pdf": "PDF", ".xlsx": "Excel"}
"""Formats of context documents that are converted to Markdown, keyed by file suffix."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
"""Pattern for control characters that indicate binary data rather than text."""
_MAX_CONTROL_SHARE = 0.3
"""Maximum share of a text's characters that may be control characters. Perl's file test `-T` has the same
limit."""
MAX_UNPACKED_BYTES = 20_000_000
"""Maximum unpacked size in bytes of the text in a Word or Excel file. Pictures do not count. A Word file
with 4 MB of text, as in a novel of 500 pages, takes 3 s and 122 MB."""
UPLOAD_TIMEOUT_S = 30
"""Maximum time in seconds to convert an uploaded document, including the time in which it waits for a
processor."""
UPLOAD_CPU_S = 10
"""Maximum processor time in seconds to convert an uploaded document."""
UPLOAD_MEMORY_BYTES = 1_500_000_000
"""Maximum memory in bytes for converting an uploaded document. A separate process converts it."""


def read_documents(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Read files and folders as context documents.

    Each file in a folder becomes a document, except hidden files.

    Raises:
        InputError: a file cannot be read, or is not text.
        ConfigError: a file needs the `documents` extra, which is not installed.
    """
    documents = []
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in [each for each in inside if each == path or (each.is_file() and each.name[0] != ".")]:
            documents.append({"name": file.name, "content": _document_text(file)})
    return documents


def read_upload(name: str, data: bytes) -> str:
    """Return the text of a document that a visitor uploaded.

    A separate process converts the document, so that a harmful file can neither block nor crash the server.

    Raises:
        InputError: the file cannot be read, is not text, or takes too long to convert.
    """
    if (suffix := Path(name).suffix.lower()) not in CONVERTED:
        return _plain_text(data, name)
    with tempfile.TemporaryDirectory(prefix="moot-upload-") as folder:
        path = Path(folder, f"document{suffix}")  # the given name may be too long for a file's name
        path.write_bytes(data)
        command = [sys.executable, "-P", "-m", "moot.plugins.importing.read_context", path.name]
        try:
            done = subprocess.run(  # noqa: S603  # the file is an argument of our own module
                command, cwd=folder, capture_output=True, timeout=UPLOAD_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"{name!r} could not be converted to text within {UPLOAD_TIMEOUT_S} seconds: convert the "
                "file to text yourself first"
            ) from error
    if done.returncode == 0:
        return done.stdout.decode()
    lines = done.stderr.decode(errors="replace").replace(repr(path.name), repr(name)).strip().splitlines()
    raise InputError(lines[-1] if done.returncode == UserError.exit_code and lines else _DAMAGED.format(name))


_DAMAGED = "{!r} could not be converted: it may be damaged, or it needs too much time or memory"


def _refusal(name: str, reason: str) -> InputError:
    return InputError(f"cannot read context from {name!r}: {reason}")


def _plain_text(data: bytes, name: str) -> str:
    """Decode the contents of a file as UTF-8 text.

    Raises:
        InputError: the file is empty or is not text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refusal(name, f"{file_error_reason(error)}. Save the file as UTF-8 text") from error
    _check_text(text, name)
    return clean_text(text)


def _check_text(text: str, name: str) -> None:
    """Raise an error if a decoded file is empty or is binary data.

    Raises:
        InputError: the file is empty or is not text.
    """
    if not text.strip():
        raise _refusal(name, "the file contains no text")
    if "\0" in text or len(_CONTROL.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise _refusal(name, "it is binary data, not text. Give a text, PDF, Word, Excel or HTML file")


def _document_text(path: Path) -> str:
    """Return a context document's text, converting PDF, Word, Excel and HTML files to Markdown."""
    data, name = read_bytes(path, "context"), str(path)
    kind = CONVERTED.get(path.suffix.lower())
    if kind is None:
        return _plain_text(data, name)
    if not data:
        raise _refusal(name, "the file is empty")
    with suppress(BadZipFile, OSError), ZipFile(path) as archive:  # Word and Excel files are ZIP archives
        parts = [part for part in archive.infolist() if part.filename.endswith((".xml", ".rels"))]
        if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
            raise _refusal(name, f"its text unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
    with require_extra("documents", f"reading {path.name!r}"):
        from moot.plugins.importing import document_converters
    if kind == "HTML":
        text = document_converters.html_text(_decoded_page(data, name))
    else:
        try:
            text = document_converters.CONVERTERS[kind](path)
        except document_converters.FAILURES as error:
            article = "an" if kind == "Excel" else "a"
            reason = (
                f"the file is damaged, is protected by a password, or is not {article} {kind} "
                "document. Open it in another program and save it again, or give its text in a .txt file"
            )
            raise _refusal(name, reason) from error
    if not text.strip():
        scan = ". If the document is a scan, run text recognition (OCR) on it first" if kind == "PDF" else ""
        raise _refusal(name, f"the file contains no text{scan}")
    return clean_text(text)


def _decoded_page(data: bytes, name: str) -> str:
    """Decode a web page, which may declare another encoding than UTF-8.

    Raises:
        InputError: no encoding fits, or the page is not text.
    """
    from bs4.dammit import EncodingDetector

    for encoding in EncodingDetector(data, is_html=True).encodings:
        with suppress(UnicodeDecodeError, LookupError):
            page = data.decode(encoding)
            _check_text(page, name)
            return page
    raise _refusal(name, "it is not text in a known encoding. Save the page as UTF-8")


def main() -> None:
    """Convert the document named on the command line, and print its text."""
    try:
        import resource  # does not exist on Windows
    except ImportError:
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (UPLOAD_MEMORY_BYTES, UPLOAD_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (UPLOAD_CPU_S, UPLOAD_CPU_S))
    try:
        sys.stdout.buffer.write(_document_text(Path(sys.argv[1])).encode())
    except UserError as error:
        sys.exit(_report(error))


def _report(error: UserError) -> int:
    print(error, file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    main()
