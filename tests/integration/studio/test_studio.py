"""Debates on the LangGraph server, called through its SDK and through `RemoteGraph`."""

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
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

TOPIC = "Should cities ban private cars from their centres?"
DEFAULT_RECURSION_LIMIT = 25
"""LangGraph's limit of steps for a run that sets none."""
SHORT = {"turns": 2, "openings": "sequential", "judge": {"swap": False}}


def new_thread(client: Client) -> str:
    thread: str = client.threads.create(graph_id="debate")["thread_id"]
    return thread


def run_debate(client: Client, topic: str = TOPIC, **context: Any) -> str:
    thread = new_thread(client)
    client.runs.wait(thread, "debate", input={"topic": topic}, context={**SHORT, **context})
    return thread


def values(client: Client, thread: str) -> dict[str, Any]:
    return dict(client.threads.get_state(thread)["values"])


def entry_ids(state: dict[str, Any]) -> list[str]:
    """Return the entry id of each message, or the name of a message that is no entry."""
    return [each["additional_kwargs"].get("entry", each["name"]) for each in state["messages"]]


def contents(transcript: list[dict[str, Any]]) -> list[str]:
    return [entry["content"] for entry in transcript]


def journal_rows(server: LangGraphServer, thread: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(server.database)
    try:
        return connection.execute(
            "SELECT step, node, call_index, digest, base_checkpoint FROM moot_journal WHERE debate = ?",
            (thread,),
        ).fetchall()
    finally:
        connection.close()


def test_server_offers_assistants_and_titles_threads_by_topic(
    client: Client, server: LangGraphServer
) -> None:
    with open_debates(str(server.database)) as debates:
        stored = debates.start("Is it told?", DebateConfig(turns=1), name="told").id
    begun = run_debate(client)

    def titles() -> dict[str, str]:
        threads = client.threads.search(limit=1000)
        return {each["thread_id"]: each["metadata"].get("title", "") for each in threads}

    assert wait_until(lambda: titles().get(stored) and titles().get(begun), every_s=0.5)
    assert (titles()[stored], titles()[begun]) == ("Is it told?", TOPIC)
    assistants = {each["name"]: each for each in client.assistants.search(graph_id="debate")}
    assert set(assistants) == {"debate", "quick", "long-form"}
    ran = client.runs.wait(new_thread(client), assistants["quick"]["assistant_id"], input={"topic": TOPIC})
    assert ran["status"] == "done"


def test_input_with_only_a_topic_runs_a_debate_with_a_verdict(client: Client) -> None:
    thread = new_thread(client)
    result = client.runs.wait(thread, "debate", input={"topic": TOPIC})
    assert result["answer"] in result["messages"][-1]["content"]
    assert set(result) <= {"topic", "verdict", "solution", "answer", "status", "messages", "ui"}
    assert result["status"] == "done"
    assert result["verdict"]["status"] == "ok"
    assert values(client, thread)["turn_count"] == 6


def test_first_human_message_is_the_topic(client: Client) -> None:
    thread = new_thread(client)
    client.runs.wait(
        thread, "debate", input={"messages": [{"role": "user", "content": TOPIC}]}, context=SHORT
    )
    state = values(client, thread)
    assert state["topic"] == TOPIC
    assert [entry["kind"] for entry in state["full_transcript"]] == ["topic", "speech", "speech"]
    assert entry_ids(state) == ["m000000", "m000001", "m000002", "judge"]


def test_context_sets_turns_and_debaters(client: Client) -> None:
    debaters = [{"name": "Ada"}, {"name": "Ben"}, {"name": "Cem"}]
    thread = run_debate(client, turns=4, debaters=debaters, moderator={"model": "offline"})
    assert values(client, thread)["config"]["moderator"]["model"] == "offline"  # another protocol uses it
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
def test_every_protocol_runs_on_the_server(client: Client, context: dict[str, Any], phases: set[str]) -> None:
    state = values(client, run_debate(client, **context))
    assert state["status"] == "done"
    assert phases <= {entry["phase"] for entry in state["full_transcript"]}
    assert state["verdict"]["status"] == "ok"


def test_invalid_context_fails_the_run_and_names_the_key(client: Client) -> None:
    thread = new_thread(client)
    result = client.runs.wait(
        thread, "debate", input={"topic": TOPIC}, context={"turns": -1}, raise_error=False
    )
    assert "turns" in result["__error__"]["message"]


def test_events_stream_passes_the_default_recursion_limit(client: Client) -> None:
    thread, context = new_thread(client), {**SHORT, "turns": 16, "judge": {"enabled": False}}
    modes = ["events"]
    parts = list(
        client.runs.stream(thread, "debate", input={"topic": TOPIC}, context=context, stream_mode=modes)
    )
    assert [part.data for part in parts if part.event == "error"] == []
    events = [part.data for part in parts if part.event == "events"]
    assert {"on_chain_start", "on_chat_model_stream"} <= {event["event"] for event in events}
    assert max(event["metadata"].get("langgraph_step", 0) for event in events) > DEFAULT_RECURSION_LIMIT
    assert (values(client, thread)["status"], values(client, thread)["turn_count"]) == ("done", 16)


def test_each_message_is_streamed_once_under_its_speaker(client: Client) -> None:
    thread = new_thread(client)
    modes = ["updates", "messages-tuple", "custom"]
    parts = list(
        client.runs.stream(
            thread, "debate", input={"topic": TOPIC}, context={**SHORT, "turns": 3}, stream_mode=modes
        )
    )
    streamed: dict[str, str] = {}
    for message, metadata in (part.data for part in parts if part.event == "messages"):
        streamed[message["id"]] = streamed.get(message["id"], "") + message["content"]
        assert message["name"] in (metadata.get("speaker", "user"), "judge")
    state = values(client, thread)
    result = state["messages"][-1]
    assert result["name"] == "judge"
    assert streamed.pop(result["id"]) == result["content"]
    ids = dict(zip(entry_ids(state), [each["id"] for each in state["messages"]], strict=True))
    assert streamed == {ids[entry["id"]]: entry["content"] for entry in state["full_transcript"]}


def test_updates_and_custom_streams_report_nodes_and_events(client: Client) -> None:
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


def test_messages_stream_extends_each_message_and_names_its_speaker(
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
            speakers |= {key: each["metadata"].get("speaker", "user") for key, each in data.items()}
        elif part.event in {"messages/partial", "messages/complete"}:
            assert data[0]["content"].startswith(latest.get(data[0]["id"], ""))
            latest[data[0]["id"]] = data[0]["content"]
    state = values(client, thread)
    transcript = state["full_transcript"]
    ids = dict(zip(entry_ids(state), [each["id"] for each in state["messages"]], strict=True))
    judge_ids = [key for key in latest if key.startswith("judge-")]
    assert [latest.pop(key) for key in judge_ids] == [values(client, thread)["messages"][-1]["content"]]
    assert latest == {ids[entry["id"]]: entry["content"] for entry in transcript}
    authors = {ids[entry["id"]]: entry["speaker"] for entry in transcript}
    assert {key: speakers[key] for key in latest} == authors


def test_messages_stream_excludes_summary_and_judge_calls(client: Client, server: LangGraphServer) -> None:
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
    streamed = {(each["id"].rpartition("-")[0], each["name"]) for each in messages}
    state = values(client, thread)
    assert state["summary_versions"]
    assert {row[1] for row in journal_rows(server, thread)} == {"turn", "summarize", "judge"}
    entries = {(entry["id"], entry["speaker"]) for entry in state["full_transcript"]}
    result = state["messages"][-1]["id"].rpartition("-")[0]
    assert streamed == {*entries, (result, "judge")}


def test_history_reaches_back_to_the_start(client: Client) -> None:
    thread = run_debate(client)
    history = client.threads.get_history(thread, limit=100)
    assert history[0]["next"] == []
    assert history[-1]["next"] == ["__start__"]
    lengths = [len(state["values"].get("messages", [])) for state in history]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 4
    assert [len(state["values"].get("full_transcript", [])) for state in history[:2]] == [3, 3]
    assert {"full_transcript", "messages", "rolling_summary"} <= history[1]["values"].keys()
    assert "receipts" not in history[1]["values"]
    whole = client.threads.get_state(thread, checkpoint=history[1]["checkpoint"])["values"]
    assert whole["receipts"]


def test_run_from_an_earlier_checkpoint_calls_the_model_again(
    client: Client, server: LangGraphServer
) -> None:
    thread = run_debate(client)
    before = values(client, thread)
    earlier_rows = journal_rows(server, thread)
    earlier = next(
        state
        for state in client.threads.get_history(thread, limit=100)
        if state["next"] == ["turn"] and state["values"]["turn_count"] == 1
    )
    checkpoint = earlier["checkpoint"]["checkpoint_id"]
    client.runs.wait(thread, "debate", input=None, checkpoint_id=checkpoint)
    after = values(client, thread)
    assert contents(after["full_transcript"])[:2] == contents(before["full_transcript"])[:2]
    assert after["status"] == "done"
    assert len(after["full_transcript"]) == len(before["full_transcript"])
    repeated = Counter((row[0], row[1], row[2]) for row in journal_rows(server, thread)) - Counter(
        (row[0], row[1], row[2]) for row in earlier_rows
    )
    assert repeated == Counter({(2, "turn", 0): 1, (3, "judge", 0): 1})


def test_run_continues_from_an_edited_earlier_checkpoint(client: Client) -> None:
    thread = run_debate(client)
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


def test_one_field_of_the_whole_state_is_edited_and_the_fork_runs(client: Client) -> None:
    thread = run_debate(client, turns=5, memory={"keep_recent": 2, "summarize_every": 1})
    newest = values(client, thread)
    client.threads.update_state(thread, newest)
    assert values(client, thread) == newest
    history = client.threads.get_history(thread, limit=100)
    earlier = next(each for each in history if each["next"] == ["turn"] and each["values"]["rolling_summary"])
    sent_back = client.threads.update_state(thread, earlier["values"], checkpoint=earlier["checkpoint"])
    read = client.threads.get_state(thread, checkpoint=sent_back["checkpoint"])["values"]
    summary = {**read["rolling_summary"], "text": "Ada wants trams. [m000001]"}
    forked = client.threads.update_state(
        thread, {**read, "rolling_summary": summary}, checkpoint=sent_back["checkpoint"]
    )
    client.runs.wait(thread, "debate", input=None, checkpoint=forked["checkpoint"])
    state = values(client, thread)
    assert state["status"] == "done"
    versions = state["summary_versions"]
    assert [each["version"] for each in versions] == list(range(1, len(versions) + 1))
    edited = [each for each in versions if each["text"].startswith("Ada wants trams. [m000001]")]
    assert edited == versions[read["rolling_summary"]["version"] :]
    assert len(edited) > 1


def test_a_human_message_after_the_end_continues_the_debate(client: Client) -> None:
    thread = run_debate(client)
    message = {"role": "user", "content": "Go on: what about deliveries?"}
    client.runs.wait(thread, "debate", input={"messages": [message]})
    state = values(client, thread)
    streamed = [(entry["speaker"], entry["kind"]) for entry in state["full_transcript"]]
    assert streamed[2:] == [
        ("skeptic", "speech"),
        ("user", "interjection"),
        ("advocate", "speech"),
        ("skeptic", "speech"),
    ]
    assert state["full_transcript"][3]["content"] == "Go on: what about deliveries?"
    assert entry_ids(state)[3:5] == ["judge", "m000003"]
    assert state["status"] == "done"
    assert state["verdict"]["status"] == "ok"


def test_server_finds_and_continues_a_debate_from_python(client: Client, server: LangGraphServer) -> None:
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


def test_server_resumes_a_debate_stopped_in_python(client: Client, server: LangGraphServer) -> None:
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


def test_server_refuses_a_debate_in_use_by_another_process(client: Client, server: LangGraphServer) -> None:
    with open_debates(str(server.database)) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=2))
        client.threads.create(thread_id=debate.id, graph_id="debate", if_exists="do_nothing")
        with debates.records.leases.hold(debate.id):
            result = client.runs.wait(debate.id, "debate", input=None, raise_error=False)
        assert f"in use by process {os.getpid()}" in result["__error__"]["message"]
        assert len(debate.document()["transcript"]) == 1


