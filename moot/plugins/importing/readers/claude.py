"""Conversations exported from Claude's web application."""

from collections.abc import Sequence

from moot.importers import LeftOut, ParsedTranscript, Reader, Source, choose_conversation
from moot.plugins.importing.message_objects import JsonDict, conversations_of, first_text, read_messages


def _read(source: Source) -> ParsedTranscript | None:
    conversations = conversations_of(source.json, _is_conversation)
    if not conversations:
        return None
    conversation = choose_conversation(
        conversations, [first_text(each, ("name", "uuid")) for each in conversations], source
    )
    items = [_item(message) for message in _branch(conversation)]
    messages = conversation["chat_messages"]
    count = len(messages) if isinstance(messages, list) else 0
    left_out = LeftOut({"off-branch message": count - len(items)})
    parsed = read_messages(items, lambda index: f"message {index + 1}", left_out)
    return ParsedTranscript(parsed, first_text(conversation, ("name",)), left_out=left_out)


def _is_conversation(value: object) -> bool:
    messages = value.get("chat_messages") if isinstance(value, dict) else None
    return isinstance(messages, list) and all(
        isinstance(each, dict) and "sender" in each for each in messages
    )


def _branch(conversation: JsonDict) -> Sequence[JsonDict]:
    """Return the messages on the branch that is shown, which ends with the current leaf or the last message.

    Older exports do not name the parents of messages. Then every message is on the branch.
    """
    messages = conversation["chat_messages"]
    assert isinstance(messages, list)  # noqa: S101  # a conversation has one
    by_id = {first_text(message, ("uuid",)): message for message in messages}
    key, branch = first_text(conversation, ("current_leaf_message_uuid",)), dict[str, JsonDict]()
    if not key and messages and all("parent_message_uuid" in message for message in messages):
        key = first_text(messages[-1], ("uuid",))
    while key and key in by_id and key not in branch:
        branch[key] = by_id[key]
        key = first_text(by_id[key], ("parent_message_uuid",))
    return list(branch.values())[::-1] or messages


def _item(message: JsonDict) -> JsonDict:
    """Return a message with its content as blocks. Older exports have only its text."""
    blocks = message.get("content")
    content = blocks if isinstance(blocks, list) and blocks else message.get("text")
    return {
        "role": message["sender"],
        "content": content,
        "created_at": message.get("created_at"),
        "attachments": message.get("attachments"),
        "files": message.get("files"),
    }


READER = Reader("Claude export", "json", _read)
