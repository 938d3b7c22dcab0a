from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from moot.config.memory_config import MemoryConfig
from moot.memory.window import WindowLimits, compact, shown_message, window_message, window_start
from moot.prompts.truncation import render_entry
from moot.state.entries import Entry, make_entry, traits_of
from moot.text.tokens import counter, message_tokens

count = counter()
NAMES, FENCE = {"ada": "Ada"}, "kelvon"


def _entries(sizes: list[int], start: int = 0) -> list[Entry]:
    return [make_entry(start + i, "ada", "speech", "word " * size) for i, size in enumerate(sizes)]


def _tokens(entries: list[Entry]) -> int:
    return sum(message_tokens(render_entry(entry, NAMES, FENCE), count) for entry in entries)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(1, 30), st.integers(0, 30))
def test_a_compacted_window_is_within_its_limits_or_one_message(
    sizes: list[int], low: int, more: int
) -> None:
    limits = WindowLimits(low + more, low, 1000, 500)
    entries = _entries(sizes)
    through = compact(entries, limits, NAMES, FENCE, count)
    kept = entries if through is None else [entry for entry in entries if entry["seq"] > through]
    assert kept
    assert len(kept) <= limits.high_messages
    assert _tokens(kept) <= limits.high_tokens or len(kept) == 1
    if through is not None:
        assert len(kept) <= limits.low_messages
        assert _tokens(kept) <= limits.high_tokens or len(kept) == 1
        assert kept[-1] is entries[-1]


@given(st.lists(st.sampled_from(["speech", "tool", "question"]), min_size=1, max_size=30), st.data())
def test_compaction_keeps_calls_with_results_and_questions_with_answers(
    kinds: list[str], data: st.DataObject
) -> None:
    entries: list[Entry] = []
    for kind in kinds:
        size = data.draw(st.integers(0, 200))
        if kind == "speech":
            entries.append(make_entry(len(entries), "ada", "speech", "word " * size))
            continue
        opens, closes = ("tool_call", "tool_result") if kind == "tool" else ("question", "answer")
        first = make_entry(len(entries), "ada", opens, "what?")  # type: ignore[arg-type]  # kinds of entries
        entries.append(first)
        for _ in range(data.draw(st.integers(0, 2))):
            entries.append(make_entry(len(entries), "bo", "speech", "between"))
        targets = [first["id"]]
        entries.append(make_entry(len(entries), "tools", closes, "word " * size, targets=targets))  # type: ignore[arg-type]
    low = data.draw(st.integers(1, 12))
    through = compact(entries, WindowLimits(low + 3, low, 800, 400), NAMES, FENCE, count)
    kept = {entry["id"] for entry in entries if through is None or entry["seq"] > through}
    for entry in entries:
        if traits_of(entry).pair == "closes":
            assert (entry["id"] in kept) == (entry["targets"][0] in kept)
    assert entries[-1]["id"] in kept


def test_compaction_frees_only_the_tokens_needed_until_the_next_one() -> None:
    entries, limits = _entries([100] * 40), WindowLimits(40, 30, 3000, 1500)
    through = compact(entries, limits, NAMES, FENCE, count)
    assert through is not None
    kept = entries[through + 1 :]
    assert 1500 < _tokens(kept) <= 3000 - 10 * _tokens(entries) // 40


def test_a_window_within_its_limits_is_not_compacted() -> None:
    assert compact(_entries([10] * 4), WindowLimits(5, 3, 1000, 500), NAMES, FENCE, count) is None


def test_a_window_is_compacted_to_the_low_water_mark_at_once() -> None:
    assert compact(_entries([10] * 5, start=40), WindowLimits(5, 3, 1000, 500), NAMES, FENCE, count) == 41


@pytest.mark.parametrize("every", [1, 2, 5])
def test_compaction_happens_every_n_messages(every: int) -> None:
    limits, window, sizes = WindowLimits(3 + every, 3, 10_000, 5000), list[Entry](), list[int]()
    for seq in range(1, 40):
        window += _entries([10], start=seq)
        through = compact(window, limits, NAMES, FENCE, count)
        if through is not None:
            sizes.append(through + 1 - window[0]["seq"])
            window = [entry for entry in window if entry["seq"] > through]
    assert set(sizes) == {every}
    assert len(sizes) >= 36 // every - 1


@given(st.lists(st.sampled_from([5, 40, 150, 400, 7000]), min_size=1, max_size=60), st.integers(1, 30))
def test_a_window_is_never_half_empty_while_older_messages_exist(sizes: list[int], low: int) -> None:
    limits, window = WindowLimits.of(MemoryConfig(keep_recent=low), shared_prefix=400), list[Entry]()
    assert limits.message_tokens
    for seq, size in enumerate(sizes, 1):
        window += _entries([size], start=seq)
        through = compact(window, limits, NAMES, FENCE, count)
        window = [entry for entry in window if through is None or entry["seq"] > through]
        costs = [shown_message(entry, NAMES, FENCE, limits, count)[1] for entry in window]
        assert window[0]["seq"] == 1 or len(window) >= low or sum(costs) >= 0.55 * 5000
        assert sum(costs) <= limits.high_tokens
        assert max(costs) <= limits.message_tokens


def test_the_window_counts_a_truncated_message_as_it_is_shown() -> None:
    # A cut ends at a sentence, so the giant message takes fewer tokens than its limit.
    sentence = "This is a sentence of some twenty tokens, so that a cut is short. "
    window = [*_entries([60, 60, 60], start=1), make_entry(4, "ada", "speech", sentence * 90)]
    limits = WindowLimits(53, 50, 2000, 1000, 367)
    small, cut = (shown_message(window[at], NAMES, FENCE, limits, count)[1] for at in (2, 3))
    assert cut < 367
    # Two messages would reach the minimum only if the giant took its whole limit.
    limits = replace(limits, low_tokens=367 + small, high_tokens=367 + 2 * small)
    assert compact(window, limits, NAMES, FENCE, count) == 1


def test_the_default_limits_follow_the_memory_configuration() -> None:
    limits = WindowLimits.of(MemoryConfig())
    assert (limits.high_messages, limits.low_messages) == (100, 50)
    assert limits.high_tokens == 5000 - 600


def test_unused_tokens_of_the_shared_prefix_go_to_the_window() -> None:
    assert WindowLimits.of(MemoryConfig(), shared_prefix=300).high_tokens == 8000 - 300 - 1000 - 600 - 16
    assert WindowLimits.of(MemoryConfig(), shared_prefix=2000).high_tokens == 5000 - 600 - 16


def test_window_start_is_the_first_entry_among_the_window_messages() -> None:
    messages = [window_message(entry) for entry in _entries([1, 1], start=7)]
    transcript = _entries([1] * 9)
    assert window_start({"messages": messages, "full_transcript": transcript}) == 7
    assert window_start({"messages": [], "full_transcript": transcript}) == 9
