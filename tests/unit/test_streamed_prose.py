"""Markdown of a message that is still being written."""

from __future__ import annotations

import re

import pytest

from moot.plugins.web.streamed_prose import MAX_OPEN_CHARS, StreamedProse
from moot.reports.markdown_html import Prose

TEXT = """We **must** measure *first*, with `moot eval`.

## Why

- **cost**: `a * b` is not known
- time

```sh
x = **1**

y = 2
```

1. One **more** thing.
2. And <b>this</b> one."""


def streamed(text: str, size: int) -> tuple[str, list[str]]:
    """Return the HTML at the end, and what a reader saw after each part of `size` characters."""
    prose, settled, seen = StreamedProse(), "", []
    for start in range(0, len(text), size):
        update = prose.add(text[start : start + size])
        settled += update["settled"]
        seen.append(settled + update["open"])
    return seen[-1], seen


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_streamed_text_ends_as_the_whole_text_and_shows_no_open_mark(size: int) -> None:
    whole, seen = streamed(TEXT, size)
    assert whole == str(Prose({}).block(TEXT, base=3))
    for page in seen:
        outside_code = re.sub(r"<(code|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
        assert "**" not in outside_code, page
        assert "`" not in outside_code, page
        assert "<b>" not in page
        assert "<li></li>" not in page
        assert page.count("<h3>") <= 1


@pytest.mark.parametrize("paragraph", ["We **must** measure first. " * 370, "Short **one**.\n\n" * 640])
def test_a_long_text_costs_in_proportion_to_its_length(
    paragraph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[int] = []
    block = Prose.block

    def counted(prose: Prose, text: str, base: int | None = None) -> object:
        rendered.append(len(text))
        return block(prose, text, base)

    monkeypatch.setattr(Prose, "block", counted)
    parts = len(paragraph[:10_000]) / 20
    streamed(paragraph[:10_000], 20)
    assert sum(rendered) <= 10_000 + parts * (MAX_OPEN_CHARS + 20)
    assert max(rendered) <= MAX_OPEN_CHARS + 40
