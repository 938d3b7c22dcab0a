from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.models.attempt import ThinkFilter, content_parts, reasoning_field, split_thinking

CHUNKS = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<thinking>", "</THINKING>", "<", "th", "</", "a", " ", "x<y", "\n", ">"]
    )
)


def filter_chunks(chunks: list[str]) -> tuple[str, str]:
    splitter = ThinkFilter()
    parts = [*map(splitter.feed, chunks), splitter.close()]
    return "".join(one.text for one in parts), "".join(one.reasoning for one in parts)


@given(CHUNKS, st.data())
def test_chunk_boundaries_do_not_matter(chunks: list[str], data: st.DataObject) -> None:
    whole = "".join(chunks)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    edges = [0, *cuts, len(whole)]
    cut = [whole[start:end] for start, end in itertools.pairwise(edges)]
    assert filter_chunks(cut) == filter_chunks([whole]) == filter_chunks(list(whole))


@given(st.text(st.characters(exclude_characters=">")))
def test_a_text_without_tags_is_kept(text: str) -> None:
    assert filter_chunks(list(text)) == (text.lstrip(), "")


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
    parts = split_thinking(raw)
    assert (parts.text, parts.reasoning) == (text, reasoning)


def test_content_blocks_are_split_by_their_type() -> None:
    blocks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "reasoning", "reasoning": "ah"},
        {"type": "text", "text": "Yes."},
    ]
    parts = content_parts(blocks)
    assert (parts.text, parts.reasoning) == ("Yes.", "hmah")


def test_reasoning_is_read_from_either_field() -> None:
    assert reasoning_field({"reasoning": "a"}) == reasoning_field({"reasoning_content": "a"}) == "a"
    assert reasoning_field({"reasoning": None, "reasoning_content": 3}) == ""
