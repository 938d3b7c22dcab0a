"""Tables of phases: `next_step` follows them, and the drawings of the protocol graphs show them."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from moot import DebateConfig, build_graph
from moot.calls.model_calls import ModelCall, Reply
from moot.graph.debate import served_graph
from moot.judging.draft_test import TEST
from moot.models.offline import recording_config, recordings
from moot.protocols.base import Protocol
from moot.protocols.registry import PROTOCOLS
from moot.protocols.schedule import DECIDE, OVER
from moot.runtime.environment import Environment
from tests.support.fakes import JUDGE_REPLY, FakeModel, fake_reply
from tests.support.personas import STATEMENTS, ScriptedDebaters, scripted_debaters

Pairs = set[tuple[str, str]]
PAIRS = (("Ada Quay", "Bob"), ("Bob", "Cyd"), ("Cyd", "Ada Quay"))


def _transitions(topic: str, config: DebateConfig, environment: Environment | None = None) -> Pairs:
    """Run a debate, and return the pairs of phases that follow each other."""
    graph: Any = build_graph(environment=environment)
    steps = ["", *_phases(graph.stream({"topic": topic}, context=config, stream_mode="updates"))]
    return {pair for pair in pairwise(steps) if pair[0] != OVER}


def _phases(updates: Any) -> list[str]:
    steps = [update["plan"]["step"] for update in updates if "plan" in update]
    return [OVER if "end_reason" in step or step["phase"] == DECIDE else step["phase"] for step in steps]


def _declared(protocol: Protocol) -> Pairs:
    first = next(iter(protocol.phases))
    following = {(name, each) for name, phase in protocol.phases.items() for each in phase.following}
    return {("", first)} | following


@pytest.mark.parametrize("name", recordings())
def test_a_recorded_debate_follows_the_table_of_its_protocol(name: str) -> None:
    settings = recording_config(name)
    config = DebateConfig(**{key: value for key, value in settings.items() if key != "topic"})
    assert _transitions(settings["topic"], config) <= _declared(PROTOCOLS[config.protocol])


def _dialogue(draw: random.Random) -> Pairs:
    """Run a dialogue with a random length and random disputes between three personas."""
    crux = {
        "cycles": draw.randint(1, 2),
        "max_rooms": draw.randint(0, 3),
        "cooldown": 0,
        "specific": False,
        "relevance": 0,
    }
    aspects = [["freight"], ["freight", "who pays"]][draw.randint(0, 1)]
    settings = {"aspects": aspects, "minirounds": draw.randint(1, 2), "crux": crux}
    disputes = {
        phase: tuple((*draw.choice(PAIRS), draw.choice(STATEMENTS)) for _ in range(draw.randint(0, 2)))
        for phase in ("opening", "respond", "reply")
    }
    model = ScriptedDebaters(disputes=disputes, resolved=frozenset(draw.sample(STATEMENTS, 1)))
    return _transitions("Freight?", scripted_debaters(3, dialogue=settings), model.environment())


def _council(draw: random.Random) -> Pairs:
    """Run a council with a random length, whose judge sees a random agreement. Critics may refuse."""
    refusing = draw.choice(["", "critique"])

    def reply(call: ModelCall) -> Reply:
        if call.purpose == "judge":
            return Reply(data={**JUDGE_REPLY, "decision": "Build it."}, model=call.model)
        if call.hints["phase"] == refusing:
            return Reply(error="m: the model refused: no", refused=True, model=call.model)
        if call.purpose != "evaluate" or call.hints["phase"] == TEST:
            return fake_reply(call)
        return Reply(data={"reasoning": "", "in_dispute": [], "agreement": draw.random()}, model=call.model)

    termination = {"type": draw.choice(["fixed", "convergence"]), "threshold": draw.random()}
    config = {"protocol": "council", "model": "m", "rounds": draw.randint(1, 3), "termination": termination}
    return _transitions("Freight?", DebateConfig.model_validate(config), FakeModel(reply).environment())


@pytest.mark.parametrize(("name", "run"), [("council", _council), ("dialogue", _dialogue)])
def test_next_step_makes_exactly_the_declared_transitions(name: str, run: Any) -> None:
    draw = random.Random(7)
    made: Pairs = set().union(*(run(draw) for _ in range(12)))
    assert made == _declared(PROTOCOLS[name])


@pytest.mark.parametrize("decide", [None, "vote"])
@pytest.mark.parametrize("name", [name for name, each in PROTOCOLS.items() if each.phases])
def test_every_protocol_follows_its_table(name: str, decide: str | None) -> None:
    config = {"protocol": name, "model": "m", "turns": 9, "decide": decide, "vote": {"answers": 2}}
    made = _transitions("Freight?", DebateConfig.model_validate(config), FakeModel().environment())
    assert made <= _declared(PROTOCOLS[name])


@pytest.mark.parametrize("name", ["council", "dialogue"])
def test_the_drawing_shows_the_declared_course(name: str) -> None:
    nodes = {key: "judge" if row.assess else key for key, row in PROTOCOLS[name].phases.items()}
    nodes |= {OVER: "judge", "": "plan"}
    course = {(nodes[source], nodes[target]) for source, target in _declared(PROTOCOLS[name])}
    drawn = {(edge.source, edge.target) for edge in served_graph(name).get_graph().edges}
    assert course - {("judge", "judge")} <= drawn
    compiled = {(edge.source, edge.target) for edge in build_graph().get_graph().edges}
    compiled |= {(name, "extract") for name in nodes if ("turn", "extract") in compiled}
    assert drawn - course <= compiled | {("judge", "close")}  # through `plan`


def test_the_drawing_of_a_council_has_no_node_that_a_council_cannot_enter() -> None:
    drawn = served_graph("council").get_graph().nodes.keys()
    assert not drawn & {"turn", "reflect", "opening"}
    assert {"propose", "critique", "refine", "judge", "close"} <= drawn
