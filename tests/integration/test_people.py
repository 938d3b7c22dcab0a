"""People in a debate: interjections, pauses, human debaters and questions, across processes and crashes."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debate, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.state.errors import ConfigError, DebatePaused, InputError, ModelError, WaitingForPerson
from moot.storage.records import open_records
from tests.support.fakes import FakeModel, fake_reply
from tests.support.moot_command import Moot
from tests.support.openai_answers import ask_question
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import LONG_TIMEOUT_S, wait_until
from tests.support.warm_process import WarmProcess

TOPIC = "Should we adopt a monorepo?"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


def _of_kind(document: Mapping[str, Any], *kinds: str) -> list[tuple[str, str]]:
    return [(e["speaker"], e["content"]) for e in document["transcript"] if e["kind"] in kinds]


def test_an_interjection_is_added_once_at_the_next_step(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=4, openings="sequential"))
        stream = debate.stream()
        for event in stream:
            if event["event"] == "entry" and event["entry"]["seq"] == 1:
                debate.say("Mind the cost.")
                debate.say("I disagree.", "skeptic")
        document = debate.document()
    interjections = [entry for entry in document["transcript"] if entry["kind"] == "interjection"]
    assert [(e["speaker"], e["content"]) for e in interjections] == [
        ("moderator", "Mind the cost."),
        ("skeptic", "I disagree."),
    ]
    assert [entry["seq"] for entry in interjections] == [2, 3]
    later = [call for call in model.calls if call.purpose == "turn"][1:]
    assert all(any("Mind the cost." in message["content"] for message in call.messages) for call in later)


def test_a_crash_before_the_checkpoint_does_not_duplicate_an_interjection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moot.nodes import plan as planning

    crashed: list[bool] = []
    real = planning.interjection_entries  # type: ignore[attr-defined]  # imported there

    def crashing(context: Any, interjections: Any, planned: Any, now: str) -> Any:
        entries = real(context, interjections, planned, now)
        if interjections and not crashed:
            crashed.append(True)
            raise RuntimeError("killed after reading the inbox")
        return entries

    monkeypatch.setattr(planning, "interjection_entries", crashing)
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=3))
        debate.say("Once.")
        with pytest.raises(RuntimeError):
            debate.run()
        document = debate.run()
    assert crashed
    assert _of_kind(document, "interjection") == [("moderator", "Once.")]


def test_a_fork_from_before_an_interjection_does_not_contain_it(
    tmp_path: Path,
) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=2, openings="sequential"))
        debate.run()
        fork = debate.fork(after=1)
        debate.say("Only here.")
        assert _of_kind(fork.run(), "interjection") == []
        assert _of_kind(debate.run(turns=1), "interjection") == [("moderator", "Only here.")]


@pytest.mark.parametrize(("text", "speaker"), [("  ", "moderator"), ("Hear!", "moot"), ("Hear!", "No Slug")])
def test_an_empty_interjection_or_an_invalid_speaker_is_rejected(
    tmp_path: Path, text: str, speaker: str
) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start(TOPIC)
        with pytest.raises(InputError):
            debate.say(text, speaker)


def test_a_pause_stops_the_run_once_at_the_end_of_a_step(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=4))

        def run_and_pause(at: int) -> None:
            for event in debate.stream():
                if event["event"] == "entry" and event["entry"]["seq"] == at:
                    debate.pause()

        with pytest.raises(DebatePaused):
            run_and_pause(2)
        assert debate.document()["status"] == "paused"
        assert debate.state().values["turn_count"] == 2
        document = debate.run()
    assert document["status"] == "done"
    assert [entry["seq"] for entry in document["transcript"]] == list(range(5))
    assert len([call for call in model.calls if call.purpose == "turn"]) == 4


def test_a_pause_request_before_a_run_does_not_stop_it(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=2))
        debate.pause()
        assert debate.run()["status"] == "done"


HUMAN: Any = {"turns": 4, "debaters": [{"name": "Ada"}, {"name": "Bo", "model": "human"}]}


def _run_until_question(debate: Debate, **going_on: Any) -> list[Any]:
    with pytest.raises(WaitingForPerson):
        debate.run(**going_on)
    return debate.questions()


def test_a_person_takes_turns_through_interrupts(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig.model_validate(HUMAN))
        (first,) = _run_until_question(debate)
        assert (first["id"], first["name"]) == ("bo.1", "Bo")
        assert debate.document()["status"] == "waiting"
        (second,) = _run_until_question(debate, answer={"bo.1": "I say no."})
        assert second["id"] == "bo.2"
        document = debate.run(answer={"bo.2": ""})
    assert _of_kind(document, "speech")[1::2] == [("bo", "I say no."), ("bo", "(passes)")]
    assert len([call for call in model.calls if call.purpose == "turn"]) == 2
    assert document["status"] == "done"
    assert document["questions"] == []


def test_model_calls_in_the_same_step_as_a_person_are_made_once(tmp_path: Path) -> None:
    model = FakeModel()
    debaters = [{"name": "Ada"}, {"name": "Bo", "model": "human"}, {"name": "Cy"}]
    config = DebateConfig.model_validate({"protocol": "council", "rounds": 1, "debaters": debaters})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, config)
        question_lists = [_run_until_question(debate)]
        while True:
            try:
                document = debate.run(
                    answer={question["id"]: f"Bo on {question['id']}" for question in question_lists[-1]}
                )
                break
            except WaitingForPerson:
                question_lists.append(debate.questions())
    assert [len(questions) for questions in question_lists] == [1, 2, 1]
    turns = [call.digest for call in model.calls if call.purpose == "turn"]
    assert len(turns) == len(set(turns)) == 2 + 4 + 2
    assert ("bo", "Bo on bo.2") in _of_kind(document, "critique")


def test_a_question_stays_open_when_the_debate_is_changed(tmp_path: Path) -> None:
    model = FakeModel()
    debaters = [{"name": "Ada"}, {"name": "Bo", "model": "human"}]
    config = DebateConfig.model_validate({"protocol": "council", "rounds": 1, "debaters": debaters})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, config)
        (proposal,) = _run_until_question(debate)
        (critique,) = _run_until_question(debate, answer={proposal["id"]: "Two ships."})
        call_count = len(model.calls)
        for concurrency in (3, 4):
            data = {**config.to_json(), "limits": {"concurrency": concurrency}}
            debate.reconfigure(DebateConfig.model_validate(data))
            assert debate.questions() == [critique]
        assert len(model.calls) == call_count
        debate.pin("m000001")  # also changes the prompts of the debaters in the same step
        assert debate.questions() == [critique]
        _run_until_question(debate, answer={critique["id"]: "Too few crews."})
        assert ("bo", "Too few crews.") in _of_kind(debate.document(), "critique")


@pytest.mark.parametrize(
    "data",
    [
        {"model": "human"},
        {"judge": {"model": "human"}},
        {"fallbacks": ["human"]},
        {"debaters": [{"name": "A", "model": "human", "tools": ["calculator"]}]},
        {
            "debaters": [
                {"name": "A", "id": "a", "model": "human"},
                {"name": "A", "id": "b", "model": "human"},
            ]
        },
    ],
    ids=["default model", "judge", "fallback", "tools", "duplicate name"],
)
def test_an_invalid_use_of_the_human_model_is_rejected(data: Any) -> None:
    from moot.config.config_files import make_config

    with pytest.raises(ConfigError):
        make_config(data)


def test_a_reply_without_a_matching_question_is_rejected(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start(TOPIC, DebateConfig.model_validate(HUMAN))
        with pytest.raises(InputError, match="is not waiting for a reply"):
            debate.run(answer="now")
        _run_until_question(debate)
        with pytest.raises(InputError, match=r"bo\.1"):
            debate.run(answer={"carl": "me"})


@pytest.fixture
def clarification_config(moot: Moot) -> Iterator[Path]:
    """Configuration file of a debate in which the debaters first ask a person questions."""
    debaters = [{"name": "Advocate"}, {"name": "Skeptic"}]
    clarifications = {"enabled": True, "max_per_debater": 1}
    with OpenAIServer(ask_question) as server:
        model = {"model": "test-model", "models": {"test-model": {"base_url": server.base_url}}}
        config = {"clarifications": clarifications, "turns": 2, "debaters": debaters, **model}
        file = moot.folder / "c.yaml"
        file.write_text(json.dumps(config))
        yield file


def test_a_debate_without_terminal_or_answers_waits_with_exit_code_6(
    moot: Moot, clarification_config: Path
) -> None:
    waiting = moot("run", TOPIC, "--config", clarification_config, "--id", "q", "--json")
    assert waiting.code == 6
    assert (waiting.json["status"], len(waiting.json["questions"])) == ("waiting", 2)
    assert "moot resume q --answers FILE" in waiting.err
    assert waiting.json["questions"][0]["question"] in waiting.err
    again = moot("resume", "q")
    assert again.code == 6
    (moot.folder / "a.yaml").write_text("advocate: [in 2031]\nSkeptic: ''\n")
    done = moot("resume", "q", "--answers", "a.yaml", "--json")
    assert done.code == 0
    assert [content for _, content in _of_kind(done.json, "answer")] == ["in 2031", "(no answer)"]


def test_replies_from_a_file_answer_their_questions(moot: Moot, clarification_config: Path) -> None:
    (moot.folder / "a.json").write_text(json.dumps({"advocate": ["in 2031"], "skeptic.2": "No."}))
    done = moot("run", TOPIC, "--config", clarification_config, "--answers", "a.json", "--json")
    assert done.code == 0
    assert done.json["status"] == "done"


def test_replies_to_unknown_debaters_are_rejected_before_any_call(
    moot: Moot, clarification_config: Path
) -> None:
    (moot.folder / "a.yaml").write_text("advocat: [in 2031]")
    refused = moot("run", TOPIC, "--config", clarification_config, "--answers", "a.yaml")
    assert refused.code == 2
    assert "'advocat'" in refused.err
    assert "advocate, skeptic" in refused.err
    assert not moot.db.exists()
    assert moot("run", TOPIC, "--config", clarification_config, "--id", "q").code == 6
    again = moot("resume", "q", "--answers", "a.yaml")
    assert again.code == 2
    assert "advocate.1" in again.err


def test_an_unreadable_answers_file_is_rejected_before_the_run(moot: Moot) -> None:
    (moot.folder / "a.yaml").write_text("just words")
    for name in ("a.yaml", "none.yaml"):
        refused = moot("run", TOPIC, "--answers", name)
        assert refused.code == 2
        assert name in refused.err
    assert not moot.db.exists()


def _start(moot: Moot, server: OpenAIServer, *words: str) -> WarmProcess:
    return moot.start(*words, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")


def _finish(moot: Moot, server: OpenAIServer, *words: str) -> int:
    with _start(moot, server, *words) as process:
        process.communicate(timeout=LONG_TIMEOUT_S)
        return process.returncode


@pytest.mark.slow
def test_another_terminal_interjects_and_pauses_and_the_debate_resumes(moot: Moot) -> None:
    with OpenAIServer(latency=0.3) as server:
        running = _start(
            moot, server, "run", TOPIC, "--model", "m", "--turns", "60", "--id", "x", "--no-judge"
        )
        assert wait_until(lambda: len(server.chats) >= 2)
        assert moot("say", "x", "Mind the cost.", "--as", "Dr. Wu").code == 0
        assert wait_until(lambda: any("Mind the cost." in json.dumps(chat) for chat in server.chats))
        assert moot("pause", "x").code == 0
        _, errors = running.communicate(timeout=LONG_TIMEOUT_S)
        assert running.returncode == 130
        assert "moot resume x" in errors
        assert moot("list", "--json").json[0]["status"] == "paused"
        assert "No process runs" in moot("pause", "x").err
        server.latency = 0.0
        assert _finish(moot, server, "resume", "x") == 0
    document = moot("show", "x", "--json").json
    assert _of_kind(document, "interjection") == [("dr-wu", "Mind the cost.")]
    assert document["status"] == "done"
    assert len(_of_kind(document, "speech")) == 60


@pytest.mark.slow
def test_a_process_killed_after_a_reply_repeats_no_finished_call(moot: Moot) -> None:
    (moot.folder / "c.yaml").write_text(json.dumps({**HUMAN, "model": "m"}))
    with OpenAIServer(latency=0.2) as server:
        assert _finish(moot, server, "run", TOPIC, "--config", "c.yaml", "--id", "h") == 6
        answered = _start(moot, server, "resume", "h", "--answer", "I say no.")
        assert wait_until(lambda: len(server.chats) == 2)
        answered.send_signal(signal.SIGKILL)
        answered.communicate()
        last = _finish(moot, server, "resume", "h", "--answer", "Still no.")
        if last == 2:  # killed before the second question was reached
            assert _finish(moot, server, "resume", "h") == 6
            last = _finish(moot, server, "resume", "h", "--answer", "Still no.")
        assert last == 0
        turns = [json.dumps(chat["messages"]) for chat in server.chats if "response_format" not in chat]
    document = moot("show", "h", "--json").json
    assert [content for speaker, content in _of_kind(document, "speech") if speaker == "bo"] == [
        "I say no.",
        "Still no.",
    ]
    assert len(set(turns)) == 2
    assert len(turns) <= 3, "only the call in flight at the kill may be asked again"


def test_inbox_rows_are_numbered_in_order_and_deleted_with_their_debate(tmp_path: Path) -> None:
    records = open_records(str(tmp_path / "d.sqlite"))
    assert [records.inbox.add("d", "moderator", word, "") for word in "abc"] == [1, 2, 3]
    records.inbox.request_pause("d", "")
    assert records.inbox.consume_pause("d")
    assert not records.inbox.consume_pause("d")
    assert records.inbox.add("d", "moderator", "e", "") == 5
    assert [each.content for each in records.inbox.since("d", 2).messages] == ["c", "e"]
    records.forget("d")
    assert records.inbox.since("d", 0).messages == []
    records.close()


def test_a_failed_call_in_the_same_step_as_a_person_raises_an_error(tmp_path: Path) -> None:
    def failing(call: ModelCall) -> Reply:
        return Reply(error="down") if call.purpose == "turn" else fake_reply(call)

    debaters = [{"name": "Ada"}, {"name": "Bo", "model": "human"}]
    config = DebateConfig.model_validate({"protocol": "council", "rounds": 1, "debaters": debaters})
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(failing).environment()) as debates:
        debate = debates.start(TOPIC, config)
        questions = _run_until_question(debate)
        with pytest.raises(ModelError):  # only the failing model has a turn in the next step
            debate.run(answer={questions[0]["id"]: "My design."})
        assert _of_kind(debate.document(), "proposal") == [("bo", "My design.")]
