from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moot.config import DebateConfig
from moot.prompts.truncation import (
    KEEP,
    MIN_RESTORED_TOKENS,
    OMITTED_PRIORITY,
    OPTIONAL,
    Block,
    cut_message,
    truncate_blocks,
)
from moot.protocols.long_form_prompt import summary_blocks, window_blocks
from moot.protocols.prompt_context import PromptContext, PromptSource
from moot.protocols.registry import PROTOCOLS
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
def test_a_truncated_prompt_is_within_its_budget_and_not_empty(
    rest: list[Block], last: str, budget: int
) -> None:
    final = Block("turn_suffix", {"role": "user", "content": f"{last} speak"}, label="instruction")
    prompt = truncate_blocks([*rest[:3], final], budget, count)
    assert prompt_tokens(prompt.messages, count) == prompt.total_tokens <= budget
    assert prompt.messages
    assert sum(prompt.sections.values()) + 3 == prompt.total_tokens


@given(st.lists(blocks, max_size=8), st.integers(200, 2000))
def test_every_omitted_block_is_reported(rest: list[Block], budget: int) -> None:
    optional = [Block(b.section, b.message, max(1, b.priority), b.ids, b.group, b.label) for b in rest]
    prompt = truncate_blocks(
        [*optional, Block("turn_suffix", {"role": "user", "content": "speak"})], budget, count
    )
    shown = len(prompt.messages) - 1
    assert shown + sum(
        omission["count"] for omission in prompt.omitted if omission["why"] == "no room"
    ) == len(rest)


@given(st.lists(blocks, max_size=8), st.lists(st.integers(40, 400), min_size=8), st.integers(600, 3000))
def test_nothing_is_truncated_while_tokens_are_unused(
    rest: list[Block], caps: list[int], budget: int
) -> None:
    """Truncated and omitted blocks get the tokens that no other block needs."""
    cut = [
        replace(block, message=cut_message(block.message, cap, count), whole=block.message, group="")
        for block, cap in zip(rest, caps, strict=False)
        if block.section != "turn_suffix"  # its policy truncates it part by part
    ]
    prompt = truncate_blocks(
        [*cut, Block("turn_suffix", {"role": "user", "content": "speak"})], budget, count
    )
    assert prompt.total_tokens <= budget
    free = budget - prompt.total_tokens
    lost = sum(omission["tokens"] for omission in prompt.omitted)
    # A cut falls between tokens. A part below `MIN_RESTORED_TOKENS` is left out.
    assert not lost or free < MIN_RESTORED_TOKENS + 60, (free, prompt.omitted)


def _block(text: str, priority: int, group: str = "") -> Block:
    return Block("messages", {"role": "user", "content": text}, priority, group=group, label=text)


def _texts(blocks: list[Block], budget: int) -> list[str]:
    return [message["content"] for message in truncate_blocks(blocks, budget, count).messages]


def test_blocks_are_dropped_by_priority_and_then_by_age() -> None:
    four = [_block("rules", KEEP), _block("older one", 7), _block("older two", 7), _block("recent", 5)]
    whole = truncate_blocks(four, 1000, count).total_tokens
    assert _texts(four, whole - 1) == ["rules", "older two", "recent"]
    assert _texts(four, whole - 8) == ["rules", "recent"]


def test_a_group_of_blocks_is_dropped_as_a_whole() -> None:
    pair = [_block("criticised", 7, "g"), _block("else", 5), _block("critique", 5, "g"), _block("now", KEEP)]
    whole = truncate_blocks(pair, 1000, count).total_tokens
    assert _texts(pair, whole - 1) == ["else", "now"]


@pytest.mark.parametrize(("reserved", "shown"), [(5, False), (None, True)], ids=["cached", "uncached"])
def test_background_left_out_of_a_cached_prompt_returns_only_in_passages(
    reserved: int | None, shown: bool
) -> None:
    hidden = [
        replace(_block(text, OMITTED_PRIORITY), section="background", growth="whole")
        for text in ("brief remark", "long remark " * 300, "last remark")
    ]
    parts = [_block("rules " * 400, KEEP), *hidden, _block("speak", KEEP)]
    budget = prompt_tokens([part.message for part in (*parts[:2], parts[-1])], count) + 10
    prompt = truncate_blocks(parts, budget, count, passages=lambda *_: [], reserved=reserved)
    assert ("background" in prompt.layout) == shown


