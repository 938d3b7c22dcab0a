"""What reaches a debate from outside: what people say from the floor, and changes of what was said.

What was said stays said, so that other words for it become an amendment.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from moot.nodes.memory.window import Scribe, window_message
from moot.nodes.reading.tool_results import use_of
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import FLOOR_SPEAKERS, may_speak, slug
from moot.state.config.debate_config import frozen_config
from moot.state.config.debaters import PlannedInterjection
from moot.state.conversation import StateValues
from moot.state.entries import Entry, EntryKind, JsonObject, ToolUse, entries_of, gifts_in, kind_of, seq_of
from moot.state.errors import InputError
from moot.state.floor import Interjection
from moot.state.reducers import fold_window, is_foreign

AMENDS = "amends"
"""Marks, among a message's `additional_kwargs`, one that amends the entry of this id."""
SETTLED = frozenset({"messages", "full_transcript", "pinned"})
"""What of an update is held against the state; without these there is nothing to settle."""


def foreign_messages(state: StateValues) -> list[BaseMessage]:
    """Return the window's messages that have no entry yet, oldest first."""
    return [message for message in state.get("messages") or [] if is_foreign(message)]


def said_outside(state: StateValues) -> str:
    """Return what people have said from outside: an answer to what they were asked, or a question."""
    return "\n\n".join(str(each.text) for each in foreign_messages(state) if each.type == "human").strip()


def adopt_operation(entries: Sequence[Entry]) -> JsonObject:
    """Return the window operation that gives the oldest foreign messages these entries' ids and names."""
    return {
        "op": "adopt",
        "ids": [entry["id"] for entry in entries],
        "names": [entry["speaker"] for entry in entries],
    }


def planned_interjections(state: StateValues) -> Sequence[PlannedInterjection]:
    """Return those of the configuration whose moment has come and that were not taken up yet."""
    waiting = frozen_config(state).interjections[state.get("interjections_taken", 0) :]
    return [each for each in waiting if each.after <= state.get("turn_count", 0)]


def interjection_entries(
    state: StateValues,
    said: Sequence[Interjection],
    planned: Sequence[PlannedInterjection],
    now: str,
    count: TokenCounter,
) -> list[Entry]:
    """Return the entries of what was said from the floor since the last step, numbered on.

    Args:
        state: the debate's; messages that came with the run's input are in its window.
        said: what was left on the floor's table; comes after those messages.
        planned: what the configuration wanted said by now; comes between the two.
        now: time of what bears none.
        count: token counter.
    """
    scribe = Scribe(len(state["full_transcript"]), count, lambda: now, round=state.get("round", 0))
    for message in foreign_messages(state):
        if amended := entries_of([str(message.additional_kwargs.get(AMENDS, ""))], state["full_transcript"]):
            amended_id = amended[0]["id"]
            words = f"Amends [{amended_id}], which stands as it was said; it is to say:\n{message.text}"
            scribe.write("user", "interjection", words, at=now, targets=[amended_id])
        else:
            entry = scribe.write(*_utterance(message), at=now)
            if isinstance(message, ToolMessage):
                entry["tool"] = _use(message, state)
    utterances = [(each.speaker, each.text, now) for each in planned]
    for speaker, content, at in [*utterances, *((each.speaker, each.content, each.at) for each in said)]:
        scribe.write(speaker, "interjection", content, at=at)
    return scribe.entries


def _utterance(message: BaseMessage) -> tuple[str, EntryKind, str]:
    """Return speaker, kind and words of a message from outside; a graph around this one sends all it has."""
    words = str(message.text)
    if isinstance(message, AIMessage):
        called = ", ".join(call["name"] for call in message.tool_calls)
        speaker = slug(message.name or "")
        known = speaker if may_speak(speaker) and speaker not in FLOOR_SPEAKERS else "assistant"
        return known, "interjection", words or f"(calls {called})"
    if isinstance(message, HumanMessage):
        return "user", "interjection", words
    return "user", "context", f"{message.name or message.type}\n\n{words}"