def test_python_lists_and_continues_a_debate_from_the_server(client: Client, server: LangGraphServer) -> None:
    thread = run_debate(client, "Should libraries lend tools?")
    with open_debates(str(server.database)) as debates:
        row = next(row for row in debates.rows() if row.id == thread)
        assert (row.topic, row.status, row.turns) == ("Should libraries lend tools?", "done", 2)
        assert row.tokens > 0
        document = debates.get(thread).run(turns=2)
    assert len(document["transcript"]) == 5
    assert len(values(client, thread)["full_transcript"]) == 5


def test_deleting_a_thread_deletes_its_debate(client: Client, server: LangGraphServer) -> None:
    thread = run_debate(client)
    client.threads.delete(thread)
    with open_debates(str(server.database)) as debates:
        assert thread not in {row.id for row in debates.rows()}
    assert journal_rows(server, thread) == []


def test_copied_thread_is_an_independent_debate(client: Client, server: LangGraphServer) -> None:
    thread = run_debate(client)
    known = {row["thread_id"] for row in client.threads.search(limit=1000)}
    client.threads.copy(thread)
    (copy,) = {row["thread_id"] for row in client.threads.search(limit=1000)} - known
    assert values(client, copy)["full_transcript"] == values(client, thread)["full_transcript"]
    with open_debates(str(server.database)) as debates:
        assert debates.get(copy).row.parent == thread
        assert len(debates.get(copy).run(turns=1)["transcript"]) == 4
    assert len(values(client, thread)["full_transcript"]) == 3


