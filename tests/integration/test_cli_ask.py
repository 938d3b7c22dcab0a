"""Questions about debates: `moot ask` as a process, and `Debate.ask`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moot.api import open_debates
from moot.asking.answer import MIN_REPLY
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.state.errors import ModelError
from tests.support.fakes import FakeModel, fake_reply
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply

TOPIC = "Should we adopt a monorepo?"


def test_ask_prints_the_answer_to_stdout_and_the_receipt_to_stderr(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    words = {"Advocate": "We should adopt a monorepo for its one build.", "Skeptic": "Reviews take longer."}
    model = FakeModel(
        lambda call: replace(fake_reply(call), text=words.get(call.hints.get("speaker", ""), ""))
    )
    with open_debates(str(moot.db), environment=model.environment()) as debates:
        debates.start(TOPIC, DebateConfig(turns=4), name="mono").run()
    before = moot("show", "mono", "--json").json
    result = moot("ask", "mono", "Do penguins adopt a monorepo?")
    assert result.code == 0
    assert "No model is configured. These are the most relevant passages.\n\n- [m00000" in result.out
    assert result.out.count("penguins") == 1
    assert "Not found:\n- penguins" in result.out
    assert "of 8,000 tokens" in result.err
    assert "no room" not in result.err  # nothing was left out
    asked = moot("ask", "mono", "-", "--json", stdin=b"What about penguins?\n").json
    assert asked["question"] == "What about penguins?"
    assert asked["not_found"] == ["penguins"]
    assert set(asked["citations"]) <= set(asked["receipt"]["message_ids"])
    assert asked["receipt"]["total_tokens"] <= 8_000
    after = moot("show", "mono", "--json").json
    assert after["usage"]["calls"] == before["usage"]["calls"] + 2
    assert {**after, "usage": before["usage"]} == before


def test_unknown_debate_and_empty_question_have_exit_codes(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    assert moot("ask", "nobody", "What?").code == 4
    moot("run", TOPIC, "--turns", 1, "--no-judge", "--id", "mono", "--quiet")
    assert moot("ask", "mono", "  ").code == 2


def test_ask_answers_while_the_debate_runs(tmp_path: Path) -> None:
    texts: list[str] = []

    def reply(call: ModelCall) -> Reply:
        if call.purpose == "ask":
            return Reply(data={"reasoning": "", "answer": "Two.", "citations": ["m000001"], "not_found": []})
        return fake_reply(call)

    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(reply).environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=6))
        for event in debate.stream():
            if event["event"] == "entry" and event["entry"]["seq"] == 4:
                result = debate.ask("How many?")
                texts.append(result.text)
                assert result.citations == ("m000001",)
        assert texts == ["Two."]
        assert debate.document()["status"] == "done"


def test_ask_answers_about_an_imported_transcript(tmp_path: Path) -> None:
    text = "\n".join(f"{('Ann', 'Ben')[n % 2]}: Remark {n} about trams and their fares." for n in range(200))
    text += "\nAnn: The harbour toll was forty crowns.\n"
    model = FakeModel(
        lambda call: Reply(data={"reasoning": "", "answer": "Forty.", "citations": [], "not_found": []})
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.import_transcript(text, topic="Trams")
        assert debate.ask("What was the harbour toll?").text == "Forty."
    assert "forty crowns" in model.calls[-1].messages[-2]["content"]


PROSE = " ".join(f"Point {number} concerns depot {number * 7}." for number in range(60))
LOOP = "the cost of the move is the cost of the move of the depot, and so on; " * 40


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ServerReply(text='{"reasoning": "' + PROSE, finish_reason="length"), "the reply is cut off at"),
        (ServerReply(text="First, I think. " + PROSE, finish_reason="length"), "the reply is cut off at"),
        (ServerReply(text='{"answer": "x"} ' + PROSE, finish_reason="length"), "the reply is cut off at"),
        (ServerReply(text="", reasoning=PROSE, finish_reason="length"), "only reasoning at"),
        (ServerReply(text="<think>" + PROSE, finish_reason="length"), "only reasoning at"),
        (ServerReply(text='{"reasoning": "' + LOOP, finish_reason="length"), "the model repeated itself"),
        (ServerReply(text='{"reasoning": "' + PROSE), "its end is missing"),
        (ServerReply(text=PROSE), "it contains no JSON object"),
    ],
    ids=["inside", "before", "after", "reasoning", "think", "loop", "stopped inside", "no JSON"],
)
def test_ask_says_why_an_answer_is_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: ServerReply, error: str
) -> None:
    settings = {"turns": 2, "judge": {"enabled": False}, "memory": {"budget": {"reply": 200}}}
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        debates.start(TOPIC, make_config({"model": "m", **settings}), name="d").run()
    with OpenAIServer([reply] * 9) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with (
            open_debates(str(tmp_path / "d.sqlite")) as debates,
            pytest.raises(ModelError, match=error) as raised,
        ):
            debates.get("d").ask("What was said?")
        limits = [each["max_tokens"] for each in server.chats]
    assert limits[0] == MIN_REPLY
    assert len(limits) <= 3
    if error.endswith(" at"):
        assert f"{2 * MIN_REPLY:,} tokens: raise `memory.budget.reply`" in str(raised.value)
