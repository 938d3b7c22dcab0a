"""Environment variables and settings in the docs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from moot.config import DebateConfig
from moot.config.section import protocol_sections
from moot.protocols.registry import PROTOCOLS

ROOT = Path(__file__).parents[2]


def test_the_docs_name_every_variable_that_moot_reads() -> None:
    source = (ROOT / "moot/state/settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'"((?:MOOT|OPENAI)_[A-Z_]+)"', source))
    docs = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert read
    assert not {name for name in read if name not in docs}


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """Return the sections in a field's type, such as that of `dict[str, ModelSettings]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _sections(part)


def _settings(section: type[BaseModel]) -> Iterator[str]:
    """Return the names of the settings of a section and of the sections in it."""
    for name, field in section.model_fields.items():
        sections = list(_sections(field.annotation))
        yield from (inner for each in sections for inner in _settings(each))
        if not sections:
            yield name


def test_an_example_a_page_a_notebook_or_a_benchmark_shows_every_setting() -> None:
    generated = {"configuration.md", "cli.md", "debate.schema.json"}
    paths = [ROOT / "README.md"]
    for folder in ("docs", "examples", "notebooks", "benchmarks"):
        paths += (path for path in (ROOT / folder).rglob("*.*") if path.name not in generated)
    kinds = {".md", ".py", ".yaml", ".yml", ".ipynb", ".json", ".sh"}
    texts = [path.read_text(encoding="utf-8") for path in paths if path.suffix in kinds]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    names = {*_settings(DebateConfig)}
    for section in protocol_sections(PROTOCOLS).values():
        names |= {*_settings(section)}
    assert len(names) > 100
    assert names - words == set()
