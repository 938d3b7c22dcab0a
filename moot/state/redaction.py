"""What is never shown, stored or exported: keys and passwords, by their value and by their place in a URL."""

from __future__ import annotations

import re

SHORTEST = 8
"""Characters; what is shorter would blot out words, and protects nothing."""
HIDDEN = "***"

_known: set[str] = set()
_IN_URL = (
    re.compile(r"(://[^/\s:@]*:)[^/\s]+(?=@)"),
    re.compile(r"(https?://)[^/\s:@]+(?=@)"),
    re.compile(r"([?&](?:password|api[-_]?key|key|token)=)[^&\s]+", re.I),
)


def keep_secret(value: str | None) -> str | None:
    """Hide a key or password from now on wherever it would be shown, and return it."""
    if value and len(value) >= SHORTEST:
        _known.add(value)
    return value


def redact(text: str) -> str:
    """Return text without any known secret."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def shown_url(url: str) -> str:
    """Return an address, or a line with addresses, without the passwords and keys in it."""
    for place in _IN_URL:
        url = place.sub(rf"\g<1>{HIDDEN}", url)
    return redact(url)
