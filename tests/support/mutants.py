"""Mutation testing: change one expression of the package at a time, and see whether a test fails.

`make mutants` draws mutants from the files that differ from the branch `main`. A mutant survives if all tests
that call the changed function pass. A survivor shows a line that no test checks. The mutated files are in a
temporary copy of the project.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import difflib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PRELOADED = (
    *("aiosqlite", "httpx", "jinja2", "langchain_openai", "langgraph.graph", "numpy", "openai"),
    *(
        "langgraph.checkpoint.sqlite.aio",
        "rich.console",
        "starlette.applications",
        "tiktoken",
        "typer",
        "yaml",
    ),
)
"""Packages that every test process needs. They are imported once, because import takes seconds."""
GENERAL = ("test_nodes.py", "test_prompt_snapshots.py", "test_python_api.py", "test_session.py")
"""Test files that run whole debates. They are candidates for every module."""
TESTS_S = 45.0
"""Maximum sum of the durations of the tests that run for one mutant. The fastest tests run first."""
SLOWER = 5
"""A test may run this many times as long as without a mutant, and `START_S` more."""
START_S = 20.0
_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub)),
)
OPPOSITES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutant:
    """A change of one expression or statement in a file."""

    path: str
    operator: str
    line: int
    function: int
    """First line of the innermost function around the change, 0 at module level."""
    text: str
    """The whole mutated file."""

    def diff(self) -> str:
        """Return the change as a unified diff without context."""
        old, new = (ROOT / self.path).read_text(encoding="utf-8").splitlines(), self.text.splitlines()
        return "\n".join(difflib.unified_diff(old, new, self.path, self.path, lineterm="", n=0))


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:  # noqa: C901  # one case for each operator
    """Yield the operator and the replacement of each mutation of one syntax node."""
    match node:
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", ast.Constant(value + 1 if value < 2 else value * 2)
        case ast.Compare(left, [operator], right):
            kind = "comparison" if isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.Is) else "boundary"
            if type(operator) in OPPOSITES:
                yield kind, ast.Compare(left, [OPPOSITES[type(operator)]()], right)  # type: ignore[list-item]
        case ast.BoolOp(operator, values):
            yield "and/or", ast.BoolOp(OPPOSITES[type(operator)](), values)  # type: ignore[arg-type]
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            if not any(isinstance(side, ast.Constant | ast.JoinedStr | ast.List) for side in (left, right)):
                yield "arithmetic", ast.BinOp(left, OPPOSITES[type(operator)](), right)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield "sign", operand
        case ast.Raise():
            yield "raise", ast.Pass()
        case ast.Expr(ast.Call()):
            yield "call", ast.Pass()
        case ast.Call(function, arguments, keywords):
            name = getattr(function, "id", getattr(function, "attr", ""))
            if isinstance(function, ast.Name) and name in NAMES:
                yield name, ast.Call(ast.Name(NAMES[name]), arguments, keywords)
            for keyword in keywords:
                if keyword.arg and not name[:1].isupper():  # constructors need their arguments
                    rest = [each for each in keywords if each is not keyword]
                    kind = "sort key" if keyword.arg in ("key", "reverse") else "argument"
                    yield kind, ast.Call(function, arguments, rest)


def mutants_of(path: str) -> Iterator[Mutant]:
    """Yield all mutants of a file. Decorators, annotations and f-strings are left unchanged."""
    source = (ROOT / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def visit(node: ast.AST, function: int) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        for operator, changed in variants(node):
            where: Any = node
            begin = starts[where.lineno - 1] + where.col_offset
            end = starts[where.end_lineno - 1] + where.end_col_offset
            text = source[:begin] + ast.unparse(changed).encode() + source[end:]
            yield Mutant(path, operator, where.lineno, function, text.decode())
        for name, value in ast.iter_fields(node):
            if name not in ("decorator_list", "annotation", "returns") and not isinstance(
                node, ast.JoinedStr
            ):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from visit(child, function)

    yield from visit(ast.parse(source), 0)


def draw(paths: Iterable[str], number: int, seed: int) -> list[Mutant]:
    """Draw mutants at random, about equally many of each operator."""
    chance, by_operator = random.Random(seed), dict[str, list[Mutant]]()
    for path in sorted(paths):
        for mutant in mutants_of(path):
            by_operator.setdefault(mutant.operator, []).append(mutant)
    for each in by_operator.values():
        chance.shuffle(each)
    drawn: list[Mutant] = []
    while len(drawn) < number and any(by_operator.values()):
        drawn += [each.pop() for each in by_operator.values() if each]
    return drawn[:number]


def test_files_of(paths: Iterable[str], folders: Sequence[str]) -> list[str]:
    """Return the test files that import one of the modules or name one of its public functions.

    The file with the most such words of each module comes first, then the second file of each module.
    """
    texts = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for folder in folders
        for file in sorted((ROOT / "tests" / folder).glob("test_*.py"))
    }
    ranked: list[list[str]] = []
    for path in sorted(paths):
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        package, _, name = module.rpartition(".")
        words = [f"from {module} import", f"import {module}", f"from {package} import {name}", f"{module}."]
        words += [f"{each}(" for each in _public_names(path)]
        counts = {file: sum(map(text.count, words)) for file, text in texts.items()}
        ranked.append(sorted((file for file in counts if counts[file]), key=lambda file: -counts[file]))
    general = [file for file in texts if Path(file).name in GENERAL]
    return [*dict.fromkeys(chain(general, filter(None, chain.from_iterable(zip_longest(*ranked)))))]


def _public_names(path: str) -> list[str]:
    body = ast.parse((ROOT / path).read_bytes()).body
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [each.name for each in body if isinstance(each, kinds) and not each.name.startswith("_")]


class CalledFunctions:
    """Pytest plug-in that records which functions of the package each test calls, and how long it takes."""

    def __init__(self, folder: Path, limit_s: float) -> None:
        self._end = time.monotonic() + limit_s
        self._prefix, self._codes = f"{folder}{os.sep}", dict[int, CodeType]()
        self.tests: dict[str, tuple[float, list[str]]] = {}

    def _trace(self, frame: FrameType, event: str, argument: object) -> None:
        self._codes[id(frame.f_code)] = frame.f_code

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace the calls of one test."""
        import threading

        self._codes.clear()
        began = time.monotonic()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            called = {
                f"{code.co_filename.removeprefix(self._prefix)}:{code.co_firstlineno}"
                for code in [*self._codes.values()]
                if code.co_filename.startswith(f"{self._prefix}moot{os.sep}")
            }
            self.tests[item.nodeid] = (time.monotonic() - began, sorted(called))

    @pytest.hookimpl
    def pytest_runtest_logfinish(self) -> None:
        """Leave out the remaining tests, of which each names fewer words of a module, after the limit."""
        if time.monotonic() > self._end:
            pytest.exit("the time for the map of tests is over", 0)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out a test that fails without a mutant, such as one whose browser is missing."""
        if report.failed:
            self.tests.pop(report.nodeid, None)


class Runner:
    """Runs tests in a copy of the project, in processes forked from this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in PRELOADED:
            importlib.import_module(name)
        files = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],  # noqa: S607  # found on the path
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for name in files:
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
        # Two mutants may have the same size and time, so compiled files are checked by the source's hash.
        mode = importlib.import_module("py_compile").PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / "moot", quiet=2, invalidation_mode=mode)

    def run(self, words: Sequence[str], limit_s: float, plugin: CalledFunctions | None = None) -> int | None:
        """Run pytest and return its exit code, `None` if it takes longer than the limit."""
        if (child := os.fork()) == 0:
            try:
                os._exit(self._run_child(words, plugin))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)  # the parent's cleanup is not the child's
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None

    def _run_child(self, words: Sequence[str], plugin: CalledFunctions | None) -> int:
        os.setsid()
        os.chdir(self.folder)
        os.environ["PYTHONPATH"] = str(self.folder)
        sys.path[:0] = [str(self.folder)]
        for name in [name for name in sys.modules if name.split(".")[0] in ("moot", "tests")]:
            del sys.modules[name]
        sys.dont_write_bytecode = plugin is None
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        with (self.folder / "pytest.log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            options = [
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "-m",
                "not slow and not heavy",
            ]
            code = int(pytest.main([*options, *words], plugins=[plugin] if plugin else []))
        if plugin:
            (self.folder / "called.json").write_text(json.dumps(plugin.tests))
        return code

    def called_functions(self, files: Sequence[str], limit_s: float) -> dict[str, tuple[float, list[str]]]:
        """Return the duration and the called functions of each test in the files that passes."""
        self.run(files, limit_s + 120, CalledFunctions(self.folder, limit_s))
        path = self.folder / "called.json"
        if not path.exists():
            log = (self.folder / "pytest.log").read_text(errors="replace")
            raise SystemExit(f"the tests did not finish in {limit_s:g} s: give fewer files\n{log[-3000:]}")
        result: dict[str, tuple[float, list[str]]] = json.loads(path.read_text())
        return result

    def outcome(self, mutant: Mutant, tests: dict[str, tuple[float, list[str]]]) -> str:
        """Return `caught`, `survived`, `hung`, or `no test` for a mutant."""
        key = f"{mutant.path}:{mutant.function}"
        # A constant of a module is used by some of its functions.
        fits = key.__eq__ if mutant.function else lambda name: name.startswith(f"{mutant.path}:")
        matching = sorted((took, test) for test, (took, called) in tests.items() if any(map(fits, called)))
        chosen, total_s = list[str](), 0.0
        for took, test in matching:
            total_s += took
            if chosen and total_s > TESTS_S:
                break
            chosen.append(test)
        if not chosen:
            return "no test"
        target = self.folder / mutant.path
        whole = target.read_text(encoding="utf-8")
        target.write_text(mutant.text, encoding="utf-8")
        try:
            limit_s = START_S + SLOWER * min(total_s, TESTS_S)
            code = self.run(["-x", "--no-header", f"--timeout={limit_s:.0f}", *chosen], limit_s + START_S)
        finally:
            target.write_text(whole, encoding="utf-8")
        return "hung" if code is None else "caught" if code else "survived"


