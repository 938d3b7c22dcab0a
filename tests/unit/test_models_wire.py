from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from moot.calls.model_calls import WireMessage
from moot.models.adapters import to_langchain, wire_name

CONVERSATION: list[WireMessage] = [
    {"role": "system", "content": "Rules."},
    {"role": "user", "name": "ada", "content": "A."},
    {"role": "user", "name": "ben", "content": "B."},
    {"role": "assistant", "content": "C."},
]


def test_names_become_slugs_that_providers_accept() -> None:
    assert wire_name("Ada Lovelace!") == "Ada-Lovelace"
    assert wire_name("山田") == ""
    assert len(wire_name("x" * 200)) == 64


def test_roles_and_names_are_kept() -> None:
    messages = to_langchain(CONVERSATION)
    assert [type(message) for message in messages] == [SystemMessage, HumanMessage, HumanMessage, AIMessage]
    assert [message.name for message in messages] == [None, "ada", "ben", None]


def test_adjacent_messages_of_one_role_are_merged_with_their_names() -> None:
    messages = to_langchain(CONVERSATION, merge_roles=True)
    assert [message.content for message in messages] == ["Rules.", "ada: A.\n\nben: B.", "C."]


def test_without_a_system_role_the_system_message_becomes_a_user_message() -> None:
    first, *_ = to_langchain(CONVERSATION, system_role=False)
    assert (type(first), first.content) == (HumanMessage, "Rules.")
    merged, _ = to_langchain(CONVERSATION, system_role=False, merge_roles=True)
    assert merged.content == "Rules.\n\nada: A.\n\nben: B."


def test_tool_calls_and_their_results_are_never_merged() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    conversation: list[WireMessage] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "assistant", "content": "", "tool_calls": [{**call, "id": "2"}]},
        {"role": "tool", "content": "ok", "tool_call_id": "1"},
        {"role": "tool", "content": "ok", "tool_call_id": "2"},
    ]
    messages = to_langchain(conversation, merge_roles=True)
    assert [type(message) for message in messages] == [AIMessage, AIMessage, ToolMessage, ToolMessage]
    assert isinstance(messages[0], AIMessage)
    assert messages[0].tool_calls[0]["args"] == {"x": 1}
