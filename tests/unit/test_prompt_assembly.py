from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.prompts.truncation import (
    KEEP,
    MIN_PART_TOKENS,
    Block,
    cut_message,
    truncate_blocks,
    truncate_messages,
)
from moot.protocols.prompt_context import PromptContext, summary_blocks, window_blocks
from moot.state.config import DebateConfig
from moot.state.entries import Entry, make_entry
from moot.text.tokens import counter, message_tokens, prompt_tokens

count = counter()
content = st.text(max_size=200) | st.sampled_from(
    ["word " * 3000, "界" * 2000, "🙂" * 900, " " * 9000, "<|endoftext|>"]
)
blocks = st.builds(
    lambda section, text, priority, group, seq: Block(
        section,
        {"role": "user", "name": "ada", "content": text},
        priority,
        ids=(f"m{seq:06d}",),
        group=group,
        label=section,
    ),
    st.sampled_from(["system", "summary", "messages", "turn_suffix"]),
    content,
    st.integers(KEEP, 7),
    st.sampled_from(["", "", "pair"]),
    st.integers(0, 999),
)


@given(st.lists(blocks, max_size=12), content, st.integers(150, 4000))
def test_a_view_is_never_over_budget_nor_empty_by_exact_count(
    rest: list[Block], last: str, budget: int
) -> None:
    final = Block("turn_suffix", {"role": "user", "content": f"{last} speak"}, label="instruction")
    prompt = truncate_blocks([*rest[:3], final], budget, count)
    assert prompt_tokens(prompt.messages, count) == prompt.total_tokens <= budget
    assert prompt.messages
    assert sum(prompt.sections.values()) + 3 == prompt.total_tokens


@given(st.lists(blocks, max_size=8), st.integers(200, 2000))
def test_what_is_left_out_is_said(rest: list[Block], budget: int) -> None:
    optional = [Block(b.section, b.message, max(1, b.priority), b.ids, b.group, b.label) for b in rest]
    prompt = truncate_blocks(
        [*optional, Block("turn_suffix", {"role": "user", "content": "speak"})], budget, count
    )
    shown = len(prompt.messages) - 1
    assert shown + sum(note["count"] for note in prompt.omitted if note["why"] == "no room") == len(rest)


@given(st.lists(blocks, max_size=8), st.lists(st.integers(40, 400), min_size=8), st.integers(600, 3000))
def test_nothing_is_cut_while_tokens_are_unused(rest: list[Block], caps: list[int], budget: int) -> None:
    """What a policy cut, or left out, gets the room that nothing else needs."""
    cut = [
        replace(block, message=cut_message(block.message, cap, count), whole=block.message, group="")
        for block, cap in zip(rest, caps, strict=False)
        if block.section != "turn_suffix"  # whole, or as its policy cut it part by part
    ]
    prompt = truncate_blocks(
        [*cut, Block("turn_suffix", {"role": "user", "content": "speak"})], budget, count
    )
    assert prompt.total_tokens <= budget
    free = budget - prompt.total_tokens
    lost = sum(note["tokens"] for note in prompt.omitted)
    # A cut falls between tokens, and a part of a few tokens is none.
    assert not lost or free < MIN_PART_TOKENS + 60, (free, prompt.omitted)


def _block(text: str, priority: int, group: str = "") -> Block:
    return Block("messages", {"role": "user", "content": text}, priority, group=group, label=text)


def _texts(blocks: list[Block], budget: int) -> list[str]:
    return [message["content"] for message in truncate_blocks(blocks, budget, count).messages]


def test_the_least_important_go_first_and_the_earliest_among_equals() -> None:
    four = [_block("rules", KEEP), _block("older one", 7), _block("older two", 7), _block("recent", 5)]
    whole = truncate_blocks(four, 1000, count).total_tokens
    assert _texts(four, whole - 1) == ["rules", "older two", "recent"]
    assert _texts(four, whole - 8) == ["rules", "recent"]


def test_a_group_goes_as_a_whole() -> None:
    pair = [_block("criticised", 7, "g"), _block("else", 5), _block("critique", 5, "g"), _block("now", KEEP)]
    whole = truncate_blocks(pair, 1000, count).total_tokens
    assert _texts(pair, whole - 1) == ["else", "now"]


def test_an_oversize_message_that_must_stay_is_cut_in_its_middle_with_a_mark() -> None:
    prompt = truncate_blocks([_block("start " + "word " * 500 + "end", KEEP)], 100, count)
    assert prompt.messages[0]["content"].startswith("start")
    assert prompt.messages[0]["content"].endswith("end")
    assert "[…cut…]" in prompt.messages[0]["content"]
    assert prompt.omitted[0]["why"] == "cut in its middle"


def test_a_budget_below_its_own_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit in its budget"):
        truncate_blocks([_block("a", KEEP)] * 10, 12, count)


def _scene(total: int | None) -> PromptContext:
    state: Any = {
        "topic": "Why?",
        "full_transcript": [],
        "messages": [],
        "rolling_summary": {
            "text": "They argued about costs. " * 300,
            "messages": 40,
            "covers_through_seq": 40,
        },
    }
    turn: Any = {"speaker": "advocate", "targets": [], "instruction": "Speak.", "room": ""}
    return PromptContext(state, DebateConfig(), turn, count, total)


@pytest.mark.parametrize(("total", "most"), [(None, 1000), (8000, 1000), (3500, 275), (1200, 40)])
def test_a_summary_takes_a_tenth_of_what_is_left_where_room_is_short(total: int | None, most: int) -> None:
    (block,) = summary_blocks(_scene(total))
    assert message_tokens(block.message, count) <= most


def test_below_fifty_tokens_a_notice_stands_in_the_summarys_place() -> None:
    (block,) = summary_blocks(_scene(1200))
    assert "40 earlier messages. The token budget has no space for their summary." in block.message["content"]


def _exchanges(kinds: list[str]) -> list[Entry]:
    """Return a window of these: speeches, calls of tools with their results, questions with their answers."""
    entries: list[Entry] = []
    for kind in kinds:
        pair: Any = {"tool": ("tool_call", "tool_result"), "asked": ("question", "answer")}.get(kind)
        for place, each in enumerate(pair or ("speech",)):
            targets = [entries[-1]["id"]] if place else []
            entry = make_entry(len(entries), "advocate", each, "word " * 40, targets=targets, tokens=41)
            entries.append(entry)
    return entries


@given(st.lists(st.sampled_from(["speech", "tool", "asked"]), min_size=2, max_size=9), st.integers(120, 700))
def test_no_view_shows_a_result_without_its_call_or_an_answer_without_its_question(
    kinds: list[str], budget: int
) -> None:
    entries = _exchanges([*kinds, "speech"])
    shown = truncate_blocks(window_blocks(_scene(None), entries), budget, count).shown_ids
    pairs = [(entry["targets"][0], entry["id"]) for entry in entries if entry["targets"]]
    assert [pair for pair in pairs if (pair[0] in shown) != (pair[1] in shown)] == []


def test_first_and_last_message_of_a_plain_prompt_stay() -> None:
    texts = ["system", *(f"message {n} " * 20 for n in range(9)), "last"]
    prompt = truncate_messages([{"role": "user", "content": text} for text in texts], 100, count)
    contents = [message["content"] for message in prompt.messages]
    assert (contents[0], contents[-1]) == ("system", "last")
    assert prompt.total_tokens <= 100
