"""Source files of the package `moot`, each parsed once in a test process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "moot"


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file. Tests share the tree, so they must not change it."""
    return ast.parse(path.read_text(encoding="utf-8"))


def source_files() -> list[Path]:
    """Return all Python files of the package, sorted by path."""
    return sorted(ROOT.rglob("*.py"))
