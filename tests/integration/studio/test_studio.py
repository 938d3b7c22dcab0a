"""Debates in LangGraph's server through its SDK, as Studio, chats and `RemoteGraph` see them."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph

from moot import DebateConfig, open_debates
from moot.graph.debate import PHASE_NODES
from tests.support.langgraph_server import Client, LangGraphServer
from tests.support.patience import until

pytestmark = pytest.mark.slow

TOPIC = "Should cities ban private cars from their centres?"
SHORT = {"turns": 2, "openings": "sequential", "judge": {"swap": False}}


def new_thread(client: Client) -> str:
    thread: str = client.threads.create(graph_id="debate")["thread_id"]
    return thread


def debate_there(client: Client, topic: str = TOPIC, **context: Any) -> str:
    thread = new_thread(client)
    client.runs.wait(thread, "debate", input={"topic": topic}, context={**SHORT, **context})
    return thread


def values(client: Client, thread: str) -> dict[str, Any]:
    return dict(client.threads.get_state(thread)["values"])


def references(state: dict[str, Any]) -> list[str]:
    """Return the entries of the state's messages, and `judge` for results."""
    return [each["additional_kwargs"].get("entry", each["name"]) for each in state["messages"]]


def said(transcript: list[dict[str, Any]]) -> list[str]:
    return [entry["content"] for entry in transcript]


