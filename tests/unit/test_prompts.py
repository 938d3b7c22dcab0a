from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest

from moot.prompts.templates import load_prompt_template, make_prompt_template


def test_values_are_inserted_verbatim_and_not_parsed_as_templates() -> None:
    prompt = make_prompt_template("p", "Topic: {topic}\n\n{rest}", "topic", "rest")
    assert prompt.render(topic="{rest} $x", rest="end") == "Topic: {rest} $x\n\nend"


def test_empty_values_leave_no_gaps() -> None:
    assert make_prompt_template("p", "a\n\n{b}\n\nc", "b").render(b="") == "a\n\nc"


@pytest.mark.parametrize(("template", "names"), [("{a}", ()), ("{a}", ("a", "b")), ("", ("a",))])
def test_template_with_wrong_placeholders_is_refused(template: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="placeholders"):
        make_prompt_template("p", template, *names)


def test_prompt_file_is_loaded_by_name_and_hashed() -> None:
    folder = "moot.protocols"
    prompt = load_prompt_template("speech", "turn", "turns", "opening", "words", home=folder)
    assert prompt.template == (files(folder) / "speech.md").read_text(encoding="utf-8")
    assert prompt.name == "protocols/speech"
    assert prompt.sha256 == hashlib.sha256(prompt.template.encode()).hexdigest()
