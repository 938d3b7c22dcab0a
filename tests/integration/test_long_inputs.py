"""Long topics, files and messages: what prompts contain, and how they mark omitted text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.config.config_files import make_config
from moot.debates.config_checks import warnings_about
from moot.protocols.registry import PROTOCOLS
from moot.text.tokens import counter, prompt_tokens
from tests.support.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

COUNT = counter()
REQUIREMENTS = [f"Requirement {n}: night tram {n} arrives within {n} minutes." for n in range(225)]
LONG_TOPIC = "Which timetable meets these?\n" + "\n".join(REQUIREMENTS)
PARAGRAPHS = [f"Paragraph {n}: of {n * 7} riders counted at stop {n}, {n} waited." for n in range(1500)]
MESSAGES = [
    f"Speech {speech}. " + " ".join(f"Point {speech}-{part}: line {part} runs late." for part in range(32))
    for speech in range(50)
]
TRUNCATION_MARK = " […"


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_prompts_keep_the_whole_topic_and_record_omitted_text(protocol: str, tmp_path: Path) -> None:
    file = tmp_path / "counts.md"
    file.write_text("\n".join(PARAGRAPHS), encoding="utf-8")
    assert COUNT(LONG_TOPIC) >= 2_900
    assert COUNT(file.read_text("utf-8")) >= 29_000
    with OpenAIServer() as server, open_debates(str(tmp_path / "d.sqlite")) as debates:
        config = make_config(
            {
                "protocol": protocol,
                **({"rounds": 1} if protocol == "council" else {"turns": 2}),
                "model": "test-model",
                "models": {"test-model": {"base_url": server.base_url}},
                "context": str(file),
                "topic": LONG_TOPIC,
            }
        )
        assert any(warning.startswith("context: ") for warning in warnings_about(config))
        names = list(config.names())
        transcript = [
            {"speaker": names[n % len(names)], "content": words, "at": ""} for n, words in enumerate(MESSAGES)
        ]
        debate = debates.start(LONG_TOPIC, config, transcript=transcript)
        document = debate.run()
        prompts = [chat["messages"] for chat in server.chats]
    assert max(prompt_tokens(messages, COUNT) for messages in prompts) <= 8_000
    covered = max(
        (each["covers_through_seq"] for each in document["summaries"] if each["kind"] == "rolling"),
        default=-1,
    )
    by_size: dict[int, Any] = {receipt["total_tokens"]: receipt for receipt in document["receipts"]}
    judged = [call for call in document["calls"] if call["purpose"] == "judge"]
    by_size |= {call["total_tokens"]: call for call in judged}
    seen = [
        (by_size[size], messages)
        for messages in prompts
        if (size := prompt_tokens(messages, COUNT)) in by_size
    ]
    assert len(seen) >= len(document["receipts"])
    for receipt, messages in seen:
        text = "\n".join(message["content"] for message in messages)
        assert all(requirement in text for requirement in REQUIREMENTS)
        assert receipt["omitted"] or TRUNCATION_MARK not in text
        whole = {n for n, words in enumerate(MESSAGES) if words in text}
        omitted = {note["what"] for note in receipt["omitted"]}
        if receipt.get("sections", {}).get("messages") and (whole or "phase" not in receipt):
            first = min(whole, default=0)
            assert first == 0 or covered >= first or omitted & {"window messages", "evidence", "messages"}
        if PARAGRAPHS[0] in text:
            assert PARAGRAPHS[650] not in text
            assert any("m000001" in what or what in ("window messages", "evidence") for what in omitted)
        else:
            assert covered >= 1 or omitted
