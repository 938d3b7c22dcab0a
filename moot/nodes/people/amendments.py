"""Changes from outside of what was said: it stays said, so that other words for it become an amendment."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage, SystemMessage, convert_to_messages

from moot.state.conversation import StateValues
from moot.state.entries import Entry, JsonObject, entries_of, kind_of, seq_of
from moot.state.errors import InputError

AMENDS = "amends"
"""Marks, among a message's `additional_kwargs`, one that amends the entry of this id."""


SETTLED = frozenset({"messages", "full_transcript", "pinned"})
"""What of an update is held against the state; without these there is nothing to settle."""


def amended_entry(message: BaseMessage, transcript: list[Entry]) -> Entry | None:
    """Return the entry that a message from outside amends, `None` for any other message."""
    return next(iter(entries_of([str(message.additional_kwargs.get(AMENDS, ""))], transcript)), None)


def settled(given: Mapping[str, Any], state: StateValues) -> JsonObject:
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
            messages += _settled_message(message, transcript, shown)
    if isinstance(entries := update.get("full_transcript"), list):
        del update["full_transcript"]
        for entry in entries:
            messages += _settled_entry(entry, transcript)
    if messages or "messages" in update:
        update["messages"] = messages
    if isinstance(update.get("pinned"), list):
        update["pinned"] = list(dict.fromkeys(pinnable(key, transcript) for key in update["pinned"]))
    return update


def _settled_message(
    message: BaseMessage, transcript: list[Entry], shown: Mapping[str | None, str]
) -> list[BaseMessage]:
    seq, words = seq_of(message.id or ""), str(message.text)
    if isinstance(message, RemoveMessage):
        if message.id in shown and seq is None:
            return [message]
        raise InputError(
            f"{message.id!r} cannot be removed: what was said stays said; fork the debate before it"
        )
    if seq is None:
        return [message]
    if seq >= len(transcript):
        return [message.model_copy(update={"id": None})]
    return (
        []
        if words in (shown.get(message.id), transcript[seq]["content"])
        else [_amending(seq, words, transcript)]
    )


def _settled_entry(given: object, transcript: list[Entry]) -> list[BaseMessage]:
    entry = given if isinstance(given, Mapping) else {}
    seq = seq_of(str(entry.get("id", "")))
    if seq is None or seq >= len(transcript) or not isinstance(entry.get("content"), str):
        raise InputError(
            "full_transcript: a debate takes no entries from outside once it runs: give a message instead"
        )
    same = entry["content"] == transcript[seq]["content"]
    return [] if same else [_amending(seq, entry["content"], transcript)]


def _amending(seq: int, words: str, transcript: list[Entry]) -> BaseMessage:
    if not kind_of(transcript[seq]).shown:
        raise InputError("the topic cannot be changed: begin another debate, or say more to this one")
    return SystemMessage(words, additional_kwargs={AMENDS: transcript[seq]["id"]})


def pinnable(message_id: object, transcript: list[Entry]) -> str:
    """Return the id of a message that can be pinned.

    Raises:
        InputError: there is no such message.
    """
    seq = seq_of(str(message_id))
    if seq is None or seq >= len(transcript) or not kind_of(transcript[seq]).shown:
        raise InputError(
            f"there is no message {message_id!r} to pin: `--transcript` of `moot show` lists them"
        )
    return transcript[seq]["id"]
