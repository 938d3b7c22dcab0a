"""Content of prompts beside debaters' messages: user-provided text, tool results, reference documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debate, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.documents import DebateDocument
from moot.judging.transcript_selection import FRAME_TOKENS, TranscriptSelector
from moot.people import PersonQuestion
from moot.state.entries import Entry, make_entry
from moot.state.errors import WaitingForPerson
from moot.text.tokens import counter, prompt_tokens
from tests.support.fakes import FakeModel, fake_reply
from tests.support.personas import STATEMENTS, ScriptedDebaters, scripted_debaters

TOPIC = "Should freight leave the harbour?"
COUNT = counter()
DOCUMENT = "The mole of 1884 is cracked."
PROTOCOL_SETTINGS: dict[str, Any] = {
    "council": {"rounds": 2, "debaters": [{"name": "Ada"}, {"name": "Bob"}]},
    "dialogue": {
        "debaters": [{"name": "Ada", "stance": "for"}, {"name": "Bob", "stance": "against"}],
        "dialogue": {"aspects": ["freight", "who pays"]},
    },
    "moderated": {"turns": 4, "debaters": [{"name": "Ada"}, {"name": "Bob"}]},
    "random": {"turns": 4, "seed": 1, "debaters": [{"name": "Ada"}, {"name": "Bob"}]},
    "round-robin": {"turns": 4, "debaters": [{"name": "Ada"}, {"name": "Bob"}]},
    "single": {"debaters": [{"name": "Ada"}]},
    "vote": {"debaters": [{"name": "Ada"}], "vote": {"answers": 2}, "decide": "judge"},
}
PROTOCOLS = [pytest.param(name, id=name) for name in PROTOCOL_SETTINGS]


def _config(protocol: str, **data: Any) -> DebateConfig:
    return DebateConfig.model_validate({"protocol": protocol, **PROTOCOL_SETTINGS[protocol], **data})


def _reply(call: ModelCall) -> Reply:
    if call.purpose == "clarify":
        return Reply(data={"questions": [f"What of {call.hints['speaker']}'s pier?"]}, model=call.model)
    return fake_reply(call)


def _text(call: ModelCall) -> str:
    return "\n".join(message["content"] for message in call.messages)


def _prompts(model: FakeModel, purpose: str) -> list[str]:
    return [_text(call) for call in model.calls if call.purpose == purpose]


def _debate(
    tmp_path: Path, config: DebateConfig, model: FakeModel, run: Callable[[Debate], Any]
) -> DebateDocument:
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, config)
        run(debate)
        return debate.document()


def _interject_in_every_phase(debate: Debate) -> None:
    debate.say("Remark 0.")
    phases: list[tuple[str, int]] = []
    for event in debate.stream():
        if event["event"] != "entry":
            continue
        entry = event["entry"]
        if entry.get("model") and (entry["phase"], entry["round"]) not in phases:
            phases.append((entry["phase"], entry["round"]))
            debate.say(f"Remark {len(phases)}.")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_debater_and_judge_sees_a_text_file(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "facts.txt").write_text(DOCUMENT)
    model = FakeModel(_reply)
    _debate(tmp_path, _config(protocol, context=str(tmp_path / "facts.txt")), model, Debate.run)
    assert len(_prompts(model, "turn")) >= 1
    assert all(DOCUMENT in text for text in _prompts(model, "turn"))
    assert len(_prompts(model, "judge")) >= (protocol != "single")
    assert all(DOCUMENT in text for text in _prompts(model, "judge"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_debater_and_judge_sees_each_question_with_its_reply(tmp_path: Path, protocol: str) -> None:
    model = FakeModel(_reply)

    def run_and_reply(debate: Debate) -> None:
        with pytest.raises(WaitingForPerson):
            debate.run()
        debate.run(answer=["It was sold in May."] * len(debate.questions()))

    _debate(tmp_path, _config(protocol, clarifications={"enabled": True}), model, run_and_reply)
    assert all("It was sold in May." in text for text in _prompts(model, "turn") + _prompts(model, "judge"))
    assert all("Ada's pier?" in text for text in _prompts(model, "turn"))
    assert all("pier?" in text for text in _prompts(model, "judge"))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOL_SETTINGS if name not in ("single", "vote")])
def test_later_debaters_and_the_judge_see_an_interjection(tmp_path: Path, protocol: str) -> None:
    model = FakeModel(_reply)
    document = _debate(tmp_path, _config(protocol), model, _interject_in_every_phase)
    remarks = [entry for entry in document["transcript"] if entry["kind"] == "interjection"]
    assert len(remarks) >= 3
    turns = [call for call in model.calls if call.purpose == "turn"]
    turn_seqs = [receipt["seq"] for receipt in document["receipts"]]
    for call, seq in zip(turns, turn_seqs, strict=True):
        shown = [entry["seq"] for entry in remarks if entry["content"] in _text(call)]
        assert shown == [entry["seq"] for entry in remarks if entry["seq"] < seq]
    assert all(entry["content"] in text for entry in remarks for text in _prompts(model, "judge"))


@pytest.mark.parametrize("protocol", ["council", "dialogue"])
def test_user_provided_text_is_truncated_before_the_answered_message(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "facts.txt").write_text(DOCUMENT + " Mud." * 30_000)
    model = FakeModel(_reply)

    def interject_and_run(debate: Debate) -> None:
        debate.say("Mind the cost. " * 3000)
        debate.run()

    config = _config(protocol, context=str(tmp_path / "facts.txt"))
    document = _debate(tmp_path, config, model, interject_and_run)
    contents = {entry["speaker"]: entry["content"] for entry in document["transcript"] if entry["model"]}
    assert set(contents) == {"ada", "bob"}
    for call in model.calls:
        assert prompt_tokens(call.messages, COUNT) <= config.memory.budget.total
        if call.hints["phase"] in ("critique", "respond", "reply"):
            assert "I say" in _text(call)


def _tool_model(speaker: str, expression: str) -> Callable[[ModelCall], Reply]:
    """Return a reply function in which one debater calls a tool before each message."""

    def reply(call: ModelCall) -> Reply:
        if not call.tools or any(message["role"] == "tool" for message in call.messages):
            return _reply(call)
        tool_call = {"id": "c", "name": "calculator", "args": {"expression": expression}}
        return Reply(text="", tool_calls=(tool_call,), model="m")

    return reply


DEBATERS_WITH_TOOLS: Any = [{"name": "Ada", "tools": ["calculator"]}, {"name": "Bob"}]


@pytest.mark.parametrize(
    ("protocol", "phases"), [("council", ["critique", "refine"]), ("dialogue", ["respond", "reply"])]
)
def test_tool_results_are_shown_with_the_message_of_their_turn(
    tmp_path: Path, protocol: str, phases: Sequence[str]
) -> None:
    model = FakeModel(_tool_model("ada", "6 * 7"))
    _debate(tmp_path, _config(protocol, debaters=DEBATERS_WITH_TOOLS), model, Debate.run)
    others = [call for call in model.calls if call.purpose == "turn" and call.hints["speaker"] == "Bob"]
    shown = [call for call in others if call.hints["phase"] in phases]
    assert len(shown) >= 2
    for call in shown:
        (exchange, *_) = [text for text in _messages(call) if "calculator: 6 * 7 = 42" in text]
        assert 'calculator {"expression": "6 * 7"}' in exchange
        assert exchange.startswith("Ada [m")


def _messages(call: ModelCall) -> list[str]:
    return [message["content"] for message in call.messages]


def test_tool_results_are_dropped_before_messages(tmp_path: Path) -> None:
    long = " + ".join(["1"] * 200)
    model = FakeModel(_tool_model("ada", long))
    budget = {"total": 1600, "system": 700, "summary": 100, "messages": 800, "turn_suffix": 300}
    config = _config("council", debaters=DEBATERS_WITH_TOOLS, memory={"budget": budget}, rounds=1)
    document = _debate(tmp_path, config, model, Debate.run)
    (proposal,) = [e for e in document["transcript"] if e["kind"] == "proposal" and e["speaker"] == "ada"]
    (critique,) = [
        call for call in model.calls if call.hints["phase"] == "critique" and call.hints["speaker"] == "Bob"
    ]
    assert proposal["content"] in _text(critique)
    assert prompt_tokens(critique.messages, COUNT) <= 1600


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reference_documents_appear_only_in_their_debaters_prompts(tmp_path: Path, protocol: str) -> None:
    reference_documents = [
        {"name": "logbook", "text": "Freight was late on nine days in the harbour, and the city pays."}
    ]
    first, *rest = PROTOCOL_SETTINGS[protocol]["debaters"]
    model = FakeModel(_reply)
    _debate(
        tmp_path,
        _config(protocol, debaters=[{**first, "reference_documents": reference_documents}, *rest]),
        model,
        Debate.run,
    )
    turns = [call for call in model.calls if call.purpose == "turn"]
    assert "Ada" in {call.hints["speaker"] for call in turns}
    for call in turns:
        assert ("[logbook §1] Freight was late" in _text(call)) == (call.hints["speaker"] == "Ada")


@pytest.mark.parametrize("persona", ["She fears for her licence.", {"At stake": "her licence"}])
@pytest.mark.parametrize("protocol", ["single", "vote"])
def test_single_debater_sees_its_persona_contract(tmp_path: Path, protocol: str, persona: object) -> None:
    model = FakeModel(_reply)
    _debate(tmp_path, _config(protocol, debaters=[{"name": "Ada", "persona": persona}]), model, Debate.run)
    assert all("her licence" in text for text in _prompts(model, "turn"))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOL_SETTINGS if name not in ("single", "vote")])
def test_every_turn_prompt_has_the_agreement_instruction(tmp_path: Path, protocol: str) -> None:
    model = FakeModel(_reply)
    _debate(tmp_path, _config(protocol, agreement_intensity=0.0), model, Debate.run)
    assert all("Give no ground" in text for text in _prompts(model, "turn"))


def test_closing_prompt_lists_contested_claims_with_both_sides(tmp_path: Path) -> None:
    disputed = {"take": (("Ada Quay", "Bob", STATEMENTS[0]),)}
    model = ScriptedDebaters(disputes=disputed)
    config = scripted_debaters(2, dialogue={"crux": {"max_rooms": 0}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debates.start(TOPIC, config).run()
    closings = [_text(call) for call in model.turns_in_phase("closing")]
    assert len(closings) == 2
    dispute = rf"Disputed:\n- {STATEMENTS[0]} \(Ada Quay \[m\d+\] yes; Bob \[m\d+\] no\)"
    assert all(re.search(dispute, text) for text in closings)


def _all_questions(tmp_path: Path, config: DebateConfig) -> tuple[list[PersonQuestion], DebateDocument]:
    """Reply to all questions that a person gets. Return the questions and the debate."""
    questions: list[PersonQuestion] = []

    def run_and_reply(debate: Debate) -> None:
        reply: dict[str, Any] = {}
        for _ in range(20):
            try:
                debate.run(**reply)
                return
            except WaitingForPerson:
                questions.extend(debate.questions())
                reply = {"answer": ["I would try it."] * len(debate.questions())}

    return questions, _debate(tmp_path, config, FakeModel(_reply), run_and_reply)


ROBIN: Any = {"name": "Robin", "model": "human"}


def test_person_in_a_council_sees_the_instruction_and_the_messages(tmp_path: Path) -> None:
    config = _config("council", debaters=[{"name": "Ada"}, ROBIN], rounds=1, agreement_intensity=0.0)
    questions, document = _all_questions(tmp_path, config)
    contents = {(e["kind"], e["speaker"]): e["content"] for e in document["transcript"]}
    propose, critique, refine = (question["question"] for question in questions)
    assert "First, write your proposal" in propose
    assert "Criticise Ada's proposal above" in critique
    assert contents["proposal", "ada"] in critique
    assert "Write your revised proposal in full" in refine
    assert contents["critique", "ada"] in refine
    assert all(TOPIC in text and "Give no ground" in text for text in (propose, critique, refine))


@pytest.mark.parametrize(("protocol", "ending"), [("single", "Reason first"), ("vote", '"Answer: "')])
def test_single_person_sees_the_question_and_the_instruction(
    tmp_path: Path, protocol: str, ending: str
) -> None:
    questions, _ = _all_questions(tmp_path, _config(protocol, debaters=[ROBIN]))
    assert len(questions) == (1 if protocol == "single" else 2)
    assert all(TOPIC in each["question"] and ending in each["question"] for each in questions)


@pytest.mark.parametrize(
    ("protocol", "asking"), [("dialogue", "(Answering Ada.)"), ("round-robin", "First answer the strongest")]
)
def test_person_sees_the_message_to_answer(tmp_path: Path, protocol: str, asking: str) -> None:
    questions, document = _all_questions(tmp_path, _config(protocol, debaters=[{"name": "Ada"}, ROBIN]))
    contents = [e["content"] for e in document["transcript"] if e["speaker"] == "ada"]
    answers = [each["question"] for each in questions if asking in each["question"]]
    assert len(answers) >= 1
    assert all(any(content in text for content in contents) for text in answers)


def _entry(seq: int, speaker: str, kind: Any, tokens: int) -> Entry:
    return {**make_entry(seq, speaker, kind, "word " * tokens), "tokens": tokens}


@pytest.mark.parametrize(
    ("speech", "share"), [(200, None), (1000, 900)], ids=["messages fit", "messages are truncated"]
)
def test_long_document_gets_the_remaining_tokens_or_a_tenth(speech: int, share: int | None) -> None:
    sides = [_entry(seq, ("ada", "bob")[seq % 2], "speech", speech) for seq in range(2, 6)]
    shown = TranscriptSelector([_entry(1, "user", "context", 50_000), *sides], ["ada", "bob"], {}).select(
        "word", 2000
    )
    (document,) = [one for one in shown.messages if one.entry["kind"] == "context"]
    left = 2000 - 4 * (200 + FRAME_TOKENS) if share is None else 200
    assert (shown.share, document.remaining) == (share, left)
