"""Prompts follow what models have shown about their contexts, tokenizers and parameters."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from moot.calls.model_calls import ModelCall, Prompt, Reply
from moot.config import DebateConfig
from moot.config.model_settings import provider_of
from moot.models.endpoints import context_size_in, report_wait
from moot.models.error_kinds import Change, Overflow
from moot.models.failures import Failure, failure_of, retry_after
from moot.models.learning import cut_words, facts_of_change, facts_of_overflow, facts_of_usage, reply_limit
from moot.models.registry import Models
from moot.runtime.fitting import fitted_config, until_prompts_fit
from moot.state.entries import ModelFacts
from tests.unit.test_models_failures import NOW

CALL = ModelCall("judge", "m", ({"role": "user", "content": "Hello"},), 1000, prompt_tokens=4000)
CONFIG = DebateConfig(model="m", judge={"model": "j"})


@pytest.mark.parametrize(
    ("reported", "ratio"), [(4000, None), (4050, None), (4450, 1.1), (11_530, 2.9), (90_000, 4.0)]
)
def test_ratio_of_tokens_is_learned_from_reported_usage(reported: int, ratio: float | None) -> None:
    facts = facts_of_usage(CALL, {"prompt_tokens": reported, "completion_tokens": 5})
    assert facts.get("ratio") == ratio


def test_no_ratio_is_learned_from_a_short_prompt() -> None:
    usage = {"prompt_tokens": 1500, "completion_tokens": 5}
    assert facts_of_usage(replace(CALL, prompt_tokens=900), usage) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("counts_schema", [False, True], ids=["messages only", "messages and schema"])
def test_a_schema_that_only_the_server_counts_teaches_no_ratio(counts_schema: bool) -> None:
    class Answer(BaseModel):
        text: str

    prompt = Prompt(CALL.messages, 2000, 8000, {"schema": 900} if counts_schema else {})
    call = replace(CALL, schema=Answer, prompt=prompt, prompt_tokens=2000)
    facts = facts_of_usage(call, {"prompt_tokens": 2900, "completion_tokens": 5})
    assert facts == ({"ratio": 1.45} if counts_schema else {})


@pytest.mark.parametrize(("reported", "warns"), [(1750, True), (3000, False)])
def test_prompt_that_a_server_cut_is_noticed(reported: int, warns: bool) -> None:
    assert bool(cut_words(CALL, {"prompt_tokens": reported, "completion_tokens": 5})) is warns


def test_context_size_is_learned_from_an_overflow() -> None:
    failure = Failure("too long", kind="overflow", overflow=Overflow(limit=2048, prompt=4400))
    assert facts_of_overflow(failure, CALL, 1000, {}) == {"limit": 2048}


def test_context_size_is_estimated_if_the_server_states_none() -> None:
    failure = Failure("too long", kind="overflow", overflow=Overflow())
    assert facts_of_overflow(failure, CALL, 1000, {}) == {"limit": 3000}


def test_a_change_that_did_not_help_is_not_tried_again() -> None:
    change = Change({"seed": False}, "no seed is sent")
    facts = facts_of_change(change, {})
    assert facts == {"settings": {"seed": False}, "told": ["no seed is sent"]}
    assert facts_of_change(change, facts) == {}


@pytest.mark.parametrize(
    ("context", "facts", "tokens"),
    [
        (None, {}, 1000),
        (4500, {}, 500),
        (4500, {"ratio": 1.1}, 100),
        (4000, {}, 1000),
        (None, {"max_reply": 300}, 300),
    ],
)
def test_reply_fits_the_context(context: int | None, facts: ModelFacts, tokens: int) -> None:
    assert reply_limit(CALL, 1000, context, facts) == tokens


@pytest.mark.parametrize(
    ("facts", "node", "total"),
    [
        ({}, "turn", 8000),
        ({"m": {"limit": 131_072}}, "turn", 8000),
        ({"m": {"limit": 4096}}, "turn", 3096),
        ({"m": {"limit": 4096}}, "judge", 8000),
        ({"m": {"ratio": 2.0}}, "turn", 4000),
        ({"m": {"limit": 4096, "ratio": 2.0}}, "turn", 1548),
        ({"j": {"limit": 512}}, "judge", 400),
    ],
    ids=range(7),
)
def test_budget_fits_the_models_that_a_node_calls(
    facts: dict[str, ModelFacts], node: str, total: int
) -> None:
    budget = fitted_config(CONFIG, facts, node).memory.budget
    assert budget.total == total
    assert budget.system + budget.summary + budget.messages <= total
    assert budget.turn_suffix <= total // 2


def _judging(budgets: list[int]) -> Callable[[Mapping[str, ModelFacts]], Generator[Any, Any, list[str]]]:
    def make(facts: Mapping[str, ModelFacts]) -> Any:
        budget = fitted_config(CONFIG, facts, "judge").memory.budget.total
        budgets.append(budget)
        first, second = replace(CALL, prompt_tokens=9), replace(CALL, seed=budget, prompt_tokens=budget)
        replies = yield [first, second]
        return [reply.text for reply in replies]

    return make


def _too_long(limit: int) -> Reply:
    return Reply(error="too long", excess=9, facts={"j": {"limit": limit}})


def test_a_node_runs_again_with_the_learned_context_and_repeats_no_paid_call() -> None:
    budgets: list[int] = []
    flow = until_prompts_fit(_judging(budgets), {})
    assert len(next(flow)) == 2
    assert [call.seed for call in flow.send([Reply(text="paid"), _too_long(4000)])] == [budgets[1]]
    with pytest.raises(StopIteration) as end:
        flow.send([Reply(text="fits")])
    assert end.value.value == ["paid", "fits"]
    assert budgets[0] == 8000 > budgets[1]


def test_a_prompt_that_never_fits_fails_after_three_steps() -> None:
    budgets: list[int] = []
    flow = until_prompts_fit(_judging(budgets), {})
    next(flow)
    flow.send([Reply(text="paid"), _too_long(4000)])
    flow.send([_too_long(3000)])
    flow.send([_too_long(2000)])
    with pytest.raises(StopIteration) as end:
        flow.send([_too_long(1000)])
    assert (len(budgets), end.value.value) == (4, ["paid", ""])


@pytest.mark.parametrize("name", ["deepseek", "groq", "xai", "ollama", "openai"])
def test_a_provider_without_a_colon_is_a_model_name(name: str) -> None:
    assert (provider_of(name), provider_of(f"{name}:x")) == ("", name)


def test_learned_settings_override_configured_ones() -> None:
    models = Models()
    models.learn({"m": {"settings": {"seed": False}, "limit": 4096}})
    assert (models.settings_of("m").seed, models.settings_of("m").context_size) == (False, 4096)


@pytest.mark.parametrize(
    ("row", "size"),
    [
        ({"id": "m", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}, 2048),
        ({"id": "m", "max_model_len": 4096}, 4096),
        ({"id": "m", "context_length": 131072, "top_provider": {"context_length": 32768}}, 32768),
        ({"id": "m", "context_length": "long"}, 0),
    ],
)
def test_context_size_is_read_from_the_list_of_models(row: dict[str, Any], size: int) -> None:
    assert context_size_in(row) == size


def test_error_in_a_users_own_model_is_told_at_once_with_its_place() -> None:
    try:
        int("Trams")
    except ValueError as error:
        failure = failure_of(error, timeout_s=1)
    assert not failure.retryable
    assert failure.text.startswith("test_fitting.py, line ")
    assert "ValueError: invalid literal" in failure.text


def test_refused_connection_is_unreachable() -> None:
    assert failure_of(ConnectionRefusedError(111, "refused"), timeout_s=1).unreachable
    assert not failure_of(ConnectionResetError(104, "reset"), timeout_s=1).unreachable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30s"}, 30.0),
        ({"x-ratelimit-reset-requests": "1m3s", "x-ratelimit-remaining-requests": "0"}, 63.0),
        ({"x-ratelimit-reset-tokens": "5s", "x-ratelimit-remaining-tokens": "900"}, None),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 20)}, 20.0),
        ({"x-ratelimit-reset": str((int(NOW.timestamp()) + 20) * 1000)}, 20.0),
    ],
    ids=range(5),
)
def test_wait_is_read_from_headers_of_many_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


def test_a_wait_outside_a_graph_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise KeyError("__pregel_runtime")

    monkeypatch.setattr("moot.models.endpoints.get_stream_writer", missing)
    report_wait("m", Failure("down"), 1, "retry in 1 s")