def test_an_oversize_required_message_is_truncated_in_its_middle() -> None:
    prompt = truncate_blocks([_block("start " + "word " * 500 + "end", KEEP)], 100, count)
    assert prompt.messages[0]["content"].startswith("start")
    assert prompt.messages[0]["content"].endswith("end")
    assert "[…cut…]" in prompt.messages[0]["content"]
    assert prompt.omitted[0]["why"] == "cut in its middle"


def test_a_budget_that_is_too_small_for_required_blocks_is_an_error() -> None:
    with pytest.raises(ValueError, match="do not fit in its budget"):
        truncate_blocks([_block("a", KEEP)] * 10, 12, count)


def _context(total: int | None) -> PromptContext:
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
    return PromptContext(PromptSource(state, DebateConfig(), count), turn, total)


@pytest.mark.parametrize(("total", "max_tokens"), [(None, 1000), (8000, 1000), (3500, 275), (1200, 40)])
def test_a_summary_takes_a_tenth_of_the_remaining_tokens_if_few_remain(
    total: int | None, max_tokens: int
) -> None:
    (block,) = summary_blocks(_context(total))
    assert message_tokens(block.message, count) <= max_tokens


def test_a_notice_replaces_a_summary_that_has_less_than_fifty_tokens() -> None:
    (block,) = summary_blocks(_context(1200))
    assert "40 earlier messages. The token budget has no space for their summary." in block.message["content"]


def _exchanges(kinds: list[str]) -> list[Entry]:
    """Return entries of these kinds: speeches, tool calls with results, questions with answers."""
    entries: list[Entry] = []
    for kind in kinds:
        pair: Any = {"tool": ("tool_call", "tool_result"), "asked": ("question", "answer")}.get(kind)
        for place, each in enumerate(pair or ("speech",)):
            targets = [entries[-1]["id"]] if place else []
            entry = make_entry(len(entries), "advocate", each, "word " * 40, targets=targets, tokens=41)
            entries.append(entry)
    return entries


@given(st.lists(st.sampled_from(["speech", "tool", "asked"]), min_size=2, max_size=9), st.integers(120, 700))
def test_tool_results_and_answers_appear_only_with_their_calls_and_questions(
    kinds: list[str], budget: int
) -> None:
    entries = _exchanges([*kinds, "speech"])
    shown = truncate_blocks(window_blocks(_context(None), entries), budget, count).shown_ids
    pairs = [(entry["targets"][0], entry["id"]) for entry in entries if entry["targets"]]
    assert [pair for pair in pairs if (pair[0] in shown) != (pair[1] in shown)] == []


def test_truncation_keeps_the_blocks_that_may_not_be_dropped() -> None:
    texts = ["system", *(f"message {n} " * 20 for n in range(9)), "last"]
    blocks = [
        Block("messages", {"role": "user", "content": text}, KEEP if text in ("system", "last") else OPTIONAL)
        for text in texts
    ]
    prompt = truncate_blocks(blocks, 100, count)
    contents = [message["content"] for message in prompt.messages]
    assert (contents[0], contents[-1]) == ("system", "last")
    assert prompt.total_tokens <= 100


@pytest.mark.parametrize("name", ["single", "vote", "council", "round-robin"])
def test_the_turn_suffix_of_every_protocol_keeps_its_budget(name: str) -> None:
    persona = "You doubt what you read. " * 400
    debaters: list[Any] = [{"name": "Ada", "persona": persona}, {"name": "Bo"}]
    config = DebateConfig(protocol=name, model="m", debaters=debaters)
    state: Any = {
        **_context(None).state,
        "messages": [],
        "step": {"phase": "propose", "round": 1},
        "rolling_summary": {},
    }
    turn: Any = {"speaker": "ada", "targets": [], "instruction": "Speak.", "room": ""}
    *_, suffix = PROTOCOLS[name].prompt_blocks(PromptContext(PromptSource(state, config, count), turn))
    assert message_tokens(suffix.message, count) <= config.memory.budget.turn_suffix
    assert suffix.whole is not None
    assert persona.strip() in suffix.whole["content"]
