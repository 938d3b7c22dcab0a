"""Exact token counts from rank tables that ship with Moot; never a download.

Encodings and the chat formula are OpenAI's: `tiktoken` (MIT) and the cookbook's "How to count tokens".
"""

from __future__ import annotations

import gzip
import hashlib
import math
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from moot.state.config.model_settings import bare_name
from moot.state.errors import ConfigError

if TYPE_CHECKING:
    import tiktoken

TokenCounter = Callable[[str], int]

Item = TypeVar("Item")

PIECE_CHARS = 100_000
"""tiktoken panics on very long runs of one character, so text is counted in pieces."""

CACHED_CHARS = 8_000
"""Counts of texts up to this length are remembered: a window's messages are counted once, not every turn."""

CACHED_TEXTS = 4096

CACHED_LONG_TEXTS = 4
"""Of longer texts the last few: a view's parts are counted as they are made, and again as they are joined."""

MESSAGE_OVERHEAD = 3
"""Tokens that each chat message costs beside its role, name and content."""

REPLY_PRIMING = 3
"""Tokens that every prompt costs once: the reply is primed with the assistant's header."""

_SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS = {
    "o200k_base": "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}",
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
        r"|\s*[\r\n]|\s+(?!\S)|\s"
    ),
}

DEFAULT_ENCODING = "o200k_base"


@lru_cache(maxsize=2)
def encoding(name: str = DEFAULT_ENCODING) -> tiktoken.Encoding:
    """Return the named encoding, built from the shipped table once a process.

    Raises:
        ConfigError: no such encoding, or its table does not have tiktoken's SHA-256.
    """
    import tiktoken

    if name not in _SHA256:
        raise ConfigError(f"unknown encoding {name!r}: use one of {', '.join(sorted(_SHA256))}")
    table = gzip.decompress((files("moot.nodes.text") / "ranks" / f"{name}.tiktoken.gz").read_bytes())
    if hashlib.sha256(table).hexdigest() != _SHA256[name]:
        raise ConfigError(f"the rank table of {name!r} is damaged: reinstall Moot")
    tokens = table.split()[::2]  # beside each stands its rank: both tables list them in order, from 0
    ranks = dict(zip(map(a2b_base64, tokens), range(len(tokens)), strict=True))
    return tiktoken.Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=4096)
def rarity(word: str) -> float:
    """Return how rare a word is in general, in any language, from 0 to 1.

    An encoding's tokens are numbered in the order in which they were merged, the most frequent first.
    """
    known = encoding(DEFAULT_ENCODING)
    rank = known.max_token_value + 1
    for spelled in (f" {word}", word):
        with suppress(KeyError):
            rank = min(rank, known.encode_single_token(spelled))
    return math.log(rank + 256) / math.log(known.max_token_value + 257)  # 256 are single bytes


def encoding_for(model: str) -> str:
    """Return the encoding that a model of this name uses: cl100k for GPT-4 and 3.5, o200k for the rest."""
    base = bare_name(model).rsplit("/", 1)[-1]
    old = base.startswith(("gpt-4", "gpt-3.5", "text-embedding")) and not base.startswith(
        ("gpt-4o", "gpt-4.1", "gpt-4.5")
    )
    return "cl100k_base" if old else DEFAULT_ENCODING


@lru_cache(maxsize=8)
def counter(name: str = DEFAULT_ENCODING) -> TokenCounter:
    """Return a function that counts the tokens of a text exactly, special tokens as plain text."""

    def count_encoded(text: str) -> int:
        encode = encoding(name).encode_ordinary
        pieces = (text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS))
        return sum(len(encode(piece)) for piece in pieces)

    short, long = (lru_cache(maxsize=size)(count_encoded) for size in (CACHED_TEXTS, CACHED_LONG_TEXTS))
    return lambda text: short(text) if len(text) <= CACHED_CHARS else long(text)


@lru_cache(maxsize=4096)
def _label_tokens(label: str, count: TokenCounter) -> int:
    return count(label)


def message_tokens(message: Mapping[str, Any], count: TokenCounter, *, content: int | None = None) -> int:
    """Return what one wire message costs: overhead, role, name and content.

    Where its tokens are known as `content`, the content is not counted again.
    """
    name = message.get("name")
    named = _label_tokens(name, count) + 1 if name else 0
    body = count(message["content"]) if content is None else content
    return MESSAGE_OVERHEAD + _label_tokens(message["role"], count) + named + body


def prompt_tokens(messages: Iterable[Mapping[str, Any]], count: TokenCounter) -> int:
    """Return the exact size of a prompt by OpenAI's chat formula."""
    return REPLY_PRIMING + sum(message_tokens(message, count) for message in messages)


def batches(items: Iterable[Item], tokens: Callable[[Item], int], room: int) -> list[list[Item]]:
    """Return items in runs of at most `room` tokens, an oversize one by itself."""
    runs: list[list[Item]] = []
    used = room + 1
    for item in items:
        cost = tokens(item)
        if used + cost > room:
            runs.append([])
            used = 0
        runs[-1].append(item)
        used += cost
    return runs


CUT = " […cut…] "
"""What stands where a text was cut."""


def cut_middle(text: str, max_tokens: int, count: TokenCounter) -> str:
    """Return `text` within `max_tokens`, cut in its middle with a visible mark where it is longer.

    The head keeps two thirds. Returns as much of the mark as fits where not even one character does.
    """
    if count(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), max_tokens * 64)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_keep(text, middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    kept = _keep(text, low)
    while low > 0 and count(kept) > max_tokens:  # counts are not quite monotonic in length
        low -= 1
        kept = _keep(text, low)
    return kept if count(kept) <= max_tokens else cut_end(CUT.strip(), max_tokens, count)


@lru_cache(maxsize=256)
def cut_once(text: str, max_tokens: int, count: TokenCounter) -> str:
    """Return `cut_middle`'s result, remembered: for long texts that stay the same from turn to turn."""
    return cut_middle(text, max_tokens, count)


def cut_end(text: str, max_tokens: int, count: TokenCounter) -> str:
    """Return the longest prefix of `text` found within `max_tokens`; `""` for no room."""
    kept = text[: max(0, max_tokens) * 64]
    while kept and count(kept) > max_tokens:
        kept = kept[: min(len(kept) - 1, int(len(kept) * max_tokens / count(kept)) + 1)]
    return kept


def _keep(text: str, chars: int) -> str:
    head = chars * 2 // 3
    tail = chars - head
    return text[:head] + CUT + (text[-tail:] if tail else "")
