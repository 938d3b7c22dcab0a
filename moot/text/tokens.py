"""Exact token counts with tiktoken, from rank tables that are part of the package.

Encodings and the chat formula are OpenAI's, from `tiktoken` (MIT) and the cookbook's "How to count tokens".
"""

from __future__ import annotations

import gzip
import hashlib
import math
import re
from binascii import a2b_base64
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from moot.config.model_settings import bare_name
from moot.state.errors import ConfigError

if TYPE_CHECKING:
    import tiktoken

TokenCounter = Callable[[str], int]

Item = TypeVar("Item")

CHUNK_CHARS = 100_000
"""Number of characters in each chunk when a long text is tokenized. Without chunks, tiktoken panics on very
long runs of one character."""

CACHED_CHARS = 8_000
"""Maximum length, in characters, of a text whose token count is cached. The cache avoids counting the same
message every turn."""

CACHED_TEXTS = 4096

SPLIT_CHARS = 1_000
"""Minimum length, in characters, of a text whose tokens are counted line by line. The lines of a prompt are
mostly cached, because prompts repeat messages."""

CACHED_SPLIT_TEXTS = 8
"""Number of long texts whose token counts are cached. A long text has at least `SPLIT_CHARS` characters."""

_LINE_END = re.compile(r"\n(?=[^\s/])")
"""Pattern for a line break that always ends a token. In both encodings, the token that contains a line break
may contain only more white space or slashes after it."""

MESSAGE_OVERHEAD = 3
"""Number of tokens that every chat message needs besides its role, name and content."""

REPLY_PRIMING = 3
"""Number of tokens that the header of the reply adds to each prompt."""

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
    """Return the tokenizer encoding with the given name. Each process builds an encoding only once.

    Raises:
        ConfigError: The encoding is unknown, or its table does not have tiktoken's SHA-256.
    """
    import tiktoken

    if name not in _SHA256:
        raise ConfigError(f"unknown encoding {name!r}: use one of {', '.join(sorted(_SHA256))}")
    table = gzip.decompress((files("moot.text") / "ranks" / f"{name}.tiktoken.gz").read_bytes())
    if hashlib.sha256(table).hexdigest() != _SHA256[name]:
        raise ConfigError(f"the token table of encoding {name!r} is damaged: reinstall Moot")
    tokens = table.split()[::2]  # without the ranks, because the table lists the tokens in order of rank
    ranks = dict(zip(map(a2b_base64, tokens), range(len(tokens)), strict=True))
    return tiktoken.Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=4096)
def rarity(word: str) -> float:
    """Return a word's rarity from 0 (common) to 1: encodings number their tokens by frequency."""
    known = encoding(DEFAULT_ENCODING)
    rank = known.max_token_value + 1
    for spelled in (f" {word}", word):
        with suppress(KeyError):
            rank = min(rank, known.encode_single_token(spelled))
    return math.log(rank + 256) / math.log(known.max_token_value + 257)  # single bytes take up 256


def encoding_for(model: str) -> str:
    """Return the name of the tokenizer encoding that a model uses, such as `o200k_base`."""
    base = bare_name(model).rsplit("/", 1)[-1]
    old = base.startswith(("gpt-4", "gpt-3.5", "text-embedding")) and not base.startswith(
        ("gpt-4o", "gpt-4.1", "gpt-4.5")
    )
    return "cl100k_base" if old else DEFAULT_ENCODING


@lru_cache(maxsize=8)
def counter(name: str = DEFAULT_ENCODING) -> TokenCounter:
    """Return a function that counts the tokens of a text. Special tokens count as plain text."""

    def count_encoded(text: str) -> int:
        encode = encoding(name).encode_ordinary
        chunks = (text[start : start + CHUNK_CHARS] for start in range(0, len(text), CHUNK_CHARS))
        return sum(len(encode(chunk)) for chunk in chunks)

    count_cached = lru_cache(maxsize=CACHED_TEXTS)(count_encoded)

    @lru_cache(maxsize=CACHED_SPLIT_TEXTS)
    def count_lines(text: str) -> int:
        ends = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
        lines = (text[start:end] for start, end in pairwise(ends))
        return sum((count_cached if len(line) <= CACHED_CHARS else count_encoded)(line) for line in lines)

    return lambda text: count_cached(text) if len(text) < SPLIT_CHARS else count_lines(text)


@lru_cache(maxsize=4096)
def _label_tokens(label: str, count: TokenCounter) -> int:
    return count(label)


def message_tokens(message: Mapping[str, Any], count: TokenCounter, *, content: int | None = None) -> int:
    """Return a message's number of tokens with its overhead. `content` is the content's, if it is known."""
    name = message.get("name")
    name_tokens = _label_tokens(name, count) + 1 if name else 0
    content_tokens = count(message["content"]) if content is None else content
    return MESSAGE_OVERHEAD + _label_tokens(message["role"], count) + name_tokens + content_tokens


def prompt_tokens(messages: Iterable[Mapping[str, Any]], count: TokenCounter) -> int:
    """Return the exact number of tokens in a prompt, computed by OpenAI's formula for chat messages."""
    return REPLY_PRIMING + sum(message_tokens(message, count) for message in messages)


def batches(items: Iterable[Item], tokens: Callable[[Item], int], remaining: int) -> list[list[Item]]:
    """Split items into batches of at most `remaining` tokens each. A larger item is a batch of its own."""
    runs: list[list[Item]] = []
    used = remaining + 1
    for item in items:
        cost = tokens(item)
        if used + cost > remaining:
            runs.append([])
            used = 0
        runs[-1].append(item)
        used += cost
    return runs


