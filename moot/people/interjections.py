"""Messages that people add to a debate: interjections, and amendments of earlier messages.

The transcript is append-only, so a changed message becomes a new message that amends the old one.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from moot.memory.tool_results import make_tool_use
from moot.memory.window import TranscriptWriter, window_message
from moot.state.config import INTERJECTION_SPEAKERS, can_interject, slug
from moot.state.config.debate_config import frozen_config
from moot.state.config.participants import PlannedInterjection
from moot.state.conversation import InboxMessage, StateValues
from moot.state.entries import (
    Entry,
    EntryKind,
    JsonObject,
    ToolUse,
    entries_of,
    entry_with_message,
    seq_of,
    traits_of,
    user_provided_in,
)
from moot.state.errors import InputError
from moot.state.reducers import fold_window, is_new_input
from moot.text.tokens import TokenCounter

AMENDS = "amends"
"""Key in `additional_kwargs` that holds the id of the amended transcript entry."""
MAX_MESSAGE_CHARS = 100_000
"""Maximum number of characters in a person's message to a debate."""
CHECKED_CHANNELS = frozenset({"messages", "full_transcript", "pinned"})
"""State channels whose updates are validated if the updates come from a client."""


def check_length(text: str) -> None:
    """Raise an error if a message to a debate is too long.

    Raises:
        InputError: the message is too long.
    """
    if len(text) > MAX_MESSAGE_CHARS:
        raise InputError(
            f"the interjection has {len(text):,} characters: shorten it to at most {MAX_MESSAGE_CHARS:,}"
        )


def new_input_messages(state: StateValues) -> list[BaseMessage]:
    """Return the messages in the `messages` channel that are not yet in the transcript."""
    return [message for message in state.get("messages") or [] if is_new_input(message)]


def new_input_text(state: StateValues) -> str:
    """Return the text of a person's new messages, joined with blank lines."""
    return "\n\n".join(str(each.text) for each in new_input_messages(state) if each.type == "human").strip()


def assign_ids_operation(entries: Sequence[Entry]) -> JsonObject:
    """Return an update for the `messages` channel that assigns transcript ids to new messages."""
    return {
        "op": "assign_ids",
        "ids": [entry["id"] for entry in entries],
        "names": [entry["speaker"] for entry in entries],
    }


def planned_interjections(state: StateValues) -> Sequence[PlannedInterjection]:
    """Return the configured interjections that are due but not yet in the transcript."""
    waiting = frozen_config(state).interjections[state.get("planned_interjections_used", 0) :]
    return [each for each in waiting if each.after <= state.get("turn_count", 0)]


def interjection_entries(
    state: StateValues,
    inbox: Sequence[InboxMessage],
    planned: Sequence[PlannedInterjection],
    now: str,
    count: TokenCounter,
) -> list[Entry]:
    """Return transcript entries for new interjections, that is, for messages that people add to the debate.

    Args:
        state: state of the debate. Its window holds messages from the run's input, which come first.
        inbox: messages of the inbox, which come last.
        planned: due interjections of the configuration, which come between the two.
        now: time of interjections without their own time.
        count: token counter.
    """
    writer = TranscriptWriter(len(state["full_transcript"]), count, lambda: now, round=state.get("round", 0))
    for message in new_input_messages(state):
        if amended := entries_of([str(message.additional_kwargs.get(AMENDS, ""))], state["full_transcript"]):
            amended_id = amended[0]["id"]
            text = f"Amendment of [{amended_id}]. The new text is:\n{message.text}"
            writer.write("user", "interjection", text, at=now, targets=[amended_id], known_as=message.id)
        else:
            entry = writer.write(*_message_fields(message), at=now, known_as=message.id)
            if isinstance(message, ToolMessage):
                entry["tool"] = _use(message, state)
    messages = [(each.speaker, each.text, now) for each in planned]
    for speaker, content, at in [*messages, *((each.speaker, each.content, each.at) for each in inbox)]:
        writer.write(speaker, "interjection", content, at=at)
    return writer.entries


def _message_fields(message: BaseMessage) -> tuple[str, EntryKind, str]:
    """Return the speaker, entry kind and text of an input message.

    A parent graph may pass any type of message.
    """
    text = str(message.text)
    if isinstance(message, AIMessage):
        called = ", ".join(call["name"] for call in message.tool_calls)
        speaker = slug(message.name or "")
        known = speaker if can_interject(speaker) and speaker not in INTERJECTION_SPEAKERS else "assistant"
        return known, "interjection", text or f"(calls {called})"
    if isinstance(message, HumanMessage):
        return "user", "interjection", text
    return "user", "context", f"{message.name or message.type}\n\n{text}"


def _use(message: ToolMessage, state: StateValues) -> ToolUse:
    """Return a record of the tool call that an incoming `ToolMessage` answers."""
    calls = (call for each in new_input_messages(state) for call in getattr(each, "tool_calls", ()))
    call = next((call for call in calls if call["id"] == message.tool_call_id), None)
    name = message.name or (call["name"] if call else message.type)
    failed = True if message.status == "error" else None
    return make_tool_use(name, call["args"] if call else {}, str(message.text), failed=failed)


