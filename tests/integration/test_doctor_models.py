"""`moot doctor --models`: a test call to each configured model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply

MODELS: Any = {
    "good": {"context_size": 8000},
    "plain": {"context_size": 8000},
    "deaf": {"context_size": 8000, "max_attempts": 1},
}


def _act(asked: Any, number: int) -> ServerReply:
    method = (asked.get("response_format") or {}).get("type", "none")
    if asked["model"] == "deaf":
        return ServerReply(status=401, message="no such key")
    if asked["model"] == "plain" and method == "json_schema":
        return ServerReply(status=400, message="response_format is not supported")
    return ServerReply(whole=asked["model"] == "plain")


def test_doctor_calls_each_model_after_consent_and_reports_its_features(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    config = {
        "models": MODELS,
        "model": "good",
        "judge": {"model": "plain"},
        "fallbacks": ["deaf"],
        "memory": {"budget": {"total": 4000, "messages": 1000}},
    }
    (tmp_path / "c.json").write_text(json.dumps(config))
    words = ("doctor", "--models", "--config", "c.json", "--json")
    with OpenAIServer(_act) as server:
        key: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        refused = moot(*words, **key)
        assert (refused.code, len(server.chats)) == (2, 0)
        assert "--yes" in refused.err
        done = moot(*words, "--yes", **key)
        asked = [chat["model"] for chat in server.chats]
    checks = {each["what"]: each for each in done.json}
    assert done.code == 1
    assert asked.count("good") == asked.count("deaf") == 1
    assert checks["good"]["ok"], checks["good"]
    assert "structured output by json_schema; context 8,000 tokens" in checks["good"]["says"]
    assert "does not stream" in checks["plain"]["says"]
    assert "set models.plain.structured_output to" in checks["plain"]["says"]
    assert "no such key" in checks["deaf"]["says"]
    assert not moot.db.exists()


def test_doctor_says_that_the_chat_template_does_not_fit(tmp_path: Path) -> None:
    with OpenAIServer(lambda *_: ServerReply(text='{"word": "ready"}<|im_end|>\n<|im_start|>user')) as server:
        key: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        done = Moot(tmp_path)("doctor", "--models", "--model", "m", "--yes", "--json", **key)
    assert "chat template does not fit" in {each["what"]: each["says"] for each in done.json}["m"]