def _use(message: ToolMessage, state: StateValues) -> ToolUse:
    """Return the record of a result that came from a graph around this one, whose call came before it."""
    asked = (call for each in foreign_messages(state) for call in getattr(each, "tool_calls", ()))
    called = next((call for call in asked if call["id"] == message.tool_call_id), None)
    name = message.name or (called["name"] if called else message.type)
    failed = True if message.status == "error" else None
    return use_of(name, called["args"] if called else {}, str(message.text), failed=failed)


def interjections_update(entries: list[Entry], adopted: int) -> JsonObject:
    """Return what takes up interjections, of which the first `adopted` are in the window already."""
    return {
        "full_transcript": entries,
        "gifts": gifts_in(entries),
        "messages": [adopt_operation(entries[:adopted]), *map(window_message, entries[adopted:])],
    }


def take_up_now(given: JsonObject, state: StateValues, now: str, count: TokenCounter) -> JsonObject:
    """Return an update from outside with entries made of its messages, for a node that is not `plan`.

    What is the answer to something that a person was asked must not be given to this.
    """
    items = given.get("messages")
    if not items:
        return given
    window = fold_window(state.get("messages") or [], [items])
    entries = interjection_entries({**state, "messages": window}, (), (), now, count)
    taken = interjections_update(entries, len(entries))
    return {**given, **taken, "messages": [*items, *taken["messages"]]}


def settle_update(given: Mapping[str, Any], state: StateValues) -> JsonObject:
    """Return an update from outside as a debate takes it.

    Other words under the id of an entry, as a message or an entry, become a message that amends it, which the
    next step takes up; the same words are dropped, and an id that no entry has yet is taken off.

    Raises:
        InputError: it would remove or add entries, or pin what was not said.
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
            messages += _settle_message(message, transcript, shown)
    if isinstance(entries := update.get("full_transcript"), list):
        del update["full_transcript"]
        for entry in entries:
            messages += _settle_entry(entry, transcript)
    if messages or "messages" in update:
        update["messages"] = messages
    if isinstance(update.get("pinned"), list):
        update["pinned"] = list(dict.fromkeys(pinnable(key, transcript) for key in update["pinned"]))
    return update


def _settle_message(
    message: BaseMessage, transcript: list[Entry], shown: Mapping[str | None, str]
) -> list[BaseMessage]:
    message_id = message.id or ""
    if isinstance(message, RemoveMessage):
        if message_id in shown and seq_of(message_id) is None:
            return [message]
        raise InputError(
            f"{message.id!r} cannot be removed: what was said stays said; fork the debate before it"
        )
    if seq_of(message_id) is None:
        return [message]
    known = entries_of([message_id], transcript)
    if not known:
        return [message.model_copy(update={"id": None})]
    return _amendments(known[0], str(message.text), shown.get(message_id))


def _settle_entry(given: object, transcript: list[Entry]) -> list[BaseMessage]:
    entry = given if isinstance(given, Mapping) else {}
    known = entries_of([str(entry.get("id", ""))], transcript)
    if not known or not isinstance(entry.get("content"), str):
        raise InputError(
            "full_transcript: a debate takes no entries from outside once it runs: give a message instead"
        )
    return _amendments(known[0], entry["content"])


def _amendments(entry: Entry, words: str, shown: str | None = None) -> list[BaseMessage]:
    """Return the message that amends an entry, none for its own words or those that show it."""
    if words in (entry["content"], shown):
        return []
    if not kind_of(entry).shown:
        raise InputError("the topic cannot be changed: begin another debate, or say more to this one")
    return [SystemMessage(words, additional_kwargs={AMENDS: entry["id"]})]


def pinnable(message_id: object, transcript: list[Entry]) -> str:
    """Return the id of a message that can be pinned.

    Raises:
        InputError: there is no such message.
    """
    for entry in entries_of([str(message_id)], transcript):
        if kind_of(entry).shown:
            return entry["id"]
    raise InputError(f"there is no message {message_id!r} to pin: `--transcript` of `moot show` lists them")