def interjections_update(entries: list[Entry], assigned: int, *origin: str) -> JsonObject:
    """Return the state update that records interjections in the transcript and the `messages` channel.

    The first `assigned` entries are in the window already and are only linked to their messages. `origin` are
    the ids of the debate and the checkpoint.
    """
    added = (window_message(entry, *origin) for entry in entries[assigned:])
    return {
        "full_transcript": entries,
        "user_provided": user_provided_in(entries),
        "messages": [assign_ids_operation(entries[:assigned]), *added],
    }


def ingest_messages(given: JsonObject, state: StateValues, now: str, count: TokenCounter) -> JsonObject:
    """Add transcript entries for the messages in a client's state update.

    Do not pass a reply to a question that a person was asked.
    """
    items = given.get("messages")
    if not items:
        return given
    window = fold_window(state.get("messages") or [], [items])
    entries = interjection_entries({**state, "messages": window}, (), (), now, count)
    taken = interjections_update(entries, len(entries))
    return {**given, **taken, "messages": [*items, *taken["messages"]]}


def with_message_ids(given: StateValues) -> JsonObject:
    """Return a copy of a state update in which every message has an id.

    Clients recognize a message by its id, so the id must not change when the message gets a transcript entry.
    """
    if not given.get("messages"):
        return dict(given)
    items = given["messages"]
    messages: list[object] = []
    for item in items if isinstance(items, list) else [items]:
        if isinstance(item, Mapping) and "op" in item:
            messages.append(item)
            continue
        (message,) = convert_to_messages([item])
        messages.append(message if message.id else message.model_copy(update={"id": str(uuid4())}))
    return {**given, "messages": messages}


def normalize_update(given: Mapping[str, Any], state: StateValues) -> JsonObject:
    """Validate a client's state update, and convert changed messages to amendments.

    A changed text under the id of an entry becomes a new message that amends the entry in the next step. An
    unchanged text is dropped. An id that no entry has is removed.

    Raises:
        InputError: the update removes or adds entries, or pins a message that does not exist.
    """
    update = dict(given)
    if not state.get("config"):
        return update
    transcript: list[Entry] = state["full_transcript"]
    shown = {message.id: str(message.text) for message in state.get("messages") or []}
    items = update.get("messages", [])
    messages: list[object] = []
    for item in items if isinstance(items, list) else [items]:
        if isinstance(item, Mapping) and "op" in item:
            messages.append(item)
        else:
            (message,) = convert_to_messages([item])
            entry = entry_with_message(message.id or "", transcript)
            messages += _check_message(message, entry, shown)
    if isinstance(entries := update.get("full_transcript"), list):
        del update["full_transcript"]
        for entry in entries:
            messages += _check_entry(entry, transcript)
    if messages or "messages" in update:
        update["messages"] = messages
    if isinstance(update.get("pinned"), list):
        update["pinned"] = list(dict.fromkeys(pinnable_id(key, transcript) for key in update["pinned"]))
    return update


def _check_message(
    message: BaseMessage, entry: Entry | None, shown: Mapping[str | None, str]
) -> list[BaseMessage]:
    """Check one message in a client's state update, and return the messages to store in its place.

    `entry` is its transcript entry, if any.
    """
    if isinstance(message, RemoveMessage):
        if message.id in shown and entry is None:
            return [message]
        raise InputError(
            f"{message.id!r} cannot be removed, because the transcript is append-only. To leave the entry "
            "out, fork the debate from a point before the entry"
        )
    if entry is not None:
        return _amendments(entry, str(message.text), shown.get(message.id))
    check_length(str(message.text))
    # An id of the form of an entry's would count as an entry's.
    taken = seq_of(message.id or "") is not None
    return [message.model_copy(update={"id": str(uuid4())}) if taken else message]


def _check_entry(given: object, transcript: list[Entry]) -> list[BaseMessage]:
    entry = given if isinstance(given, Mapping) else {}
    known = entries_of([str(entry.get("id", ""))], transcript)
    if not known or not isinstance(entry.get("content"), str):
        raise InputError(
            "full_transcript: entries cannot be added after the debate has started. Add a message instead"
        )
    return _amendments(known[0], entry["content"])


def _amendments(entry: Entry, words: str, shown: str | None = None) -> list[BaseMessage]:
    """Return the message that changes the text of a transcript entry, as a list of one item.

    The list is empty if the text is unchanged.
    """
    if words in (entry["content"], shown):
        return []
    check_length(words)
    if not traits_of(entry).in_prompts:
        raise InputError("the topic cannot be changed: start another debate, or add a message to this one")
    return [SystemMessage(words, id=str(uuid4()), additional_kwargs={AMENDS: entry["id"]})]


def pinnable_id(message_id: object, transcript: list[Entry]) -> str:
    """Return the transcript id of a message, or raise an error if the message cannot be pinned.

    Raises:
        InputError: no message has this id.
    """
    for entry in entries_of([str(message_id)], transcript):
        if traits_of(entry).in_prompts:
            return entry["id"]
    raise InputError(
        f"there is no message {message_id!r} to pin: run `moot show ID --transcript` to list the messages"
    )
