from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.models.attempt import ThinkFilter, content_parts, reasoning_field, split_thinking

PIECES = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<thinking>", "</THINKING>", "<", "th", "</", "a", " ", "x<y", "\n", ">"]
    )
)


def heard(pieces: list[str]) -> tuple[str, str]:
    splitter = ThinkFilter()
    parts = [*map(splitter.feed, pieces), splitter.close()]
    return "".join(one.text for one in parts), "".join(one.reasoning for one in parts)


@given(PIECES, st.data())
def test_chunk_boundaries_do_not_matter(pieces: list[str], data: st.DataObject) -> None:
    whole = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    edges = [0, *cuts, len(whole)]
    cut = [whole[start:end] for start, end in itertools.pairwise(edges)]
    assert heard(cut) == heard([whole]) == heard(list(whole))


@given(st.text(st.characters(exclude_characters=">")))
def test_a_text_without_tags_is_kept(text: str) -> None:
    assert heard(list(text)) == (text.lstrip(), "")


@pytest.mark.parametrize(
    ("raw", "text", "reasoning"),
    [
        ("<think>a</think>b", "b", "a"),
        ("b <think>a</think> c", "b  c", "a"),
        ("<think>never closed", "", "never closed"),
        ("a</think>b", "b", "a"),
        ("x < y and y > z", "x < y and y > z", ""),
        ("<THINK>a</Think>b", "b", "a"),
        ("b <thin", "b <thin", ""),
    ],
)
def test_a_text_is_split_into_text_and_reasoning(raw: str, text: str, reasoning: str) -> None:
    parted = split_thinking(raw)
    assert (parted.text, parted.reasoning) == (text, reasoning)


def test_content_blocks_are_split_by_their_type() -> None:
    blocks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "reasoning", "reasoning": "ah"},
        {"type": "text", "text": "Yes."},
    ]
    parted = content_parts(blocks)
    assert (parted.text, parted.reasoning) == ("Yes.", "hmah")


def test_reasoning_is_read_from_either_field() -> None:
    assert reasoning_field({"reasoning": "a"}) == reasoning_field({"reasoning_content": "a"}) == "a"
    assert reasoning_field({"reasoning": None, "reasoning_content": 3}) == ""
