"""Question sets of MALLM, in the form in which its downloaders write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moot import ConfigError
from moot.plugins.evals.items import QuestionItem, read_items

CHOICE = {
    "example_id": "a",
    "inputs": ["Which?\nA) a ship\nB) a train"],
    "context": None,
    "references": ["B"],
}
NAMED = {**CHOICE, "example_id": "b", "inputs": ["So?\nA) yes\nB) no"], "references": ["A) yes"]}
SOLVED = {"example_id": "c", "inputs": ["2 + 2?"], "context": ["Sums."], "references": ["2 + 2 = 4 #### 4"]}


def read(tmp_path: Path, content: object) -> tuple[Any, ...]:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return read_items(path).items


def test_choices_and_the_right_letter_are_read(tmp_path: Path) -> None:
    first, second = read(tmp_path, [CHOICE, NAMED])
    assert isinstance(first, QuestionItem)
    assert (first.question, first.choices, first.answer) == ("Which?", ("a ship", "a train"), "B")
    assert (second.question, second.choices, second.answer) == ("So?", ("yes", "no"), "A")


def test_a_worked_solution_is_a_reference_for_the_grader(tmp_path: Path) -> None:
    (item,) = read(tmp_path, [SOLVED])
    assert (item.question, item.context, item.reference) == ("2 + 2?", "Sums.", "2 + 2 = 4 #### 4")


@pytest.mark.parametrize("content", [{}, [1], [{"id": "a"}], [{**CHOICE, "inputs": "Which?"}]])
def test_another_json_file_is_refused_with_the_form_that_is_read(content: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`inputs`"):
        read(tmp_path, content)
