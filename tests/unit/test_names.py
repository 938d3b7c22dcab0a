"""The package has no vague names of variables, parameters and attributes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from tests.support.source import ROOT, source_files, syntax_tree

VAGUE = {
    *("about", "answered", "asked", "asks", "at", "chosen", "found", "given", "heard", "held", "least"),
    *("left_", "listed", "look", "made", "meant", "most", "named", "of", "offered", "over", "own", "said"),
    *("says", "shown", "spoken", "stated", "taken", "tell", "told", "told_", "wanted", "who", "whole"),
    *("whom", "whose"),
}
"""Participles, pronouns and prepositions. They do not say what a value is."""
STORED, OUTPUT, PUBLIC = "stored data", "JSON output", "public API"
EXEMPTIONS = {
    "Block.whole": PUBLIC,
    "CheckToMake.who": "schema of a model's reply",
    "ComparedDebate.asked": OUTPUT,
    "EarlierPosition.at": STORED,
    "Entry.at": STORED,
    "ErrorRecord.at": STORED,
    "Feedback.at": STORED,
    "InputEntry.at": PUBLIC,
    "ItemOutcome.stated": STORED,
    "MemoryCost.made": OUTPUT,
    "MessagesRead.of": STORED,
    "ModelFacts.told": STORED,
    "OpenCheck.who": STORED,
    "Reflection.about": STORED,
    "ReflectionFinding.about": "schema of a model's reply",
    "ReplayedTurn.said": OUTPUT,
    "Retraction.of": STORED,
    "SummaryPoints.shown": STORED,
    "SummaryRequest.shown": PUBLIC,
    "ToolUse.about": STORED,
    "TurnCount.most": PUBLIC,
    "check_change.named": PUBLIC,
    "make_entry.at": "the field `Entry.at`",
    "structured_call.about": PUBLIC,
    "structured_call.least": PUBLIC,
    "structured_call.said": PUBLIC,
}
"""Exempt names, as `class.field` or `function.parameter`, with the reason for each."""


def _vague_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield each vague name, after the name of the class or function around it, with its line."""
    scopes: list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef] = []
    vague: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scopes.append(node)
        elif isinstance(node, ast.arg) and node.arg in VAGUE:
            vague.append((node.arg, node.lineno))
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in VAGUE:
                vague.append((name, node.lineno))
    for name, line in vague:
        around = [scope for scope in scopes if scope.lineno <= line <= (scope.end_lineno or line)]
        yield ".".join([*(scope.name for scope in around[-1:]), name]), line


@cache
def _places() -> dict[str, list[str]]:
    """Return the places of each vague name in the package."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in source_files():
        for name, line in _vague_names(syntax_tree(path)):
            places[name].append(f"{path.relative_to(ROOT)}:{line}")
    return places


def test_package_has_no_vague_names() -> None:
    vague = {name: places for name, places in _places().items() if name not in EXEMPTIONS}
    assert not vague, "name the value with a noun"


def test_every_exemption_is_needed_and_sorted() -> None:
    assert list(EXEMPTIONS) == sorted(EXEMPTIONS)
    assert EXEMPTIONS.keys() <= _places().keys()


def test_check_finds_vague_names_of_every_kind() -> None:
    text = """
given = 1
class Case:
    at: str
    def lines(self, most, *, said=""):
        self.held = most
        return [own for own in most]
"""
    names = [name for name, _ in _vague_names(ast.parse(text))]
    assert sorted(names) == ["Case.at", "given", "lines.held", "lines.most", "lines.own", "lines.said"]