def journal(server: LangGraphServer, thread: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(server.database)
    try:
        return connection.execute(
            "SELECT step, node, call_index, digest, base_checkpoint FROM moot_journal WHERE debate = ?",
            (thread,),
        ).fetchall()
    finally:
        connection.close()


def test_assistants_are_ready_and_stored_debates_known_by_their_topic(
    client: Client, server: LangGraphServer
) -> None:
    with open_debates(str(server.database)) as debates:
        stored = debates.start("Is it told?", DebateConfig(turns=1), name="told").id
    begun = debate_there(client)

    def titles() -> dict[str, str]:
        threads = client.threads.search(limit=1000)
        return {each["thread_id"]: each["metadata"].get("title", "") for each in threads}

    assert until(lambda: titles().get(stored) and titles().get(begun), every_s=0.5)
    assert (titles()[stored], titles()[begun]) == ("Is it told?", TOPIC)
    found = {each["name"]: each for each in client.assistants.search(graph_id="debate")}
    assert set(found) == {"debate", "quick", "long-form"}
    ran = client.runs.wait(new_thread(client), found["quick"]["assistant_id"], input={"topic": TOPIC})
    assert ran["status"] == "done"


def test_a_topic_alone_is_a_debate_with_a_verdict(client: Client) -> None:
    thread = new_thread(client)
    result = client.runs.wait(thread, "debate", input={"topic": TOPIC})
    assert result["answer"] in result["messages"][-1]["content"]
    assert set(result) <= {"topic", "verdict", "solution", "answer", "status", "messages", "ui"}
    assert result["status"] == "done"
    assert result["verdict"]["status"] == "ok"
    assert values(client, thread)["turn_count"] == 6


def test_a_first_human_message_alone_is_the_topic(client: Client) -> None:
    thread = new_thread(client)
    client.runs.wait(
        thread, "debate", input={"messages": [{"role": "user", "content": TOPIC}]}, context=SHORT
    )
    state = values(client, thread)
    assert state["topic"] == TOPIC
    assert [entry["kind"] for entry in state["full_transcript"]] == ["topic", "speech", "speech"]
    assert references(state) == ["m000000", "m000001", "m000002", "judge"]


def test_context_decides_turns_and_debaters(client: Client) -> None:
    debaters = [{"name": "Ada"}, {"name": "Ben"}, {"name": "Cem"}]
    thread = debate_there(client, turns=4, debaters=debaters, moderator={"model": "offline"})
    assert values(client, thread)["config"]["moderator"]["model"] == "offline"  # of another protocol
    speakers = [entry["speaker"] for entry in values(client, thread)["full_transcript"]]
    assert speakers == ["user", "ada", "ben", "cem", "ada"]


@pytest.mark.parametrize(
    ("context", "phases"),
    [
        pytest.param(
            {"protocol": "council", "turns": None, "rounds": 1},
            {"propose", "critique", "refine"},
            id="council",
        ),
        pytest.param(
            {
                "protocol": "dialogue",
                "turns": None,
                "debaters": [{"name": "Ada", "stance": "for"}, {"name": "Ben", "stance": "against"}],
                "dialogue": {"aspects": ["cost"]},
            },
            {"opening", "closing"},
            id="dialogue",
        ),
        pytest.param({"protocol": "moderated"}, set(), id="moderated"),
        pytest.param({"protocol": "random", "seed": 1}, set(), id="random"),
        pytest.param({"protocol": "vote", "turns": None}, set(), id="vote"),
    ],
)
def test_every_protocol_runs_here(client: Client, context: dict[str, Any], phases: set[str]) -> None:
    state = values(client, debate_there(client, **context))
    assert state["status"] == "done"
    assert phases <= {entry["phase"] for entry in state["full_transcript"]}
    assert state["verdict"]["status"] == "ok"


def test_a_configuration_that_cannot_be_used_fails_the_run_and_names_the_key(client: Client) -> None:
    thread = new_thread(client)
    result = client.runs.wait(
        thread, "debate", input={"topic": TOPIC}, context={"turns": -1}, raise_error=False
    )
    assert "turns" in result["__error__"]["message"]


def test_the_events_stream_follows_a_debate_to_its_end_past_any_limit_of_steps(client: Client) -> None:
    thread, context = new_thread(client), {"turns": 8, "judge": {"enabled": False}}
    modes = ["events"]
    parts = list(
        client.runs.stream(thread, "debate", input={"topic": TOPIC}, context=context, stream_mode=modes)
    )
    assert [part.data for part in parts if part.event == "error"] == []
    assert {"on_chain_start", "on_chat_model_stream"} <= {
        part.data["event"] for part in parts if part.event == "events"
    }
    assert (values(client, thread)["status"], values(client, thread)["turn_count"]) == ("done", 8)


def test_each_utterance_is_streamed_once_under_its_speaker(client: Client) -> None:
    thread = new_thread(client)
    modes = ["updates", "messages-tuple", "custom"]
    parts = list(
        client.runs.stream(
            thread, "debate", input={"topic": TOPIC}, context={**SHORT, "turns": 3}, stream_mode=modes
        )
    )
    heard: dict[str, str] = {}
    for message, metadata in (part.data for part in parts if part.event == "messages"):
        heard[message["id"]] = heard.get(message["id"], "") + message["content"]
        assert message["name"] in (metadata.get("speaker", "user"), "judge")
    state = values(client, thread)
    outcome = state["messages"][-1]
    assert outcome["name"] == "judge"
    assert heard.pop(outcome["id"]) == outcome["content"]
    ids = dict(zip(references(state), [each["id"] for each in state["messages"]], strict=True))
    assert heard == {ids[entry["id"]]: entry["content"] for entry in state["full_transcript"]}


def test_updates_and_custom_events_tell_what_happens(client: Client) -> None:
    thread = new_thread(client)
    modes = ["updates", "custom"]
    parts = list(
        client.runs.stream(thread, "debate", input={"topic": TOPIC}, context=SHORT, stream_mode=modes)
    )
    nodes = [name for part in parts if part.event == "updates" for name in part.data]
    events = [part.data["event"] for part in parts if part.event == "custom"]
    # A node with nothing to do is skipped; the offline model extracts no claims.
    assert Counter(nodes) == Counter(open=1, plan=4, turn=2, judge=1, close=1)
    assert Counter(events) == Counter(step=4, entry=2, verdict=1, end=1)


def test_the_messages_mode_of_chats_grows_each_utterance_and_names_its_speaker(
    client: Client,
) -> None:
    thread = new_thread(client)
    latest: dict[str, str] = {}
    speakers: dict[str, str] = {}
    for part in client.runs.stream(
        thread, "debate", input={"topic": TOPIC}, context=SHORT, stream_mode="messages"
    ):
        data = part.data
        if part.event == "messages/metadata":
            speakers |= {key: found["metadata"].get("speaker", "user") for key, found in data.items()}
        elif part.event in {"messages/partial", "messages/complete"}:
            assert data[0]["content"].startswith(latest.get(data[0]["id"], ""))
            latest[data[0]["id"]] = data[0]["content"]
    state = values(client, thread)
    transcript = state["full_transcript"]
    ids = dict(zip(references(state), [each["id"] for each in state["messages"]], strict=True))
    told = [key for key in latest if key.startswith("judge-")]
    assert [latest.pop(key) for key in told] == [values(client, thread)["messages"][-1]["content"]]
    assert latest == {ids[entry["id"]]: entry["content"] for entry in transcript}
    authors = {ids[entry["id"]]: entry["speaker"] for entry in transcript}
    assert {key: speakers[key] for key in latest} == authors


def test_summaries_and_judging_stay_out_of_the_messages_stream(
    client: Client, server: LangGraphServer
) -> None:
    memory = {"keep_recent": 2, "summarize_every": 1, "summarizer": "llm"}
    thread = new_thread(client)
    parts = client.runs.stream(
        thread,
        "debate",
        input={"topic": TOPIC},
        context={"turns": 6, "memory": memory},
        stream_mode="messages-tuple",
    )
    messages = [part.data[0] for part in parts if part.event == "messages"]
    heard = {(each["id"].rpartition("-")[0], each["name"]) for each in messages}
    state = values(client, thread)
    assert state["summary_versions"]
    assert {row[1] for row in journal(server, thread)} == {"turn", "summarize", "judge"}
    entries = {(entry["id"], entry["speaker"]) for entry in state["full_transcript"]}
    result = state["messages"][-1]["id"].rpartition("-")[0]
    assert heard == {*entries, (result, "judge")}


def test_history_reaches_back_to_the_start(client: Client) -> None:
    thread = debate_there(client)
    history = client.threads.get_history(thread, limit=100)
    assert history[0]["next"] == []
    assert history[-1]["next"] == ["__start__"]
    lengths = [len(state["values"].get("messages", [])) for state in history]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 4
    assert [len(state["values"].get("full_transcript", [])) for state in history[:2]] == [3, 0]
    whole = client.threads.get_state(thread, checkpoint=history[1]["checkpoint"])["values"]
    assert len(whole["full_transcript"]) == 3


def test_a_fork_from_an_earlier_checkpoint_samples_anew(client: Client, server: LangGraphServer) -> None:
    thread = debate_there(client)
    before = values(client, thread)
    paid = journal(server, thread)
    earlier = next(
        state
        for state in client.threads.get_history(thread, limit=100)
        if state["next"] == ["turn"] and state["values"]["turn_count"] == 1
    )
    checkpoint = earlier["checkpoint"]["checkpoint_id"]
    client.runs.wait(thread, "debate", input=None, checkpoint_id=checkpoint)
    after = values(client, thread)
    assert said(after["full_transcript"])[:2] == said(before["full_transcript"])[:2]
    assert after["status"] == "done"
    assert len(after["full_transcript"]) == len(before["full_transcript"])
    repeated = Counter((row[0], row[1], row[2]) for row in journal(server, thread)) - Counter(
        (row[0], row[1], row[2]) for row in paid
    )
    assert repeated == Counter({(2, "turn", 0): 1, (3, "judge", 0): 1})


def test_a_state_edited_at_an_earlier_checkpoint_goes_its_own_way(client: Client) -> None:
    thread = debate_there(client)
    earlier = next(
        state
        for state in client.threads.get_history(thread, limit=100)
        if state["next"] == ["plan"] and state["values"]["turn_count"] == 1
    )
    message = {"role": "user", "content": "And what of people who cannot walk?"}
    update = client.threads.update_state(
        thread, {"messages": [message]}, as_node="trim", checkpoint=earlier["checkpoint"]
    )
    client.runs.wait(thread, "debate", input=None, checkpoint=update["checkpoint"])
    kinds = [entry["kind"] for entry in values(client, thread)["full_transcript"]]
    assert kinds == ["topic", "speech", "interjection", "speech"]


def test_a_human_message_after_the_end_continues_the_debate(client: Client) -> None:
    thread = debate_there(client)
    message = {"role": "user", "content": "Go on: what about deliveries?"}
    client.runs.wait(thread, "debate", input={"messages": [message]})
    state = values(client, thread)
    heard = [(entry["speaker"], entry["kind"]) for entry in state["full_transcript"]]
    assert heard[2:] == [
        ("skeptic", "speech"),
        ("user", "interjection"),
        ("advocate", "speech"),
        ("skeptic", "speech"),
    ]
    assert state["full_transcript"][3]["content"] == "Go on: what about deliveries?"
    assert references(state)[3:5] == ["judge", "m000003"]
    assert state["status"] == "done"
    assert state["verdict"]["status"] == "ok"


def test_a_debate_run_from_python_is_found_and_continued_here(
    client: Client, server: LangGraphServer
) -> None:
    with open_debates(str(server.database)) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=2), name=f"from-python-{id(client)}")
        document = debate.run()
        client.threads.create(thread_id=debate.id, graph_id="debate", if_exists="do_nothing")
        assert values(client, debate.id)["full_transcript"] == document["transcript"]
        assert len(client.threads.get_history(debate.id, limit=100)) > 8
        message = {"role": "user", "content": "Go on: what about winter?"}
        client.runs.wait(debate.id, "debate", input={"messages": [message]})
        kinds = [entry["kind"] for entry in debate.document()["transcript"]]
        assert kinds == ["topic", "speech", "speech", "interjection", "speech", "speech"]


