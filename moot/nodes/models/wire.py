"""Prompts in OpenAI's chat form, turned into LangChain messages that a given model accepts."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from moot.nodes.calls import WireMessage
from moot.state.at_sight import at_sight
from moot.state.entries import JsonObject

_NOT_SLUG = re.compile(r"[^a-zA-Z0-9_-]+")
NAME_CHARS = 64


def wire_name(name: str) -> str:
    """Return a speaker's name as providers accept it; `""` where nothing of it can be kept."""
    return _NOT_SLUG.sub("-", name).strip("-")[:NAME_CHARS]


def to_langchain(
    messages: Iterable[WireMessage],
    *,
    merge_roles: bool = False,
    system_role: bool = True,
    names: bool = True,
) -> list[BaseMessage]:
    """Convert a prompt.

    Args:
        messages: the prompt; never changed.
        merge_roles: join neighbours of one role, for templates that refuse them.
        system_role: whether the model takes system messages; without, they open it as a user's.
        names: whether the model is shown messages' names; without, a speaker's stands before the words.
    """
    wire = list(messages)
    if not system_role:
        wire = _without_system(wire)
    if merge_roles:
        wire = _merged(wire)
    if not names:
        wire = [{**item, "content": _labelled(item), "name": ""} for item in wire]
    return [_kept(item) if "name" in item else _message(item) for item in wire]


@at_sight(4096)
def _kept(item: WireMessage) -> BaseMessage:
    """Return the message of a window's entry, which stays the same from turn to turn."""
    return _message(item)


def _message(item: WireMessage) -> BaseMessage:
    name = wire_name(item.get("name", "")) or None
    content = item["content"]
    if item["role"] == "system":
        return SystemMessage(content, name=name)
    if item["role"] == "tool":
        return ToolMessage(content, tool_call_id=item.get("tool_call_id", ""), name=name)
    if item["role"] == "assistant":
        return AIMessage(content, name=name, tool_calls=_tool_calls(item.get("tool_calls", ())))
    return HumanMessage(content, name=name)


def _tool_calls(calls: Iterable[JsonObject]) -> list[Any]:
    return [
        {
            "id": call["id"],
            "name": call["function"]["name"],
            "args": json.loads(call["function"].get("arguments") or "{}"),
            "type": "tool_call",
        }
        for call in calls
    ]


def _without_system(wire: Sequence[WireMessage]) -> list[WireMessage]:
    rules = "\n\n".join(item["content"] for item in wire if item["role"] == "system")
    rest = [item for item in wire if item["role"] != "system"]
    if not rules:
        return rest
    return [{"role": "user", "content": rules}, *rest]


def _merged(wire: Sequence[WireMessage]) -> list[WireMessage]:
    merged: list[WireMessage] = []
    for item in wire:
        if merged and _joinable(merged[-1], item):
            merged[-1] = {"role": item["role"], "content": f"{_labelled(merged[-1])}\n\n{_labelled(item)}"}
        else:
            merged.append(item)
    return merged


def _joinable(left: WireMessage, right: WireMessage) -> bool:
    plain = not any("tool_calls" in item or item["role"] == "tool" for item in (left, right))
    return plain and left["role"] == right["role"]


def _labelled(item: WireMessage) -> str:
    # A merged message has no single name, so each speaker's stands before the words.
    return f"{item['name']}: {item['content']}" if item.get("name") else item["content"]
