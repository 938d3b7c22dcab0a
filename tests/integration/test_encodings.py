"""Token budgets in the encodings of all models in a debate."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config.config_files import make_config
from moot.text.tokens import counter, prompt_tokens
from tests.support.fakes import FakeModel, fake_reply

CL100K, O200K = counter("cl100k_base"), counter("o200k_base")
MESSAGE = "停车场太贵了，市中心的商店却需要顾客，所以我们应当先试行一年再作决定。" * 12


@pytest.mark.parametrize(
    "models",
    [
        {"model": "gpt-4"},
        {"model": "gpt-4o", "judge": {"model": "gpt-4"}},
        {"model": "gpt-4o", "fallbacks": ["gpt-3.5-turbo"]},
    ],
    ids=["all", "judge", "fallback"],
)
def test_prompts_stay_within_budget_in_every_models_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: dict[str, object]
) -> None:
    def reply(call: ModelCall) -> Reply:
        return fake_reply(call) if call.schema or call.purpose != "turn" else Reply(text=MESSAGE)

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model = FakeModel(reply)
    config = make_config({"turns": 40, "memory": {"summarizer": "llm"}, **models})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        document = debates.start("要不要停车场？", config).run()
    assert document["status"] == "done"
    assert max(prompt_tokens(call.messages, CL100K) for call in model.calls) <= 8000
    assert max(prompt_tokens(call.messages, O200K) for call in model.calls) <= 8000
    for receipt in document["receipts"]:  # no recent message is left out without a summary
        assert "window messages" not in {each["what"] for each in receipt["omitted"]}


def test_the_token_counter_matches_the_models_encodings(tmp_path: Path) -> None:
    environment = FakeModel().environment()
    assert environment.token_counter_for(make_config({}))(MESSAGE) == O200K(MESSAGE)
    assert (
        environment.token_counter_for(make_config({"model": "gpt-4"}))(MESSAGE)
        == CL100K(MESSAGE)
        > O200K(MESSAGE)
    )
    mixed = environment.token_counter_for(make_config({}), "gpt-4")
    assert mixed(MESSAGE) == max(CL100K(MESSAGE), O200K(MESSAGE))
