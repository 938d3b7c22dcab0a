"""How channels fold their writes: deterministic and batching-invariant, so that a checkpoint may replay them.

For every reducer here `r(r(s, xs), ys) == r(s, xs + ys)`, and no reducer changes the state it is given.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeVar, cast

from langchain_core.messages import (
    BaseMessage,
    MessageLikeRepresentation,
    RemoveMessage,
    convert_to_messages,
)
from typing_extensions import TypedDict

from moot.state.entries import seq_of

T = TypeVar("T")
Totals = TypeVar("Totals", bound=Mapping[str, object])
"""Numbers by name, such as `EntryUsage`."""


def latest(state: T, writes: Sequence[T]) -> T:
    """Keep the last write."""
    return writes[-1] if writes else state


class Appended(list[T]):
    """A list that nobody changes: a copy of it is itself.

    LangGraph copies every channel wherever it decides where to go next, of long debates twice a turn.
    """

    def __copy__(self) -> Self:
        return self


def append(state: list[T], writes: Sequence[list[T]]) -> list[T]:
    """Append each write's items."""
    grown = Appended(state)
    for write in writes:
        grown += write
    return grown


def merge(state: Mapping[str, T], writes: Sequence[Mapping[str, T | None]]) -> dict[str, T]:
    """Replace each key that a write names; a key written as `None` is removed."""
    merged = dict(state)
    for write in writes:
        for key, value in write.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
    return merged


def add_up(state: Totals, writes: Sequence[Mapping[str, object]]) -> Totals:
    """Add each write's numbers to the totals; what calls used is added up by this alone."""
    totals = dict[str, Any](state)
    for write in writes:
        for key, value in write.items():
            totals[key] = totals.get(key, 0) + value
    return cast(Totals, totals)


class DropThrough(TypedDict):
    """Forget the entries up to a `seq`."""

    op: Literal["drop_through"]
    seq: int


class Adopt(TypedDict):
    """Give messages that came from outside, oldest first, the ids and names of their entries."""

    op: Literal["adopt"]
    ids: list[str]
    names: list[str]


OUTCOME = "judge-"
"""Begins the id of the message that tells the outcome: it has no entry, and no view shows it."""


class DropAnswers(TypedDict):
    """Forget what people said from outside: it has become the answer to a question."""

    op: Literal["drop_answers"]


GIVEN = "given"
"""Marks, among a message's `additional_kwargs`, one that came from outside and got an entry."""

WindowItem = DropThrough | Adopt | DropAnswers | MessageLikeRepresentation


def fold_window(
    state: list[BaseMessage], writes: Sequence[WindowItem | list[WindowItem]]
) -> list[BaseMessage]:
    """Fold messages and window operations into the window.

    A write is one item or a list of items: messages in any form that LangChain converts, or operations.
    Operations are plain dicts rather than messages, so that LangGraph's `messages` stream never shows them.
    """
    window = list(state)
    for write in writes:
        for item in write if isinstance(write, list) else [write]:
            if isinstance(item, dict) and "op" in item:
                window = _operate(window, cast(DropThrough | Adopt | DropAnswers, item))
            else:
                window = _add_message(window, item)
    return window


def is_foreign(message: BaseMessage) -> bool:
    """Return whether a window message came from outside and has no entry yet."""
    return message.id is None or (seq_of(message.id) is None and not message.id.startswith(OUTCOME))


def _operate(window: list[BaseMessage], operation: DropThrough | Adopt | DropAnswers) -> list[BaseMessage]:
    if operation["op"] == "drop_through":
        return [m for m in window if is_foreign(m) or (seq_of(m.id or "") or 0) > operation["seq"]]
    if operation["op"] == "drop_answers":
        return [message for message in window if message.type != "human" or not is_foreign(message)]
    identities = iter(zip(operation["ids"], operation["names"], strict=True))
    adopted = []
    for message in window:
        identity = next(identities, None) if is_foreign(message) else None
        if identity:
            kept = {**message.additional_kwargs, GIVEN: True}
            renamed = {"id": identity[0], "name": identity[1], "additional_kwargs": kept}
            message = message.model_copy(update=renamed)
        adopted.append(message)
    return adopted


def _add_message(window: list[BaseMessage], item: MessageLikeRepresentation) -> list[BaseMessage]:
    message = item if isinstance(item, BaseMessage) else convert_to_messages([item])[0]
    if isinstance(message, RemoveMessage):
        return [kept for kept in window if kept.id != message.id]
    if message.id is not None and any(kept.id == message.id for kept in window):
        return [message if kept.id == message.id else kept for kept in window]
    return [*window, message]
