"""Summarizers of other packages. Whatever they return or raise, the summary covers all messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from moot.calls.model_calls import ModelCall, Reply
from moot.cli.show_parts import summary as heading_of
from moot.config import DebateConfig
from moot.memory.summarizers.drafting import draft_summary, make_summary, version_of
from moot.memory.summarizers.llm import reusable_chunk_summaries
from moot.memory.summarizers.registry import ENTRY_POINT_GROUP, SUMMARIZERS, summarizer_named
from moot.memory.summarizers.rule_based import empty
from moot.memory.summarizers.summarizer import Draft, SummaryRequest
from moot.state.entries import Entry, make_entry
from moot.state.errors import ConfigError
from moot.text.tokens import counter

count = counter()
CALL = ModelCall("summary", "m", ({"role": "user", "content": "Sum up."},), 10)


class PluginSummarizer:
    """A summarizer that calls a function."""

    name = "plugged"

    def __init__(self, does: Callable[[SummaryRequest], Any]) -> None:
        self._does = does

    def summarize(self, request: SummaryRequest) -> Any:
        return self._does(request)


@pytest.fixture(autouse=True)
def _clear_summarizer_cache() -> Iterator[None]:
    summarizer_named.cache_clear()
    yield
    summarizer_named.cache_clear()


def _register(monkeypatch: pytest.MonkeyPatch, does: Callable[[SummaryRequest], Any]) -> None:
    monkeypatch.setitem(SUMMARIZERS, "plugged", PluginSummarizer(does))
    summarizer_named.cache_clear()


def _returning(result: Any) -> Callable[[SummaryRequest], Any]:
    def flow(request: SummaryRequest) -> Any:
        yield from ()
        return result

    return flow


def _entries(first: int, last: int) -> list[Entry]:
    return [
        make_entry(seq, "advocate", "speech", f"LedgerLine {seq} costs {seq * 7} million crowns.", tokens=9)
        for seq in range(first, last + 1)
    ]


def _request(entries: list[Entry], previous: Any = None) -> SummaryRequest:
    return SummaryRequest(
        previous=previous or {},
        entries=entries,
        max_tokens=600,
        topic="T",
        config=DebateConfig(),
        count=count,
        transcript=[make_entry(0, "user", "topic", "T"), *_entries(1, entries[-1]["seq"] + 5)],
    )


def _reply(call: ModelCall) -> Reply:
    usage: Any = {"prompt_tokens": 100, "completion_tokens": 20}
    return Reply(
        text="LedgerLine 1 and line 6 cost millions.",
        model="m-2",
        provider="loopback",
        latency_s=0.5,
        usage=usage,
    )


def _summarize(
    method: str, request: SummaryRequest, reply: Callable[[ModelCall], Reply] = _reply
) -> tuple[Any, str]:
    flow, replies = draft_summary(method, request), None
    try:
        while True:
            replies = [reply(call) for call in flow.send(replies)]  # type: ignore[arg-type]  # begins with None
    except StopIteration as end:
        draft, failure = end.value
    summary = make_summary(request, draft, "now", request.previous)
    version_of(summary)
    return summary, failure


def test_summary_limit_reads_only_the_messages_that_it_needs() -> None:
    class Counted(list[Entry]):
        read = 0

        def __iter__(self) -> Iterator[Entry]:
            for entry in super().__iter__():
                self.read += 1
                yield entry

    transcript = Counted(_entries(1, 5000))
    request = replace(_request(_entries(4990, 5000)), transcript=transcript)
    previous: Any = {"points": {**empty(), "covers_through_seq": 4989}, "covers_through_seq": 4989}
    _summarize("rule-based", replace(request, previous=previous))
    assert 0 < transcript.read < 100


def _raises(request: SummaryRequest) -> Any:
    raise RuntimeError("boom\ud800")


def _exits(request: SummaryRequest) -> Any:
    yield from ()
    raise SystemExit(3)


def _yields(batch: Any) -> Callable[[SummaryRequest], Any]:
    def flow(request: SummaryRequest) -> Any:
        yield batch
        return Draft("hello")

    return flow


POINT = {"text": "x", "speaker": "a", "message_ids": ["m000001"]}


@pytest.mark.parametrize(
    "does",
    [
        _raises,
        _exits,
        lambda request: Draft("hello"),
        _yields(["nonsense"]),
        _yields(CALL),
        _yields([replace(CALL, messages=({"role": "user", "content": "word " * 9000},))]),
        _yields([replace(CALL, messages=({"role": "user"},))]),  # type: ignore[typeddict-item]  # on purpose
        *map(
            _returning,
            [
                None,
                "hello",
                Draft(" "),
                Draft(None),  # type: ignore[arg-type]  # on purpose, as are those below
                Draft("\ud800"),
                Draft("hello", points=[{"text": "x"}]),  # type: ignore[arg-type]
                Draft("hello", points={"points": ["a claim"], "shown": 1}),
                Draft("hello", points={"points": [POINT], "shown": 1}),
                Draft("hello", points={"when": object()}),
                Draft("hello", points={"share": float("nan")}),
                Draft("hello", model=None),  # type: ignore[arg-type]
                Draft("hello", temperature=object()),  # type: ignore[arg-type]
            ],
        ),
    ],
)
def test_failing_summarizer_falls_back_to_the_rule_based_one(
    does: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _register(monkeypatch, does)
    summary, failure = _summarize("plugged", _request(_entries(1, 5)))
    assert failure.startswith("plugged: ")
    assert failure.isprintable()
    assert summary["method"] == "rule-based (after plugged failed)"
    assert "m000001" in summary["text"]


@pytest.mark.parametrize("points", [{}, {"notes": ["mine"], "kept": 3, "covers_through_seq": 2}])
@pytest.mark.parametrize("method", ["rule-based", "failing", "llm"])
def test_summary_after_one_without_points_covers_all_messages_again(
    method: str, points: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _register(monkeypatch, _returning(Draft("Lines and their costs.", points=points)))
    first, failure = _summarize("plugged", _request(_entries(1, 5)))
    assert (failure, first["method"]) == ("", "plugged")
    if method == "failing":
        _register(monkeypatch, _raises)
    second, failure = _summarize(
        "plugged" if method == "failing" else method, _request(_entries(6, 9), first)
    )
    assert bool(failure) == (method == "failing")
    assert (second["covers_from_seq"], second["messages"]) == (1, 9)
    message_ids = [point["message_ids"][0] for point in second["points"]["points"]]
    assert {"m000001", "m000005", "m000009"} <= set(message_ids)
    assert second["points"]["messages"] == 9


def test_llm_summarizer_reuses_its_chunk_summaries_after_a_failure() -> None:
    first, _ = _summarize("llm", _request(_entries(1, 5)))
    second, failure = _summarize("llm", _request(_entries(6, 9), first), lambda call: Reply(error="down"))
    assert failure == "llm: SummaryFailed: down"
    third, failure = _summarize("llm", _request(_entries(10, 12), second))
    assert failure == ""
    assert [
        (chunk.first, chunk.through) for chunk in reusable_chunk_summaries(_request(_entries(13, 14), third))
    ] == [
        (1, 5),
        (6, 9),
        (10, 12),
    ]


@pytest.mark.parametrize("method", ["llm", "hierarchical"])
def test_failing_model_reads_each_message_once_and_catches_up_in_one_piece(method: str) -> None:
    prompts, versions = list[str](), [(first, first + 1) for first in range(1, 41, 2)]

    def sorry(call: ModelCall) -> Reply:
        prompts.append(call.messages[-1]["content"])
        return replace(_reply(call), text="I am sorry, I cannot help with that.")

    def works(call: ModelCall) -> Reply:
        prompts.append(call.messages[-1]["content"])
        return _reply(call)

    summary: Any = {}
    for first, last in versions:
        summary, failure = _summarize(method, _request(_entries(first, last), summary), sorry)
        assert failure
    assert [sum(f"[m{seq:06d}]" in prompt for prompt in prompts) for seq in range(1, 41)] == [1] * 40
    prompts.clear()
    summary, failure = _summarize(method, _request(_entries(41, 42), summary), works)
    assert (failure, len(prompts)) == ("", 2)
    assert "by rule" not in summary["method"]


def test_messages_that_a_model_refuses_twice_stay_summarized_by_rule() -> None:
    def refuses_first(call: ModelCall) -> Reply:
        is_refused = "[m000001]" in call.messages[-1]["content"]
        return replace(_reply(call), text="Sorry, I can't.") if is_refused else _reply(call)

    summary: Any = {}
    failures = list[str]()
    for first in (1, 6, 11):
        summary, failure = _summarize("llm", _request(_entries(first, first + 4), summary), refuses_first)
        failures.append(failure)
    assert [bool(failure) for failure in failures] == [True, False, False]
    assert summary["method"] == "llm, some messages by rule"
    assert summary["points"]["given_up_through"] == 5


def test_chunk_summaries_are_kept_if_the_summary_of_them_fails() -> None:
    first, _ = _summarize("llm", _request(_entries(1, 5)))
    calls = list[ModelCall]()

    def condenses(call: ModelCall) -> Reply:
        calls.append(call)
        return replace(
            _reply(call), text="LedgerLine costs many millions of crowns. " * 16 * (len(calls) == 1)
        )

    request = replace(_request(_entries(6, 9), first), max_tokens=150)
    second, failure = _summarize("llm", request, condenses)
    assert (bool(failure), len(calls)) == (True, 2)
    assert [note["through"] for note in second["points"]["notes"]] == [5, 9]


def test_summary_version_shows_its_model_and_the_tokens_used_so_far() -> None:
    first, _ = _summarize("llm", _request(_entries(1, 5)))
    second, _ = _summarize("llm", _request(_entries(6, 9), first))
    failed, failure = _summarize(
        "llm", _request(_entries(10, 12), second), lambda call: replace(_reply(call), text="")
    )
    assert failure
    assert [each["tokens_used"] for each in (first, second, failed)] == [120, 240, 360]
    assert [each["provider"] for each in (first, second, failed)] == ["loopback", "loopback", ""]
    assert (first["model"], first["latency_s"], first["method"]) == ("m-2", 0.5, "llm")
    shown = str(heading_of(second)[0])
    for fact in ("9 messages", "llm", "m-2 (loopback)", "0.5 s", "240 tokens of model calls so far"):
        assert fact in shown
    without_usage = {key: value for key, value in second.items() if key not in ("provider", "tokens_used")}
    assert "m-2" in str(heading_of(without_usage)[0])


@pytest.mark.parametrize(
    "value", ["json:Missing", "nowhere.at_all:Thing", "json:JSONDecodeError", "json:JSONDecoder"]
)
def test_summarizer_that_cannot_be_created_is_refused_by_name(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [EntryPoint("broken", value, ENTRY_POINT_GROUP)]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    with pytest.raises(ConfigError, match=f"'broken' \\({value}\\)"):
        summarizer_named("broken")


def test_closing_the_generator_closes_the_summarizer(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def does(request: SummaryRequest) -> Any:
        try:
            yield [CALL]
        finally:
            closed.append(True)

    _register(monkeypatch, does)
    flow = draft_summary("plugged", _request(_entries(1, 2)))
    assert next(flow) == [CALL]
    flow.close()
    assert closed == [True]
