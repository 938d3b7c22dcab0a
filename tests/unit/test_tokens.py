from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files
from typing import Any

import pytest
import tiktoken_ext.openai_public
from hypothesis import given, strategies as st

from moot.state.errors import ConfigError
from moot.text.tokens import (
    SPARE_SHARE,
    SPLIT_CHARS,
    TRUNCATION_MARK,
    batches,
    counter,
    encoding,
    encoding_for,
    equal_batches,
    message_tokens,
    prompt_tokens,
    truncate_end,
    truncate_middle,
)

count = counter()
difficult_texts = st.text() | st.sampled_from(
    ["<|endoftext|>", " " * 5000, "界" * 500, "🙂" * 300, "a" * 5000, "\n" * 999]
)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_encoding_tables_and_patterns_equal_those_of_tiktoken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def no_download(url: str, expected_hash: str) -> dict[bytes, int]:
        seen["hash"] = expected_hash
        return {}

    monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", no_download)
    theirs = tiktoken_ext.openai_public.ENCODING_CONSTRUCTORS[name]()
    assert encoding(name)._pat_str == theirs["pat_str"]
    table = gzip.decompress((files("moot.text") / "ranks" / f"{name}.tiktoken.gz").read_bytes())
    assert hashlib.sha256(table).hexdigest() == seen["hash"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("hello world", 2), ("", 0), ("<|endoftext|>", 7), ("你好，世界", 3)],
)
def test_token_counts_of_known_texts(text: str, expected: int) -> None:
    assert count(text) == expected


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@given(data=st.data())
def test_counting_line_by_line_gives_the_count_of_the_whole_text(name: str, data: st.DataObject) -> None:
    near = st.sampled_from([*"\n\r\t /.-'a1界é\u0301\x85\u2028\u00a0\x1c\u200b", "'re", "Ab", "🙂"])
    ends = st.sampled_from(["\n", "\n\n", ".\n", "\n/", ".\n/"])
    part = data.draw(st.lists(near | ends, max_size=60).map("".join))
    text = f"{part}\n" * (1 + SPLIT_CHARS // (1 + len(part)))
    assert counter(name)(text) == len(encoding(name).encode_ordinary(text))


def test_only_the_changed_line_of_a_text_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    class Recorder:
        def encode_ordinary(self, text: str) -> list[int]:
            encoded.append(text)
            return [0] * len(text)

    monkeypatch.setattr("moot.text.tokens.encoding", lambda name: Recorder())
    fresh = counter.__wrapped__()
    lines = [f"m{n:06d} Ada: The toll was {n} crowns.\n" for n in range(200)]
    fresh("".join(lines))
    encoded.clear()
    lines[100] = "m000100 Ada: There was no toll.\n"
    assert fresh("".join(lines)) == sum(map(len, lines))
    assert encoded == [lines[100]]


def test_a_megabyte_of_spaces_is_counted() -> None:
    assert count(" " * 1_000_000) > 1000


def test_chat_prompt_tokens_match_openais_example() -> None:
    # Example from OpenAI's cookbook "How to count tokens". With o200k the prompt has 124 tokens.
    messages = [
        {
            "role": "system",
            "content": "You are a helpful, pattern-following assistant that translates corporate jargon into "
            "plain English.",
        },
        {
            "role": "system",
            "name": "example_user",
            "content": "New synergies will help drive top-line growth.",
        },
        {
            "role": "system",
            "name": "example_assistant",
            "content": "Things working well together will increase revenue.",
        },
        {
            "role": "system",
            "name": "example_user",
            "content": "Let's circle back when we have more bandwidth to touch base on opportunities for "
            "increased leverage.",
        },
        {
            "role": "system",
            "name": "example_assistant",
            "content": "Let's talk later when we're less busy about how to do better.",
        },
        {
            "role": "user",
            "content": "This late pivot means we don't have time to boil the ocean for the client "
            "deliverable.",
        },
    ]
    assert prompt_tokens(messages, count) == 124
    assert prompt_tokens(messages, counter("cl100k_base")) == 129


def test_known_content_count_gives_the_same_total() -> None:
    message = {"role": "user", "content": "some words"}
    assert message_tokens(message, count, content=2) == message_tokens(message, count)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ConfigError, match="p50k_base"):
        encoding("p50k_base")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("openai/gpt-3.5-turbo", "cl100k_base"),
        ("llama3:8b", "o200k_base"),
    ],
)
def test_the_encoding_follows_the_models_name(model: str, name: str) -> None:
    assert encoding_for(model) == name


@given(difficult_texts, st.integers(1, 60))
def test_truncated_middle_fits_and_short_text_is_unchanged(text: str, remaining: int) -> None:
    kept = truncate_middle(text, remaining, count)
    assert count(kept) <= remaining
    if count(text) <= remaining:
        assert kept == text


@given(difficult_texts, st.integers(0, 60))
def test_truncated_end_is_a_prefix_that_fits(text: str, remaining: int) -> None:
    kept = truncate_end(text, remaining, count)
    assert text.startswith(kept)
    assert count(kept) <= remaining


def test_batches_fit_the_limit_and_oversized_items_are_alone() -> None:
    assert batches([30, 30, 90, 10], lambda tokens: tokens, 60) == [[30, 30], [90], [10]]
    assert batches([], len, 60) == []


def test_equal_batches_are_few_and_of_similar_size() -> None:
    assert [len(run) for run in equal_batches([10] * 10, lambda tokens: tokens, 95)] == [5, 5]
    assert equal_batches([30, 30, 90, 10], lambda tokens: tokens, 60) == [[30, 30], [90], [10]]
    assert equal_batches([40, 20], lambda tokens: tokens, 60) == [[40, 20]]
    assert equal_batches([], len, 60) == []


WORDS = ["Costs", "rise.", "In", "2031", "trams", "need", "4,250,000", "crowns;", "3.75", "%", "more.", "No!"]


@given(st.lists(st.sampled_from(WORDS), min_size=30, max_size=200), st.integers(12, 60))
def test_truncation_splits_no_word_or_number(words: list[str], remaining: int) -> None:
    text = " ".join(words)
    kept = truncate_middle(text, remaining, count)
    assert count(kept) <= remaining
    if kept != text:
        before, _, after = kept.partition(TRUNCATION_MARK)
        assert text.startswith(before)
        assert text.endswith(after)
        assert {*before.split(), *after.split()} <= {*WORDS}


@given(st.integers(3, 60), st.integers(60, 400))
def test_truncation_uses_nine_tenths_of_the_tokens(words: int, remaining: int) -> None:
    text = " ".join(f"Item {n} {'costs ' * words}{n} crowns." for n in range(200))
    kept = truncate_middle(text, remaining, count)
    assert (1 - SPARE_SHARE) * remaining <= count(kept) <= remaining


def test_truncation_prefers_sentence_ends() -> None:
    text = " ".join(f"Sentence {n} holds {n * 1000} crowns." for n in range(60))
    before, _, after = truncate_middle(text, 100, count).partition(TRUNCATION_MARK)
    assert before.endswith("crowns.")
    assert after.startswith("Sentence")
