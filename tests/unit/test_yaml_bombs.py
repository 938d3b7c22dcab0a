"""YAML that would exhaust memory or the stack is rejected. A name never hides another debate."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from moot.config.config_files import data_in, load_config
from moot.state.errors import ConfigError
from moot.storage.catalogue import DebateRow
from moot.storage.records import open_records

LISTS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
MERGES = "m0: &m0 {x: 1}\n" + "".join(
    f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
)


@pytest.mark.parametrize("text", [LISTS, MERGES, "a: &a [*a]"], ids=["lists", "merges", "self-reference"])
def test_multiplying_aliases_are_rejected_before_they_are_expanded(tmp_path: Path, text: str) -> None:
    path, began = tmp_path / "c.yaml", time.process_time()
    path.write_text(text)
    with pytest.raises(ConfigError, match="YAML aliases are expanded"):
        load_config(path)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("yaml", f"a: {'[' * 9000}{']' * 9000}"),
        ("json", '{"a":' * 99_000 + "1" + "}" * 99_000),
        ("toml", f"a = {'[' * 9000}{']' * 9000}"),
    ],
    ids=["yaml", "json", "toml"],
)
def test_deeply_nested_files_are_rejected(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"c.{suffix}"
    path.write_text(text)
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_config(path)


def test_ordinary_aliases_and_merges_are_read() -> None:
    assert data_in("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: *a", Path("a.yaml"), "configuration") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": {"x": 1},
    }


def test_a_name_equal_to_another_debates_id_does_not_hide_it(tmp_path: Path) -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    records = open_records(str(tmp_path / "m.sqlite"))
    for debate, name in ((first, "plain"), (second, first)):
        row = DebateRow(debate, name, "T", "round-robin", "done", 0, 0, 0.0, "", "then", "now")
        records.catalogue.add(row)
    ids = [records.find(each).id for each in (first, "plain", second, second[:12])]
    records.close()
    assert ids == [first, first, second, second]
