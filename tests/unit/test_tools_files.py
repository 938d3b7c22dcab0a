"""Tools of the context folder: their results, and the isolation of the folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moot.state.entries import make_entry
from moot.state.errors import ConfigError
from moot.tools import built_in, tool
from moot.tools.built_in import ListFiles, ReadFile, Search, SearchDebate
from moot.tools.registry import get_tool, tool_names
from moot.tools.tool import AccessRefused, Sandbox, ToolContext, function_of, run_tool

OUTSIDE = "the secret word"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a context folder with links, a pipe and unreadable files, beside a secret file."""
    root = tmp_path / "context"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "build.md").write_text(
        "# Build\nThe build takes 41 minutes.\nCaching helps the build.\n"
    )
    (root / "a.txt").write_text("alpha")
    (root / ".env").write_text(OUTSIDE)
    (root / "data.bin").write_bytes(b"\x00\x01")
    (root / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "secret.txt").write_text(OUTSIDE)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(OUTSIDE)
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "pipe")
    return root


def _run(tool: Any, root: Path, **arguments: Any) -> str:
    return run_tool(tool, arguments, ToolContext(lambda: Sandbox(root)))


def test_search_lists_lines_with_the_most_query_words_first(folder: Path) -> None:
    lines = _run(Search, folder, query="build minutes").splitlines()
    assert lines[0] == "3 matches for 'build minutes'"
    assert lines[1] == "notes/build.md:2: The build takes 41 minutes."


def test_search_reports_no_matches(folder: Path) -> None:
    assert _run(Search, folder, query="zebra") == "no matches for 'zebra'"
    assert _run(Search, folder, query="?!").startswith("error: ")
    assert _run(Search, folder, query="build", files="*.txt") == "no matches for 'build'"


def test_read_file_returns_numbered_lines_of_a_range(folder: Path) -> None:
    assert _run(ReadFile, folder, path="notes/build.md", start=2, lines=1) == (
        "notes/build.md, lines 2 to 2 of 3\n2: The build takes 41 minutes."
    )


def test_list_files_shows_only_readable_files(folder: Path) -> None:
    assert _run(ListFiles, folder).splitlines() == [
        "4 files",
        "a.txt (5 bytes)",
        "data.bin (2 bytes)",
        "latin.txt (4 bytes)",
        "notes/build.md (61 bytes)",
    ]
    assert _run(ListFiles, folder, path="notes").splitlines()[0] == "1 files"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "notes/../../secret.txt",
        "/etc/passwd",
        "C:\\windows\\win.ini",
        "..\\secret.txt",
        "link.txt",
        "link/secret.txt",
        ".env",
        "notes/.hidden",
        "pipe",
        "data.bin",
        "latin.txt",
        "notes",
        "a.txt/b",
        "missing.txt",
        "a\x00.txt",
        "",
        "a/" * 30 + "b",
    ],
)
def test_read_file_rejects_outside_paths_and_other_files_than_text(folder: Path, path: str) -> None:
    result = _run(ReadFile, folder, path=path)
    assert result.startswith("error: ")
    assert OUTSIDE not in result
    assert str(folder.parent) not in result


def test_search_never_follows_links(folder: Path) -> None:
    assert _run(Search, folder, query="secret") == "no matches for 'secret'"
    assert _run(ListFiles, folder, path="link").startswith("error: ")


def test_folder_replaced_by_a_link_during_a_read_is_not_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat

    def swap(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
        status = real(path, *arguments, **named)
        if path == "notes" and (folder / "notes").is_dir() and not (folder / "notes").is_symlink():
            (folder / "notes").rename(folder / "moved")
            (folder / "notes").symlink_to(folder.parent / "outside")
        return status

    monkeypatch.setattr(os, "stat", swap)
    with pytest.raises(OSError, match=r"symbolic|directory"):
        Sandbox(folder).read("notes/secret.txt")


@given(st.text(alphabet="./\\abnotes link.txtsecret", max_size=40))
def test_no_path_reads_the_secret(path: str) -> None:
    root = _shared_folder()
    try:
        assert OUTSIDE not in Sandbox(root).read(path)
    except (AccessRefused, OSError):
        return


_SHARED_FOLDERS: list[Path] = []


def _shared_folder() -> Path:
    if not _SHARED_FOLDERS:
        import tempfile

        base = Path(tempfile.mkdtemp())
        (base / "context" / "notes").mkdir(parents=True)
        (base / "secret.txt").write_text(OUTSIDE)
        (base / "context" / "link").symlink_to(base)
        _SHARED_FOLDERS.append(base / "context")
    return _SHARED_FOLDERS[0]


def test_too_large_file_is_rejected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "MAX_FILE_BYTES", 10)
    assert "at most 10 are allowed" in _run(ReadFile, folder, path="notes/build.md")


def test_search_reads_no_more_than_its_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in, "MAX_SEARCHED_BYTES", 20)
    assert _run(Search, folder, query="build") == "no matches for 'build'"


def test_tools_without_a_folder_return_an_error() -> None:
    assert run_tool(Search, {"query": "x"}, ToolContext()) == "error: this debate has no context folder"


def test_search_debate_finds_messages_but_no_tool_results() -> None:
    entries = [
        make_entry(0, "user", "topic", "Monorepo?"),
        make_entry(1, "ada", "speech", "Builds take 41 minutes."),
        make_entry(2, "tools", "tool_result", "builds builds"),
    ]
    result = run_tool(SearchDebate, {"query": "builds"}, ToolContext(transcript=entries))
    assert result == "1 match for 'builds'\nada [m000001]: Builds take 41 minutes."


def test_search_debate_shows_a_word_whose_case_changes_its_length() -> None:
    entry = make_entry(1, "ada", "speech", f"{'ßŉ' * 400} the Straße is {'dry ' * 200}")
    result = run_tool(SearchDebate, {"query": "strasse"}, ToolContext(transcript=[entry]))
    assert "the Straße is dry" in result


@pytest.mark.parametrize("name", tool_names())
def test_every_tool_has_a_definition_in_openais_format(name: str) -> None:
    function = function_of(get_tool(name))["function"]
    assert function["name"] == name
    assert function["parameters"]["type"] == "object"
    assert all("description" in field for field in function["parameters"]["properties"].values())


def test_unknown_tool_is_rejected_with_the_known_names() -> None:
    with pytest.raises(ConfigError, match="choose from calculator"):
        get_tool("browse")
