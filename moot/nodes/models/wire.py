"""Prompts in OpenAI's chat form, turned into LangChain messages that a given model accepts."""

import re
from collections.abc import Iterable

from langchain_core.messages import BaseMessage, convert_to_messages

from moot.nodes.calls import WireMessage
from moot.state.at_sight import at_sight

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
        rules = "\n\n".join(item["content"] for item in wire if item["role"] == "system")
        wire = [item for item in wire if item["role"] != "system"]
        if rules:
            wire.insert(0, {"role": "user", "content": rules})
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
    named = {**item, "name": wire_name(item.get("name", "")) or None}
    return convert_to_messages([named])[0]


def _merged(wire: Iterable[WireMessage]) -> list[WireMessage]:
    merged: list[WireMessage] = []
    for item in wire:
        last = merged[-1] if merged else item
        plain = not any("tool_calls" in each or each["role"] == "tool" for each in (last, item))
        if merged and plain and last["role"] == item["role"]:
            merged[-1] = {"role": item["role"], "content": f"{_labelled(last)}\n\n{_labelled(item)}"}
        else:
            merged.append(item)
    return merged


def _labelled(item: WireMessage) -> str:
    # A merged message has no single name, so each speaker's stands before the words.
    return f"{item['name']}: {item['content']}" if item.get("name") else item["content"]
