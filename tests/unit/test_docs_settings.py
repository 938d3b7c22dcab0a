"""Environment variables in the docs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_docs_name_every_variable_that_moot_reads() -> None:
    source = (ROOT / "moot/state/settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'"((?:MOOT|OPENAI)_[A-Z_]+)"', source))
    docs = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert read
    assert not {name for name in read if name not in docs}
