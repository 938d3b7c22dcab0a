"""Decoding of transcript files."""

import codecs
import re

from moot.state.errors import InputError
from moot.state.settings import require_extra

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by their byte order marks. The mark of UTF-32 begins with that of UTF-16, so it comes first."""
_WORD_SYMBOL = re.compile(
    r"(?<=[a-zA-Z])(?:[^\w\s‘’“”\x00-\x7f]|[¹²³¼½¾])+(?=[a-zA-Z])|(?<=[a-z])[¿¡](?=\s)|(?<!\S)[£¯¥][a-z]"
    r"|(?<=[a-z])[ŠŽŸŒÀ-ÖØ-Þ](?=[a-z])"
)
"""Pattern for a symbol or a capital inside a word. It shows that an encoding of Latin letters is wrong."""
_LATIN = ["cp1252", "cp1250", "cp1254", "iso8859_2", "mac_roman", "cp850"]
"""Encodings of Latin letters. A short text fits others by chance."""
_HIGH_RUN = re.compile(rb"[\x80-\xff]{3}")
"""Pattern for three bytes above ASCII in a row. Other scripts than Latin have many of them."""
_EXCLUDED = ["utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le", "utf_7", "johab"]
"""Encodings that a short text fits by chance. Files in UTF-16 and UTF-32 are recognised before."""
_NULL_SHARE = 0.2
"""Minimum share of zero bytes in UTF-16 without a byte order mark. Text of Latin letters has one half."""
_SAMPLE_BYTES = 200_000
"""Number of bytes from which the encoding is guessed."""


def decode(data: bytes) -> tuple[str, str]:
    """Return the text of a file, and its encoding if it is guessed, or else `""`.

    Raises:
        InputError: The file is not text in a known encoding.
        ConfigError: The file is not Unicode, and the `importing` extra is not installed.
    """
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return _decoded(data, encoding), ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        guess = _guess(data)
        return _decoded(data, guess), guess
    if text.count("\0") > _NULL_SHARE * len(text):
        encoding = "utf-16-le" if data[1::2].count(0) > data[::2].count(0) else "utf-16-be"
        return _decoded(data, encoding), encoding
    return text, ""


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise InputError(f"line 1: the file is not valid {encoding} text: save it as UTF-8") from error


def _guess(data: bytes) -> str:
    """Guess the encoding of a file that is not Unicode.

    Windows-1252 is the default for Latin letters, because short texts fit many encodings alike.
    """
    with require_extra("importing", "reading a file that is not UTF-8"):
        from charset_normalizer import from_bytes
    sample = data[:_SAMPLE_BYTES]
    if b"\0" in sample:
        raise InputError("line 1: the file is binary data, not text: convert it to text first")
    western = sample.decode("cp1252", "replace")
    is_latin = not _HIGH_RUN.search(sample)
    if is_latin and "\ufffd" not in western and not _WORD_SYMBOL.search(western):
        return "cp1252"
    best = from_bytes(sample, cp_isolation=_LATIN).best() if is_latin else None
    best = best or from_bytes(sample, cp_exclusion=_EXCLUDED).best()
    if best is None:
        raise InputError("line 1: the file is not text in a known encoding: save it as UTF-8")
    return best.encoding