def changed_files() -> list[str]:
    """Return the package's Python files that differ from the branch `main`."""
    words = ["git", "diff", "--name-only", "--diff-filter=d", "main", "--", "moot/*.py"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def main() -> None:
    """Draw mutants, run their tests, and print the survivors and the share of caught mutants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="Python files or folders; default: the files of the change")
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--tests", nargs="*", default=["unit", "integration"], help="folders of tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--minutes",
        type=float,
        default=30,
        help="a third finds the tests of each function; no mutant starts later",
    )
    chosen = parser.parse_args()
    end = time.monotonic() + 60 * chosen.minutes
    given = [path for name in chosen.files for path in (sorted(Path(name).rglob("*.py")) or [Path(name)])]
    paths = [str(path.resolve().relative_to(ROOT)) for path in given] or changed_files()
    mutants = draw(paths, chosen.number, chosen.seed)
    if not mutants:
        raise SystemExit("nothing to mutate: give files, or change a file of the package")
    with tempfile.TemporaryDirectory(prefix="moot-mutants-") as name:
        runner = Runner(Path(name))
        tests = runner.called_functions(
            test_files_of({each.path for each in mutants}, chosen.tests), 20 * chosen.minutes
        )
        outcomes = []
        for mutant in mutants:
            if time.monotonic() > end:
                print(f"stopped after {chosen.minutes:g} minutes")
                break
            outcomes.append(outcome := runner.outcome(mutant, tests))
            print(f"{outcome:8} {mutant.operator:10} {mutant.path}:{mutant.line}", flush=True)
            if outcome != "caught":
                print(mutant.diff(), flush=True)
    caught, number = outcomes.count("caught"), len(outcomes)
    print(f"caught {caught} of {number} mutants ({caught / max(1, number):.0%}), seed {chosen.seed}")


if __name__ == "__main__":
    main()