def test_a_debate_stopped_in_python_is_resumed_here(client: Client, server: LangGraphServer) -> None:
    with open_debates(str(server.database)) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=4))
        events = debate.stream()
        next(event for event in events if event["event"] == "entry")
        events.close()  # type: ignore[attr-defined]  # a generator
        client.threads.create(thread_id=debate.id, graph_id="debate", if_exists="do_nothing")
        client.runs.wait(debate.id, "debate", input=None)
        document = debate.document()
    assert document["status"] == "done"
    assert [entry["seq"] for entry in document["transcript"]] == [0, 1, 2, 3, 4]


def test_a_debate_that_another_process_writes_is_refused(client: Client, server: LangGraphServer) -> None:
    with open_debates(str(server.database)) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=2))
        client.threads.create(thread_id=debate.id, graph_id="debate", if_exists="do_nothing")
        with debates.records.leases.hold(debate.id):
            result = client.runs.wait(debate.id, "debate", input=None, raise_error=False)
        assert f"in use by process {os.getpid()}" in result["__error__"]["message"]
        assert len(debate.document()["transcript"]) == 1


def test_a_debate_run_here_is_in_the_catalogue_and_resumes_in_python(
    client: Client, server: LangGraphServer
) -> None:
    thread = debate_there(client, "Should libraries lend tools?")
    with open_debates(str(server.database)) as debates:
        row = next(row for row in debates.rows() if row.id == thread)
        assert (row.topic, row.status, row.turns) == ("Should libraries lend tools?", "done", 2)
        assert row.tokens > 0
        document = debates.get(thread).run(turns=2)
    assert len(document["transcript"]) == 5
    assert len(values(client, thread)["full_transcript"]) == 5


