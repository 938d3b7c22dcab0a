"""ChatGPT's data export: conversations as trees of messages, of which one branch is shown."""

from collections.abc import Mapping, Sequence

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source, choose_conversation
from moot.plugins.importing import message_objects

_LEFT_OUT = {
    "code": "tool call",
    "execution_output": "tool result",
    "tether_browsing_display": "tool result",
    "tether_quote": "tool result",
    "thoughts": "reasoning",
    "reasoning_recap": "reasoning",
    "user_editable_context": "system message",
    "model_editable_context": "system message",
}
"""What a message with this `content_type` is, for those that are no message of the conversation."""


def _read(source: Source) -> ParsedTranscript | None:
    conversations = message_objects.conversations_of(source.json, _is_conversation)
    if not conversations:
        return None
    titles = [message_objects.first_text(each, ("title", "conversation_id", "id")) for each in conversations]
    conversation = choose_conversation(conversations, titles, source)
    left_out, branch = LeftOut(), _branch(conversation)
    mapping = conversation["mapping"]
    all_nodes = mapping.values() if isinstance(mapping, dict) else ()
    left_out["off-branch message"] += sum(map(_has_text, all_nodes)) - sum(map(_has_text, branch))
    messages = [
        message
        for node in branch
        if isinstance(raw := node.get("message"), dict) and (message := _message(raw, left_out))
    ]
    return ParsedTranscript(messages, message_objects.first_text(conversation, ("title",)), left_out=left_out)


def _is_conversation(value: object) -> bool:
    mapping = value.get("mapping") if isinstance(value, dict) else None
    return (
        isinstance(mapping, dict)
        and bool(mapping)
        and all(isinstance(node, dict) and "parent" in node for node in mapping.values())
    )


def _branch(conversation: message_objects.JsonDict) -> Sequence[message_objects.JsonDict]:
    """Return the nodes from the root to the current node, or to the last node if none is current."""
    mapping = conversation["mapping"]
    assert isinstance(mapping, dict)  # noqa: S101  # a conversation has one
    current = conversation.get("current_node")
    key: object = current if isinstance(current, str) and current in mapping else _newest_leaf(mapping)
    nodes: list[message_objects.JsonDict] = []
    seen = set[object]()
    while isinstance(key, str) and key in mapping and key not in seen:
        seen.add(key)
        nodes.append(mapping[key])
        key = mapping[key].get("parent")
    return nodes[::-1]


def _newest_leaf(mapping: Mapping[str, message_objects.JsonDict]) -> str:
    """Return the node without replies whose message is the newest, or the last such node."""
    parents = {node.get("parent") for node in mapping.values() if isinstance(node.get("parent"), str)}

    def created(key: str) -> float:
        message = mapping[key].get("message")
        time = message.get("create_time") if isinstance(message, dict) else None
        return float(time) if isinstance(time, int | float) else 0.0

    leaves = [key for key in mapping if key not in parents] or [*mapping]
    return max(reversed(leaves), key=created)


def _has_text(node: message_objects.JsonDict) -> bool:
    message = node.get("message")
    author = message.get("author") if isinstance(message, dict) else None
    return isinstance(author, dict) and author.get("role") in ("user", "assistant")


def _message(raw: message_objects.JsonDict, left_out: LeftOut) -> ParsedMessage | None:
    author, content, metadata = raw.get("author"), raw.get("content"), raw.get("metadata")
    role = message_objects.first_text(author, ("role",)) if isinstance(author, dict) else ""
    if not isinstance(content, dict) or not role:
        return None
    kind = _LEFT_OUT.get(str(content.get("content_type")), "")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    if role in message_objects.INSTRUCTIONS or hidden:
        kind = "system message"
    elif role == "tool":
        kind = "tool result"
    elif raw.get("recipient") not in (None, "", "all"):
        kind = "tool call"
    text = message_objects.text_of(
        content.get("parts", content.get("text")), "the message", message_left_out := LeftOut()
    )
    if kind:
        left_out[kind] += bool(text.strip()) or kind not in ("system message",)
        return None
    left_out.update(message_left_out)
    return ParsedMessage(role, text, message_objects.readable_time(raw.get("create_time")))


READER = Reader("ChatGPT export", "json", _read)
