"""Tables of results: their layout and the text in their cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moot.cli.terminal import Grid, form_of, write_or_print
from moot.state.errors import InputError

FORMS = ("table", "json", "md")
GRID = Grid(("name", "figure"), [("a|b", "1.00")])


@pytest.mark.parametrize(
    ("option", "output", "as_json", "form"),
    [
        (None, None, False, "table"),
        (None, "x.md", False, "md"),
        (None, "x.JSON", False, "json"),
        (None, "x.txt", False, "table"),
        ("table", "x.json", False, "table"),
        ("md", None, True, "json"),
    ],
    ids=["no option", "ending", "ending in capitals", "unknown ending", "format option", "--json"],
)
def test_output_format_follows_the_option_and_the_file_ending(
    tmp_path: Path, option: Any, output: str | None, as_json: bool, form: str
) -> None:
    path = tmp_path / output if output else None
    assert form_of(option, path, as_json=as_json, forms=FORMS) == form


def test_output_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        form_of(None, tmp_path / "nowhere" / "x.md", as_json=False, forms=FORMS)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_markdown_table_has_one_line_per_row(rows: list[tuple[str, str]]) -> None:
    lines = Grid(("a", "b"), rows).markdown().split("\n")
    assert len(lines) == len(rows) + 3
    assert all(line.replace("\\\\", "").replace("\\|", "").count("|") == 3 for line in lines[:-1])


def test_output_file_contains_json_or_markdown(tmp_path: Path) -> None:
    for form in ("json", "table"):
        write_or_print(form, tmp_path / form, {"a": 1}, GRID.markdown(), [])
    assert json.loads((tmp_path / "json").read_text(encoding="utf-8")) == {"a": 1}
    assert (tmp_path / "table").read_text(encoding="utf-8").endswith("| a\\|b | 1.00 |\n")


def test_terminal_table_right_aligns_numbers_and_truncates_text() -> None:
    table = Grid(("", "score"), [("x" * 60, "1.00")]).screen()
    assert [column.justify for column in table.columns] == ["left", "right"]
    assert [str(cell) for cell in table.columns[0].cells] == ["x" * 39 + "…"]
