"""Graphs in which each phase of a protocol is a node. Every graph continues the debates of the others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from moot import ConfigError, DebateConfig, WaitingForPerson, build_graph, open_debates
from moot.cli.commands.doctor import inspect_database
from moot.debates.lifecycle import prune
from moot.graph.served import council
from moot.protocols.registry import PROTOCOLS
from moot.runtime.background_loop import call_from_sync
from tests.support.fakes import FakeModel
from tests.support.history import forks_and_prompts
from tests.support.transcripts import message_texts

ID = "5c5a9dd3-7d52-4bd0-9bd9-7b1ccd6cd3d5"
THREAD: Any = {"configurable": {"thread_id": ID}}
INPUT: Any = {"topic": "One repository?"}
PERSONAS: Any = [{"name": "Ada", "stance": "for"}, {"name": "Ben", "stance": "against"}]
CONFIGS = {
    "council": DebateConfig.model_validate({"protocol": "council", "rounds": 2, "model": "m"}),
    "dialogue": DebateConfig.model_validate(
        {
            "protocol": "dialogue",
            "model": "m",
            "debaters": PERSONAS,
            "dialogue": {"aspects": ["cost", "risk"]},
        }
    ),
}


def _uninterrupted(config: DebateConfig) -> tuple[Any, Counter[str]]:
    """Return the messages and the calls of an uninterrupted debate in the general graph."""
    model = FakeModel()
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    graph.invoke(INPUT, THREAD, context=config)
    return message_texts(graph.get_state(THREAD).values), Counter(call.digest for call in model.calls)


@pytest.mark.parametrize("name", CONFIGS)
def test_protocol_graph_runs_the_same_debate_as_the_general_graph(name: str) -> None:
    graph: Any = build_graph(InMemorySaver(), environment=FakeModel().environment(), phases_of=name)
    parts = list(graph.stream(INPUT, THREAD, context=CONFIGS[name], stream_mode="updates"))
    ran = {node for part in parts for node in part}
    phases = {entry["phase"] for entry in graph.get_state(THREAD).values["receipts"]}
    assert phases <= ran
    assert "turn" not in ran
    assert message_texts(graph.get_state(THREAD).values) == _uninterrupted(CONFIGS[name])[0]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", CONFIGS)
def test_debate_stopped_before_any_step_continues_in_the_other_graph(name: str, first: int) -> None:
    model, saver = FakeModel(), InMemorySaver()
    own: Any = build_graph(saver, environment=model.environment(), phases_of=name)
    general: Any = build_graph(saver, environment=model.environment())
    own.invoke(INPUT, THREAD, context=CONFIGS[name], interrupt_before="*")
    stopped = set()
    for number in range(first, 500):
        graph = (general, own)[number % 2]
        following = graph.get_state(THREAD).next
        if not following:
            break
        stopped |= set(following)
        graph.invoke(None, THREAD, context=CONFIGS[name], interrupt_before="*")
    transcript, calls = _uninterrupted(CONFIGS[name])
    assert stopped & {"turn", *PROTOCOLS[name].phases}
    assert message_texts(own.get_state(THREAD).values) == transcript
    assert Counter(call.digest for call in model.calls) == calls


CONFIG_WITH_PERSON = DebateConfig.model_validate(
    {
        "protocol": "council",
        "rounds": 1,
        "model": "m",
        "debaters": [{"name": "Ada"}, {"name": "Bo", "model": "human"}],
        "judge": {"enabled": False},
    }
)


def test_a_person_is_asked_in_one_graph_and_replies_in_the_other(tmp_path: Path) -> None:
    model = FakeModel()
    environment = model.environment()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        saver: Any = debates.graph.checkpointer
        own: Any = build_graph(saver, environment=environment, phases_of="council")
        debate = debates.start(INPUT["topic"], CONFIG_WITH_PERSON)
        place: Any = {"configurable": {"thread_id": debate.id}}
        call_from_sync(own.ainvoke, None, place)
        assert call_from_sync(own.aget_state, place).next == ("propose",)
        assert debate.state().next == ("turn",)
        assert [question["id"] for question in debate.questions()] == ["bo.1"]
        with pytest.raises(WaitingForPerson):
            debate.run(answer="Mine is one repository.")
        call_from_sync(own.ainvoke, {"messages": [("human", "Yours is slow.")]}, place)
        call_from_sync(own.ainvoke, Command(resume="Mine stays."), place)
        document = debate.document()
    assert document["status"] == "done"
    spoken = [entry["content"] for entry in document["transcript"] if entry["speaker"] == "bo"]
    assert spoken == ["Mine is one repository.", "Yours is slow.", "Mine stays."]
    assert set(Counter(call.digest for call in model.calls).values()) == {1}


def test_forks_pruning_and_replay_work_after_a_protocol_graph_run(tmp_path: Path) -> None:
    environment = FakeModel().environment()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        saver: Any = debates.graph.checkpointer
        own: Any = build_graph(saver, environment=environment, phases_of="council")
        debate = debates.start(INPUT["topic"], CONFIGS["council"])
        call_from_sync(own.ainvoke, None, {"configurable": {"thread_id": debate.id}})
        before = forks_and_prompts(debate)
        whole = debate.document()
        dropped, stored = prune(debate.session)
        assert 0 < dropped < stored
        assert forks_and_prompts(debate) == before
        first = max(entry["seq"] for entry in whole["transcript"] if entry["phase"] == "propose")
        fork = debate.fork(after=first)
        assert fork.run()["status"] == "done"
        assert fork.document()["transcript"][: first + 1] == whole["transcript"][: first + 1]
        assert len(fork.document()["transcript"]) == len(whole["transcript"])
        replayed = debates.replay(debate.id).run()
        assert message_texts(replayed) == message_texts(whole)
        assert all(each.ok for each in inspect_database(debates))


def test_protocol_graph_runs_other_protocols_in_the_turn_node() -> None:
    graph: Any = build_graph(environment=FakeModel().environment(), phases_of="dialogue")
    parts = list(graph.stream(INPUT, context=DebateConfig(turns=2, model="m"), stream_mode="updates"))
    assert [node for part in parts for node in part].count("turn") == 1  # both openings are one step
    with pytest.raises(
        ConfigError, match="'vote' is not a protocol with phases: use one of council, dialogue"
    ):
        build_graph(phases_of="vote")


def test_protocol_graph_uses_the_default_configuration_of_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operators = tmp_path / "moot.yaml"
    operators.write_text("model: offline\nseed: 7\n", encoding="utf-8")
    monkeypatch.setenv("MOOT_CONFIG", str(operators))
    config = council.environment.default_config()
    assert (config.protocol, config.seed) == ("council", 7)
    assert [debater.name for debater in config.debaters] == ["Architect", "Performance", "Testing"]
    assert council.environment.default_config() is config
