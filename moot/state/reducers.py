"""How channels fold their writes: deterministic and batching-invariant, so that a checkpoint may replay them.

For every reducer here `r(r(s, xs), ys) == r(s, xs + ys)`, and no reducer changes the state it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from langchain_core.messages import BaseMessage, RemoveMessage, convert_to_messages

from moot.state.entries import seq_of

Totals = TypeVar("Totals", bound=Mapping[str, object])
"""Numbers by name, such as `EntryUsage`."""


def latest(state: Any, writes: Sequence[Any]) -> Any:
    """Keep the last write."""
    return writes[-1] if writes else state


def append(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """Append each write's items."""
    return [*state, *(item for write in writes for item in write)]


def merge(state: dict[str, Any], writes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Replace each key that a write names; a key written as `None` is removed."""
    merged = dict(state)
    for write in writes:
        for key, value in write.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
    return merged


def merge_fields(state: dict[str, Any], writes: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Replace, in the record under each key that a write names, the fields that it names."""
    merged = dict(state)
    for write in writes:
        for key, fields in write.items():
            merged[key] = {**merged.get(key, {}), **fields}
    return merged


def fold_rounds(state: list[Any], writes: Sequence[list[Mapping[str, Any]]]) -> list[Any]:
    """Append round records; one of the last record's round is folded into it.

    Its `positions` are merged, its other lists appended, everything else replaced.
    """
    rounds = list(state)
    for record in (record for write in writes for record in write):
        if rounds and rounds[-1]["round"] == record["round"]:
            rounds[-1] = _fold_round(rounds[-1], record)
        else:
            rounds.append(dict(record))
    return rounds


def _fold_round(known: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    folded = {**known, **record}
    for key in known.keys() & record.keys():
        if isinstance(known[key], dict):
            folded[key] = {**known[key], **record[key]}
        elif isinstance(known[key], list):
            folded[key] = [*known[key], *record[key]]
    return folded


def add_up(state: Totals, writes: Sequence[Mapping[str, object]]) -> Totals:
    """Add each write's numbers to the totals; what calls used is added up by this alone."""
    totals = dict[str, Any](state)
    for write in writes:
        for key, value in write.items():
            totals[key] = totals.get(key, 0) + value
    return cast(Totals, totals)


def fold_window(state: list[BaseMessage], writes: Sequence[Any]) -> list[BaseMessage]:
    """Fold messages and window operations into the window.

    A write is one item or a list of items: messages in any form that LangChain converts, or

    - `{"op": "drop_through", "seq": n}`: forget the entries up to `seq` n;
    - `{"op": "adopt", "ids": [...], "names": [...]}`: give messages that came from outside, oldest first, the
      ids and names of their entries.

    Operations are plain dicts rather than messages, so that LangGraph's `messages` stream never shows them.
    """
    window = list(state)
    for write in writes:
        for item in write if isinstance(write, list) else [write]:
            window = _operate(window, item) if _is_operation(item) else _add_message(window, item)
    return window


def _is_operation(item: Any) -> bool:
    return isinstance(item, Mapping) and "op" in item


def is_foreign(message: BaseMessage) -> bool:
    """Return whether a window message came from outside and has no entry yet."""
    return message.id is None or seq_of(message.id) is None


def _operate(window: list[BaseMessage], operation: Mapping[str, Any]) -> list[BaseMessage]:
    if operation["op"] == "drop_through":
        return [m for m in window if is_foreign(m) or (seq_of(m.id or "") or 0) > operation["seq"]]
    adopted = iter(zip(operation["ids"], operation["names"], strict=True))
    return [_adopt(m, next(adopted, None)) if is_foreign(m) else m for m in window]


def _adopt(message: BaseMessage, identity: tuple[str, str] | None) -> BaseMessage:
    if identity is None:
        return message
    return message.model_copy(update={"id": identity[0], "name": identity[1]})


def _add_message(window: list[BaseMessage], item: Any) -> list[BaseMessage]:
    message = item if isinstance(item, BaseMessage) else convert_to_messages([item])[0]
    if isinstance(message, RemoveMessage):
        return [kept for kept in window if kept.id != message.id]
    if message.id is not None and any(kept.id == message.id for kept in window):
        return [message if kept.id == message.id else kept for kept in window]
    return [*window, message]
