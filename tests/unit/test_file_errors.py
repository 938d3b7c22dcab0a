"""Errors about files that cannot be read or written name the file once and show no error number."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moot.cli.terminal import write_file
from moot.config.config_files import load_config
from moot.config.file_references import read_text
from moot.config.rubrics import load_rubric
from moot.plugins.evals.eval_command import add_rows
from moot.plugins.evals.items import read_items
from moot.plugins.evals.subjects import read_subject
from moot.plugins.importing.read_context import read_documents
from moot.state.errors import UserError
from moot.storage.sqlite import SqliteSql
from tests.support.source import ROOT, source_files, syntax_tree

ACCESSES: dict[str, Callable[[Path], object]] = {
    "configuration": load_config,
    "topic": lambda path: read_text(path, "the topic"),
    "context": lambda path: read_documents([path]),
    "rubric": load_rubric,
    "evaluation set": read_items,
    "evaluated debate": read_subject,
    "output": lambda path: write_file(path, "text"),
    "table": lambda path: add_rows(path, []),
}


@pytest.mark.parametrize("access", ACCESSES.values(), ids=ACCESSES)
def test_a_missing_file_is_named_once_and_without_an_error_number(
    access: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "missing-folder" / "x.jsonl"
    with pytest.raises(UserError, match="No such file or directory") as error:
        access(path)
    assert str(error.value).count("missing-folder") == 1
    assert "Errno" not in str(error.value)


def test_unopenable_database_is_refused_without_an_error_number(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot open database") as error:
        SqliteSql(tmp_path / "file" / "d.sqlite")
    assert "Errno" not in str(error.value)
    assert str(error.value).count("d.sqlite") == 1


@pytest.mark.parametrize("access", [load_config, load_rubric], ids=["configuration", "rubric"])
def test_a_pipe_or_an_endless_device_is_no_configuration(
    access: Callable[[Path], object], tmp_path: Path
) -> None:
    pipe, device = tmp_path / "pipe.yaml", tmp_path / "device.yaml"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(UserError, match="not a regular file"):
            access(path)


def test_an_endless_device_is_no_text() -> None:
    with pytest.raises(UserError, match="not a regular file"):
        read_text(Path("/dev/zero"), "the topic")


def test_scores_are_not_appended_through_a_symbolic_link(tmp_path: Path) -> None:
    link, target = tmp_path / "x.csv", tmp_path / "mine.txt"
    target.write_text("mine")
    link.symlink_to(target)
    with pytest.raises(UserError, match="symbolic link"):
        add_rows(link, [])
    assert target.read_text() == "mine"


def _shown_errors(handler: ast.ExceptHandler) -> list[str]:
    """Return the f-string parts of a handler that show the exception itself."""
    return [
        ast.unparse(node)
        for node in ast.walk(handler)
        if isinstance(node, ast.FormattedValue)
        and isinstance(node.value, ast.Name)
        and node.value.id == handler.name
    ]


def test_no_handler_of_file_errors_shows_the_system_message() -> None:
    handlers = {
        f"{path.relative_to(ROOT)}:{handler.lineno}": shown
        for path in source_files()
        for handler in ast.walk(syntax_tree(path))
        if isinstance(handler, ast.ExceptHandler)
        and handler.type is not None
        and "OSError" in ast.unparse(handler.type)
        and (shown := _shown_errors(handler))
    }
    assert handlers == {}
