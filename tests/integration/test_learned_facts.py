"""What models have shown about themselves is part of the state, so every request can be built again."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot import BlackboardConfig, DebateConfig, DebaterConfig, JudgeConfig, MemoryConfig, open_debates
from moot.debates.prompt_reconstruction import reconstruct_prompt
from tests.integration.test_kill import strict_server
from tests.support.openai_server import OpenAIServer


def test_requests_of_a_debate_with_a_small_context_are_built_again_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debaters = (DebaterConfig(name="Ada"), DebaterConfig(name="Ben"))
    config = DebateConfig(model="m", seed=1, turns=6, debaters=debaters, judge=JudgeConfig(swap=False))
    with OpenAIServer(strict_server) as server, open_debates(str(tmp_path / "d.sqlite")) as debates:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        debate = debates.start("Trams?", config, documents=[{"name": "a", "content": "A fact. " * 3000}])
        for _ in debate.stream():
            pass
        document, facts = debate.document(), debate.state().values["model_facts"]["m"]
        assert (document["status"], document["verdict"]["status"]) == ("done", "ok")
        assert (facts["settings"], facts["limit"]) == ({"seed": False}, 3000)
        keys = [receipt["seq"] for receipt in debate.state().values["receipts"]]
        prompts = [reconstruct_prompt(debate.session, key) for key in [*keys, "c000000"]]
    assert [prompt.exact for prompt in prompts] == [True] * 7


def test_calls_of_every_purpose_shorten_prompts_that_a_server_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = DebateConfig(
        model="m",
        turns=6,
        debaters=(DebaterConfig(name="Ada"), DebaterConfig(name="Ben")),
        judge=JudgeConfig(swap=False),
        blackboard=BlackboardConfig(extraction="llm"),
        memory=MemoryConfig(summarizer="llm"),
    )
    with OpenAIServer(strict_server) as server, open_debates(str(tmp_path / "d.sqlite")) as debates:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        debate = debates.start("Trams?", config, documents=[{"name": "a", "content": "A fact. " * 3000}])
        debate.run()
        answer = debate.ask("What do the debaters say about trams?")
        document = debate.document()
    latest = {call["purpose"]: call["error"] for call in document["calls"]}
    assert answer.text
    assert {"extract", "judge", "summary"} <= latest.keys()
    assert (set(latest.values()), document["status"], document["verdict"]["status"]) == ({""}, "done", "ok")
