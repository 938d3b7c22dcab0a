"""The channel `ui`, from which chat clients show the verdict and the positions as components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.ui import ui_message_reducer

from moot import DebateConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from tests.support.fakes import FakeModel, fake_reply

THREAD: Any = {"configurable": {"thread_id": "t"}}
ADA: Any = {"name": "Ada", "role": "engineer", "stance": "One repository."}
JUDGE: Any = {"blind": False, "swap": False}
CONFIG = DebateConfig.model_validate(
    {"turns": 2, "model": "m", "debaters": [ADA, {"name": "Bo"}], "judge": JUDGE}
)


def _reply_with_verdict(call: ModelCall) -> Reply:
    if call.purpose != "judge":
        return fake_reply(call)
    move = {"debater": "bo", "before": "Two.", "after": "One.", "stated_in": "m000001", "caused_by": ""}
    return Reply(
        model="m",
        data={
            "reasoning": "Ada showed the cost.",
            "decision": "Use one repository.",
            "winner": "ada",
            "confidence": 80,
            "final_position": [{"debater": "ada", "position": "One repository, in May."}],
            "moved": [move],
            "scores": [],
        },
    )


def test_the_result_has_a_verdict_card_and_a_positions_card() -> None:
    graph: Any = build_graph(InMemorySaver(), environment=FakeModel(_reply_with_verdict).environment())
    result = graph.invoke({"topic": "One repository?"}, THREAD, context=CONFIG)
    verdict, positions = result["ui"]
    assert (verdict["type"], verdict["name"], positions["name"]) == ("ui", "verdict", "positions")
    assert {card["metadata"]["message_id"] for card in result["ui"]} == {result["messages"][-1].id}
    props = verdict["props"]
    assert (props["status"], props["decision"], props["winner"]) == ("ok", "Use one repository.", "ada")
    assert props["confidence"] == 80
    assert [field["name"] for field in props["fields"]][:1] == ["decision"]
    ada, bo = positions["props"]["debaters"]
    assert (ada["name"], ada["stance"]) == ("Ada", "One repository.")
    assert ada["position"] == "One repository, in May."
    assert bo["moved"] == [{"before": "Two.", "after": "One.", "stated_in": "m000001", "caused_by": ""}]
    assert ui_message_reducer([], result["ui"]) == result["ui"]


def test_a_debate_without_a_judge_has_a_card_with_the_end_reason() -> None:
    config = DebateConfig(turns=2, judge={"enabled": False})
    verdict, _ = build_graph().invoke({"topic": "One repository?"}, context=config)["ui"]
    assert (verdict["props"]["status"], verdict["props"]["fields"]) == ("none", [])
    assert verdict["props"]["end_reason"] == "both turns are taken"


def test_a_second_verdict_has_cards_at_its_own_message(tmp_path: Path) -> None:
    environment = FakeModel(_reply_with_verdict).environment()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        debate = debates.start("One repository?", CONFIG)
        debate.run()
        debate.judge()
        values = debate.state().values
    results = [message.id for message in values["messages"] if message.name == "judge"]
    beside = [card["metadata"]["message_id"] for card in values["ui"]]
    assert len(results) == 2
    assert beside == [results[0]] * 2 + [results[1]] * 2
