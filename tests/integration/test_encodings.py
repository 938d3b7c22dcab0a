"""Token budgets in the encodings of all models of a debate."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.api import open_debates
from moot.calls.effects import ModelCall, Reply
from moot.state.config.config_files import make_config
from moot.text.tokens import counter, prompt_tokens
from tests.support.fakes import FakeModel, answer

OLD, NEW = counter("cl100k_base"), counter("o200k_base")
SPEECH = "停车场太贵了，市中心的商店却需要顾客，所以我们应当先试行一年再作决定。" * 12


@pytest.mark.parametrize(
    "models",
    [
        {"model": "gpt-4"},
        {"model": "gpt-4o", "judge": {"model": "gpt-4"}},
        {"model": "gpt-4o", "fallbacks": ["gpt-3.5-turbo"]},
    ],
    ids=["all", "judge", "fallback"],
)
def test_no_prompt_exceeds_its_budget_in_an_older_models_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: dict[str, object]
) -> None:
    def speaks(call: ModelCall) -> Reply:
        return answer(call) if call.schema or call.purpose != "turn" else Reply(text=SPEECH)

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model = FakeModel(speaks)
    config = make_config({"turns": 40, "memory": {"summarizer": "llm"}, **models})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        document = debates.start("要不要停车场？", config).run()
    assert document["status"] == "done"
    assert max(prompt_tokens(call.messages, OLD) for call in model.calls) <= 8000
    assert max(prompt_tokens(call.messages, NEW) for call in model.calls) <= 8000
    for receipt in document["receipts"]:  # what the view leaves out of the window, the summary covers
        assert "window messages" not in {each["what"] for each in receipt["omitted"]}


def test_models_with_one_encoding_are_counted_exactly(tmp_path: Path) -> None:
    environment = FakeModel().environment()
    assert environment.token_counter_for(make_config({}))(SPEECH) == NEW(SPEECH)
    assert environment.token_counter_for(make_config({"model": "gpt-4"}))(SPEECH) == OLD(SPEECH) > NEW(SPEECH)
    mixed = environment.token_counter_for(make_config({}), "gpt-4")
    assert mixed(SPEECH) == max(OLD(SPEECH), NEW(SPEECH))
