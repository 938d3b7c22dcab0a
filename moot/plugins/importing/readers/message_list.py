"""Any other JSON with a list of messages, such as OpenAI's, LangChain's and ConvoKit's."""

from collections.abc import Iterable

from moot.importers import LeftOut, ParsedTranscript, Reader, Source
from moot.plugins.importing import message_objects
from moot.state.errors import InputError
from moot.text.terms import question_in, split_sentences

_TOPIC_KEYS = ("topic", "problem", "motion", "question", "title")
_LIST_KEYS = ("transcript", "utterances", "messages", "turns", "entries", "debate", "chat_history")
_USER_ROLES = frozenset({"user", "human"})


def _read(source: Source) -> ParsedTranscript | None:
    value, topic = source.json, ""
    if isinstance(value, list):
        items = value
    elif isinstance(value, dict):
        topic, items = message_objects.first_text(value, _TOPIC_KEYS), _list_in(value)
    else:
        raise InputError(
            "line 1: a JSON transcript must be a list of messages or an object that contains a list of "
            "messages"
        )
    left_out = LeftOut()
    messages = message_objects.read_messages(items, source.position, left_out)
    return ParsedTranscript(messages, topic or first_request(items), left_out=left_out)


def first_request(items: Iterable[object]) -> str:
    """Return the question in a chat's first user message, or else that message's first sentence.

    Return `""` if the chat has no user message.
    """
    for number, raw_item in enumerate(items, start=1):
        item = message_objects.unwrapped(raw_item)
        if isinstance(item, dict) and item.get("role") in _USER_ROLES and not item.get("speaker"):
            content = next(
                (item[key] for key in message_objects.CONTENT_KEYS if item.get(key) is not None), None
            )
            title = question_in(message_objects.text_of(content, f"entry {number}", LeftOut()))
            sentences = split_sentences(title)
            return sentences[0].text if sentences else title
    return ""


def _list_in(document: message_objects.JsonDict) -> list[object]:
    """Find the list of messages in a JSON object. A list under a key such as `messages` is preferred.

    Raises:
        InputError: The document has no list of messages, or more than one.
    """
    for key in _LIST_KEYS:
        if isinstance(messages := document.get(key), list):
            return messages
    message_lists: dict[str, list[object]] = {}
    pending_items: list[tuple[str, object]] = [("", document)]
    for key, value in pending_items:  # the list grows
        if isinstance(value, dict) and message_objects.replies_of(value):
            message_lists[key] = [value]  # a thread
        elif isinstance(value, dict):
            pending_items += [(f"{key}.{inner}".lstrip("."), each) for inner, each in value.items()]
        elif isinstance(value, list) and value and all(map(message_objects.is_message, value)):
            message_lists[key] = value
    known_lists = [each for key, each in message_lists.items() if key.rpartition(".")[2] in _LIST_KEYS]
    candidates = known_lists if len(known_lists) == 1 else list(message_lists.values())
    if len(candidates) == 1:
        return candidates[0]
    problem = (
        f"several lists of messages ({', '.join(message_lists)})" if message_lists else "no list of messages"
    )
    raise InputError(
        f"line 1: the JSON object has {problem}; put the messages in a list under one of the keys "
        f"{', '.join(_LIST_KEYS)}"
    )


READER = Reader("list of messages", "json", _read)
