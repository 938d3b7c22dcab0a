"""What LangGraph Studio shows before a debate: the name, schemas and drawing of each graph."""

from __future__ import annotations

import pytest

from moot import DebateConfig
from moot.config.section import protocol_sections
from moot.graph.debate import NODES
from moot.protocols.registry import PROTOCOLS
from moot.protocols.schedule import turn_phases
from moot.state.conversation import ConversationState
from tests.support.langgraph_server import Client, assistant_id

pytestmark = pytest.mark.slow


def test_each_graph_is_listed_under_its_name(client: Client) -> None:
    assert {assistant["graph_id"] for assistant in client.assistants.search()} == {
        "debate",
        "council",
        "dialogue",
    }


def test_input_schema_has_the_expected_described_fields(client: Client) -> None:
    schemas = client.assistants.get_schemas(assistant_id(client))
    assert set(schemas["input_schema"]["properties"]) == {
        "topic",
        "messages",
        "full_transcript",
        "context_documents",
        "settings",
    }
    entry, settings = (schemas["input_schema"]["$defs"][name] for name in ("InputEntry", "InputSettings"))
    assert entry["required"] == ["speaker", "content"]
    for part in (schemas["input_schema"], entry, settings, schemas["output_schema"]):
        assert all(each["description"] for each in part["properties"].values())


def test_context_schema_matches_the_configuration(client: Client) -> None:
    schema = client.assistants.get_schemas(assistant_id(client))["context_schema"]
    settings = schema["properties"]
    assert set(settings) == {*DebateConfig.model_fields, *protocol_sections(PROTOCOLS)}
    parts = [schema, *schema["$defs"].values()]
    properties = [each for part in parts for each in part.get("properties", {}).items()]
    assert [key for key, each in properties if "description" not in each] == []
    assert {"council", "dialogue"} <= set(settings["protocol"]["enum"])
    assert settings["turns"]["anyOf"][0] == {"minimum": 1, "type": "integer"}
    assert schema["$defs"]["Budget"]["properties"]["total"]["description"]


def test_output_and_state_schemas_have_the_expected_fields(
    client: Client,
) -> None:
    schemas = client.assistants.get_schemas(assistant_id(client))
    assert set(schemas["output_schema"]["properties"]) == {
        "topic",
        "verdict",
        "solution",
        "answer",
        "status",
        "messages",
        "ui",
    }
    channels = schemas["state_schema"]["properties"]
    assert [*channels] == [*ConversationState.__annotations__]
    assert [*channels][:4] == ["topic", "status", "answer", "verdict"]  # what readers look for comes first
    assert [name for name, each in channels.items() if not each.get("description")] == []


def test_context_with_all_defaults_of_its_form_runs(client: Client) -> None:
    schema = client.assistants.get_schemas(assistant_id(client))["context_schema"]
    defaults = {key: each["default"] for key, each in schema["properties"].items() if "default" in each}
    assert defaults["debaters"] == []
    thread = client.threads.create(graph_id="debate")["thread_id"]
    ran = client.runs.wait(thread, "debate", input={"topic": "Trams?"}, context={**defaults, "turns": 1})
    assert ran["status"] == "done"


def test_the_graph_is_drawn_with_its_nodes_and_edges(client: Client) -> None:
    drawn = client.assistants.get_graph(assistant_id(client))
    nodes = {node["id"] for node in drawn["nodes"]}
    described = {node["id"]: (node.get("metadata") or {}).get("description") for node in drawn["nodes"]}
    assert all(described[name] for name in nodes - {"__start__", "__end__"})
    edges = {(edge["source"], edge["target"]) for edge in drawn["edges"]}
    assert {"open", "plan", "turn", "extract", "trim", "summarize", "judge", "close"} <= nodes
    assert "messages are leaving the window" in {edge.get("data") for edge in drawn["edges"]}
    assert {("__start__", "open"), ("plan", "turn"), ("summarize", "trim"), ("close", "__end__")} <= edges


@pytest.mark.parametrize("name", ["council", "dialogue"])
def test_protocol_graph_has_phase_nodes_instead_of_turn(client: Client, name: str) -> None:
    assistant = client.assistants.search(graph_id=name)[0]["assistant_id"]
    drawn = client.assistants.get_graph(assistant)
    nodes = {node["id"]: (node.get("metadata") or {}).get("description", "") for node in drawn["nodes"]}
    phases = set(turn_phases(PROTOCOLS[name].phases))
    assert nodes.keys() - NODES.keys() == {*phases, "__start__", "__end__"}
    assert "turn" not in nodes
    assert all(nodes[phase].startswith(f"Phase {phase}. ") for phase in phases)
