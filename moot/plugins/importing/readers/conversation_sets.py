"""Files with one conversation an item: fine-tuning and ShareGPT data, inspect_ai logs, AutoGen teams."""

from moot.importers import LeftOut, ParsedTranscript, Reader, Source, choose_conversation
from moot.plugins.importing import message_objects

_MESSAGE_KEYS = (
    *("messages", "conversations", "conversation", "chat_history", "message_thread", "contents", "turns"),
    *("dialogue", "dialog", "history"),
)
"""Keys of the messages in an object that is one conversation."""
_SET_KEYS = ("samples", "conversations", "chats", "data", "threads", "list")
"""Keys of a list of conversations."""
_TITLE_KEYS = ("title", "name", "topic", "id", "conversation_id", "thread_id", "epoch")


def _read(source: Source) -> ParsedTranscript | None:
    conversations = _conversations(source.json)
    if conversations is None:
        return None
    titles = [message_objects.first_text(each, _TITLE_KEYS) or _first_words(each) for each in conversations]
    conversation = choose_conversation(conversations, titles, source)
    left_out = LeftOut()
    if isinstance(conversation.get("system"), str):
        left_out["system message"] += 1
    messages = message_objects.read_messages(
        _messages(conversation) or [], lambda index: f"message {index + 1}", left_out
    )
    topic = message_objects.first_text(conversation, ("topic", "title", "problem", "question"))
    return ParsedTranscript(messages, topic, left_out=left_out)


def _conversations(value: object) -> list[message_objects.JsonDict] | None:
    if isinstance(value, dict):
        value = next((value[key] for key in _SET_KEYS if _is_set(value.get(key))), value)
        value = [states] if isinstance(states := _agent_thread(value), dict) else value
    if isinstance(value, list) and _is_set(value):
        return value
    return None


def _is_set(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, dict) and not message_objects.is_message(each) and _messages(each)
            for each in value
        )
    )


def _messages(conversation: message_objects.JsonDict) -> list[object] | None:
    """Return the messages of a conversation, or `None` if an object is none."""
    for key in _MESSAGE_KEYS:
        value = conversation.get(key)
        if isinstance(value, list) and value and all(map(_is_item, value)):
            return value
    return None


def _is_item(item: object) -> bool:
    """Return True for a message, also for one that only calls a tool."""
    return message_objects.is_message(item) or (
        isinstance(item, dict)
        and "tool_calls" in item
        and bool(message_objects.first_text(item, message_objects.SPEAKER_KEYS))
    )


def _agent_thread(value: object) -> message_objects.JsonDict | None:
    """Return the thread of the group chat in a saved AutoGen team, which repeats it for each agent."""
    states = value.get("agent_states") if isinstance(value, dict) else None
    for state in states.values() if isinstance(states, dict) else ():
        if isinstance(state, dict) and isinstance(thread := state.get("message_thread"), list):
            return {"messages": [each for each in thread if message_objects.is_message(each)]}
    return None


def _first_words(conversation: message_objects.JsonDict) -> str:
    for item in _messages(conversation) or ():
        if isinstance(item, dict) and str(item.get("role") or item.get("from")) not in (
            "system",
            "developer",
        ):
            return message_objects.first_text(item, ("content", "value", "text"))
    return ""


READER = Reader("set of conversations", "json", _read)
