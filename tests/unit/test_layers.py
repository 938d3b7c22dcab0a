"""The imports go one way: state ← nodes ← graph."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "moot"
ALLOWED = {"state": {"state"}, "nodes": {"state", "nodes"}, "graph": {"state", "nodes", "graph"}}
FILES = [path for package in ALLOWED for path in sorted((ROOT / package).rglob("*.py"))]


def _layer(module: str) -> str:
    """Return `state`, `nodes` or `graph` for a module of ours, else the top package."""
    top, *rest = module.split(".")
    return rest[0] if top == "moot" and rest else top


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {_layer(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(_layer(node.module or ""))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_its_own_layer_and_those_below(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0]
    assert _imported(path) & {*ALLOWED, "moot", "tests", "benchmarks"} <= ALLOWED[layer]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_environment_is_read_in_the_settings_module_only(path: Path) -> None:
    if path != ROOT / "state" / "settings.py":
        assert not re.search(r"\bos\.environ|\bgetenv\b", path.read_text())
