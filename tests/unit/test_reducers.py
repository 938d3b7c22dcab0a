from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel

from moot.graph.debate import build_graph
from moot.state.reducers import add_totals, append, entry_id_of, fold_window, latest, merge, replace_by_id

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

CASES = [
    pytest.param(latest, st.just({}), st.dictionaries(keys, texts), id="latest"),
    pytest.param(append, st.lists(texts), st.lists(texts), id="append"),
    pytest.param(merge, st.dictionaries(keys, texts), st.dictionaries(keys, texts | st.none()), id="merge"),
    pytest.param(add_totals, numbers, numbers, id="add_totals"),
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


def test_every_channel_that_stores_writes_folds_them_by_a_reducer_whose_law_is_tested_here() -> None:
    channels = build_graph().channels.values()
    used = {channel.reducer for channel in channels if isinstance(channel, DeltaChannel)}
    assert used == {case.values[0] for case in CASES}


@pytest.mark.parametrize(("reducer", "states", "writes"), CASES)
@given(data=st.data())
def test_a_reducer_gives_the_same_however_its_writes_are_batched(
    reducer: Reducer, states: st.SearchStrategy[Any], writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    state = data.draw(states)
    xs, ys = data.draw(st.lists(writes, max_size=4)), data.draw(st.lists(writes, max_size=4))
    assert reducer(reducer(state, xs), ys) == reducer(state, xs + ys)


@pytest.mark.parametrize(("reducer", "states", "writes"), CASES)
@given(data=st.data())
def test_a_reducer_never_changes_what_it_is_given(
    reducer: Reducer, states: st.SearchStrategy[Any], writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    state, xs = data.draw(states), data.draw(st.lists(writes, max_size=4))
    before = deepcopy((state, xs))
    reducer(state, xs)
    assert (state, xs) == before


def test_dropping_keeps_what_people_said_and_nobody_has_taken_up_yet() -> None:
    window = [_message(1, "old"), HumanMessage(content="wait", id="from-studio"), _message(2, "new")]
    kept = fold_window(window, [{"op": "drop_through", "seq": 1}])
    assert [message.id for message in kept] == ["from-studio", "m000002"]


def test_adopting_links_outside_messages_to_entries_in_their_order_and_keeps_their_ids() -> None:
    window = [HumanMessage(content="one", id="x"), _message(5, "said"), HumanMessage(content="two", id="y")]
    operation = {"op": "assign_ids", "ids": ["m000006", "m000007"], "names": ["user", "user"]}
    adopted = fold_window(window, [operation])
    assert [(m.id, entry_id_of(m), m.content) for m in adopted] == [
        ("x", "m000006", "one"),
        ("m000005", "m000005", "said"),
        ("y", "m000007", "two"),
    ]
    again = fold_window(adopted, [HumanMessage(content="sent again", id="x")])
    assert again == adopted
