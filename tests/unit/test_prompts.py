from __future__ import annotations

from importlib.resources import files

import pytest

from moot.prompts.templates import load_prompt_template, make_prompt_template


def test_values_are_put_in_as_they_are_and_never_read_as_templates() -> None:
    prompt = make_prompt_template("p", "Topic: {topic}\n\n{rest}", "topic", "rest")
    assert prompt.render(topic="{rest} $x", rest="end") == "Topic: {rest} $x\n\nend"


def test_empty_values_leave_no_gaps() -> None:
    assert make_prompt_template("p", "a\n\n{b}\n\nc", "b").render(b="") == "a\n\nc"


@pytest.mark.parametrize(("template", "names"), [("{a}", ()), ("{a}", ("a", "b")), ("", ("a",))])
def test_a_template_that_does_not_fit_its_node_is_an_error_at_import(
    template: str, names: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="placeholders"):
        make_prompt_template("p", template, *names)


def test_a_prompt_file_is_loaded_by_its_name_and_hashed() -> None:
    folder = "moot.protocols"
    prompt = load_prompt_template("speech", "turn", "turns", "opening", "words", home=folder)
    assert prompt.template == (files(folder) / "speech.md").read_text(encoding="utf-8")
    assert prompt.name == "protocols/speech"
    assert len(prompt.sha256) == 64
