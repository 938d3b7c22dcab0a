"""Question extraction: options and criteria are extracted once, before the debate, and then used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.claims.ledger_from_events import ledger_of
from moot.claims.model_extraction import uses_model
from moot.config import DebateConfig, PanelJudge
from moot.config.rubrics import parse_rubric
from moot.graph.debate import build_graph
from moot.judging.question import (
    OTHER_ANSWERS,
    asked_of_topic,
    question_call,
    question_found,
    question_text,
)
from moot.judging.rubrics import rubric_for
from moot.protocols.registry import protocol_named
from moot.state.conversation import DebateQuestion
from moot.state.entries import make_entry
from moot.text.tokens import counter, message_tokens
from tests.support.fakes import FakeModel, fake_reply
from tests.support.schema_answers import fill_schema

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
TOPIC = "Build our own controller, or keep buying?"
CRITERIA = [{"name": f"Fit {n}", "description": f"It fits {n}."} for n in ("cost", "time", "risk")]
EXTRACTED = {"question": "Build or buy?", "options": ["build", "keep buying"], "criteria": CRITERIA}
TEAM = [{"name": "Ines", "role": "head of hardware"}, {"name": "Tomas", "role": "finance lead"}]


def _reply(call: ModelCall) -> Reply:
    if call.schema is None:
        return fake_reply(call)
    data: dict[str, Any] = fill_schema(call.schema.model_json_schema(), EXTRACTED)
    if "events" in data:
        contents = [message["content"] for message in call.messages[1:]]
        ids = list(call.hints["message_ids"])
        last = [next(text for text in contents if f"[{key}]" in text).splitlines()[1] for key in ids]
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


def test_council_is_judged_by_the_criteria_of_its_question() -> None:
    values, model = _run("council", rounds=1)
    question_calls = [call for call in model.calls if call.hints["phase"] == "question"]
    assert len(question_calls) == 1
    turns = [call for call in model.calls if call.purpose == "turn"]
    assert all("- Fit cost: It fits cost." in call.messages[0]["content"] for call in turns)
    assert not any("Security" in str(call.messages) for call in turns)
    assert [each["name"] for each in values["verdict"]["criteria"]] == ["Fit cost", "Fit time", "Fit risk"]
    assert values["full_transcript"][1]["kind"] == "proposal"  # the topic already says what is asked


def test_custom_roles_are_kept_in_council_prompts() -> None:
    _, model = _run("council", rounds=1)
    prompts = str([call.messages for call in model.calls if call.purpose == "turn"])
    assert "Your role: finance lead." in prompts
    assert "generalist" not in prompts


def test_council_of_software_roles_extracts_no_criteria() -> None:
    values, model = _run(
        "council", rounds=1, debaters=[{"name": "A", "role": "architect"}, {"name": "security"}]
    )
    assert not [call for call in model.calls if call.hints["phase"] == "question"]
    assert "security" in {each["id"] for each in values["verdict"]["criteria"]}


def test_stance_on_an_open_question_names_an_option() -> None:
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
def test_extraction_asks_only_for_parts_that_are_used(
    fields: dict[str, Any], topic: str, parts: tuple[str, ...]
) -> None:
    config = DebateConfig.model_validate({"model": "m", **fields})
    protocol = protocol_named(config.protocol)
    extracts = uses_model(config.blackboard, config.model, auto=protocol.extracts_by_default)
    assert asked_of_topic(config, topic, protocol.judge_spec, extracts=extracts) == parts


def test_options_are_extracted_from_the_background(tmp_path: Path) -> None:
    (tmp_path / "brief.md").write_text("Options: (A) build, (B) keep buying.")
    values, model = _run("council", rounds=1, context=str(tmp_path / "brief.md"))
    (question_call,) = [call for call in model.calls if call.hints["phase"] == "question"]
    assert "Leave the list empty if they name none." in question_call.messages[0]["content"]
    assert values["question"]["options"] == ["build", "keep buying"]
    turn = next(call for call in model.calls if call.purpose == "turn")
    assert any("Options:\n- build\n- keep buying" in message["content"] for message in turn.messages)


def test_single_option_and_failed_reply_are_ignored() -> None:
    parts = ("question", "options")
    one = {"question": "Q?", "options": ["yes", "undecided"]}
    assert question_found(parts, Reply(data=one)) == {"question": "Q?"}
    assert question_found(parts, Reply(error="down")) == {}


def test_options_and_criteria_are_deduplicated_ignoring_case() -> None:
    names = ("Cost", "COST", "cost-fit", "Cost fit", "Risk", "--")
    criteria = [{"name": name, "description": f"It is {name}."} for name in names]
    reply = Reply(data={"question": "Q?", "options": ["Build", "build", "buy"], "criteria": criteria})
    extracted = question_found(("question", "options", "criteria"), reply)
    assert extracted["options"] == ["Build", "buy"]
    assert [each["name"] for each in extracted["criteria"]] == ["Cost", "cost-fit", "Risk"]
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
    by_text = {text: rubric.criterion(text) for text in ("a_b", "A B", "risk", "Risk", "danger", "fun")}
    ids = {text: criterion.id if criterion else None for text, criterion in by_text.items()}
    assert ids == {"a_b": "a_b", "A B": "a-b", "risk": "risk", "Risk": "risk", "danger": "risk", "fun": None}


def test_long_question_is_not_truncated() -> None:
    question = "Which of " + "five options for the field service " * 10 + "should we choose?"
    assert question_found(("question",), Reply(data={"question": question})) == {"question": question}


def test_question_text_is_empty_unless_it_adds_to_the_topic() -> None:
    assert question_text({}, "Trams?\nThey are late.") == ""
    assert question_text({"question": "Trams?"}, "Trams?") == ""
    assert question_text({"question": "Trams?"}, "Trams?\nThey are late.") == "Question to decide: Trams?"


def test_question_text_omits_a_question_equal_to_the_topic() -> None:
    extracted: DebateQuestion = {"question": "Build, or buy?", "options": ["build", "buy"]}
    listed = f"Options:\n- build\n- buy\n\n{OTHER_ANSWERS}"
    assert question_text(extracted, "Build, or  buy?") == listed
    assert question_text(extracted, "What now?") == f"Question to decide: Build, or buy?\n\n{listed}"


def test_prompt_of_a_question_with_a_long_topic_and_background_fits_the_budget() -> None:
    count = counter()
    config = DebateConfig.model_validate(
        {"model": "m", "debaters": TEAM, "memory": {"budget": {"total": 1500}}}
    )
    background = [make_entry(1, "user", "context", "The controller costs 40 crowns. " * 2000)]
    call = question_call(
        config, "Build or buy? " * 2000, ("question", "options", "criteria"), background, count, extracts=True
    )
    assert 1000 < sum(message_tokens(message, count) for message in call.messages) <= 1500
    assert call.prompt
    # The topic is cut in advance, which the receipt says. The room for the rules is left, so that is all.
    assert [(note["what"], note["why"], note["count"]) for note in call.prompt.omitted] == [
        ("messages", "cut in its middle", 1)
    ]
