"""Laws that every reducer of the state must satisfy."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel

from moot.graph.debate import build_graph
from moot.state.reducers import (
    add_totals,
    append,
    entry_id_of,
    fold_window,
    latest,
    merge,
    merge_facts,
    replace_by_id,
)

Reducer = Callable[[Any, list[Any]], Any]

texts = st.text(max_size=8)
keys = st.sampled_from(["a", "b", "c"])
seqs = st.integers(0, 12)


def _message(seq: int, text: str) -> AIMessage:
    return AIMessage(content=text, id=f"m{seq:06d}", name="ada")


window_items = st.one_of(
    st.builds(_message, seqs, texts),
    st.builds(lambda text, n: HumanMessage(content=text, id=f"outside-{n}"), texts, seqs),
    st.builds(lambda seq: RemoveMessage(id=f"m{seq:06d}"), seqs),
    st.builds(lambda seq: {"op": "drop_through", "seq": seq}, seqs),
    st.builds(lambda seq: {"op": "assign_ids", "ids": [f"m{seq:06d}"], "names": ["user"]}, seqs),
    st.builds(lambda text: {"role": "user", "content": text, "id": "outside-1"}, texts),
)
numbers = st.dictionaries(keys, st.integers(-5, 5) | st.floats(0, 1, allow_nan=False))
cards = st.fixed_dictionaries({"id": keys, "name": texts})
facts = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.integers(1, 9),
        "ratio": st.floats(1, 4),
        "max_reply": st.integers(1, 9),
        "settings": st.dictionaries(keys, st.booleans()),
        "told": st.lists(texts, unique=True),
    },
)

CASES = [
    pytest.param(latest, st.just({}), st.dictionaries(keys, texts), id="latest"),
    pytest.param(append, st.lists(texts), st.lists(texts), id="append"),
    pytest.param(merge, st.dictionaries(keys, texts), st.dictionaries(keys, texts | st.none()), id="merge"),
    pytest.param(add_totals, numbers, numbers, id="add_totals"),
    pytest.param(merge_facts, st.dictionaries(keys, facts), st.dictionaries(keys, facts), id="merge_facts"),
    pytest.param(
        replace_by_id,
        st.lists(cards, unique_by=lambda card: card["id"]),
        st.lists(cards),
        id="replace_by_id",
    ),
    pytest.param(
        fold_window,
        st.lists(st.builds(_message, seqs, texts), unique_by=lambda m: m.id, max_size=4),
        window_items | st.lists(window_items, max_size=3),
        id="fold_window",
    ),
]


def test_every_reducer_of_a_delta_channel_is_tested_here() -> None:
    channels = build_graph().channels.values()
    used = {channel.reducer for channel in channels if isinstance(channel, DeltaChannel)}
    assert used == {case.values[0] for case in CASES}


@pytest.mark.parametrize(("reducer", "states", "writes"), CASES)
@given(data=st.data())
def test_reducer_result_does_not_depend_on_the_batching_of_writes(
    reducer: Reducer, states: st.SearchStrategy[Any], writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    state = data.draw(states)
    xs, ys = data.draw(st.lists(writes, max_size=4)), data.draw(st.lists(writes, max_size=4))
    assert reducer(reducer(state, xs), ys) == reducer(state, xs + ys)


@pytest.mark.parametrize(("reducer", "states", "writes"), CASES)
@given(data=st.data())
def test_reducer_does_not_mutate_its_arguments(
    reducer: Reducer, states: st.SearchStrategy[Any], writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    state, xs = data.draw(states), data.draw(st.lists(writes, max_size=4))
    before = deepcopy((state, xs))
    reducer(state, xs)
    assert (state, xs) == before


def test_drop_through_keeps_outside_messages_without_entry_ids() -> None:
    window = [_message(1, "old"), HumanMessage(content="wait", id="from-studio"), _message(2, "new")]
    kept = fold_window(window, [{"op": "drop_through", "seq": 1}])
    assert [message.id for message in kept] == ["from-studio", "m000002"]


def test_assign_ids_links_outside_messages_to_entries_in_order() -> None:
    window = [HumanMessage(content="one", id="x"), _message(5, "said"), HumanMessage(content="two", id="y")]
    operation = {"op": "assign_ids", "ids": ["m000006", "m000007"], "names": ["user", "user"]}
    linked = fold_window(window, [operation])
    assert [(m.id, entry_id_of(m), m.content) for m in linked] == [
        ("x", "m000006", "one"),
        ("m000005", "m000005", "said"),
        ("y", "m000007", "two"),
    ]
    again = fold_window(linked, [HumanMessage(content="sent again", id="x")])
    assert again == linked
