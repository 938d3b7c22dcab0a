"""Checks of README and docs/: Python blocks run, links lead to files, and quoted messages exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.source import source_files, syntax_tree

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
_LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")


def _blocks(page: Path) -> list[str]:
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if _blocks(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_python_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "docs"}
    for number, block in enumerate(_blocks(page), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)  # noqa: S102  # our own docs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files(page: Path) -> None:
    broken = [
        link for link in _LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()
    ]
    assert not broken


def _package_strings() -> str:
    """Return all string constants of the package, one per line."""
    nodes = [
        node.value
        for path in source_files()
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Constant)
    ]
    return "\n".join(text for text in nodes if isinstance(text, str))


def test_troubleshooting_quotes_messages_that_exist() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = [
        message
        for cell in re.findall(r"^\| (.*?`.*?) \|", page, re.M)
        for message in re.findall("`(.+?)`", cell)
    ]
    assert len(messages) >= 20
    texts = _package_strings()
    parts = [part.strip(" ,:") for message in messages for part in re.split(r"…|\d+", message)]
    assert not [part for part in parts if part not in texts]
