"""Tables of results: their layout and the text in their cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.terminal import Grid, deliver, form_of
from moot.state.errors import InputError

FORMS = ("table", "json", "md")
GRID = Grid(("name", "figure"), [("a|b", "1.00")])


@pytest.mark.parametrize(
    ("given_", "output", "as_json", "form"),
    [
        (None, None, False, "table"),
        (None, "x.md", False, "md"),
        (None, "x.JSON", False, "json"),
        (None, "x.txt", False, "table"),
        ("table", "x.json", False, "table"),
        ("md", None, True, "json"),
    ],
    ids=["nothing said", "ending", "ending in capitals", "another ending", "said", "--json wins"],
)
def test_a_result_has_the_form_that_was_asked_for(
    tmp_path: Path, given_: Any, output: str | None, as_json: bool, form: str
) -> None:
    path = tmp_path / output if output else None
    assert form_of(given_, path, as_json=as_json, forms=FORMS) == form


def test_an_output_that_could_not_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        form_of(None, tmp_path / "nowhere" / "x.md", as_json=False, forms=FORMS)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_a_row_stays_a_row_of_markdown(rows: list[tuple[str, str]]) -> None:
    lines = Grid(("a", "b"), rows).markdown().split("\n")
    assert len(lines) == len(rows) + 3
    assert all(line.replace("\\\\", "").replace("\\|", "").count("|") == 3 for line in lines[:-1])


def test_a_file_holds_json_or_markdown(tmp_path: Path) -> None:
    for form in ("json", "table"):
        deliver(form, tmp_path / form, {"a": 1}, GRID.markdown(), [])
    assert json.loads((tmp_path / "json").read_text(encoding="utf-8")) == {"a": 1}
    assert (tmp_path / "table").read_text(encoding="utf-8").endswith("| a\\|b | 1.00 |\n")


def test_the_screen_shows_figures_to_the_right_and_cuts_what_is_long() -> None:
    table = Grid(("", "score"), [("x" * 60, "1.00")]).screen()
    assert [column.justify for column in table.columns] == ["left", "right"]
    assert [str(cell) for cell in table.columns[0].cells] == ["x" * 39 + "…"]
