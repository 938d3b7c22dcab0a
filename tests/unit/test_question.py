"""The debated question: its options and criteria are asked for once, before the debate, and used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.effects import ModelCall, Reply
from moot.claims.ledger_from_events import ledger_of
from moot.graph.debate import build_graph
from moot.judging.question import OTHER_ANSWERS, asked_of_topic, question_found, question_text
from moot.judging.rubrics import parse_rubric, rubric_for
from moot.protocols.registry import protocol_named
from moot.state.config import DebateConfig, PanelJudge
from moot.state.conversation import DebateQuestion
from tests.support.fakes import FakeModel, answer
from tests.support.schema_answers import filled

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
TOPIC = "Build our own controller, or keep buying?"
CRITERIA = [{"name": f"Fit {n}", "description": f"It fits {n}."} for n in ("cost", "time", "risk")]
FOUND = {"question": "Build or buy?", "options": ["build", "keep buying"], "criteria": CRITERIA}
TEAM = [{"name": "Ines", "role": "head of hardware"}, {"name": "Tomas", "role": "finance lead"}]


def _reply(call: ModelCall) -> Reply:
    if call.schema is None:
        return answer(call)
    data: dict[str, Any] = filled(call.schema.model_json_schema(), FOUND)
    if "events" in data:
        said = [message["content"] for message in call.messages[1:]]
        ids = list(call.hints["message_ids"])
        last = [next(text for text in said if f"[{key}]" in text).splitlines()[1] for key in ids]
        base = {"claim": "p000", "kind": "asserts", "condition": "", "ground": False, "confidence": 0.9}
        chosen = zip(ids, last, ("build", "keep buying"), strict=False)
        data["events"] = [{**base, "message_id": k, "quote": q, "option": o} for k, q, o in chosen]
    return Reply(data=data, model=call.model)


def _run(protocol: str, **fields: Any) -> tuple[dict[str, Any], FakeModel]:
    model = FakeModel(_reply)
    config = DebateConfig.model_validate(
        {"protocol": protocol, "model": "m", "debaters": TEAM, "topic": TOPIC, **fields}
    )
    graph = build_graph(InMemorySaver(), environment=model.environment())
    graph.invoke({"topic": TOPIC}, THREAD, context=config)
    return graph.get_state(THREAD).values, model


def test_a_council_on_a_decision_is_judged_by_the_criteria_of_its_question() -> None:
    values, model = _run("council", rounds=1)
    asked = [call for call in model.calls if call.hints["phase"] == "question"]
    assert len(asked) == 1
    turns = [call for call in model.calls if call.purpose == "turn"]
    assert all("- Fit cost: It fits cost." in call.messages[0]["content"] for call in turns)
    assert not any("Security" in str(call.messages) for call in turns)
    assert [each["name"] for each in values["verdict"]["criteria"]] == ["Fit cost", "Fit time", "Fit risk"]
    assert values["full_transcript"][1]["kind"] == "proposal"  # the topic already says what is asked


def test_members_without_a_built_in_role_speak_as_their_own_role() -> None:
    _, model = _run("council", rounds=1)
    said = str([call.messages for call in model.calls if call.purpose == "turn"])
    assert "Your role: finance lead." in said
    assert "generalist" not in said


def test_a_council_of_software_roles_asks_for_no_criteria() -> None:
    values, model = _run(
        "council", rounds=1, debaters=[{"name": "A", "role": "architect"}, {"name": "security"}]
    )
    assert not [call for call in model.calls if call.hints["phase"] == "question"]
    assert "security" in {each["id"] for each in values["verdict"]["criteria"]}


def test_a_position_on_an_open_question_is_an_option() -> None:
    values, _ = _run("round-robin", turns=2, blackboard={"extraction": "llm"}, judge={"enabled": False})
    status = ledger_of(values).claim_status("p000")
    note = values["full_transcript"][1]["content"]
    assert note.endswith(f"Options:\n- build\n- keep buying\n\n{OTHER_ANSWERS}")
    assert values["question"]["options"] == ["build", "keep buying"]
    assert status.status == "disputed"
    assert {e["option"] for e in ledger_of(values).stances("p000").values()} == {"build", "keep buying"}


@pytest.mark.parametrize(
    ("fields", "topic", "parts"),
    [
        ({"protocol": "round-robin"}, "Trams?", ()),
        ({"protocol": "round-robin"}, "Trams?\nThey are late.", ("question", "options")),
        ({"protocol": "council", "debaters": TEAM}, "Trams?\nLate.", ("question", "options", "criteria")),
        ({"protocol": "dialogue"}, "Trams?", ("question", "options")),
        ({"protocol": "dialogue", "options": ["a", "b"]}, "Trams?", ()),
        ({"protocol": "dialogue", "model": "offline"}, "Trams?", ()),
        ({"protocol": "single"}, "Trams?\nThey are late.", ()),
        ({"protocol": "council", "debaters": TEAM}, "Trams?", ("question", "criteria")),
        ({"protocol": "council", "debaters": TEAM, "judge": {"rubric": "debate"}}, "Trams?", ()),
    ],
)
def test_a_model_is_asked_only_for_parts_that_somebody_reads(
    fields: dict[str, Any], topic: str, parts: tuple[str, ...]
) -> None:
    config = DebateConfig.model_validate({"model": "m", **fields})
    protocol = protocol_named(config.protocol)
    extracts = protocol.extracts_by_model(config)
    assert asked_of_topic(config, topic, protocol.judge_spec, extracts=extracts) == parts


def test_options_that_the_background_names_are_found_with_the_criteria(tmp_path: Path) -> None:
    (tmp_path / "brief.md").write_text("Options: (A) build, (B) keep buying.")
    values, model = _run("council", rounds=1, context=str(tmp_path / "brief.md"))
    (asked,) = [call for call in model.calls if call.hints["phase"] == "question"]
    assert "Leave the list empty if they name none." in asked.messages[0]["content"]
    assert values["question"]["options"] == ["build", "keep buying"]
    turn = next(call for call in model.calls if call.purpose == "turn")
    assert any("Options:\n- build\n- keep buying" in message["content"] for message in turn.messages)


def test_one_option_is_none_and_a_failed_reply_finds_nothing() -> None:
    parts = ("question", "options")
    one = {"question": "Q?", "options": ["yes", "undecided"]}
    assert question_found(parts, Reply(data=one)) == {"question": "Q?"}
    assert question_found(parts, Reply(error="down")) == {}


def test_options_and_criteria_that_differ_only_in_case_are_one() -> None:
    names = ("Cost", "COST", "cost-fit", "Cost fit", "Risk", "--")
    criteria = [{"name": name, "description": f"It is {name}."} for name in names]
    reply = Reply(data={"question": "Q?", "options": ["Build", "build", "buy"], "criteria": criteria})
    found = question_found(("question", "options", "criteria"), reply)
    assert found["options"] == ["Build", "buy"]
    assert [each["name"] for each in found["criteria"]] == ["Cost", "cost-fit", "Risk"]
    reply.data["criteria"] = criteria[:4]  # type: ignore[index]  # it has data
    assert "criteria" not in question_found(("question", "options", "criteria"), reply)


@given(st.lists(st.sampled_from(["Criterion 2", "criterion-1", "成本", "费用", "1. Cost", "Cost", "Kosten"])))
def test_a_rubric_keeps_every_criterion_of_the_question(names: list[str]) -> None:
    assume(names)
    criteria: list[Any] = [{"name": name, "description": str(n)} for n, name in enumerate(names)]
    config = DebateConfig.model_validate({"protocol": "council", "debaters": TEAM})
    rubric = rubric_for(PanelJudge(id="judge"), config, "design", {"criteria": criteria})
    assert [each.description for each in rubric.criteria] == [str(n) for n in range(len(names))]
    assert [rubric.criterion(each.id) for each in rubric.criteria] == list(rubric.criteria)


def test_a_criterion_is_found_by_its_exact_id_first() -> None:
    criteria = [
        {"id": "a-b", "name": "Risk"},
        {"id": "a_b", "name": "Cost"},
        {"id": "x", "name": "Risk"},
        {"id": "risk", "name": "Danger"},
    ]
    rubric = parse_rubric({"name": "own", "criteria": criteria})
    found = {said: rubric.criterion(said) for said in ("a_b", "A B", "risk", "Risk", "danger", "fun")}
    ids = {said: criterion.id if criterion else None for said, criterion in found.items()}
    assert ids == {"a_b": "a_b", "A B": "a-b", "risk": "risk", "Risk": "risk", "danger": "risk", "fun": None}


def test_a_question_is_kept_whole() -> None:
    question = "Which of " + "five options for the field service " * 10 + "should we choose?"
    assert question_found(("question",), Reply(data={"question": question})) == {"question": question}


def test_the_note_is_written_only_if_it_says_more_than_the_topic() -> None:
    assert question_text({}, "Trams?\nThey are late.") == ""
    assert question_text({"question": "Trams?"}, "Trams?") == ""
    assert question_text({"question": "Trams?"}, "Trams?\nThey are late.") == "Question to decide: Trams?"


def test_the_note_on_options_does_not_repeat_a_question_that_the_topic_already_asks() -> None:
    found: DebateQuestion = {"question": "Build, or buy?", "options": ["build", "buy"]}
    listed = f"Options:\n- build\n- buy\n\n{OTHER_ANSWERS}"
    assert question_text(found, "Build, or  buy?") == listed
    assert question_text(found, "What now?") == f"Question to decide: Build, or buy?\n\n{listed}"