def test_server_log_has_no_blocking_calls_and_no_moot_warnings(
    client: Client, server: LangGraphServer
) -> None:
    run_debate(client)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", server.log())
    assert "BlockingError" not in plain
    assert "Blocking call" not in plain
    warnings = [line for line in plain.splitlines() if re.search(r"\[warning\s*\]", line)]
    machine = ("structlog", "expected startup time")  # unrelated to Moot: log formatting and slow starts
    assert [line for line in warnings if not any(each in line for each in machine)] == []
    assert "MootSqliteSaver" in plain


def test_server_writes_only_next_to_its_database(server: LangGraphServer) -> None:
    assert {path.name for path in Path(server.database.parent).iterdir()} <= {
        ".langgraph_api",
        "moot.sqlite",
        "moot.sqlite-shm",
        "moot.sqlite-wal",
        "server.log",
    }


def test_unknown_context_key_is_refused_with_a_suggestion(client: Client) -> None:
    thread = new_thread(client)
    with pytest.raises(Exception, match="unknown key 'turnz': did you mean 'turns'"):
        client.runs.wait(thread, "debate", input={"topic": TOPIC}, context={"turnz": 2})
    schema = client.assistants.get_schemas(client.assistants.search(graph_id="debate")[0]["assistant_id"])
    assert "turns" in (schema["context_schema"] or {})["properties"]


def test_protocol_graph_runs_its_phases_as_nodes(client: Client, server: LangGraphServer) -> None:
    thread = client.threads.create(graph_id="council")["thread_id"]
    context = {"rounds": 1, "judge": {"swap": False}}
    question = {"messages": [{"role": "user", "content": "One repository?"}]}
    parts = client.runs.stream(thread, "council", input=question, context=context, stream_mode="updates")
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
        input=question,
        context={"roundz": 1},
        raise_error=False,
    )
    assert "unknown key 'roundz': did you mean 'rounds'" in refused["__error__"]["message"]


def test_remote_graph_node_returns_the_question_once(client: Client) -> None:
    chat = StateGraph(MessagesState)
    chat.add_node("debate", RemoteGraph("debate", sync_client=client))
    chat.add_edge(START, "debate")
    chat.add_edge("debate", END)
    graph: Any = chat.compile()
    messages = graph.invoke({"messages": [("human", TOPIC)]})["messages"]
    assert [message.text for message in messages].count(TOPIC) == 1
    assert messages[-1].name == "judge"
