"""Every regular expression of the package takes linear time on any text."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from re import _constants as sre, _parser  # type: ignore[attr-defined]  # the parser of `re`, undocumented
from types import ModuleType
from typing import Any

import pytest

import moot
from moot.asking.chat import can_continue
from moot.config import DebateConfig
from moot.judging.blinding import make_blinding
from moot.plugins.importing.transcript import parse_transcript
from moot.prompts.templates import break_fence, fenced, prompt_parts
from moot.state.errors import InputError
from moot.text.plain_text import break_template_tokens, sanitize_line
from moot.text.terms import split_sentences
from tests.support.source import source_files, syntax_tree

SHORT, LONG = 1_000, 8_000
"""Lengths of the texts that are compared, in characters."""
RATIO, SLOW_S = 24.0, 0.03
"""A pattern fails if 8 times the text takes over `RATIO` times as long, and over `SLOW_S` seconds."""
SOURCES = {path: path.read_text() for path in source_files()}
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_PATTERN_USE = re.compile(rf"\b(\w+)\.({'|'.join(METHODS)})\b")
ANCHORED = {"match", "fullmatch"}
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(moot.__path__, "moot."):
        # `langgraph_server` needs a server around it.
        if not module.name.endswith(("__main__", "langgraph_server")):
            yield importlib.import_module(module.name)


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _patterns_in(item)
    elif isinstance(value, dict):
        yield from _patterns_in([*value.values()])


def _called_patterns() -> Iterator[tuple[str, str, int]]:
    """Yield method, pattern and place of each call such as `re.sub(PATTERN, …)` with a constant pattern."""
    for path in source_files():
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
                method, first = ast.unparse(node.func)[3:], node.args[0]
                if method in METHODS and isinstance(first, ast.Constant):
                    yield method, str(first.value), node.lineno


def _has_unbounded_repeat(items: object) -> bool:
    """Return whether a parsed pattern repeats a part without a bound.

    Every other pattern reads a bounded number of characters at each position, so it takes linear time.
    """
    for operation, argument in items:  # type: ignore[attr-defined]
        if operation in REPEATS and (argument[1] is sre.MAXREPEAT or _has_unbounded_repeat(argument[2])):
            return True
        if operation is sre.SUBPATTERN and _has_unbounded_repeat(argument[3]):
            return True
        if operation is sre.ATOMIC_GROUP and _has_unbounded_repeat(argument):
            return True
        if operation in (sre.ASSERT, sre.ASSERT_NOT) and _has_unbounded_repeat(argument[1]):
            return True
        if operation is sre.BRANCH and any(_has_unbounded_repeat(branch) for branch in argument[1]):
            return True
        if operation is sre.GROUPREF_EXISTS:
            return True
    return False


def _collect_patterns() -> dict[tuple[str, int], tuple[str, set[str]]]:
    """Return the package's patterns with unbounded repeats: their names and the methods called on them."""
    used = {path: _PATTERN_USE.findall(text) for path, text in SOURCES.items()}
    patterns: dict[tuple[str, int], tuple[str, set[str]]] = {}
    for module in _modules():
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        for holder in (module, *(each for each in classes if each.__module__ == module.__name__)):
            for name, value in vars(holder).items():
                if f"{module.__name__}.{name}" == "moot.cli.group._DECLARATION":
                    continue  # it reads only Moot's own source
                for pattern in _patterns_in(value):
                    users = [
                        path
                        for path, text in SOURCES.items()
                        if str(path) == module.__file__
                        or f"from {module.__name__} import" in text
                        or f"import {module.__name__.rpartition('.')[2]}" in text
                    ]
                    methods = {method for path in users for own, method in used[path] if own == name}
                    methods = methods or set(METHODS)
                    key = pattern.pattern, pattern.flags
                    patterns.setdefault(key, (f"{module.__name__}.{name}", set()))[1].update(methods)
    for method, text, line in _called_patterns():
        patterns.setdefault((text, re.compile(text).flags), (f"line {line}: {text}", {method}))
    return {
        key: each
        for key, each in patterns.items()
        if _has_unbounded_repeat(_parser.parse(key[0], key[1] & ~re.DEBUG))
    }


PATTERNS = _collect_patterns()


def _samples(items: object) -> list[str]:  # noqa: C901  # one case an operation
    """Return short texts that the parts of a parsed pattern match."""
    texts: list[str] = []
    for operation, argument in items:  # type: ignore[attr-defined]
        if operation is sre.LITERAL:
            texts.append(chr(argument))
        elif operation is sre.NOT_LITERAL:
            texts.append("a" if argument != ord("a") else "b")
        elif operation is sre.ANY:
            texts.append("a")
        elif operation is sre.IN:
            texts += _class_samples(argument)
        elif operation in REPEATS:
            texts += _samples(argument[2])
        elif operation is sre.SUBPATTERN:
            texts += _samples(argument[3])
        elif operation is sre.ATOMIC_GROUP:
            texts += _samples(argument)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            texts += _samples(argument[1])
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                texts += _samples(branch)
    return texts


CATEGORIES = {
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_WORD: "-",
}
COMMON = (" ", "a", "1", "*", "-", "\n", "\t", "[", "(", ".", ":", "_", "<", '"')


def _class_samples(kinds: list[tuple[object, Any]]) -> list[str]:
    if kinds[0][0] is sre.NEGATE:
        return [char for char in COMMON if _class_matches(kinds, char)][:4]
    texts: list[str] = []
    for operation, argument in kinds:
        if operation is sre.LITERAL:
            texts.append(chr(argument))
        elif operation is sre.RANGE:
            texts.append(chr(argument[0]))
        elif operation is sre.CATEGORY:
            texts.append(CATEGORIES[argument])
    return texts