def equal_batches(items: Sequence[Item], tokens: Callable[[Item], int], remaining: int) -> list[list[Item]]:
    """Split items into as few batches as `batches` does, but with similar numbers of tokens."""
    batch_count = len(batches(items, tokens, remaining))
    smallest_budget = bisect_left(
        range(remaining), True, key=lambda budget: len(batches(items, tokens, budget)) <= batch_count
    )
    return batches(items, tokens, smallest_budget)


def common_length(costs: Sequence[int], remaining: int) -> list[int]:
    """Return a token limit for each text, so that all texts fit into `remaining` tokens.

    A short block gets its own length, and all longer blocks get the same limit. The sum is at most
    `remaining`. If any block is truncated, no tokens are left unused except by rounding.
    """
    caps = [0] * len(costs)
    left = max(0, remaining)
    order = sorted(range(len(costs)), key=lambda index: costs[index])
    for position, index in enumerate(order):
        caps[index] = min(costs[index], left // (len(order) - position))
        left -= caps[index]
    return caps


TRUNCATION_MARK = " […cut…] "
"""Mark inserted at the place where a text was truncated."""

BOUNDARY_CHARS = 300
"""Maximum number of characters that truncation gives up for a clean cut. A clean cut is at a sentence or word
boundary."""

MAX_WORD_CHARS = 40
"""Maximum length, in characters, of a word that truncation does not split. The limit applies to the first and
the last word of a text. Longer words are split."""

SPARE_SHARE = 0.1
"""Share of tokens that may stay unused although something is cut: prefixes stay the same, sentences whole."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？]|\n")
_NUMBER = re.compile(r"[\d.,:/%-]")


def truncate_middle(text: str, max_tokens: int, count: TokenCounter) -> str:
    """Shorten `text` to `max_tokens` tokens by cutting out its middle.

    Two thirds of the kept text come from the beginning. Cuts are made at sentence boundaries if these leave
    at most `SPARE_SHARE` of the tokens unused, else between words, but never inside a number. If not even one
    character fits, the result is part of the mark.
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
    sentences = count(_keep(text, low, sentences=True)) >= (1 - SPARE_SHARE) * max_tokens
    while count(kept := _keep(text, low, sentences=sentences)) > max_tokens and low > 0:
        low -= 1  # a longer text can have slightly fewer tokens
    return kept if count(kept) <= max_tokens else truncate_end(TRUNCATION_MARK.strip(), max_tokens, count)


@lru_cache(maxsize=256)
def truncate_middle_cached(text: str, max_tokens: int, count: TokenCounter) -> str:
    """Run `truncate_middle`, reusing the cached result if there is one."""
    return truncate_middle(text, max_tokens, count)


def truncate_end(text: str, max_tokens: int, count: TokenCounter) -> str:
    """Shorten `text` to `max_tokens` tokens by cutting off its end. The result is `""` if nothing fits."""
    kept = text[: max(0, max_tokens) * 64]
    while kept and count(kept) > max_tokens:
        kept = kept[: min(len(kept) - 1, int(len(kept) * max_tokens / count(kept)) + 1)]
    return kept


def _keep(text: str, chars: int, *, sentences: bool | None = None) -> str:
    """Return both ends of a text, cut between words or, with `sentences`, sentences. `None`: cut anywhere."""
    head = chars * 2 // 3
    start = len(text) - (chars - head)
    if sentences is not None and 0 < head < start:
        head, start = _boundary_before(text, head, sentences), _boundary_after(text, start, sentences)
        return text[:head].rstrip() + TRUNCATION_MARK + text[start:].lstrip()
    return text[:head] + TRUNCATION_MARK + text[start:]


def _boundary_before(text: str, end: int, sentences: bool) -> int:
    """Return the last word boundary, or better a sentence boundary nearby, at or before `end`."""
    min_position = max(0, end - min(BOUNDARY_CHARS, end // 2))
    ends = [match.end() for match in _SENTENCE_END.finditer(text, min_position, end + 1) if sentences]
    if ends := [each for each in ends if each <= end]:
        return ends[-1]
    for position in range(end, max(0, end - BOUNDARY_CHARS), -1):
        if text[position].isspace():
            return position
    if end <= MAX_WORD_CHARS and text[end].isascii():
        return 0
    while end > min_position and _splits_number(text, end):
        end -= 1
    return end


def _boundary_after(text: str, start: int, sentences: bool) -> int:
    """Return the first word boundary, or better a sentence boundary nearby, at or after `start`."""
    max_position = min(len(text), start + min(BOUNDARY_CHARS, (len(text) - start) // 2))
    if sentences and (match := _SENTENCE_END.search(text, max(0, start - 1), max_position)):
        return match.end()
    for position in range(start, min(len(text), start + BOUNDARY_CHARS)):
        if text[position - 1].isspace():
            return position
    if len(text) - start <= MAX_WORD_CHARS and text[start - 1].isascii():
        return len(text)
    while start < max_position and _splits_number(text, start):
        start += 1
    return start


def _splits_number(text: str, position: int) -> bool:
    """Return True if cutting the text before `position` would split a number."""
    return 0 < position < len(text) and bool(
        _NUMBER.match(text[position - 1]) and _NUMBER.match(text[position])
    )