def test_a_thread_deleted_here_leaves_nothing_behind(client: Client, server: LangGraphServer) -> None:
    thread = debate_there(client)
    client.threads.delete(thread)
    with open_debates(str(server.database)) as debates:
        assert thread not in {row.id for row in debates.rows()}
    assert journal(server, thread) == []


def test_a_thread_copied_here_is_a_debate_of_its_own(client: Client, server: LangGraphServer) -> None:
    thread = debate_there(client)
    known = {row["thread_id"] for row in client.threads.search(limit=1000)}
    client.threads.copy(thread)
    (copy,) = {row["thread_id"] for row in client.threads.search(limit=1000)} - known
    assert values(client, copy)["full_transcript"] == values(client, thread)["full_transcript"]
    with open_debates(str(server.database)) as debates:
        assert debates.get(copy).row.parent == thread
        assert len(debates.get(copy).run(turns=1)["transcript"]) == 4
    assert len(values(client, thread)["full_transcript"]) == 3


def test_the_log_shows_no_blocking_call_and_no_warning_of_ours(
    client: Client, server: LangGraphServer
) -> None:
    debate_there(client)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", server.log())
    assert "BlockingError" not in plain
    assert "Blocking call" not in plain
    warnings = [line for line in plain.splitlines() if re.search(r"\[warning\s*\]", line)]
    machine = ("structlog", "expected startup time")  # how it logs errors; how busy the machine is
    assert [line for line in warnings if not any(each in line for each in machine)] == []
    assert "MootSqliteSaver" in plain


