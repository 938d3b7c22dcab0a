"""`moot ask`, as a process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from moot.api import open_debates
from moot.calls.effects import ModelCall, Reply
from moot.state.config import DebateConfig
from tests.support.fakes import FakeModel, answer
from tests.support.moot_command import Moot

TOPIC = "Should we adopt a monorepo?"


def test_a_question_is_answered_on_stdout_with_citations_and_an_account_on_stderr(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    words = {"Advocate": "We should adopt a monorepo for its one build.", "Skeptic": "Reviews take longer."}
    said = FakeModel(lambda call: replace(answer(call), text=words.get(call.hints.get("speaker", ""), "")))
    with open_debates(str(moot.db), environment=said.environment()) as debates:
        debates.start(TOPIC, DebateConfig(turns=4), name="mono").run()
    before = moot("show", "mono", "--json").json
    got = moot("ask", "mono", "Do penguins adopt a monorepo?")
    assert got.code == 0
    assert "No model is configured. These are the most relevant passages.\n\n- [m00000" in got.out
    assert got.out.count("penguins") == 1
    assert "Not found:\n- penguins" in got.out
    assert "of 8,000 tokens" in got.err
    assert "no room" not in got.err  # nothing was left out
    asked = moot("ask", "mono", "-", "--json", stdin=b"What about penguins?\n").json
    assert asked["question"] == "What about penguins?"
    assert asked["not_found"] == ["penguins"]
    assert set(asked["citations"]) <= set(asked["receipt"]["message_ids"])
    assert asked["receipt"]["total_tokens"] <= 8_000
    after = moot("show", "mono", "--json").json
    assert after["usage"]["calls"] == before["usage"]["calls"] + 2
    assert {**after, "usage": before["usage"]} == before


def test_mistakes_have_their_exit_codes(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    assert moot("ask", "nobody", "What?").code == 4
    moot("run", TOPIC, "--turns", 1, "--no-judge", "--id", "mono", "--quiet")
    assert moot("ask", "mono", "  ").code == 2


def test_a_debate_can_be_asked_while_it_runs(tmp_path: Path) -> None:
    heard: list[str] = []

    def reply(call: ModelCall) -> Reply:
        if call.purpose == "ask":
            return Reply(data={"reasoning": "", "answer": "Two.", "citations": ["m000001"], "not_found": []})
        return answer(call)

    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(reply).environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=6))
        for event in debate.stream():
            if event["event"] == "entry" and event["entry"]["seq"] == 4:
                found = debate.ask("How many?")
                heard.append(found.text)
                assert found.citations == ("m000001",)
        assert heard == ["Two."]
        assert debate.document()["status"] == "done"


def test_an_imported_transcript_can_be_asked(tmp_path: Path) -> None:
    text = "\n".join(f"{('Ann', 'Ben')[n % 2]}: Remark {n} about trams and their fares." for n in range(200))
    text += "\nAnn: The harbour toll was forty crowns.\n"
    model = FakeModel(
        lambda call: Reply(data={"reasoning": "", "answer": "Forty.", "citations": [], "not_found": []})
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.import_transcript(text, topic="Trams")
        assert debate.ask("What was the harbour toll?").text == "Forty."
    assert "forty crowns" in model.calls[-1].messages[-2]["content"]
