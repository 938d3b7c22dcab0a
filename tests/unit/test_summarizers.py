"""For any messages and model replies, a summary fits its token limit and covers all messages."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.memory.summarizers.drafting import draft_summary, make_summary, version_of
from moot.memory.summarizers.llm import input_token_limit, reusable_chunk_summaries
from moot.memory.summarizers.registry import REMOVED_SUMMARIZERS, SUMMARIZERS, summarizer_named
from moot.memory.summarizers.summarizer import SummaryRequest
from moot.state.entries import Entry, make_entry
from moot.state.errors import ConfigError
from moot.text.tokens import counter, prompt_tokens

count = counter()
METHODS = sorted(SUMMARIZERS)
MODEL_METHODS = ("llm", "hierarchical")
SPEAKERS = ("advocate", "skeptic")


def _entries(contents: list[str], start: int = 1, phase: str = "argument") -> list[Entry]:
    made = [
        make_entry(seq, SPEAKERS[seq % 2], "speech", text, phase=phase, round=seq // 2)
        for seq, text in enumerate(contents, start)
    ]
    return [{**entry, "tokens": count(entry["content"])} for entry in made]


def _request(entries: list[Entry], previous: Any = None, **more: Any) -> SummaryRequest:
    memory = more.pop("memory", {"budget": {"total": 1500}})
    config = DebateConfig.model_validate({"memory": memory})
    return SummaryRequest(
        previous=previous or {},
        entries=entries,
        max_tokens=more.pop("max_tokens", config.memory.budget.summary - 24),
        topic=more.pop("topic", "Topic"),
        config=config,
        count=count,
        transcript=more.pop("transcript", entries),
        **more,
    )


def _summarize(
    method: str, request: SummaryRequest, reply: Callable[[ModelCall], Reply]
) -> tuple[Any, str, list[ModelCall]]:
    """Run a method. Return the summary, the failure that caused a fallback, and the calls."""
    calls: list[ModelCall] = []
    flow, replies = draft_summary(method, request), None
    try:
        while True:
            batch = flow.send(replies)  # type: ignore[arg-type]  # a generator begins with None
            calls += batch
            replies = [reply(call) for call in batch]
    except StopIteration as end:
        draft, failure = end.value
    return make_summary(request, draft, "now", request.previous), failure, calls


def _plain_reply(call: ModelCall) -> Reply:
    word = call.digest[:6].translate(
        str.maketrans("0123456789", "ghijklmnop")
    )  # no digits: they would count as invented
    return Reply(text=f"They argued, {word} {_first_and_last_id(call)}.", model="m")


def _first_and_last_id(call: ModelCall) -> str:
    """Return the ids of the first and the last message in a summary prompt."""
    ids = re.findall(r"\[m\d{6}\]", call.messages[-1]["content"])
    return f"{ids[0]} {ids[-1]}" if ids else ""


text_samples = st.sampled_from(
    ["word ", "界", "🙂", "<|endoftext|> ", "We save 40 %. ", "\n- x\n", "`a=1`\n"]
)
contents = st.lists(
    st.builds(lambda text, n: text * n, text_samples, st.integers(0, 700)), min_size=1, max_size=12
)
answers = st.sampled_from(
    [
        Reply(text=""),
        Reply(error="m: 503"),
        Reply(text="界" * 9000),
        Reply(text="Error: out of memory"),
        Reply(text="They talked."),
        Reply(text="word " * 300),
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(METHODS),
    st.lists(contents, min_size=1, max_size=3),
    st.lists(answers, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([400, 700, 3000]),
    st.sampled_from(["", "word " * 5000]),
)
def test_summary_and_prompts_fit_their_limits_and_cover_all_messages(
    method: str, batches: list[list[str]], replies: list[Reply], echo: bool, total: int, long: str
) -> None:
    previous: Any = {}
    transcript: list[Entry] = []

    def reply(call: ModelCall) -> Reply:
        assert prompt_tokens(call.messages, count) == call.prompt_tokens <= total
        if echo:
            return Reply(text=call.messages[-1]["content"])
        return replies[call.call_index % len(replies)]

    for batch in batches:
        entries = _entries(batch, len(transcript) + 1)
        transcript += entries
        request = _request(
            entries,
            previous,
            memory={"budget": {"total": total}},
            transcript=[make_entry(0, "user", "topic", "T"), *transcript],
            topic=long or "T",
            prompt=long,
        )
        previous, _, _ = _summarize(method, request, reply)
        assert count(previous["text"]) == previous["after_tokens"] <= request.max_tokens
        assert previous["covers_through_seq"] == entries[-1]["seq"]
    assert previous["messages"] == len(transcript)
    assert previous["version"] == len(batches)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_summarizes_an_ordinary_debate(method: str) -> None:
    messages = [f"Speaker point {n}: buses cost {n} million, and ridership rose by {n} %." for n in range(20)]
    summary, failure, _ = _summarize(method, _request(_entries(messages)), _plain_reply)
    assert failure == ""
    assert summary["method"] == method
    assert re.search(r"\[m\d{6}", summary["text"])


@pytest.mark.parametrize("method", MODEL_METHODS)
def test_every_message_enters_exactly_one_prompt(method: str) -> None:
    messages = [f"Fact number {n:03d} stands. " * 20 for n in range(60)]
    _, _, calls = _summarize(method, _request(_entries(messages)), _plain_reply)
    prompts = [call.messages[-1]["content"] for call in calls]
    for seq in range(1, 61):
        assert sum(f"[m{seq:06d}]:" in prompt for prompt in prompts) == 1


@pytest.mark.parametrize("method", MODEL_METHODS)
def test_summary_is_made_from_chunk_summaries_not_from_a_summary(method: str) -> None:
    summary: Any = {}
    for batch in range(6):
        entries = _entries([f"Batch {batch} message {n}. " * 8 for n in range(6)], 1 + 6 * batch)

        def reply(call: ModelCall) -> Reply:
            assert "SUMMARY" not in call.messages[-1]["content"]
            notes = call.messages[0]["content"].startswith("You summarise one part")
            return Reply(text=("note " if notes else "SUMMARY ") + _first_and_last_id(call) + " word" * 60)

        request = _request(entries, summary or {"points": {"notes": [_CHUNK_SUMMARY]}}, max_tokens=120)
        summary, failure, _ = _summarize(method, request, reply)
        assert failure == ""
    assert summary["text"].startswith("SUMMARY")
    assert len(reusable_chunk_summaries(_request([], summary))) >= 7


_CHUNK_SUMMARY: Any = {
    "text": "[m000001] [m000002] " + "word " * 60,
    "first": 0,
    "through": 0,
    "level": 0,
    "part": "",
}


@pytest.mark.parametrize("method", MODEL_METHODS)
def test_chunk_summaries_fit_the_prompt_that_merges_them(method: str) -> None:
    summary: Any = {}
    for batch in range(40):
        entries = _entries([f"Batch {batch}, message {n}." for n in range(3)], 1 + 3 * batch)
        request = _request(entries, summary)
        summary, failure, _ = _summarize(
            method, request, lambda call: Reply(text=f"w{call.digest[:3]} " * 60 + _first_and_last_id(call))
        )
        assert failure == ""
        notes = reusable_chunk_summaries(_request([], summary))
        assert sum(count(note.text) for note in notes) <= input_token_limit(request)
        assert (notes[0].first, notes[-1].through) == (1, entries[-1]["seq"])


def test_hierarchical_keeps_one_chunk_summary_per_phase() -> None:
    first = _entries(["We open with the cost. " * 30] * 20, 1, "opening")
    summary, _, _ = _summarize("hierarchical", _request(first, max_tokens=900), _plain_reply)
    second = _entries(["Now the argument."] * 3, 21, "argument")
    summary, _, _ = _summarize("hierarchical", _request(second, summary, max_tokens=900), _plain_reply)
    assert [note.part for note in reusable_chunk_summaries(_request([], summary))] == ["opening", "argument"]
    assert summary["text"].startswith("Opening: ")


def test_facts_missing_in_the_prose_are_listed_as_key_points() -> None:
    messages = [
        "The toll is 40 crowns.",
        "Ferries sank in 1906.",
        "Wages rose by 7 %.",
        "Trains run at 310 km/h.",
    ]

    def reply(call: ModelCall) -> Reply:
        return Reply(text="The toll is 40 crowns, and wages rose by 7 %.")

    summary, _, _ = _summarize("llm", _request(_entries(messages), max_tokens=110), reply)
    key_points = summary["text"].split("Key points:")[1]
    assert "1906" in key_points
    assert "40 crowns" not in key_points


def test_too_small_limit_gives_a_notice_without_a_model_call() -> None:
    summary, _, calls = _summarize("llm", _request(_entries(["Hello."] * 9), max_tokens=30), _plain_reply)
    assert calls == []
    assert summary["text"].startswith("Earlier: 9 messages")


@pytest.mark.parametrize("method", ["rule-based", "llm", "hierarchical"])
def test_summary_of_short_messages_takes_no_more_tokens_than_they_do(method: str) -> None:
    texts = ["Trams are cheap to run.", "No.", "Ada, see the 40 million crowns that the trams of Graz cost."]
    for size in range(1, len(texts) + 1):
        summary, _, _ = _summarize(method, _request(_entries(texts[:size])), _plain_reply)
        assert summary["after_tokens"] <= summary["before_tokens"]
        assert method != "rule-based" or all(text in summary["text"] for text in texts[:size])


def test_summary_from_a_document_is_continued() -> None:
    first, _, _ = _summarize(
        "rule-based", _request(_entries(["Trams cost 40 million crowns.", "No."])), _plain_reply
    )
    known = {**first, "points": version_of(first)["points"]}
    for method in METHODS:
        request = _request(_entries(["Buses cost 12 million."], 3), known)
        summary, failure, calls = _summarize(method, request, _plain_reply)
        assert failure == ""
        assert summary["messages"] == 3
        written = " ".join(message["content"] for call in calls for message in call.messages)
        assert "12 million" in summary["text"] + written
        # `hierarchical` writes from chunk summaries alone, and a document has none.
        assert ("40 million" in summary["text"]) is (method != "hierarchical")


@pytest.mark.parametrize("name", sorted(REMOVED_SUMMARIZERS))
def test_removed_method_is_refused_with_its_replacement(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}.* was removed, and 'rule-based' keeps more: use one of"):
        summarizer_named(name)


PLUGIN = """
from moot.memory.summarizers.summarizer import Draft

class Shout:
    name = "shout"

    def summarize(self, request):
        yield from ()
        return Draft("LOUD", method=self.name)
"""


def test_installed_package_adds_a_summarizer_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shouting_summaries.py").write_text(PLUGIN)
    info = tmp_path / "shouting_summaries-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting-summaries\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[moot.summarizers]\nshout = shouting_summaries:Shout\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    summarizer_named.cache_clear()
    try:
        summary, failure, _ = _summarize("shout", _request(_entries(["Hello."])), _plain_reply)
        assert (summary["text"], summary["method"], failure) == ("LOUD", "shout", "")
    finally:
        summarizer_named.cache_clear()
        sys.modules.pop("shouting_summaries", None)
