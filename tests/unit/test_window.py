from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moot.nodes.memory.window import WindowLimits, compact, first_seq, window_message
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.text.tokens import counter, message_tokens
from moot.state.config.budgets import MemoryConfig
from moot.state.entries import Entry, make_entry

count = counter()
NAMES = {"ada": "Ada"}


def _entries(sizes: list[int], start: int = 0) -> list[Entry]:
    return [make_entry(start + i, "ada", "speech", "word " * size) for i, size in enumerate(sizes)]


def _tokens(entries: list[Entry]) -> int:
    return sum(message_tokens(render_entry(entry, NAMES), count) for entry in entries)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(1, 30), st.integers(0, 30))
def test_after_compaction_the_window_is_within_its_limits_or_one_message(
    sizes: list[int], low: int, more: int
) -> None:
    limits = WindowLimits(low + more, low, 1000, 500)
    entries = _entries(sizes)
    through = compact(entries, limits, NAMES, count)
    kept = entries if through is None else [entry for entry in entries if entry["seq"] > through]
    assert kept
    assert len(kept) <= limits.high_messages
    assert _tokens(kept) <= limits.high_tokens or len(kept) == 1
    if through is not None:
        assert len(kept) <= limits.low_messages
        assert _tokens(kept) <= limits.low_tokens or len(kept) == 1
        assert kept[-1] is entries[-1]


def test_a_window_within_its_limits_is_left_alone() -> None:
    assert compact(_entries([10] * 5), WindowLimits(5, 3, 1000, 500), NAMES, count) is None


def test_it_is_compacted_to_the_low_water_mark_in_one_go() -> None:
    assert compact(_entries([10] * 6, start=40), WindowLimits(5, 3, 1000, 500), NAMES, count) == 42


def test_the_defaults_follow_the_memory_section() -> None:
    limits = WindowLimits.of(MemoryConfig())
    assert (limits.high_messages, limits.low_messages) == (100, 50)
    assert limits.high_tokens == 5000 - 600


def test_what_the_rules_leave_of_their_section_flows_to_the_window() -> None:
    assert WindowLimits.of(MemoryConfig(), rules=300).high_tokens == 8000 - 300 - 1000 - 600 - 16
    assert WindowLimits.of(MemoryConfig(), rules=2000).high_tokens == 5000 - 600


def test_the_windows_first_entry_is_told_by_its_messages() -> None:
    messages = [window_message(entry) for entry in _entries([1, 1], start=7)]
    assert first_seq(messages, 9) == 7
    assert first_seq([], 9) == 9
