"""Reducers of the state's channels.

Every reducer is deterministic and batching-invariant, `r(r(s, xs), ys) == r(s, xs + ys)`, so that writes can
be replayed. No reducer changes the state that it is given.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeVar, cast

from langchain_core import messages
from typing_extensions import TypedDict

from moot.state.entries import ModelFacts, seq_of

T = TypeVar("T")
Totals = TypeVar("Totals", bound=Mapping[str, object])
"""Type variable for dictionary types that map names to numbers. An example is `EntryUsage`."""


def latest(state: T, writes: Sequence[T]) -> T:
    """Return the last value written to the channel."""
    return writes[-1] if writes else state


class SharedList(list[T]):
    """List that is never modified in place, so that copies can share the same object.

    LangGraph copies every channel whenever it chooses the next node, up to twice a turn.
    """

    def __copy__(self) -> Self:
        return self


def append(state: list[T], writes: Sequence[list[T]]) -> list[T]:
    """Return the items of `state` and of every list in `writes`, in this order."""
    grown = SharedList(state)
    for write in writes:
        grown += write
    return grown


def merge(state: Mapping[str, T], writes: Sequence[Mapping[str, T | None]]) -> dict[str, T]:
    """Return a copy of `state`, updated with `writes`. A value of `None` removes the key."""
    merged = dict(state)
    for write in writes:
        for key, value in write.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
    return merged


def replace_by_id(
    state: list[Mapping[str, T]], writes: Sequence[list[Mapping[str, T]]]
) -> list[Mapping[str, T]]:
    """Add new items to a list, and replace items that have the same `id`."""
    items = {item["id"]: item for item in state}
    for write in writes:
        for item in write:
            items[item["id"]] = item
    return list(items.values())


def add_totals(state: Totals, writes: Sequence[Mapping[str, object]]) -> Totals:
    """Add the numbers from each update in `writes` to the totals, and return the new totals."""
    totals = dict[str, Any](state)
    for write in writes:
        for key, value in write.items():
            totals[key] = totals.get(key, 0) + value
    return cast(Totals, totals)


def merge_facts(
    state: Mapping[str, ModelFacts], writes: Sequence[Mapping[str, ModelFacts]]
) -> dict[str, ModelFacts]:
    """Return what is known about models by name. The lowest limits and the highest ratio count."""
    merged = dict(state)
    for write in writes:
        for model, new in write.items():
            old = merged.get(model, {})
            facts: ModelFacts = {**old, **new}
            if "limit" in old and "limit" in new:
                facts["limit"] = min(old["limit"], new["limit"])
            if "max_reply" in old and "max_reply" in new:
                facts["max_reply"] = min(old["max_reply"], new["max_reply"])
            if "ratio" in old and "ratio" in new:
                facts["ratio"] = max(old["ratio"], new["ratio"])
            if "settings" in old and "settings" in new:
                facts["settings"] = {**old["settings"], **new["settings"]}
            if "told" in old and "told" in new:
                facts["told"] = list(dict.fromkeys([*old["told"], *new["told"]]))
            merged[model] = facts
    return merged


class DropThrough(TypedDict):
    """Operation that removes old messages from the window of recent messages.

    All messages up to the transcript position `seq` are removed.
    """

    op: Literal["drop_through"]
    seq: int


class AssignIds(TypedDict):
    """Operation that assigns transcript entry ids to new input messages.

    The oldest message comes first. A message keeps its own id.
    """

    op: Literal["assign_ids"]
    ids: list[str]
    """Transcript entry id of each new message, oldest first."""
    names: list[str]
    """Speaker of each new message, oldest first. The speakers become the messages' names."""


RESULT_ID_PREFIX = "judge-"
"""Prefix for the id of the message that contains the debate's result. This message has no transcript
entry."""


class DropReplies(TypedDict):
    """Operation that removes a person's replies to questions from the window of recent messages."""

    op: Literal["drop_replies"]


ENTRY = "entry"
"""Key in a message's `additional_kwargs` that holds the id of its transcript entry."""
USER_PROVIDED = "given"
"""Key in `additional_kwargs` that marks user messages with a transcript entry."""

WindowItem = DropThrough | AssignIds | DropReplies | messages.MessageLikeRepresentation


def fold_window(
    state: list[messages.BaseMessage], writes: Sequence[WindowItem | list[WindowItem]]
) -> list[messages.BaseMessage]:
    """Apply new messages and operations to the window of recent messages.

    Return the new window. A write is one item or a list of items: messages in any form that LangChain
    converts, or operations. Operations are plain dicts, not messages, so that LangGraph's `messages` stream
    does not show them.
    """
    window = list(state)
    for write in writes:
        for item in write if isinstance(write, list) else [write]:
            if isinstance(item, dict) and "op" in item:
                window = _apply_operation(window, cast(DropThrough | AssignIds | DropReplies, item))
            else:
                window = _add_message(window, item)
    return window


def entry_id_of(message: messages.BaseMessage) -> str:
    """Return the id of a message's entry. Messages of older versions have it as their own id."""
    return str(message.additional_kwargs.get(ENTRY) or message.id or "")


def is_new_input(message: messages.BaseMessage) -> bool:
    """Return True if a message is new input that is not in the transcript yet."""
    known = entry_id_of(message)
    return seq_of(known) is None and not known.startswith(RESULT_ID_PREFIX)


def _apply_operation(
    window: list[messages.BaseMessage], operation: DropThrough | AssignIds | DropReplies
) -> list[messages.BaseMessage]:
    if operation["op"] == "drop_through":
        return [m for m in window if is_new_input(m) or (seq_of(entry_id_of(m)) or 0) > operation["seq"]]
    if operation["op"] == "drop_replies":
        return [message for message in window if message.type != "human" or not is_new_input(message)]
    identities = iter(zip(operation["ids"], operation["names"], strict=True))
    adopted = []
    for message in window:
        identity = next(identities, None) if is_new_input(message) else None
        if identity:
            entry, name = identity
            linked = {**message.additional_kwargs, ENTRY: entry, USER_PROVIDED: True}
            message = message.model_copy(
                update={"id": message.id or entry, "name": name, "additional_kwargs": linked}
            )
        adopted.append(message)
    return adopted


def _add_message(
    window: list[messages.BaseMessage], item: messages.MessageLikeRepresentation
) -> list[messages.BaseMessage]:
    message = item if isinstance(item, messages.BaseMessage) else messages.convert_to_messages([item])[0]
    if isinstance(message, messages.RemoveMessage):
        return [kept for kept in window if kept.id != message.id]
    if message.id is None or all(kept.id != message.id for kept in window):
        return [*window, message]
    # A client may send a message again. If the message has an entry, it stays as it is.
    replaces = ENTRY in message.additional_kwargs
    return [
        message if kept.id == message.id and (replaces or is_new_input(kept)) else kept for kept in window
    ]