def _class_matches(kinds: list[tuple[object, Any]], char: str) -> bool:
    excluded = set(_class_samples(kinds[1:])) if len(kinds) > 1 else set()
    if any(argument is sre.CATEGORY_SPACE for _, argument in kinds):
        excluded |= {" ", "\n", "\t"}
    if any(argument is sre.CATEGORY_WORD for _, argument in kinds):
        excluded |= {"a", "1", "_"}
    return char not in excluded


def _texts(pattern: str, flags: int, length: int) -> Iterator[str]:
    """Yield texts of a length that repeat atoms of a pattern and then miss it."""
    parsed = _parser.parse(pattern, flags & ~re.DEBUG)
    samples = _samples(parsed)
    atoms = list(dict.fromkeys([*samples, " ", "a", "1"]))[:16]
    whole = "".join(samples)[:60]
    pairs = [a + b for a, b in product(atoms[:5], repeat=2) if a != b]
    runs = [*atoms, *pairs, whole, whole[: len(whole) // 2], whole[:-1], "\n" + whole[:-1]]
    for run in filter(None, runs):
        text = (run * (length // len(run) + 1))[:length]
        for start in ("", whole[: len(whole) // 2]):
            yield start + text + "\x00"
    for first, second in product(atoms[:6], repeat=2):
        yield first * (length // 2) + second * (length // 2) + "\x00"


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work. Other processes do not change it."""
    started = time.thread_time()
    work()
    return time.thread_time() - started


def _too_slow(work: Callable[[str], object], short: str, long: str) -> bool:
    """Return whether the long text takes more than linear time, in the best of three runs."""
    if _seconds(lambda: work(long)) < SLOW_S:
        return False
    took_long = min(_seconds(lambda: work(long)) for _ in range(2))
    took_short = min(_seconds(lambda: work(short)) for _ in range(3))
    return took_long > SLOW_S and took_long > RATIO * took_short


@pytest.mark.parametrize(("key", "use"), PATTERNS.items(), ids=[name for name, _ in PATTERNS.values()])
def test_each_pattern_takes_linear_time(key: tuple[str, int], use: tuple[str, set[str]]) -> None:
    pattern, flags = key
    compiled = re.compile(pattern, flags)
    if use[1] <= ANCHORED:
        works: list[Callable[[str], object]] = [getattr(compiled, method) for method in sorted(use[1])]
    else:
        works = [lambda text: [*compiled.finditer(text)]]
    for short, long in zip(_texts(pattern, flags, SHORT), _texts(pattern, flags, LONG), strict=True):
        for work in works:
            assert not _too_slow(work, short, long), f"{use[0]}: {short[:40]!r}…"


NAMES = ("Ann", "Ann Ann", "*", "(x", "a a a a", "A. B.", "x-x-x", "[m0]")
CONFIG = DebateConfig.model_validate(
    {"debaters": [{"id": f"d{at}", "name": name} for at, name in enumerate(NAMES)]}
)
BLINDINGS = [make_blinding(CONFIG.names(), texts, ["Ann said so."]) for texts in ([], ["ann ann", "x " * 99])]


def _import_transcript(text: str, **options: Any) -> None:
    """Import a transcript. A refusal is a result as well, and it must come as fast."""
    with suppress(InputError):
        parse_transcript(text, **options)


READERS: dict[str, Callable[[str], object]] = {
    "blinding": lambda text: [blinding.blind_text(text) for blinding in BLINDINGS],
    "unblinding": lambda text: [blinding.unblind_text(text) for blinding in BLINDINGS],
    "request to continue": lambda text: can_continue(text, CONFIG),
    "control tokens": break_template_tokens.__wrapped__,
    "fence": lambda text: break_fence.__wrapped__(text, "kelvon"),
    "prompt parts": lambda text: [*prompt_parts(fenced(text, "kelvon", text.replace("\n", " ")))],
    "unclosed blocks": lambda text: [*prompt_parts(text)],
    "single line": sanitize_line.__wrapped__,
    "sentences": split_sentences,
    "import": lambda text: _import_transcript(f"Ann: Yes.\n{text}\nBob: No.\n{text}: x\nAnn: {text}"),
    "Markdown import": lambda text: _import_transcript(f"**Ann:** Yes.\n{text}\n**Bob:** No.", format="md"),
}
HOSTILE_RUNS = [
    "Ann" + "*",
    "*",
    "* ",
    " ",
    "Ann ",
    "(",
    "[",
    "[m000002 ",
    "#",
    "> ",
    "< ",
    " <<kelvon\n",
    "kelvo",
    "<|",
    "kelv\u043e",
    ".",
    "_",
    "1",
    "**A",
    "a: ",
    "Ann, ",
    "a ",
    "Debater A ",
    "x-",
    "A. ",
]


@pytest.mark.parametrize("end", ["-", ":", ""], ids=["mismatch", "colon", "end of text"])
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(work, id=name, marks=[pytest.mark.slow] if name == "blinding" else [])
        for name, work in READERS.items()
    ],
)
def test_hostile_text_is_read_in_linear_time(work: Callable[[str], object], end: str) -> None:
    for run in HOSTILE_RUNS:
        texts = [run[:-1] + run[-1] * length + end for length in (SHORT, LONG)]
        repeated = [run * (length // len(run)) + end for length in (SHORT, LONG)]
        for short, long in (texts, repeated):
            assert not _too_slow(work, short, long), repr(short[:40])
