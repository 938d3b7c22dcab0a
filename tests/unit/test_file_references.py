"""Every setting whose documentation promises `@FILE` reads its text from the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moot.config.stages import read_config
from moot.graph.json_schemas import config_schema
from moot.state.errors import ConfigError

SCHEMA = config_schema()
PROMPTS = {"prompt", "summary_prompt", "system_prompt", "clarification_prompt"}
"""Settings with a built-in text, which replaces a file that cannot be read."""


def _promised(schema: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each setting whose description mentions `@FILE`. `*` stands for list items."""
    if ref := schema.get("$ref"):
        yield from _promised(SCHEMA["$defs"][ref.removeprefix("#/$defs/")], place)
    for key in ("anyOf", "allOf"):
        for each in schema.get(key, ()):
            yield from _promised(each, place)
    if isinstance(schema.get("items"), dict):
        yield from _promised(schema["items"], (*place, "*"))
    for key, each in schema.get("properties", {}).items():
        if "@FILE" in each.get("description", ""):
            yield (*place, key)
        yield from _promised(each, (*place, key))


PLACES = sorted({*_promised(SCHEMA), ("debaters", "*", "reference_documents", "*")})


def _config_file(folder: Path, place: tuple[str, ...], value: str) -> Path:
    data: Any = value
    for key in reversed(place):
        data = [data] if key == "*" else {key: data}
    if place[0] == "debaters":
        data = {"debaters": [{"name": "Ann", **data["debaters"][0]}, {"name": "Bo"}]}
    path = folder / "debate.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def _value_at(data: Any, place: tuple[str, ...]) -> Any:
    for key in place:
        data = data[0] if key == "*" else data.get(key)
    return data


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_a_promised_file_is_read_beside_the_configuration(tmp_path: Path, place: tuple[str, ...]) -> None:
    (tmp_path / "mine.md").write_text("Mind the doors.", encoding="utf-8")
    config = read_config(_config_file(tmp_path, place, "@mine.md"))
    value = _value_at(config.model_dump(mode="json"), place)
    assert (value["text"] if isinstance(value, dict) else value) == "Mind the doors."


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_a_missing_file_is_an_error_or_a_warning_about_a_prompt(
    tmp_path: Path, place: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    path = _config_file(tmp_path, place, "@gone.md")
    if place[-1] in PROMPTS:
        assert "@gone.md" not in str(read_config(path).to_json())
        assert "gone.md" in caplog.text
        assert "the default prompt is used" in caplog.text
    else:
        with pytest.raises(ConfigError, match=r"cannot read .*gone\.md"):
            read_config(path)


def test_a_reference_document_is_named_after_its_file(tmp_path: Path) -> None:
    (tmp_path / "tides.md").write_text("High at noon.", encoding="utf-8")
    path = _config_file(tmp_path, ("debaters", "*", "reference_documents", "*"), "@tides.md")
    (document,) = read_config(path).debaters[0].reference_documents
    assert (document.name, document.text) == ("tides", "High at noon.")
