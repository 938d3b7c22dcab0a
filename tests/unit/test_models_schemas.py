from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field, create_model

from moot.calls.model_calls import WireMessage
from moot.models.adapters import request_fields, with_correction, with_schema
from moot.models.structured import parse_reply
from moot.prompts.request import sent_schema, strict_schema

PROMPT: tuple[WireMessage, ...] = ({"role": "user", "content": "Judge."},)


class Part(BaseModel):
    """A part."""

    name: str = Field("x", max_length=9)


class Whole(BaseModel):
    """A whole."""

    kind: Literal["a", "b"]
    parts: list[Part] = []
    best: Part | None = None


class Pair(BaseModel):
    """Two parts of one kind, and one whole."""

    one: Part
    other: Part
    whole: Whole


class Tree(BaseModel):
    """A part that contains itself."""

    branches: list[Tree] = []


class Loose(BaseModel):
    """A schema that strict mode cannot express."""

    anything: Any


def objects(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if "properties" in node else []
    return own + [found for item in node.values() for found in objects(item)]


def test_strict_schemas_require_every_field_and_allow_no_others() -> None:
    strict = strict_schema(Whole.model_json_schema())
    assert strict is not None
    assert len(objects(strict)) == 2
    for node in objects(strict):
        assert node["required"] == list(node["properties"])
        assert node["additionalProperties"] is False
    assert "default" not in str(strict)
    assert "maxLength" not in str(strict)


def test_a_definition_that_is_used_once_is_inlined() -> None:
    sent = sent_schema(Pair)
    assert sent["$defs"].keys() == {"Part"}
    assert sent["properties"]["one"] == sent["properties"]["other"] == {"$ref": "#/$defs/Part"}
    assert sent["properties"]["whole"]["properties"]["kind"] == {"enum": ["a", "b"], "type": "string"}


def test_a_recursive_definition_is_not_inlined() -> None:
    assert sent_schema(create_model("Wood", tree=(Tree, ...)))["$defs"].keys() == {"Tree"}


def test_a_schema_that_strict_mode_cannot_express_is_not_strict() -> None:
    assert strict_schema(Loose.model_json_schema()) is None
    sent = request_fields(Loose, "json_schema")["response_format"]["json_schema"]
    assert (sent["strict"], sent["name"]) == (False, "Loose")


def test_with_schema_describes_the_schema_in_a_copy_of_the_prompt() -> None:
    described = with_schema(PROMPT, Whole)
    assert described[-1]["content"].startswith("Judge.\n\nAnswer with one JSON object")
    assert PROMPT[0]["content"] == "Judge."


def test_a_correction_truncates_the_reply_and_its_error() -> None:
    reply, asked = with_correction(PROMPT, "x" * 9_000, "y" * 9_000)[1:]
    assert (reply["role"], asked["role"]) == ("assistant", "user")
    assert len(reply["content"]) + len(asked["content"]) < 4_000


@pytest.mark.parametrize(
    "reply",
    [
        '{"kind": "a"}',
        'Here:\n```json\n{"kind": "a"}\n```',
        'The set {1, 2} aside: {"kind": "a"} is my answer {really}.',
        '{"kind": "z"} is wrong, {"kind": "a"} is right',
        '<answer>{"kind": "a", "more": 1}</answer>',
    ],
)
def test_parse_reply_returns_the_first_valid_object(reply: str) -> None:
    assert parse_reply(Whole, reply).data == {"kind": "a", "parts": [], "best": None}


def test_parse_reply_replaces_invalid_characters() -> None:
    data = parse_reply(Part, '{"name": "a\\u0000\\ud800b"}').data
    assert data == {"name": "a?b"}


@pytest.mark.parametrize("reply", ["", "none", "[1]", "{" * 5_000, '{"a":' * 5_000, '{"kind": 3}'])
def test_an_invalid_reply_gives_an_error(reply: str) -> None:
    parsed = parse_reply(Whole, reply)
    assert parsed.data is None
    assert parsed.error


@given(st.text())
def test_random_text_gives_an_error_without_an_exception(reply: str) -> None:
    assert parse_reply(Whole, reply).error
