"""Refusals, content filters and exceeded contexts: the debate continues and repeats no call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.documents import DebateDocument
from moot.state.errors import ModelError
from tests.support.fakes import FakeModel, fake_reply

TWO_DEBATERS = [{"name": "Ann"}, {"name": "Ben"}]


def _refusing(call: ModelCall) -> Reply:
    if call.stream_as is not None and call.stream_as.speaker == "ben":
        return Reply(error="m: the model refused: no", refused=True, model="m")
    return fake_reply(call)


def _run(path: Path, model: FakeModel, **config: Any) -> DebateDocument:
    with open_debates(str(path), environment=model.environment()) as debates:
        return debates.start("Which queue?", DebateConfig.model_validate(config), name="d").run()


def test_a_debater_whose_model_refuses_passes_and_the_debate_continues(tmp_path: Path) -> None:
    model = FakeModel(_refusing)
    document = _run(tmp_path / "m.sqlite", model, turns=4, debaters=TWO_DEBATERS)
    messages = [(entry["speaker"], entry["content"]) for entry in document["transcript"][1:]]
    assert [text for speaker, text in messages if speaker == "ben"] == ["[passes: would not answer]"] * 2
    assert document["status"] == "done"
    assert [error["error"] for error in document["errors"]] == ["m: the model refused: no"] * 2


def test_a_resume_does_not_repeat_a_refused_call(tmp_path: Path) -> None:
    model = FakeModel(_refusing)
    config = {"turns": 4, "debaters": TWO_DEBATERS, "limits": {"refusals": "stop"}}
    with pytest.raises(ModelError, match="refused"):
        _run(tmp_path / "m.sqlite", model, **config)
    call_count = len(model.calls)
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        debate = debates.get("d")
        with pytest.raises(ModelError, match="refused"):
            debate.run()
        assert len(model.calls) == call_count
        debate.reconfigure(debate.config().model_copy(update={"limits": DebateConfig().limits}))
        assert debate.run()["status"] == "done"


def test_a_message_truncated_by_a_filter_is_marked(tmp_path: Path) -> None:
    def cut(call: ModelCall) -> Reply:
        reply = fake_reply(call)
        return replace(reply, finish_reason="content_filter") if call.stream_as else reply

    document = _run(tmp_path / "m.sqlite", FakeModel(cut), turns=2)
    assert all(
        entry["content"].endswith("[…cut off by the provider's content filter]")
        for entry in document["transcript"][1:]
    )


def test_a_prompt_over_the_context_size_is_shortened_and_reconstructible(
    tmp_path: Path,
) -> None:
    limit = 700

    def small(call: ModelCall) -> Reply:
        if call.stream_as and call.prompt_tokens > limit:
            return Reply(error="m: too long", excess=0 if call.shortened_by else call.prompt_tokens - limit)
        reply = fake_reply(call)
        return replace(reply, text="word " * 120 + reply.text) if call.stream_as else reply

    model = FakeModel(small)
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Which queue?", DebateConfig(turns=10), name="d")
        document = debate.run()
        assert document["status"] == "done"
        turns = [call for call in model.calls if call.stream_as]
        prompt_sizes = [call.prompt_tokens for call in turns]
        assert max(prompt_sizes) > limit
        assert len([tokens for tokens in prompt_sizes if tokens <= limit]) == 10
        last = reconstruct_prompt(debate.session, document["transcript"][-1]["seq"])
        assert last.exact
        assert last.receipt["total_tokens"] <= limit
        assert last.receipt["omitted"]