def test_the_server_writes_only_beside_its_database(server: LangGraphServer) -> None:
    assert {path.name for path in Path(server.database.parent).iterdir()} <= {
        ".langgraph_api",
        "moot.sqlite",
        "moot.sqlite-shm",
        "moot.sqlite-wal",
        "server.log",
    }


def test_an_unknown_key_of_the_context_is_refused_by_name(client: Client) -> None:
    thread = new_thread(client)
    with pytest.raises(Exception, match="unknown key 'turnz': did you mean 'turns'"):
        client.runs.wait(thread, "debate", input={"topic": TOPIC}, context={"turnz": 2})
    schema = client.assistants.get_schemas(client.assistants.search(graph_id="debate")[0]["assistant_id"])
    assert "turns" in (schema["context_schema"] or {})["properties"]


def test_the_graph_of_a_protocol_runs_its_phases_as_nodes(client: Client, server: LangGraphServer) -> None:
    thread = client.threads.create(graph_id="council")["thread_id"]
    context = {"rounds": 1, "judge": {"swap": False}}
    asked = {"messages": [{"role": "user", "content": "One repository?"}]}
    parts = client.runs.stream(thread, "council", input=asked, context=context, stream_mode="updates")
    nodes = [name for part in parts if part.event == "updates" for name in part.data]
    assert [name for name in nodes if name in PHASE_NODES] == ["propose", "critique", "refine"]
    assert "turn" not in nodes
    history = client.threads.get_history(thread, limit=100)
    earlier = next(state for state in history if state["next"] == ["critique"])
    client.runs.wait(thread, "council", input=None, checkpoint=earlier["checkpoint"])
    with open_debates(str(server.database)) as debates:
        debate = debates.get(thread)
        assert (debate.row.status, debate.row.protocol) == ("done", "council")
        phases = [
            entry["phase"] for entry in debate.document()["transcript"] if entry["phase"] in PHASE_NODES
        ]
    assert list(dict.fromkeys(phases)) == ["propose", "critique", "refine"]
    refused = client.runs.wait(
        client.threads.create(graph_id="council")["thread_id"],
        "council",
        input=asked,
        context={"roundz": 1},
        raise_error=False,
    )
    assert "unknown key 'roundz': did you mean 'rounds'" in refused["__error__"]["message"]


def test_a_remote_debate_as_a_node_shows_the_question_once(client: Client) -> None:
    chat = StateGraph(MessagesState)
    chat.add_node("debate", RemoteGraph("debate", sync_client=client))
    chat.add_edge(START, "debate")
    chat.add_edge("debate", END)
    graph: Any = chat.compile()
    messages = graph.invoke({"messages": [("human", TOPIC)]})["messages"]
    assert [message.text for message in messages].count(TOPIC) == 1
    assert messages[-1].name == "judge"
