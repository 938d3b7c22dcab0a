"""Reports of documents in which an optional field is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from jinja2 import UndefinedError

from moot.graph.json_schemas import document_schema
from moot.reports.html import render_html, template_environment
from moot.reports.markdown import render_brief, render_brief_html, render_markdown
from tests.support.report_documents import debate_document

RENDERERS: dict[str, Callable[[Any], str]] = {
    "html": render_html,
    "markdown": render_markdown,
    "brief": render_brief,
    "record": partial(render_brief, form="adr"),
    "brief page": render_brief_html,
}


def _optional_keys() -> set[str]:
    """Return the keys that are optional wherever the document's schema has them."""
    schema = document_schema()
    kinds = [schema, *schema["$defs"].values()]
    required = {key for kind in kinds for key in kind.get("required", ())}
    return {key for kind in kinds for key in kind.get("properties", {})} - required


def _without(data: Any, keys: set[str]) -> Any:
    if isinstance(data, dict):
        return {key: _without(value, keys) for key, value in data.items() if key not in keys}
    return [_without(each, keys) for each in data] if isinstance(data, list) else data


def _keys(data: Any) -> Iterator[str]:
    for value in data.values() if isinstance(data, dict) else data:
        if isinstance(value, dict | list):
            yield from _keys(value)
    yield from data if isinstance(data, dict) else ()


@pytest.mark.parametrize("form", RENDERERS)
def test_a_report_needs_no_optional_field(form: str) -> None:
    document = debate_document()
    keys = _optional_keys() & {*_keys(document)}
    assert len(keys) >= 5
    for missing in ({key} for key in sorted(keys)):
        assert "we split" in RENDERERS[form](_without(document, missing)), missing
    assert "we split" in RENDERERS[form](_without(document, keys))


def test_a_missing_key_is_empty_and_an_unknown_name_is_an_error() -> None:
    environment = template_environment()
    template = environment.from_string("{{ d.gone.deeper }}{% for each in d['gone'] %}x{% endfor %}.")
    assert template.render(d={}) == "."
    for mistake in ("{{ gone }}", "{{ d.items.gone }}"):
        with pytest.raises(UndefinedError):
            environment.from_string(mistake).render(d={})
